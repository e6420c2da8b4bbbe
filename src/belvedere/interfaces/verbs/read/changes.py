"""Verbs that read the change log, of one table or of all.

Changes of one table have its rows as structs `old` and `new`. Changes of all tables have them as
they are stored: key, old and new row in bytes, with the id and name of the relation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.describe import qualified_name
from belvedere.catalog.model import Table, View
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.codec.arrow.records_to_arrow import records_to_arrow
from belvedere.codec.arrow.rows_to_arrow import rows_to_arrow
from belvedere.codec.record import HEADER_BYTES
from belvedere.errors import InvalidInput
from belvedere.interfaces.verbs.peer import Arguments, Peer, Stream, Verb
from belvedere.interfaces.verbs.read import view_changes
from belvedere.interfaces.verbs.read.relations import NamedRelation, find_relation, split_name

EVERYTHING = "*"
BATCH_ROWS = 20_000
RECORDS = 256
GATHER_BYTES = 4 * 1024 * 1024
KINDS = pa.array([None, "insert", "update", "delete"])
_HEAD = [
    pa.field("position", pa.int64(), nullable=False),
    pa.field("time", pa.timestamp("us", "UTC"), nullable=False),
    pa.field("transaction", pa.binary(), nullable=False),
]
LOG_SCHEMA = pa.schema(
    [
        *_HEAD,
        pa.field("relation", pa.int64(), nullable=False),
        pa.field("table", pa.utf8()),
        pa.field("kind", pa.utf8(), nullable=False),
        pa.field("key", pa.binary(), nullable=False),
        pa.field("old", pa.binary()),
        pa.field("new", pa.binary()),
    ]
)


def table_schema(found: NamedRelation) -> pa.Schema:
    row = pa.struct(list(found.arrow_schema))
    return pa.schema(
        [
            *_HEAD,
            pa.field("kind", pa.utf8(), nullable=False),
            pa.field("old", row),
            pa.field("new", row),
        ]
    )


def describe_changes(peer: Peer, arguments: Arguments) -> dict[str, Any]:
    """The schema of the changes `of` a table, a view, or (`*`) all tables, and which it is."""
    of, catalog = arguments.get_text("of"), peer.database.catalog
    if of == EVERYTHING:
        return {"kind": "log", "schema": bytes(LOG_SCHEMA.serialize())}
    schema, name = split_name(catalog, of)
    if isinstance(catalog.find_relation(name, schema), View):
        found = find_relation(catalog, Arguments({"view": of}))
        return {"kind": "view", "schema": bytes(view_changes.changes_schema(found).serialize())}
    found = find_relation(catalog, Arguments({"table": of}))
    return {"kind": "table", "schema": bytes(table_schema(found).serialize())}


def stream_changes(peer: Peer, arguments: Arguments) -> Stream:
    """Changes committed with after < position <= through, of `table` or of all tables."""
    after, through = arguments.get_number("after"), arguments.get_number("through")
    last = peer.database.position
    if not 0 <= after <= through <= last:
        raise InvalidInput(
            "positions are not in the log",
            sqlstate="22023",
            after=after,
            through=through,
            newest=last,
        )
    catalog = peer.database.catalog
    logged = _read_log(peer, after, through)
    if not arguments.has("table"):
        return Stream(LOG_SCHEMA, _log_batches(catalog, logged))
    found = find_relation(catalog, arguments)
    return Stream(table_schema(found), _table_batches(catalog, found, logged))


def _read_log(peer: Peer, after: int, through: int) -> Iterator[pa.RecordBatch]:
    """Changes in batches of bounded size, however large the transactions are."""
    records: list[bytes] = []
    size = 0
    for batch in peer.database.log.read_bytes(after, through, batch_rows=RECORDS):
        for data in batch:
            records.append(data)
            size += len(data)
            if size >= GATHER_BYTES:
                yield from _slice_records(records)
                records, size = [], 0
    if records:
        yield from _slice_records(records)


def _slice_records(records: list[bytes]) -> Iterator[pa.RecordBatch]:
    found = records_to_arrow(records)
    for at in range(0, found.num_rows, BATCH_ROWS):
        yield found.slice(at, BATCH_ROWS)


def _log_batches(catalog: Catalog, logged: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    tables = [item for item in catalog.objects.values() if isinstance(item, Table)]
    names = {table.id: qualified_name(catalog, table) for table in tables}
    for batch in logged:
        relations = batch.column("relation").to_pylist()
        columns = [
            *(batch.column(i) for i in range(2)),
            batch.column("transaction").cast(pa.binary()),
            batch.column("relation"),
            pa.array([names.get(relation) for relation in relations], pa.utf8()),
            KINDS.take(batch.column("kind")),
            *(batch.column(name) for name in ("key", "old", "new")),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=LOG_SCHEMA)


def _table_batches(
    catalog: Catalog, found: NamedRelation, logged: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    schema = table_schema(found)
    for batch in logged:
        mine = batch.filter(pc.equal(batch.column("relation"), found.item.id))
        if mine.num_rows:
            columns = [
                mine.column("position"),
                mine.column("time"),
                mine.column("transaction").cast(pa.binary()),
                KINDS.take(mine.column("kind")),
                _decode_rows(catalog, found, mine.column("old")),
                _decode_rows(catalog, found, mine.column("new")),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _decode_rows(catalog: Catalog, found: NamedRelation, encoded: pa.Array) -> pa.Array:
    """Encoded rows as structs; NULL where there is none."""
    layout = compiled_table(catalog, found.item.id).layout
    there = encoded.drop_null().to_pylist()
    batch = rows_to_arrow(layout, there, found.column_slots, found.column_names)
    places = pc.cumulative_sum(encoded.is_valid().cast(pa.int64()))
    places = pc.if_else(encoded.is_valid(), pc.subtract(places, 1), pa.scalar(None, pa.int64()))
    columns = [column.take(places) for column in batch.columns]
    return pa.StructArray.from_arrays(
        columns, fields=list(found.arrow_schema), mask=encoded.is_null()
    )


def find_batch_end(peer: Peer, arguments: Arguments) -> int:
    """The last position up to which there are at most `rows` changes after `after`, counting all
    tables even if the reader reads one of them. At least one commit."""
    after, left = arguments.get_number("after"), arguments.get_number("rows")
    reached = after
    for batch in peer.database.log.read_bytes(after):
        for data in batch:
            left -= int.from_bytes(data[HEADER_BYTES - 4 : HEADER_BYTES], "little")
            if left < 0 and reached > after:
                return reached
            reached += 1
            if left <= 0:
                return reached
    return reached


def list_changed_relations(peer: Peer, arguments: Arguments) -> list[int]:
    """The relations that changed with after < position <= through."""
    after, through = arguments.get_number("after"), arguments.get_number("through")
    found: set[int] = set()
    for batch in _read_log(peer, after, through):
        found.update(pc.unique(batch.column("relation")).to_pylist())
    return sorted(found)


VERBS: dict[str, Verb] = {
    "changed": list_changed_relations,
    "changes": stream_changes,
    "describe_changes": describe_changes,
    "reach": find_batch_end,
}
