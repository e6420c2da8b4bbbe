"""Joins: hash and merge on equal keys, nested loop without keys, lateral, and index nested loop.

A hash join builds on the right side, in memory, and streams the left; rows with a NULL key match
nothing unless the key is null-safe. Right and full joins return the unmatched right rows last.
Both sides of a merge join are scans in the order of its keys (`merges`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

from belvedere.catalog.relation import compiled_table
from belvedere.execution.direct.access import keys_of
from belvedere.execution.direct.context import Bound, Context, key_text
from belvedere.execution.direct.expressions import Writer
from belvedere.execution.direct.merges import merged, merged_outer
from belvedere.execution.direct.scans import FETCH_ROWS, Fetch, compile_fetch
from belvedere.execution.direct.source import Source, tuple_source
from belvedere.execution.run import Rows, Run
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.types import Row

Test = Callable[[Row, Row], bool]


def compile_join(context: Context, node: n.Join) -> Rows:
    if node.lookup is not None and node.kind not in (n.JoinKind.RIGHT, n.JoinKind.FULL):
        return _by_lookup(context, node, node.lookup)
    if node.lateral:
        return _lateral(context, node)
    if node.method is n.JoinMethod.MERGE and _is_ordered(node.left) and _is_ordered(node.right):
        return _merged(context, node)
    if node.keys:
        return _hashed(context, node)
    return _looped(context, node)


# -- output of matches -----------------------------------------------------------------------------


def _emit(kind: n.JoinKind, width: int) -> Callable[[Row, Iterable[Row]], Iterable[Row]]:
    """A function from a left row and its matches to the rows of the join."""
    padding = (None,) * width
    match kind:
        case n.JoinKind.INNER:
            return lambda left, matches: [left + right for right in matches]
        case n.JoinKind.LEFT:

            def outer(left: Row, matches: Iterable[Row]) -> Iterable[Row]:
                return [left + right for right in matches] or (left + padding,)

            return outer
        case n.JoinKind.SEMI:
            return lambda left, matches: (left,) if any(True for _ in matches) else ()
        case n.JoinKind.ANTI:
            return lambda left, matches: () if any(True for _ in matches) else (left,)
        case _:
            raise AssertionError(kind)


def _residual(context: Context, condition: e.Expression | None, width: int) -> Bound | None:
    return None if condition is None else context.pair_truth(condition, width)


# -- loops -----------------------------------------------------------------------------------------


def _looped(context: Context, node: n.Join) -> Rows:
    left, right = context.plan(node.left), context.plan(node.right)
    residual = _residual(context, node.residual, len(node.left.fields))
    if node.kind in (n.JoinKind.RIGHT, n.JoinKind.FULL):
        return _outer_loop(node, left, right, residual)
    emit = _emit(node.kind, len(node.right.fields))

    def rows(run: Run) -> Iterator[Row]:
        test = None if residual is None else residual(run)
        inner: list[Row] | None = None
        for row in left(run):
            if inner is None:
                inner = run.memory.hold(right(run))
            run.interrupt.check()
            matches = inner if test is None else _matching(row, inner, test)
            yield from emit(row, matches)

    return rows


def _matching(left: Row, candidates: Iterable[Row], test: Test) -> Iterator[Row]:
    return (right for right in candidates if test(left, right))


def _outer_loop(node: n.Join, left: Rows, right: Rows, residual: Bound | None) -> Rows:
    left_padding = (None,) * len(node.left.fields)
    right_padding = (None,) * len(node.right.fields)

    def rows(run: Run) -> Iterator[Row]:
        test = None if residual is None else residual(run)
        inner = run.memory.hold(right(run))
        matched = bytearray(len(inner))
        for row in left(run):
            run.interrupt.check()
            found = False
            for at, other in enumerate(inner):
                if test is None or test(row, other):
                    found = True
                    matched[at] = 1
                    yield row + other
            if not found and node.kind is n.JoinKind.FULL:
                yield row + right_padding
        for at, other in enumerate(inner):
            if not matched[at]:
                yield left_padding + other

    return rows


def _lateral(context: Context, node: n.Join) -> Rows:
    left, right = context.plan(node.left), context.plan(node.right)
    width = len(node.left.fields)
    emit = _emit(node.kind, len(node.right.fields))
    condition = _lateral_condition(context, node, width)

    def rows(run: Run) -> Iterator[Row]:
        test = None if condition is None else condition(run)
        for row in left(run):
            candidates = right(run.nested(row))
            matches = candidates if test is None else _matching(row, candidates, test)
            yield from emit(row, matches)

    return rows


def _lateral_condition(context: Context, node: n.Join, width: int) -> Bound | None:
    """Keys and residual of a lateral join as one condition on both rows."""
    if not node.keys:
        return _residual(context, node.residual, width)
    source = Source()
    lefts = Writer(source, context.plan, lambda i: f"left[{i}]", "left")
    rights = Writer(source, context.plan, lambda i: f"right[{i}]", "right")
    tests = []
    for key in node.keys:
        held = source.temporary()
        sign = "" if key.null_safe else f"{held} is not None and "
        text = f"({held} := {key_text(lefts, key.left)})"
        tests.append(f"({text} == {key_text(rights, key.right)} and {sign}True)")
    if node.residual is not None:
        bound = context.pair_truth(node.residual, width)
        tests.append(f"{source.bound(bound)}(left, right)")
    return source.row_function(" and ".join(tests), "left, right")


# -- hash ------------------------------------------------------------------------------------------


def _hashed(context: Context, node: n.Join) -> Rows:
    left_key = _join_key(context, [key.left for key in node.keys], node.keys)
    right_key = _join_key(context, [key.right for key in node.keys], node.keys)
    left, right = context.plan(node.left), context.plan(node.right)
    residual = _residual(context, node.residual, len(node.left.fields))
    if node.kind in (n.JoinKind.RIGHT, n.JoinKind.FULL):
        return _outer_hash(node, (left, left_key), (right, right_key), residual)
    emit = _emit(node.kind, len(node.right.fields))

    def rows(run: Run) -> Iterator[Row]:
        each = left(run)
        first = next(each, None)
        if first is None:
            return
        table = _table(run.memory.passing(right(run)), right_key(run))
        key, test = left_key(run), None if residual is None else residual(run)
        for row in itertools.chain((first,), each):
            matches: Iterable[Row] = table.get(key(row), ())
            if test is not None:
                matches = _matching(row, matches, test)
            yield from emit(row, matches)

    return rows


def _join_key(
    context: Context, expressions: list[e.Expression], keys: tuple[n.JoinKey, ...]
) -> Bound:
    """Row to key; None when a key that is not null-safe is NULL. One column is its own key."""
    source = Source()
    writer = Writer(source, context.plan)
    texts = [key_text(writer, one) for one in expressions]
    if len(texts) == 1 and not keys[0].null_safe:
        return source.row_function(texts[0])
    names = [source.temporary() for _ in texts]
    tests = [f"({name} := {text}) is None" for name, text in zip(names, texts)]
    strict = [test for test, key in zip(tests, keys) if not key.null_safe]
    loose = [f"({test}) and False" for test, key in zip(tests, keys) if key.null_safe]
    return source.row_function(f"None if {' or '.join(loose + strict)} else {tuple_source(names)}")


def _table(rows: Iterator[Row], key: Callable[[Row], object]) -> dict[object, list[Row]]:
    table: dict[object, list[Row]] = {}
    for row in rows:
        value = key(row)
        if value is not None:
            found = table.get(value)
            if found is None:
                table[value] = [row]
            else:
                found.append(row)
    return table


def _outer_hash(
    node: n.Join, left: tuple[Rows, Bound], right: tuple[Rows, Bound], residual: Bound | None
) -> Rows:
    left_padding = (None,) * len(node.left.fields)
    right_padding = (None,) * len(node.right.fields)

    def rows(run: Run) -> Iterator[Row]:
        inner = run.memory.hold(right[0](run))
        table: dict[object, list[int]] = {}
        key = right[1](run)
        for at, row in enumerate(inner):
            value = key(row)
            if value is not None:
                table.setdefault(value, []).append(at)
        matched = bytearray(len(inner))
        key, test = left[1](run), None if residual is None else residual(run)
        for row in left[0](run):
            found = False
            for at in table.get(key(row), ()):
                if test is None or test(row, inner[at]):
                    found = True
                    matched[at] = 1
                    yield row + inner[at]
            if not found and node.kind is n.JoinKind.FULL:
                yield row + right_padding
        for at, row in enumerate(inner):
            if not matched[at]:
                yield left_padding + row

    return rows


# -- merge -----------------------------------------------------------------------------------------


def _is_ordered(node: n.Node) -> bool:
    """Whether the input is still a scan in key order, and has not been replaced since planning."""
    while isinstance(node, n.Project | n.Filter):
        node = node.input
    return isinstance(node, n.Scan) and node.access.ordered


def _merged(context: Context, node: n.Join) -> Rows:
    left_key = _join_key(context, [key.left for key in node.keys], node.keys)
    right_key = _join_key(context, [key.right for key in node.keys], node.keys)
    left, right = context.plan(node.left), context.plan(node.right)
    residual = _residual(context, node.residual, len(node.left.fields))
    outer = node.kind in (n.JoinKind.RIGHT, n.JoinKind.FULL)
    emit = None if outer else _emit(node.kind, len(node.right.fields))

    def rows(run: Run) -> Iterator[Row]:
        keys = left_key(run), right_key(run)
        test = None if residual is None else residual(run)
        if emit is None:
            return merged_outer(left(run), right(run), keys, node, test)
        return merged(left(run), right(run), keys, emit, test)

    return rows


# -- index nested loop -----------------------------------------------------------------------------


def _by_lookup(context: Context, node: n.Join, lookup: n.Lookup) -> Rows:
    """Looks up the right rows of each left row by key; single gets are batched over left rows."""
    assert isinstance(node.right, n.Scan)
    left = context.plan(node.left)
    condition = _residual(context, lookup.condition, len(node.left.fields))
    emit = _emit(node.kind, len(node.right.fields))
    access = lookup.access
    if access.index is None and access.kind is paths.AccessKind.KEY:
        chunks = _looked_up_together(context, node.right, access, left)
    else:
        chunks = _looked_up_singly(compile_fetch(context, node.right, access), left)

    def rows(run: Run) -> Iterator[Row]:
        test = None if condition is None else condition(run)
        for row, candidates in chunks(run):
            matches = candidates if test is None else _matching(row, candidates, test)
            yield from emit(row, matches)

    return rows


Chunks = Callable[[Run], Iterator[tuple[Row, Iterable[Row]]]]


def _looked_up_singly(fetch: Fetch, left: Rows) -> Chunks:
    def chunks(run: Run) -> Iterator[tuple[Row, Iterable[Row]]]:
        for row in left(run):
            yield row, fetch(run, row)

    return chunks


def _looked_up_together(context: Context, node: n.Scan, access: paths.Access, left: Rows) -> Chunks:
    compiled = compiled_table(context.catalog, node.relation)
    keys, decode = keys_of(context, access, compiled.key), compiled.layout.projector(node.slots)

    def chunks(run: Run) -> Iterator[tuple[Row, Iterable[Row]]]:
        each = left(run)
        size = 1  # grows, so that a limit above costs no more reads than it must
        while batch := list(itertools.islice(each, size)):
            size = min(size * 4, FETCH_ROWS)
            run.interrupt.check()
            wanted = [keys(run, row) for row in batch]
            distinct = list(dict.fromkeys(key for found in wanted for key in found))
            run.memory.read(len(distinct))
            values = dict(zip(distinct, run.reader.multi_get(distinct)))
            for row, found in zip(batch, wanted):
                stored = values[found[0]] if found else None
                yield row, () if stored is None else (decode(stored),)

    return chunks
