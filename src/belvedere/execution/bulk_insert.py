"""Bulk insert of many new rows of one table, for COPY and large INSERTs.

It stores the same rows as `writes.insert`, with these differences:
- Arrow encodes entire columns, without a Python loop over values, where the types allow;
- keys are looked up many at a time, and not at all when all of them sort after the table's last;
- no root locks are taken. They would only make other transactions wait: the commit section detects
  what another transaction commits meanwhile, and the statement runs again.

Unique values and foreign keys are checked at commit, as for any insert.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from belvedere import interrupts
from belvedere.catalog.relation_codecs import CompiledTable
from belvedere.execution.memory_limit import Memory
from belvedere.execution.row_writes import BATCH_ROWS
from belvedere.txn.gc_pause import pause_cycle_collector
from belvedere.txn.transaction.table_rows import duplicate_key_violation, null_violation
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import TIMED_KINDS, Kind, Row, SqlType

if TYPE_CHECKING:
    import pyarrow as pa

INTEGERS = frozenset((Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT))
"""Kinds whose keys are made by columns."""
ROWS_MIN = 500
"""Fewer rows than this are inserted one by one."""


class BulkLoader:
    """Inserts new rows of one table in one transaction, in batches of any size."""

    def __init__(self, transaction: Transaction, table: CompiledTable, memory: Memory) -> None:
        self._transaction = transaction
        self._memory = memory
        self._table = table
        self._project = table.layout.projector(table.table.primary_key)
        self._last = self._last_key()

    def add_rows(self, rows: Sequence[Row]) -> None:
        """Adds rows that have a value for every slot."""
        table = self._table
        for slot, name in table.not_null:
            for row in rows:
                if row[slot] is None:
                    raise null_violation(table, name, [row[one.slot] for one in table.live_columns])
        with pause_cycle_collector():
            self._insert_values(list(map(table.key_of, rows)), list(map(table.encode, rows)))

    def add_columns(self, batch: pa.RecordBatch) -> None:
        """Adds a batch with a column for every slot. InvalidInput when Arrow cannot cast a column:
        its values may still be convertible one by one."""
        from belvedere.codec.arrow.arrow_to_rows import arrow_to_rows  # heavy

        for slot, name in self._table.not_null:
            column = batch.column(slot)
            if column.null_count:
                first = column.is_null().index(True).as_py()
                row = [batch.column(one.slot)[first].as_py() for one in self._table.live_columns]
                raise null_violation(self._table, name, row)
        with pause_cycle_collector():
            values = arrow_to_rows(self._table.layout, batch)
            self._insert_values(self._encode_keys(batch, values), values)

    def _encode_keys(self, batch: pa.RecordBatch, values: list[bytes]) -> list[bytes]:
        """The keys of the rows of a batch, whose stored forms are `values`."""
        from belvedere.codec.arrow.arrow_to_rows import split_binary  # heavy
        from belvedere.codec.arrow.arrow_to_state import arrow_to_keys  # heavy

        codec = self._table.key
        if all(type_.kind in INTEGERS for type_ in codec.types):
            columns = [batch.column(slot) for slot in self._table.table.primary_key]
            found = arrow_to_keys(codec, columns)
            if found is not None:
                return split_binary(found)
        return list(map(codec.encode, map(self._project, values)))

    def _insert_values(self, keys: list[bytes], values: list[bytes]) -> None:
        if not values:
            return
        self._require_unused_keys(keys, values)
        self._memory.reserve_changes(values)
        for at in range(0, len(keys), BATCH_ROWS):
            interrupts.check_statement()
            some = keys[at : at + BATCH_ROWS]
            self._transaction.write_many(some, [None] * len(some), values[at : at + BATCH_ROWS])

    def _require_unused_keys(self, keys: list[bytes], values: list[bytes]) -> None:
        if len(set(keys)) < len(keys):
            seen: set[bytes] = set()
            for key, value in zip(keys, values):
                if key in seen:
                    raise duplicate_key_violation(self._table, self._table.decode(value))
                seen.add(key)
        last, self._last = self._last, max(keys)
        if last is None or min(keys) > last:
            return
        self._last = max(last, self._last)
        self._transaction.fetch_ahead(keys)
        for found, value in zip(self._transaction.multi_get(keys), values):
            if found is not None:
                raise duplicate_key_violation(self._table, self._table.decode(value))

    def _last_key(self) -> bytes | None:
        last = self._transaction.scan(self._table.start, self._table.end, reverse=True, limit=1)
        for pairs in last:
            return pairs[0][0]
        return None


def can_cast_exactly(sql_type: SqlType, arrow_type: pa.DataType) -> bool:
    """Whether Arrow's checked casts convert values of this Arrow type to the SQL type without a
    change of meaning."""
    import pyarrow.types as at  # heavy

    if sql_type.kind in TIMED_KINDS and sql_type.precision is not None:
        return False
    match sql_type.kind:
        case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT:
            return bool(at.is_integer(arrow_type))
        case Kind.DOUBLE:
            return bool(at.is_float64(arrow_type))
        case Kind.BOOLEAN:
            return bool(at.is_boolean(arrow_type))
        case Kind.NUMERIC:
            return sql_type.precision is not None and bool(at.is_decimal128(arrow_type))
        case Kind.TEXT | Kind.VARCHAR | Kind.CHAR:
            return bool(at.is_string(arrow_type) or at.is_large_string(arrow_type))
        case Kind.DATE:
            return bool(at.is_date32(arrow_type))
        case Kind.TIMESTAMP:
            return bool(at.is_timestamp(arrow_type)) and arrow_type.tz is None
        case Kind.TIMESTAMPTZ:
            return bool(at.is_timestamp(arrow_type)) and arrow_type.tz is not None
        case _:
            return False
