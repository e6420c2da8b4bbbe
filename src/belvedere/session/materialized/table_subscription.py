"""A stream of a table's changes: `con.subscribe(table, from_position)`, read from the change log.

An update is the old row with weight -1 and the new one with 1; rows of one position come together,
deleted ones first. The log reaches back as far as its retention says (`Config`); nothing is kept
for a subscriber, and none costs a writer anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from belvedere.catalog.catalog import Catalog, is_dropped
from belvedere.catalog.model import Table
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.errors import Error, InvalidInput, Unavailable
from belvedere.session.materialized.change_stream import Subscription, ViewChange
from belvedere.session.materialized.subscription import (
    StoreSubscription,
    open_view_subscription,
)
from belvedere.session.rights.denials import permission_denied
from belvedere.types import Row
from belvedere.views.changefeed.entries import compute_net_row_changes

if TYPE_CHECKING:
    from belvedere.session.session import Session

RECORDS_MAX = 1_000
"""How many log records are read at a time."""


class TableSubscription(StoreSubscription):
    def __init__(
        self,
        session: Session,
        table: Table,
        position: int,
        timeout_s: float | None,
        shown: Callable[[Error], Exception] = lambda error: error,
    ) -> None:
        super().__init__(session, position, timeout_s, shown=shown)
        self._table = table

    def _read_new_changes(self) -> list[ViewChange]:
        host = self._session.host
        newest = host.position
        found: list[ViewChange] = []
        while not found and self._read < newest:
            require_log_retained(self._session, self._read, self._table)
            through = min(newest, self._read + RECORDS_MAX)
            decode = self._make_row_decoder(host.catalog)
            for record in host.log.read(self._read, through):
                gone, came = [], []
                for change in record.changes():
                    if change.relation == self._table.id:
                        gone += [] if change.old is None else [decode(change.old)]
                        came += [] if change.new is None else [decode(change.new)]
                found += [
                    ViewChange(record.position, row, weight)
                    for row, weight in compute_net_row_changes(gone, came)
                ]
            self._read = through
        if not found:
            self.position = self._read
        return found

    def _make_row_decoder(self, catalog: Catalog) -> Callable[[bytes], Row]:
        """The columns that a SELECT * shows now; a row from before a column has its default."""
        item = catalog.get(self._table.id)
        if not isinstance(item, Table) or is_dropped(item):
            raise Unavailable("the table was dropped", sqlstate="55000", table=self._table.name)
        compiled = compiled_table(catalog, self._table.id)
        slots = [column.slot for column in compiled.live_columns if not column.hidden]

        def decode_row(data: bytes) -> Row:
            row = compiled.decode(data)
            return tuple([row[slot] for slot in slots])

        return decode_row


def open_subscription(
    session: Session,
    name: str,
    start: int | str | None = None,
    timeout_s: float | None = None,
    shown: Callable[[Error], Exception] = lambda error: error,
) -> Subscription:
    """The changes of a table or a materialized view after a position, or that of a token (None:
    from now on)."""
    from_position = session.host.token_to_position(start) if isinstance(start, str) else start
    schema, _, last = name.rpartition(".")
    table = session.host.catalog.find_relation(last, schema or "public")
    if table is None:
        raise InvalidInput("table or materialized view does not exist", sqlstate="42P01", name=name)
    rights = session.identity.find_rights_unless_superuser(session.host.catalog)
    if rights is not None and table is not None and not rights.has(table, "r"):
        raise permission_denied(table)
    if not isinstance(table, Table):
        return open_view_subscription(session, name, from_position, timeout_s, shown)
    position = session.host.position if from_position is None else from_position
    if not 0 <= position <= session.host.position:
        raise InvalidInput(
            "position is not in the log",
            sqlstate="22023",
            position_wanted=position,
            newest=session.host.position,
        )
    require_log_retained(session, position, table)
    return TableSubscription(session, table, position, timeout_s, shown)


def require_log_retained(session: Session, position: int, table: Table) -> None:
    first = session.host.log.first_position
    if position < first - 1:
        raise InvalidInput(
            "position is no longer in the log",
            sqlstate="22023",
            hint="read the table, and subscribe from con.token",
            table=table.name,
            position_wanted=position,
            first=first - 1,
        )
