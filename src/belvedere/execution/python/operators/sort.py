"""Sorting: ORDER BY keys as passes of Python's stable sort, sort + limit, and ties.

Neighbouring keys of one direction share one pass. The key of a value is (NULL flag, key), so that
NULLs are never compared with values; a descending pass uses `reverse`, which is stable too.
Rows beyond the memory limit of the statement are sorted in runs that are spilled (`spill`).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from belvedere.errors import InvalidInput
from belvedere.execution.memory_limit import CHUNK_ROWS
from belvedere.execution.python.context import BindRun, CompileContext, key_text
from belvedere.execution.python.expressions.expression_source import ExpressionWriter
from belvedere.execution.python.expressions.generated_function import (
    GeneratedFunction,
    tuple_source,
)
from belvedere.execution.python.operators.scans import compile_scan_after
from belvedere.execution.python.operators.spill import SpilledRuns
from belvedere.execution.run import Rows, Run
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.types import Row

TOP_SLACK_ROWS = 1000
SKIP_ROWS_MIN = 100
"""An OFFSET of fewer rows decodes them: a scan of a known number of rows is one call."""


class SortPass(NamedTuple):
    key: Callable[[Row], Any]
    reverse: bool


SortPasses = Callable[[Run], list[SortPass]]


def compile_order(context: CompileContext, keys: Sequence[e.SortKey]) -> SortPasses:
    """The sort passes for this order; the pass of the last key is first."""
    groups: list[tuple[BindRun, bool]] = []
    for descending, group in itertools.groupby(keys, key=lambda key: key.descending):
        groups.append((_key_of(context, list(group)), descending))
    groups.reverse()
    return lambda run: [SortPass(bound(run), reverse) for bound, reverse in groups]


def _key_of(context: CompileContext, keys: list[e.SortKey]) -> BindRun:
    source = GeneratedFunction()
    writer = ExpressionWriter(source, context.plan)
    parts = []
    for key in keys:
        held = source.new_temporary()
        sign = "is" if key.nulls_first == key.descending else "is not"
        parts.append(f"(({held} := {key_text(writer, key.expression)}) {sign} None, {held})")
    return source.build_row_function(parts[0] if len(parts) == 1 else tuple_source(parts))


def sort_rows(rows: list[Row], passes: list[SortPass]) -> None:
    for key, reverse in passes:
        rows.sort(key=key, reverse=reverse)


def compile_sort(context: CompileContext, node: n.Sort) -> Rows:
    each, order = context.plan(node.input), compile_order(context, node.keys)
    return lambda run: _sort_or_spill(each(run), order(run), run)


def _sort_or_spill(rows: Iterator[Row], passes: list[SortPass], run: Run) -> Iterator[Row]:
    held, runs, memory = list[Row](), SpilledRuns(_combined_key(passes)), run.memory
    before = memory.used_bytes
    try:
        while chunk := list(itertools.islice(rows, CHUNK_ROWS)):
            run.interrupt.check()
            if held and memory.may_spill and not memory.has_room(len(chunk), chunk[0]):
                sort_rows(held, passes)
                runs.add_run(held)
                held, memory.used_bytes = [], before
            if held or len(chunk) == CHUNK_ROWS:  # a few rows are not worth counting
                memory.reserve_rows(len(chunk), chunk[0])
            held += chunk
    except BaseException:
        runs.close()
        raise
    sort_rows(held, passes)
    if not len(runs):
        return iter(held)
    runs.add_run(held)
    memory.used_bytes = before
    return runs.merge_runs()


def _combined_key(passes: list[SortPass]) -> Callable[[Row], Any]:
    """The order of all passes as one key."""
    if len(passes) == 1 and not passes[0].reverse:
        return passes[0].key
    return lambda row: [
        _DescendingKey(key(row)) if reverse else key(row) for key, reverse in reversed(passes)
    ]


@functools.total_ordering
class _DescendingKey:
    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DescendingKey) and bool(self.key == other.key)

    def __lt__(self, other: _DescendingKey) -> bool:
        return bool(other.key < self.key)

    __hash__ = None  # type: ignore[assignment]


def compile_limit(context: CompileContext, node: n.Limit) -> Rows:
    if node.with_ties:
        return _compile_with_ties(context, node)
    each, limits = context.plan(node.input), compile_limits(context, node.count, node.offset)
    each_after = None
    if node.offset is not None and context.fuses:  # else the rows of each node are counted
        each_after = _compile_rows_after(context, node.input)

    def limit_rows(run: Run) -> Iterator[Row]:
        count, offset = limits(run)
        if count == 0:
            return iter(())
        if each_after is not None and offset >= SKIP_ROWS_MIN:
            return itertools.islice(each_after(run, offset), count)
        if count is None:
            return itertools.islice(each(run), offset, None)
        run.wanted = offset + count
        return itertools.islice(each(run), offset, offset + count)

    return limit_rows


def _compile_rows_after(
    context: CompileContext, node: n.Node
) -> Callable[[Run, int], Iterator[Row]] | None:
    """The rows of a node after the first so many, when it is a scan that can skip, or columns of
    one."""
    if isinstance(node, n.Scan):
        return compile_scan_after(context, node)
    if not isinstance(node, n.Project):
        return None
    if not all(isinstance(one, e.Column) for one in node.expressions):
        return None
    inner = _compile_rows_after(context, node.input)
    if inner is None:
        return None
    places = [one.index for one in node.expressions if isinstance(one, e.Column)]
    return lambda run, skipped: (
        tuple([row[place] for place in places]) for row in inner(run, skipped)
    )


def compile_limits(
    context: CompileContext, count: e.Expression | None, offset: e.Expression | None
) -> Callable[[Run], tuple[int | None, int]]:
    count_of = None if count is None else context.value_of(count)
    offset_of = None if offset is None else context.value_of(offset)

    def evaluate_limits(run: Run) -> tuple[int | None, int]:
        skipped = (None if offset_of is None else offset_of(run)(run.outer)) or 0
        if skipped < 0:
            raise InvalidInput("OFFSET must not be negative", sqlstate="2201X")
        most = None if count_of is None else count_of(run)(run.outer)
        if most is not None and most < 0:
            raise InvalidInput("LIMIT must not be negative", sqlstate="2201W")
        return most, skipped

    return evaluate_limits


def compile_top(context: CompileContext, node: n.TopN) -> Rows:
    """Holds at most twice the wanted rows (and some) at a time."""
    if node.with_ties:
        return _compile_with_ties(
            context, n.Limit(n.Sort(node.input, node.keys), node.count, node.offset, True)
        )
    each, order = context.plan(node.input), compile_order(context, node.keys)
    limits = compile_limits(context, node.count, node.offset)

    def top_rows(run: Run) -> Iterator[Row]:
        count, offset = limits(run)
        passes = order(run)
        if count == 0:
            return iter(())
        if count is None:
            kept = run.memory.hold_rows(each(run))
        else:
            kept = _select_top(each(run), passes, offset + count)
        sort_rows(kept, passes)
        return iter(kept[offset : None if count is None else offset + count])

    return top_rows


def _select_top(rows: Iterator[Row], passes: list[SortPass], wanted: int) -> list[Row]:
    kept: list[Row] = []
    while more := list(itertools.islice(rows, wanted + TOP_SLACK_ROWS)):
        kept += more
        sort_rows(kept, passes)
        del kept[wanted:]
    return kept


def _compile_with_ties(context: CompileContext, node: n.Limit) -> Rows:
    assert isinstance(node.input, n.Sort)
    each, order = context.plan(node.input), compile_order(context, node.input.keys)
    limits = compile_limits(context, node.count, node.offset)

    def limit_with_ties(run: Run) -> Iterator[Row]:
        count, offset = limits(run)
        keys = [key for key, _ in order(run)]
        last: list[Any] | None = None
        for number, row in enumerate(itertools.islice(each(run), offset, None), 1):
            if count is None or number <= count:
                if number == count:
                    last = [key(row) for key in keys]
                yield row
            elif last is None or [key(row) for key in keys] != last:
                return
            else:
                yield row

    return limit_with_ties
