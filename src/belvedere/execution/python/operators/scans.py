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
from belvedere.catalog.relation_codecs import (
    CompiledIndex,
    compiled_index,
    compiled_relation,
    compiled_table,
)
from belvedere.errors import Corruption
from belvedere.execution.python.context import CompileContext
from belvedere.execution.python.expressions.expression_source import ExpressionWriter
from belvedere.execution.python.expressions.generated_function import GeneratedFunction
from belvedere.execution.python.operators.access import (
    KeyRange,
    RangesOf,
    compile_keys,
    compile_ranges,
)
from belvedere.execution.run import Rows, Run
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.txn.contracts import Reader
from belvedere.types import Row

FETCH_ROWS = 256
FIRST_ROWS = (64, 256, 1024)
"""Sizes of the first batches of a range scan, before it reads all that is left."""

Fetch = Callable[[Run, Row], Iterator[Row]]
"""Rows for a run and, in an index nested loop, a left row."""


@dataclass(frozen=True, slots=True)
class TableDecoder:
    """A table as a scan sees it: its key range and the decoder of the wanted columns."""

    start: bytes
    end: bytes
    decode: Callable[[bytes], Row]


def compile_scan(context: CompileContext, node: n.Scan) -> Rows:
    access = node.access
    rows: Rows
    if access.kind is paths.AccessKind.FULL and access.index is None and not access.reverse:
        rows = _compile_full_scan(context, node)
    else:
        fetch = compile_fetch(context, node, access)

        def rows(run: Run) -> Iterator[Row]:
            return fetch(run, run.outer)

    return rows if node.residual is None else _compile_filter(context, node.residual, rows)


def compile_changes(context: CompileContext, node: n.Changes) -> Rows:
    """One side of a delta: the old or the new rows, as the run provides them."""

    def delta_rows(run: Run) -> Iterator[Row]:
        return iter(run.deltas[node.relation])

    if node.filter is None:
        return delta_rows
    return _compile_filter(context, node.filter, delta_rows)


def compile_fetch(context: CompileContext, node: n.Scan, access: paths.Access) -> Fetch:
    """The rows an access selects, before any residual condition."""
    if access.index is not None:
        return _fetch_by_index(context, node, access)
    compiled = compiled_relation(context.catalog, node.relation)
    decode = compiled.layout.projector(node.slots)
    if access.full_key and access.range is None:
        return _fetch_by_keys(context, access, decode, node)
    return _fetch_by_ranges(compile_ranges(context, access, compiled.key), decode, access.reverse)


def _compile_full_scan(context: CompileContext, node: n.Scan) -> Rows:
    compiled = compiled_relation(context.catalog, node.relation)
    start, end, decode = compiled.start, compiled.end, compiled.layout.projector(node.slots)

    def scan_table(run: Run) -> Iterator[Row]:
        noticed, read = run.interrupt.count_rows, run.memory.count_read
        for values in run.reader.scan_values(start, end):
            noticed(len(values))
            read(len(values))
            yield from map(decode, values)

    return scan_table


def _compile_filter(context: CompileContext, condition: e.Expression, rows: Rows) -> Rows:
    source = GeneratedFunction()
    truth = ExpressionWriter(source, context.plan).write_truth(condition)
    each = source.add_constant(rows, "rows")
    return source.build_function(
        "kept", [f"for row in {each}(run):", f"    if {truth}:", "        yield row"]
    )


def _fetch_by_keys(
    context: CompileContext, access: paths.Access, decode: Callable[[bytes], Row], node: n.Scan
) -> Fetch:
    keys = compile_keys(context, access, compiled_relation(context.catalog, node.relation).key)

    def fetch_rows(run: Run, row: Row) -> Iterator[Row]:
        wanted = keys(run, row)
        if len(wanted) == 1:
            value = run.reader.get(wanted[0])
            return iter(()) if value is None else iter((decode(value),))
        return _get_rows(run, wanted, decode)

    return fetch_rows


def _get_rows(run: Run, keys: list[bytes], decode: Callable[[bytes], Row]) -> Iterator[Row]:
    for at in range(0, len(keys), FETCH_ROWS):
        run.interrupt.check()
        for value in run.reader.multi_get(keys[at : at + FETCH_ROWS]):
            if value is not None:
                yield decode(value)


def _fetch_by_ranges(ranges: RangesOf, decode: Callable[[bytes], Row], reverse: bool) -> Fetch:
    def fetch_rows(run: Run, row: Row) -> Iterator[Row]:
        batches = _scan_ranges(run, ranges(run, row), reverse)
        return chain.from_iterable(map(decode, values) for values in batches)

    return fetch_rows


def _scan_ranges(run: Run, ranges: Iterable[KeyRange], reverse: bool) -> Iterator[Iterable[bytes]]:
    """Values of the ranges in growing batches: most ranges are short, or not read to the end."""
    check, read = run.interrupt.check, run.memory.count_read
    reader, wanted = run.reader, run.wanted
    if not reverse and FIRST_ROWS[0] <= wanted <= FIRST_ROWS[-1]:
        yield from _scan_values(run, ranges, wanted)
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
                run.interrupt.count_rows(len(pairs))
                read(len(pairs))
                yield [value for _, value in pairs]


def _scan_values(run: Run, ranges: Iterable[KeyRange], batch_rows: int) -> Iterator[list[bytes]]:
    """The same with a known number of wanted rows: one scan, so no keys to resume from."""
    noticed, read = run.interrupt.count_rows, run.memory.count_read
    for start, end in ranges:
        for values in run.reader.scan_values(start, end, batch_rows=batch_rows):
            noticed(len(values))
            read(len(values))
            yield values


# -- indexes ---------------------------------------------------------------------------------------


def _fetch_by_index(context: CompileContext, node: n.Scan, access: paths.Access) -> Fetch:
    assert access.index is not None
    index = compiled_index(context.catalog, access.index)
    ranges = compile_ranges(context, access, index.key)
    if access.covering:
        places = index_slot_map(context.catalog, index)
        decode = index.layout.projector(tuple(places[slot] for slot in node.slots))
        return _fetch_by_ranges(ranges, decode, access.reverse)
    compiled = compiled_table(context.catalog, node.relation)
    decode = compiled.layout.projector(node.slots)
    primary = index.layout.projector(index.primary_key)
    encode = compiled.key.encode
    if index.index.unique and access.full_key and _has_only_equalities(access):
        return _fetch_by_unique_index(
            context, access, index, lambda entry: encode(primary(entry)), decode
        )

    def fetch_rows(run: Run, row: Row) -> Iterator[Row]:
        for entries in _scan_ranges(run, ranges(run, row), access.reverse):
            keys = [encode(primary(entry)) for entry in entries]
            for at in range(0, len(keys), FETCH_ROWS):
                yield from fetch_indexed_rows(run.reader, keys[at : at + FETCH_ROWS], decode)

    return fetch_rows


def _has_only_equalities(access: paths.Access) -> bool:
    return all(isinstance(part, paths.EqualityPart) for part in access.parts)


def _fetch_by_unique_index(
    context: CompileContext,
    access: paths.Access,
    index: CompiledIndex,
    key_of: Callable[[bytes], bytes],
    decode: Callable[[bytes], Row],
) -> Fetch:
    """At most one entry, whose key is only the values: one get for it and one for its row."""
    keys = compile_keys(context, access, index.unique_key)

    def fetch_rows(run: Run, row: Row) -> Iterator[Row]:
        for key in keys(run, row):
            entry = run.reader.get(key)
            if entry is not None:
                yield from fetch_indexed_rows(run.reader, [key_of(entry)], decode)

    return fetch_rows


def fetch_indexed_rows(
    reader: Reader, keys: list[bytes], decode: Callable[[bytes], Row]
) -> Iterator[Row]:
    """The rows that index entries refer to; each must exist."""
    for key, value in zip(keys, reader.multi_get(keys)):
        if value is None:
            raise Corruption("index entry points to no row", key=key.hex())
        yield decode(value)


def index_slot_map(catalog: Catalog, compiled: CompiledIndex) -> dict[int, int]:
    """Table slot to the slot in the index's row."""
    index: Index = compiled.index
    table = catalog.table(index.table)
    slots = [part.slot for part in index.parts]
    slots += [*table.primary_key, *index.include]
    return {slot: place for place, slot in reversed(list(enumerate(slots))) if slot is not None}
