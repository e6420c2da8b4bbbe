"""Joins: hash and merge on equal keys, nested loop without keys, lateral, and index nested loop.

A hash join builds on the right side, in memory, and streams the left; rows with a NULL key match
nothing unless the key is null-safe. Right and full joins return the unmatched right rows last.
Both sides of a merge join are scans in the order of its keys (`merge_join`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import cast

from belvedere.catalog.relation_codecs import compiled_table
from belvedere.execution.python.context import BindRun, CompileContext, key_text
from belvedere.execution.python.expressions.expression_source import ExpressionWriter
from belvedere.execution.python.expressions.generated_function import (
    GeneratedFunction,
    tuple_source,
)
from belvedere.execution.python.operators.access import compile_keys, compile_single_key
from belvedere.execution.python.operators.merge_join import merge_join, merge_outer_join
from belvedere.execution.python.operators.scans import FETCH_ROWS, Fetch, compile_fetch
from belvedere.execution.run import Rows, Run
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.row_repeat import find_repeat_column
from belvedere.types import Row

Test = Callable[[Row, Row], bool]


def compile_join(context: CompileContext, node: n.Join) -> Rows:
    if node.lookup is not None and node.kind not in (n.JoinKind.RIGHT, n.JoinKind.FULL):
        return _index_nested_loop_join(context, node, node.lookup)
    if node.lateral:
        column = find_repeat_column(node)
        return (
            _lateral_join(context, node)
            if column is None
            else _repeat_rows_join(context, node, column)
        )
    if node.method is n.JoinMethod.MERGE and _is_ordered(node.left) and _is_ordered(node.right):
        return _merge_join(context, node)
    if node.keys:
        return _hash_join(context, node)
    return _nested_loop_join(context, node)


# -- output of matches -----------------------------------------------------------------------------


def _compile_emit(kind: n.JoinKind, width: int) -> Callable[[Row, Iterable[Row]], Iterable[Row]]:
    """A function from a left row and its matches to the rows of the join."""
    padding = (None,) * width
    match kind:
        case n.JoinKind.INNER:
            # One row at a time: who asks only whether there is one does not read the others.
            return lambda left, matches: map(left.__add__, matches)
        case n.JoinKind.LEFT:

            def emit_outer(left: Row, matches: Iterable[Row]) -> Iterable[Row]:
                return [left + right for right in matches] or (left + padding,)

            return emit_outer
        case n.JoinKind.SEMI:
            return lambda left, matches: (left,) if any(True for _ in matches) else ()
        case n.JoinKind.ANTI:
            return lambda left, matches: () if any(True for _ in matches) else (left,)
        case _:
            raise AssertionError(kind)


def _compile_residual(
    context: CompileContext, condition: e.Expression | None, width: int
) -> BindRun | None:
    return None if condition is None else context.pair_truth(condition, width)


# -- loops -----------------------------------------------------------------------------------------


def _nested_loop_join(context: CompileContext, node: n.Join) -> Rows:
    left, right = context.plan(node.left), context.plan(node.right)
    residual = _compile_residual(context, node.residual, len(node.left.fields))
    if node.kind in (n.JoinKind.RIGHT, n.JoinKind.FULL):
        return _outer_nested_loop_join(node, left, right, residual)
    emit = _compile_emit(node.kind, len(node.right.fields))

    def join_rows(run: Run) -> Iterator[Row]:
        test = None if residual is None else residual(run)
        inner: list[Row] | None = None
        for row in left(run):
            if inner is None:
                inner = run.memory.hold_rows(right(run))
            run.interrupt.check()
            matches = inner if test is None else _matching_rows(row, inner, test)
            yield from emit(row, matches)

    return join_rows


def _matching_rows(left: Row, candidates: Iterable[Row], test: Test) -> Iterator[Row]:
    return (right for right in candidates if test(left, right))


def _outer_nested_loop_join(
    node: n.Join, left: Rows, right: Rows, residual: BindRun | None
) -> Rows:
    left_padding = (None,) * len(node.left.fields)
    right_padding = (None,) * len(node.right.fields)

    def join_rows(run: Run) -> Iterator[Row]:
        test = None if residual is None else residual(run)
        inner = run.memory.hold_rows(right(run))
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

    return join_rows


def _repeat_rows_join(context: CompileContext, node: n.Join, column: int) -> Rows:
    """Each left row as often as its column says, with a number."""
    left = context.plan(node.left)

    def repeat_rows(run: Run) -> Iterator[Row]:
        for row in left(run):
            count = row[column]
            if count == 1:
                yield (*row, 1)
            elif count is not None:
                for number in range(1, count + 1):
                    yield (*row, number)

    return repeat_rows


def _lateral_join(context: CompileContext, node: n.Join) -> Rows:
    left, right = context.plan(node.left), context.plan(node.right)
    width = len(node.left.fields)
    emit = _compile_emit(node.kind, len(node.right.fields))
    condition = _lateral_condition(context, node, width)

    def join_rows(run: Run) -> Iterator[Row]:
        test = None if condition is None else condition(run)
        for row in left(run):
            candidates = right(run.nested_run(row))
            matches = candidates if test is None else _matching_rows(row, candidates, test)
            yield from emit(row, matches)

    return join_rows


def _lateral_condition(context: CompileContext, node: n.Join, width: int) -> BindRun | None:
    """Keys and residual of a lateral join as one condition on both rows."""
    if not node.keys:
        return _compile_residual(context, node.residual, width)
    source = GeneratedFunction()
    lefts = ExpressionWriter(source, context.plan, lambda i: f"left[{i}]", "left")
    rights = ExpressionWriter(source, context.plan, lambda i: f"right[{i}]", "right")
    tests = []
    for key in node.keys:
        held = source.new_temporary()
        sign = "" if key.null_safe else f"{held} is not None and "
        text = f"({held} := {key_text(lefts, key.left)})"
        tests.append(f"({text} == {key_text(rights, key.right)} and {sign}True)")
    if node.residual is not None:
        bound = context.pair_truth(node.residual, width)
        tests.append(f"{source.bind_to_run(bound)}(left, right)")
    return source.build_row_function(" and ".join(tests), "left, right")


# -- hash ------------------------------------------------------------------------------------------


def _hash_join(context: CompileContext, node: n.Join) -> Rows:
    left_key = _join_key(context, [key.left for key in node.keys], node.keys)
    right_key = _join_key(context, [key.right for key in node.keys], node.keys)
    left, right = context.plan(node.left), context.plan(node.right)
    residual = _compile_residual(context, node.residual, len(node.left.fields))
    if node.kind in (n.JoinKind.RIGHT, n.JoinKind.FULL):
        return _outer_hash_join(node, (left, left_key), (right, right_key), residual)
    emit = _compile_emit(node.kind, len(node.right.fields))

    def join_rows(run: Run) -> Iterator[Row]:
        each = left(run)
        first = next(each, None)
        if first is None:
            return
        table = _build_hash_table(run.memory.count_held(right(run)), right_key(run))
        key, test = left_key(run), None if residual is None else residual(run)
        for row in run.interrupt.check_rows(itertools.chain((first,), each)):
            matches: Iterable[Row] = table.get(key(row), ())
            if test is not None:
                matches = _matching_rows(row, matches, test)
            yield from emit(row, matches)

    return join_rows


def _join_key(
    context: CompileContext, expressions: list[e.Expression], keys: tuple[n.JoinKey, ...]
) -> BindRun:
    """Row to key; None when a key that is not null-safe is NULL. One column is its own key."""
    source = GeneratedFunction()
    writer = ExpressionWriter(source, context.plan)
    texts = [key_text(writer, one) for one in expressions]
    if len(texts) == 1 and not keys[0].null_safe:
        return source.build_row_function(texts[0])
    names = [source.new_temporary() for _ in texts]
    tests = [f"({name} := {text}) is None" for name, text in zip(names, texts)]
    strict = [test for test, key in zip(tests, keys) if not key.null_safe]
    loose = [f"({test}) and False" for test, key in zip(tests, keys) if key.null_safe]
    return source.build_row_function(
        f"None if {' or '.join(loose + strict)} else {tuple_source(names)}"
    )


def _build_hash_table(rows: Iterator[Row], key: Callable[[Row], object]) -> dict[object, list[Row]]:
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


def _outer_hash_join(
    node: n.Join, left: tuple[Rows, BindRun], right: tuple[Rows, BindRun], residual: BindRun | None
) -> Rows:
    left_padding = (None,) * len(node.left.fields)
    right_padding = (None,) * len(node.right.fields)

    def join_rows(run: Run) -> Iterator[Row]:
        inner = run.memory.hold_rows(right[0](run))
        table: dict[object, list[int]] = {}
        key = right[1](run)
        for at, row in enumerate(inner):
            value = key(row)
            if value is not None:
                table.setdefault(value, []).append(at)
        matched = bytearray(len(inner))
        key, test = left[1](run), None if residual is None else residual(run)
        for row in run.interrupt.check_rows(left[0](run)):
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

    return join_rows


# -- merge -----------------------------------------------------------------------------------------


def _is_ordered(node: n.Node) -> bool:
    """Whether the input is still a scan in key order, and has not been replaced since planning."""
    while isinstance(node, n.Project | n.Filter):
        node = node.input
    return isinstance(node, n.Scan) and node.access.ordered


def _merge_join(context: CompileContext, node: n.Join) -> Rows:
    left_key = _join_key(context, [key.left for key in node.keys], node.keys)
    right_key = _join_key(context, [key.right for key in node.keys], node.keys)
    left, right = context.plan(node.left), context.plan(node.right)
    residual = _compile_residual(context, node.residual, len(node.left.fields))
    outer = node.kind in (n.JoinKind.RIGHT, n.JoinKind.FULL)
    emit = None if outer else _compile_emit(node.kind, len(node.right.fields))

    def join_rows(run: Run) -> Iterator[Row]:
        keys = left_key(run), right_key(run)
        test = None if residual is None else residual(run)
        each = run.interrupt.check_rows(left(run))
        if emit is None:
            return merge_outer_join(each, right(run), keys, node, test)
        return merge_join(each, right(run), keys, emit, test)

    return join_rows


# -- index nested loop -----------------------------------------------------------------------------


def _index_nested_loop_join(context: CompileContext, node: n.Join, lookup: n.Lookup) -> Rows:
    """Looks up the right rows of each left row by key; single gets are batched over left rows."""
    assert isinstance(node.right, n.Scan)
    left = context.plan(node.left)
    condition = _compile_residual(context, lookup.condition, len(node.left.fields))
    emit = _compile_emit(node.kind, len(node.right.fields))
    access = lookup.access
    if access.index is None and access.kind is paths.AccessKind.KEY:
        one = _look_up_single_rows(context, node.right, access, left)
        if one is not None and node.kind is n.JoinKind.INNER:
            return _join_single_rows(one, condition)
        chunks = _look_up_in_batches(context, node.right, access, left)
    else:
        first_only = node.kind in (n.JoinKind.SEMI, n.JoinKind.ANTI)
        fetch = compile_fetch(context, node.right, access, first_only=first_only)
        chunks = _look_up_one_by_one(fetch, left)

    def join_rows(run: Run) -> Iterator[Row]:
        test = None if condition is None else condition(run)
        for row, candidates in chunks(run):
            matches = candidates if test is None else _matching_rows(row, candidates, test)
            yield from emit(row, matches)

    return join_rows


LookupMatches = Callable[[Run], Iterator[tuple[Row, Iterable[Row]]]]


def _look_up_one_by_one(fetch: Fetch, left: Rows) -> LookupMatches:
    def look_up_rows(run: Run) -> Iterator[tuple[Row, Iterable[Row]]]:
        for row in left(run):
            yield row, fetch(run, row)

    return look_up_rows


LookupRow = Callable[[Run], Iterator[tuple[Row, Row | None]]]
"""Left rows with the one right row that each has, or None."""


def _look_up_single_rows(
    context: CompileContext, node: n.Scan, access: paths.Access, left: Rows
) -> LookupRow | None:
    """None: a left row may have several keys. Rows that several left rows have are decoded once."""
    compiled = compiled_table(context.catalog, node.relation)
    bind_key = compile_single_key(context, access, compiled.key)
    if bind_key is None:
        return None
    decode = compiled.layout.projector(node.slots)

    def look_up_rows(run: Run) -> Iterator[tuple[Row, Row | None]]:
        each, key_of = left(run), bind_key(run)
        size = 1  # grows, so that a limit above costs no more reads than it must
        while batch := list(itertools.islice(each, size)):
            size = min(size * 4, FETCH_ROWS)
            run.interrupt.check()
            keys = [key_of(row) for row in batch]
            found: dict[bytes | None, Row | None] = dict.fromkeys(keys)
            found.pop(None, None)
            wanted = cast("list[bytes]", list(found))
            run.memory.count_read(len(wanted))
            for key, value in zip(wanted, run.reader.multi_get(wanted)):
                if value is not None:
                    found[key] = decode(value)
            yield from zip(batch, map(found.get, keys))

    return look_up_rows


def _join_single_rows(look_up: LookupRow, condition: BindRun | None) -> Rows:
    def join_rows(run: Run) -> Iterator[Row]:
        pairs = look_up(run)
        if condition is None:
            return (row + right for row, right in pairs if right is not None)
        test = condition(run)
        return (row + right for row, right in pairs if right is not None and test(row, right))

    return join_rows


def _look_up_in_batches(
    context: CompileContext, node: n.Scan, access: paths.Access, left: Rows
) -> LookupMatches:
    compiled = compiled_table(context.catalog, node.relation)
    keys, decode = (
        compile_keys(context, access, compiled.key),
        compiled.layout.projector(node.slots),
    )

    def look_up_batches(run: Run) -> Iterator[tuple[Row, Iterable[Row]]]:
        each = left(run)
        size = 1  # grows, so that a limit above costs no more reads than it must
        while batch := list(itertools.islice(each, size)):
            size = min(size * 4, FETCH_ROWS)
            run.interrupt.check()
            wanted = [keys(run, row) for row in batch]
            distinct = list(dict.fromkeys(key for found in wanted for key in found))
            run.memory.count_read(len(distinct))
            values = dict(zip(distinct, run.reader.multi_get(distinct)))
            for row, found in zip(batch, wanted):
                stored = values[found[0]] if found else None
                yield row, () if stored is None else (decode(stored),)

    return look_up_batches
