"""Verbs that read rows at one position.

describe   table | view | query, columns          its Arrow schema, and what it is
lease      position                               hold a position for the tasks of a job
release    lease
splits     lease, table | view, count             key ranges of about the same size
scan       lease, table | view, columns, range    the rows of one range
query      lease, query                           the rows of a SELECT
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from belvedere.catalog.model import Table
from belvedere.catalog.relation import compiled_table
from belvedere.codec.arrow import rows_to_arrow
from belvedere.errors import InvalidInput
from belvedere.interfaces.verbs import queries
from belvedere.interfaces.verbs.relations import Named, named
from belvedere.interfaces.verbs.serving import Arguments, Peer, Stream, Verb
from belvedere.interfaces.verbs.splitting import split_range

SCAN_BATCH_ROWS = 20_000
SPLITS_MAX = 4096


def describe(peer: Peer, arguments: Arguments) -> dict[str, Any]:
    if arguments.has("query"):
        schema = queries.schema_of(peer, arguments.text("query"))
        return {"kind": "query", "schema": _bytes_of(schema), "key": []}
    found = named(peer.database.catalog, arguments)
    item = found.item
    is_table = isinstance(item, Table)
    key = [item.columns[slot].name for slot in item.primary_key] if is_table else []
    return {
        "kind": "table" if is_table else "view",
        "schema": _bytes_of(found.schema),
        "key": key,
        "relation": item.id,
    }


def _bytes_of(schema: pa.Schema) -> bytes:
    return bytes(schema.serialize())


def lease(peer: Peer, arguments: Arguments) -> dict[str, Any]:
    made = peer.serving.leases.take(arguments.optional_number("position"))
    return {"lease": made.id, "position": made.position}


def release(peer: Peer, arguments: Arguments) -> None:
    peer.serving.leases.release(arguments.text("lease"))


def splits(peer: Peer, arguments: Arguments) -> list[list[bytes]]:
    """Ranges `start <= key < end` that cover the relation, each about as large as the others."""
    count = arguments.number("count")
    if not 1 <= count <= SPLITS_MAX:
        raise InvalidInput("number of splits is out of range", sqlstate="22023", found=count)
    with _held(peer, arguments) as held:
        found = named(held.reader.catalog, arguments)
        if not isinstance(found.item, Table):
            return [[b"", b""]]
        compiled = compiled_table(held.reader.catalog, found.item.id)
        return split_range(held.reader, compiled.start, compiled.end, count)


def scan(peer: Peer, arguments: Arguments) -> Stream:
    with _held(peer, arguments) as held:
        found = named(held.reader.catalog, arguments)
    if not isinstance(found.item, Table):
        return queries.view_rows(peer, arguments, found)
    return Stream(found.schema, _table_rows(peer, arguments, found))


def _table_rows(peer: Peer, arguments: Arguments, found: Named) -> Iterator[pa.RecordBatch]:
    start, end = arguments.data("start"), arguments.data("end")
    with _held(peer, arguments) as held:
        compiled = compiled_table(held.reader.catalog, found.item.id)
        start, end = max(start, compiled.start), min(end, compiled.end)
        batches = held.reader.scan_values(start, end, batch_rows=SCAN_BATCH_ROWS)
        for values in batches:
            yield rows_to_arrow(compiled.layout, values, found.slots, found.names)


def query(peer: Peer, arguments: Arguments) -> Stream:
    with _held(peer, arguments) as held:
        table = queries.run(peer, held, arguments.text("query"))
    return Stream(table.schema, table.to_batches(max_chunksize=SCAN_BATCH_ROWS))


def _held(peer: Peer, arguments: Arguments) -> Any:
    """The lease that the request names."""
    leases = peer.serving.leases
    return leases.using(arguments.text("lease"), arguments.number("position"))


VERBS: dict[str, Verb] = {
    "describe": describe,
    "lease": lease,
    "release": release,
    "splits": splits,
    "scan": scan,
    "query": query,
}
