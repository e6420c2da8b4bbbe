"""Rows of a relation through each access path.

full, prefix, range on the key      scan of values, decoded column by column as wanted
key, keys                           get or multi-get
any of them on an index             index entries, then a multi-get of the rows, in chunks,
                                    unless the index covers what is wanted
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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
from belvedere.codec.keys import KeyCodec
from belvedere.errors import Corruption
from belvedere.execution.python.context import CompileContext
from belvedere.execution.python.expressions.expression_source import ExpressionWriter
from belvedere.execution.python.expressions.generated_function import GeneratedFunction
from belvedere.execution.python.operators.access import (
    KeyRange,
    compile_keys,
    compile_prefix_check,
    compile_ranges,
)
from belvedere.execution.python.operators.scan_requests import Narrow, compile_narrowing
from belvedere.execution.run import Rows, Run
from belvedere.kv.batch import SCAN_BATCH_ROWS, Pair
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.txn.contracts import Reader
from belvedere.txn.exact_order import sort_runs
from belvedere.txn.history.readers import SnapshotReader
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row

FETCH_ROWS = 256
FIRST_ONLY_ROWS = (4, 16)
"""The first batches of index entries for one who asks whether there is a row."""
SKIP_ROWS = 1024
FIRST_ROWS = (64, 256, 1024)
"""Sizes of the first batches of a range scan, before it reads all that is left."""

EntriesToRows = Callable[[Run, Iterator[Sequence[bytes]]], Iterator[Row]]
"""Batches of stored values, of a relation or of an index, to rows."""

PutInOrder = Callable[[Iterator[Sequence[bytes]]], Iterator[Sequence[bytes]]]
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
    if _is_plain_full_scan(context, node):
        rows = _compile_full_scan(context, node)
    else:
        fetch = compile_fetch(context, node, access)

        def rows(run: Run) -> Iterator[Row]:
            return fetch(run, run.outer)

    return rows if node.residual is None else _compile_filter(context, node.residual, rows)


def _is_plain_full_scan(context: CompileContext, node: n.Scan) -> bool:
    access = node.access
    if access.kind is not paths.AccessKind.FULL or access.index is not None or access.reverse:
        return False
    return not access.ordered or compiled_relation(context.catalog, node.relation).key.long is None


def compile_scan_after(
    context: CompileContext, node: n.Scan
) -> Callable[[Run, int], Iterator[Row]] | None:
    """The rows after the first so many, which are counted but not decoded; None when they would
    have to be, to check a condition."""
    access = node.access
    if node.residual is not None or (access.full_key and access.range is None):
        return None
    if access.index is None:
        compiled = compiled_relation(context.catalog, node.relation)
        entries_to_rows = _make_decoder(compiled.layout.projector(node.slots))
        key = compiled.key
    else:
        index = compiled_index(context.catalog, access.index)
        entries_to_rows = _make_entry_reader(context, node, access, index)
        key = index.key
    ranges, put_in_order = compile_ranges(context, access, key), _choose_order(access, key)

    def rows_after(run: Run, skipped: int) -> Iterator[Row]:
        found = ranges(run, run.outer)
        if access.reverse:
            batches = _scan_ranges(run, found, reverse=True, reader=run.reader)
        else:
            batches = _scan_values(run, found, SKIP_ROWS, run.reader)
        return entries_to_rows(run, _drop_first(put_in_order(batches), skipped))

    return rows_after


def _drop_first(batches: Iterator[Sequence[bytes]], count: int) -> Iterator[Sequence[bytes]]:
    """The batches without their first so many values."""
    for values in batches:
        if count < len(values):
            yield values[count:] if count else values
            count = 0
        else:
            count -= len(values)


def compile_changes(context: CompileContext, node: n.Changes) -> Rows:
    """One side of a delta: the old or the new rows, as the run provides them."""

    def delta_rows(run: Run) -> Iterator[Row]:
        return iter(run.deltas[node.relation])

    if node.filter is None:
        return delta_rows
    return _compile_filter(context, node.filter, delta_rows)


def compile_fetch(
    context: CompileContext, node: n.Scan, access: paths.Access, *, first_only: bool = False
) -> Fetch:
    """The rows an access selects, before any residual condition. `first_only`: the first one that
    meets a condition is enough."""
    if access.index is not None:
        sizes = FIRST_ONLY_ROWS if first_only else ()
        return _fetch_by_index_or_scan(context, node, access, sizes)
    compiled = compiled_relation(context.catalog, node.relation)
    decode = compiled.layout.projector(node.slots)
    if access.full_key and access.range is None:
        return _fetch_by_keys(context, access, decode, node)
    narrow = compile_narrowing(node, node.residual)
    return _fetch_by_ranges(context, access, compiled.key, decode, narrow)


def _compile_full_scan(context: CompileContext, node: n.Scan) -> Rows:
    compiled = compiled_relation(context.catalog, node.relation)
    start, end, decode = compiled.start, compiled.end, compiled.layout.projector(node.slots)
    narrow = compile_narrowing(node, node.residual)

    def scan_table(run: Run) -> Iterator[Row]:
        reader, after, wanted = narrow(run) or run.reader, start, run.wanted
        if 0 < wanted <= FIRST_ROWS[-1]:
            pairs = [pair for batch in reader.scan(start, end, limit=wanted) for pair in batch]
            run.memory.count_read(len(pairs))
            for _, value in pairs:
                yield decode(value)
            if len(pairs) < wanted:
                return
            after = pairs[-1][0] + b"\0"
        for values in _scan_values(run, ((after, end),), SCAN_BATCH_ROWS, reader):
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
        some = keys[at : at + FETCH_ROWS]
        run.memory.count_read(len(some))
        for value in run.reader.multi_get(some):
            if value is not None:
                yield decode(value)


def _fetch_by_ranges(
    context: CompileContext,
    access: paths.Access,
    key: KeyCodec,
    decode: Callable[[bytes], Row],
    narrow: Narrow,
) -> Fetch:
    ranges, put_in_order = compile_ranges(context, access, key), _choose_order(access, key)
    decode_batches, reverse = _make_decoder(decode), access.reverse

    def fetch_rows(run: Run, row: Row) -> Iterator[Row]:
        batches = _scan_ranges(run, ranges(run, row), reverse, narrow(run) or run.reader)
        return decode_batches(run, put_in_order(batches))

    return fetch_rows


def _choose_order(access: paths.Access, key: KeyCodec) -> PutInOrder:
    """What gives the entries of a scan in the order that the plan needs."""
    if key.long is None or not (access.ordered or access.reverse):
        return lambda batches: batches
    return lambda batches: sort_runs(key, batches, reverse=access.reverse)


def _make_decoder(decode: Callable[[bytes], Row]) -> EntriesToRows:
    return lambda run, batches: chain.from_iterable(map(decode, values) for values in batches)


def _scan_ranges(
    run: Run,
    ranges: Iterable[KeyRange],
    reverse: bool,
    reader: Reader,
    first_sizes: tuple[int, ...] = (),
) -> Iterator[Sequence[bytes]]:
    """Values of the ranges in growing batches: most ranges are short, or not read to the end."""
    check, read = run.interrupt.check, run.memory.count_read
    wanted = run.wanted
    if not reverse and FIRST_ROWS[0] <= wanted <= FIRST_ROWS[-1]:
        yield from _scan_values(run, ranges, wanted, reader)
        return
    sizes: tuple[int, ...] = (*first_sizes, *FIRST_ROWS)
    if 0 < wanted <= FIRST_ROWS[-1]:  # a condition that is left may let some more be read
        few = [size for size in (wanted * 2, wanted * 8) if size < FIRST_ROWS[0]]
        sizes = (wanted, *few, *FIRST_ROWS)
    for start, end in ranges:
        for size in sizes:
            pairs = _fetch_pairs(reader, start, end, size, reverse)
            if not pairs:
                break
            read(len(pairs))
            yield [value for _, value in pairs]
            if len(pairs) < size:
                break
            check()
            last = pairs[-1][0]
            start, end = (start, last) if reverse else (last + b"\0", end)
        else:
            for pairs in reader.scan(start, end, reverse=reverse):
                run.interrupt.count_rows(len(pairs))
                read(len(pairs))
                yield [value for _, value in pairs]


def _fetch_pairs(reader: Reader, start: bytes, end: bytes, limit: int, reverse: bool) -> list[Pair]:
    """The first pairs of a range; at once, where the reader can."""
    if isinstance(reader, (Transaction, SnapshotReader)):
        return reader.fetch_range(start, end, limit, reverse=reverse)
    return list(chain.from_iterable(reader.scan(start, end, reverse=reverse, limit=limit)))


def _scan_values(
    run: Run, ranges: Iterable[KeyRange], batch_rows: int, reader: Reader
) -> Iterator[list[bytes]]:
    """The same with a known number of wanted rows: one scan, so no keys to resume from."""
    noticed, read = run.interrupt.count_rows, run.memory.count_read
    for start, end in ranges:
        for values in reader.scan_values(start, end, batch_rows=batch_rows):
            noticed(len(values))
            read(len(values))
            yield values


# -- indexes ---------------------------------------------------------------------------------------


def _fetch_by_index_or_scan(
    context: CompileContext, node: n.Scan, access: paths.Access, sizes: tuple[int, ...]
) -> Fetch:
    """By the index; but a LIKE pattern that turns out to begin with a wildcard would fetch every
    row through it, one by one, so then the table is scanned."""
    by_index = _fetch_by_index(context, node, access, sizes)
    pattern = None if access.range is None else access.range.pattern
    if pattern is None or not _may_scan_instead(context, access):
        return by_index
    is_bounded = compile_prefix_check(context, pattern)
    by_scan = compile_fetch(context, node, paths.FULL)
    return lambda run, row: (by_index if is_bounded(run, row) else by_scan)(run, row)


def _may_scan_instead(context: CompileContext, access: paths.Access) -> bool:
    """Whether the index says nothing of the rows but what the range says."""
    assert access.index is not None
    index = compiled_index(context.catalog, access.index).index
    return not (access.parts or access.covering or access.ordered or index.where is not None)


def _fetch_by_index(
    context: CompileContext, node: n.Scan, access: paths.Access, sizes: tuple[int, ...]
) -> Fetch:
    assert access.index is not None
    index = compiled_index(context.catalog, access.index)
    ranges, put_in_order = (
        compile_ranges(context, access, index.key),
        _choose_order(access, index.key),
    )
    read_entries = _make_entry_reader(context, node, access, index)
    unique = index.index.unique and access.full_key and _has_only_equalities(access)
    if unique and not access.covering:
        return _fetch_by_unique_index(context, access, index, read_entries)

    def fetch_rows(run: Run, row: Row) -> Iterator[Row]:
        batches = _scan_ranges(run, ranges(run, row), access.reverse, run.reader, sizes)
        return read_entries(run, put_in_order(batches))

    return fetch_rows


def _make_entry_reader(
    context: CompileContext, node: n.Scan, access: paths.Access, index: CompiledIndex
) -> EntriesToRows:
    """Entries of an index to rows: by themselves, or by the rows that they refer to."""
    if access.covering:
        places = index_slot_map(context.catalog, index)
        return _make_decoder(index.layout.projector(tuple(places[slot] for slot in node.slots)))
    compiled = compiled_table(context.catalog, node.relation)
    decode = compiled.layout.projector(node.slots)
    primary = index.layout.projector(index.primary_key)
    encode = compiled.key.encode

    def read_rows(run: Run, batches: Iterator[Sequence[bytes]]) -> Iterator[Row]:
        for entries in batches:
            keys = [encode(primary(entry)) for entry in entries]
            for at in range(0, len(keys), FETCH_ROWS):
                yield from fetch_indexed_rows(run.reader, keys[at : at + FETCH_ROWS], decode)

    return read_rows


def _has_only_equalities(access: paths.Access) -> bool:
    return all(isinstance(part, paths.EqualityPart) for part in access.parts)


def _fetch_by_unique_index(
    context: CompileContext,
    access: paths.Access,
    index: CompiledIndex,
    read_entries: EntriesToRows,
) -> Fetch:
    """At most one entry, whose key is only the values: one get for it and one for its row."""
    keys = compile_keys(context, access, index.unique_key)

    def fetch_rows(run: Run, row: Row) -> Iterator[Row]:
        found = [run.reader.get(key) for key in keys(run, row)]
        return read_entries(run, iter([[entry] for entry in found if entry is not None]))

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
