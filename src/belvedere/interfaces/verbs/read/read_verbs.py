"""Verbs that read rows at one position.

    describe   table | view | query, columns            its Arrow schema and kind
    lease      position                                 hold a position for the tasks of a job
    release    lease
    splits     lease, table | view, count, filters      parts of similar size
    scan       lease, table | view, columns, part       the rows of one part
    query      lease, query                             the rows of a SELECT

A part is a list of key ranges. The empty list stands for all rows that match the filters, found by
a query: through an index, or for a view that cannot be read in parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa

from belvedere.catalog.model import Table, View
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.codec.arrow.rows_to_arrow import rows_to_arrow
from belvedere.errors import InvalidInput
from belvedere.interfaces.verbs.leases import SnapshotLease
from belvedere.interfaces.verbs.peer import Arguments, Peer, Stream, Verb
from belvedere.interfaces.verbs.read import queries
from belvedere.interfaces.verbs.read.filters import (
    FilterCondition,
    KeyRange,
    parse_filters,
    plan_access,
)
from belvedere.interfaces.verbs.read.key_splits import split_range
from belvedere.interfaces.verbs.read.relations import NamedRelation, find_relation
from belvedere.interfaces.verbs.read.view_scan import view_range, view_rows

SCAN_BATCH_ROWS = 20_000
SPLITS_MAX = 4096


def describe_relation(peer: Peer, arguments: Arguments) -> dict[str, Any]:
    if arguments.has("query"):
        schema = queries.schema_of(peer, arguments.get_text("query"))
        return {"kind": "query", "schema": _serialize_schema(schema), "key": []}
    found = find_relation(peer.database.catalog, arguments)
    item = found.item
    if isinstance(item, Table):
        kind, key = "table", [item.columns[slot].name for slot in item.primary_key]
    else:
        kind, key = "view", []
    return {
        "kind": kind,
        "schema": _serialize_schema(found.arrow_schema),
        "key": key,
        "relation": item.id,
    }


def _serialize_schema(schema: pa.Schema) -> bytes:
    return bytes(schema.serialize())


def take_lease(peer: Peer, arguments: Arguments) -> dict[str, Any]:
    made = peer.served_store.leases.take_lease(arguments.optional_number("position"))
    return {"lease": made.id, "position": made.position}


def release_lease(peer: Peer, arguments: Arguments) -> None:
    peer.served_store.leases.release(arguments.get_text("lease"))


def split_relation(peer: Peer, arguments: Arguments) -> list[list[KeyRange]]:
    """Parts that cover all rows of the relation that match the filters."""
    count = arguments.get_number("count")
    if not 1 <= count <= SPLITS_MAX:
        raise InvalidInput("number of splits is out of range", sqlstate="22023", found=count)
    with _use_lease(peer, arguments) as held:
        found = find_relation(held.reader.catalog, arguments)
        condition = parse_filters(found, arguments)
        if isinstance(found.item, View):
            whole = None if condition else view_range(peer, held, found.item)
            ranges = None if whole is None else [whole]
        else:
            ranges = plan_access(peer, held, found, condition).ranges
        if ranges is None:
            return [[]]
        return _group_ranges(held, ranges, count)


def _group_ranges(held: SnapshotLease, ranges: list[KeyRange], count: int) -> list[list[KeyRange]]:
    """Split one range by its keys; distribute many ranges evenly over the parts."""
    if len(ranges) == 1:
        return [[(low, high)] for low, high in split_range(held.reader, *ranges[0], count)]
    size = -(-len(ranges) // count) if ranges else 1
    return [ranges[at : at + size] for at in range(0, len(ranges), size)]


def scan_part(peer: Peer, arguments: Arguments) -> Stream:
    part = _parse_part(arguments.get_list("part"))
    with _use_lease(peer, arguments) as held:
        found = find_relation(held.reader.catalog, arguments)
        if not part:
            table = _query_rows(peer, held, found, parse_filters(found, arguments))
            return Stream(found.arrow_schema, _to_batches(table.cast(found.arrow_schema)))
    return Stream(found.arrow_schema, _scan_ranges(peer, arguments, found, part))


def _query_rows(
    peer: Peer, held: SnapshotLease, found: NamedRelation, condition: FilterCondition | None
) -> pa.Table:
    """Read the rows by a query. At a past position there is no index to serve the filters."""
    if condition is None or held.transaction is None:
        return queries.run_select(peer, held, queries.select_text(held.reader.catalog, found))
    text = queries.select_text(held.reader.catalog, found, condition.text)
    return queries.run_select(peer, held, text, condition.parameters)


def _parse_part(given: list[Any]) -> list[KeyRange]:
    for item in given:
        match item:
            case [bytes(), bytes()]:
                continue
            case _:
                raise InvalidInput("not a part of a relation", sqlstate="08P01")
    return [(low, high) for low, high in given]


def _scan_ranges(
    peer: Peer, arguments: Arguments, found: NamedRelation, part: list[KeyRange]
) -> Iterator[pa.RecordBatch]:
    with _use_lease(peer, arguments) as held:
        if isinstance(found.item, View):
            for batch in view_rows(peer, held, found, part):
                yield batch.cast(found.arrow_schema)
            return
        compiled = compiled_table(held.reader.catalog, found.item.id)
        for low, high in part:
            start, end = max(low, compiled.start), min(high, compiled.end)
            for values in held.reader.scan_values(start, end, batch_rows=SCAN_BATCH_ROWS):
                yield rows_to_arrow(compiled.layout, values, found.column_slots, found.column_names)


def run_query(peer: Peer, arguments: Arguments) -> Stream:
    with _use_lease(peer, arguments) as held:
        table = queries.run_select(peer, held, arguments.get_text("query"))
    return Stream(table.schema, _to_batches(table))


def _to_batches(table: pa.Table) -> list[pa.RecordBatch]:
    found: list[pa.RecordBatch] = table.to_batches(max_chunksize=SCAN_BATCH_ROWS)
    return found


def _use_lease(peer: Peer, arguments: Arguments) -> AbstractContextManager[SnapshotLease]:
    """The lease that the request names."""
    leases = peer.served_store.leases
    return leases.use_lease(arguments.get_text("lease"), arguments.get_number("position"))


VERBS: dict[str, Verb] = {
    "describe": describe_relation,
    "lease": take_lease,
    "release": release_lease,
    "splits": split_relation,
    "scan": scan_part,
    "query": run_query,
}
