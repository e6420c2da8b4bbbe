"""The log is kept short without anybody asking."""

from __future__ import annotations

from decimal import Decimal

from belvedere.config import Config
from belvedere.database import Database
from belvedere.txn.batch_atomic.commit import HOUSEKEEPING_EVERY
from belvedere.txn.transaction import table_rows
from tests.views.plans import ORDERS


def test_the_log_is_trimmed_when_it_is_twice_as_long_as_it_has_to_be() -> None:
    with Database.open(":memory:", Config(log_retention_records_min=1000)) as db:
        db.change_schema(lambda edit: edit.create_table(ORDERS))
        table = db.get_compiled_table("orders")
        for number in range(HOUSEKEEPING_EVERY):
            with db.begin() as txn:
                table_rows.insert_row(txn, table, (number, None, Decimal("1.00")))
        assert db.position - 1100 <= db.log.first_position <= db.position - 900
