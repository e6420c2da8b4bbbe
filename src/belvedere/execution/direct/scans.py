"""Rows of a relation through each access path.

full, prefix, range on the key      scan of values, decoded column by column as wanted
key, keys                           get or multi-get
any of them on an index             index entries, then a multi-get of the rows, in chunks,
                                    unless the index covers what is wanted
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Index
from belvedere.catalog.relation import (
    CompiledIndex,
    compiled_index,
    compiled_relation,
    compiled_table,
)
from belvedere.errors import Corruption
from belvedere.execution.direct.access import KeyRange, RangesOf, keys_of, ranges_of
from belvedere.execution.direct.context import Context
from belvedere.execution.direct.expressions import Writer
from belvedere.execution.direct.source import Source
from belvedere.execution.run import Rows, Run
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.txn.border import Reader
from belvedere.types import Row

FETCH_ROWS = 256
FIRST_ROWS = (64, 256, 1024)
"""Sizes of the first batches of a range scan, before it reads all that is left."""

Fetch = Callable[[Run, Row], Iterator[Row]]
"""Rows for a run and, in an index nested loop, a left row."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A table as a scan sees it: its key range and the decoder of the wanted columns."""

    start: bytes
    end: bytes
    decode: Callable[[bytes], Row]


def compile_scan(context: Context, node: n.Scan) -> Rows:
    access = node.access
    rows: Rows
    if access.kind is paths.AccessKind.FULL and access.index is None and not access.reverse:
        rows = _full(context, node)
    else:
        fetch = compile_fetch(context, node, access)

        def rows(run: Run) -> Iterator[Row]:
            return fetch(run, run.outer)

    return rows if node.residual is None else _kept(context, node.residual, rows)


def compile_changes(context: Context, node: n.Changes) -> Rows:
    """One side of a delta: the old or the new rows, as the run provides them."""

    def rows(run: Run) -> Iterator[Row]:
        return iter(run.deltas[node.relation])

    if node.filter is None:
        return rows
    return _kept(context, node.filter, rows)


def compile_fetch(context: Context, node: n.Scan, access: paths.Access) -> Fetch:
    """The rows an access selects, before any residual condition."""
    if access.index is not None:
        return _by_index(context, node, access)
    compiled = compiled_relation(context.catalog, node.relation)
    decode = compiled.layout.projector(node.slots)
    if access.whole and access.range is None:
        return _by_keys(context, access, decode, node)
    return _by_ranges(ranges_of(context, access, compiled.key), decode, access.reverse)


def _full(context: Context, node: n.Scan) -> Rows:
    compiled = compiled_relation(context.catalog, node.relation)
    start, end, decode = compiled.start, compiled.end, compiled.layout.projector(node.slots)

    def rows(run: Run) -> Iterator[Row]:
        noticed, read = run.interrupt.read, run.memory.read
        for values in run.reader.scan_values(start, end):
            noticed(len(values))
            read(len(values))
            yield from map(decode, values)

    return rows


def _kept(context: Context, condition: e.Expression, rows: Rows) -> Rows:
    source = Source()
    truth = Writer(source, context.plan).truth(condition)
    each = source.constant(rows, "rows")
    return source.function(
        "kept", [f"for row in {each}(run):", f"    if {truth}:", "        yield row"]
    )


def _by_keys(
    context: Context, access: paths.Access, decode: Callable[[bytes], Row], node: n.Scan
) -> Fetch:
    keys = keys_of(context, access, compiled_relation(context.catalog, node.relation).key)

    def fetch(run: Run, row: Row) -> Iterator[Row]:
        wanted = keys(run, row)
        if len(wanted) == 1:
            value = run.reader.get(wanted[0])
            return iter(()) if value is None else iter((decode(value),))
        return _got(run, wanted, decode)

    return fetch


def _got(run: Run, keys: list[bytes], decode: Callable[[bytes], Row]) -> Iterator[Row]:
    for at in range(0, len(keys), FETCH_ROWS):
        run.interrupt.check()
        for value in run.reader.multi_get(keys[at : at + FETCH_ROWS]):
            if value is not None:
                yield decode(value)


def _by_ranges(ranges: RangesOf, decode: Callable[[bytes], Row], reverse: bool) -> Fetch:
    def fetch(run: Run, row: Row) -> Iterator[Row]:
        batches = _scanned(run, ranges(run, row), reverse)
        return chain.from_iterable(map(decode, values) for values in batches)

    return fetch


def _scanned(run: Run, ranges: Iterable[KeyRange], reverse: bool) -> Iterator[Iterable[bytes]]:
    """Values of the ranges in growing batches: most ranges are short, or not read to the end."""
    check, read = run.interrupt.check, run.memory.read
    reader, wanted = run.reader, run.wanted
    if not reverse and FIRST_ROWS[0] <= wanted <= FIRST_ROWS[-1]:
        yield from _values(run, ranges, wanted)
        return
    sizes = (wanted, *FIRST_ROWS) if 0 < wanted <= FIRST_ROWS[-1] else FIRST_ROWS
    for start, end in ranges:
        for size in sizes:
            count, last = 0, start
            for pairs in reader.scan(start, end, reverse=reverse, limit=size):
                count += len(pairs)
                read(len(pairs))
                last = pairs[-1][0]
                yield [value for _, value in pairs]
            if count < size:
                break
            check()
            start, end = (start, last) if reverse else (last + b"\0", end)
        else:
            for pairs in reader.scan(start, end, reverse=reverse):
                run.interrupt.read(len(pairs))
                read(len(pairs))
                yield [value for _, value in pairs]


def _values(run: Run, ranges: Iterable[KeyRange], batch_rows: int) -> Iterator[list[bytes]]:
    """The same with a known number of wanted rows: one scan, so no keys to resume from."""
    noticed, read = run.interrupt.read, run.memory.read
    for start, end in ranges:
        for values in run.reader.scan_values(start, end, batch_rows=batch_rows):
            noticed(len(values))
            read(len(values))
            yield values


# -- indexes ---------------------------------------------------------------------------------------


def _by_index(context: Context, node: n.Scan, access: paths.Access) -> Fetch:
    assert access.index is not None
    index = compiled_index(context.catalog, access.index)
    ranges = ranges_of(context, access, index.key)
    if access.covering:
        places = index_places(context.catalog, index)
        decode = index.layout.projector(tuple(places[slot] for slot in node.slots))
        return _by_ranges(ranges, decode, access.reverse)
    compiled = compiled_table(context.catalog, node.relation)
    decode = compiled.layout.projector(node.slots)
    primary = index.layout.projector(index.primary_key)
    encode = compiled.key.encode
    if index.index.unique and access.whole and _all_equal(access):
        return _by_unique(context, access, index, lambda entry: encode(primary(entry)), decode)

    def fetch(run: Run, row: Row) -> Iterator[Row]:
        for entries in _scanned(run, ranges(run, row), access.reverse):
            keys = [encode(primary(entry)) for entry in entries]
            for at in range(0, len(keys), FETCH_ROWS):
                yield from fetched(run.reader, keys[at : at + FETCH_ROWS], decode)

    return fetch


def _all_equal(access: paths.Access) -> bool:
    return all(isinstance(part, paths.OnePart) for part in access.parts)


def _by_unique(
    context: Context,
    access: paths.Access,
    index: CompiledIndex,
    key_of: Callable[[bytes], bytes],
    decode: Callable[[bytes], Row],
) -> Fetch:
    """At most one entry, whose key is only the values: one get for it and one for its row."""
    keys = keys_of(context, access, index.unique_key)

    def fetch(run: Run, row: Row) -> Iterator[Row]:
        for key in keys(run, row):
            entry = run.reader.get(key)
            if entry is not None:
                yield from fetched(run.reader, [key_of(entry)], decode)

    return fetch


def fetched(reader: Reader, keys: list[bytes], decode: Callable[[bytes], Row]) -> Iterator[Row]:
    """The rows that index entries refer to; each must exist."""
    for key, value in zip(keys, reader.multi_get(keys)):
        if value is None:
            raise Corruption("index entry points to no row", key=key.hex())
        yield decode(value)


def index_places(catalog: Catalog, compiled: CompiledIndex) -> dict[int, int]:
    """Table slot to the slot in the index's row."""
    index: Index = compiled.index
    table = catalog.table(index.table)
    slots = [part.slot for part in index.parts]
    slots += [*table.primary_key, *index.include]
    return {slot: place for place, slot in reversed(list(enumerate(slots))) if slot is not None}
