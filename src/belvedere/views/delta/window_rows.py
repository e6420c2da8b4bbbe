"""Window functions over a table whose result depends on a few rows around a row, or on the first
rows of a partition: what an index on (partition columns, order columns) gives by a few seeks.

    near    lag, lead, and frames of ROWS with two bounds: a change touches the rows whose frame
            holds it; first_value and last_value of frames that begin or end with the partition
            besides need its first or last row, and only a change there touches all rows
    first   a filter above keeps the first k rows (row_number() <= k, rank() <= k), and every
            function looks back only: the rows after them are not needed

Rows that are equal in the indexed columns are read together, because later columns of the order,
and then all columns of the row, choose among them: a *place*.

State: the view's rows, and the index. Cost of a change: the places around it, or the first k rows,
before and after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.frames import Frame, FrameBound, FrameMode, FrameSide
from belvedere.types import Kind
from belvedere.views.delta.delta_tree import Recompute
from belvedere.views.delta.first_rows import find_indexable_order
from belvedere.views.delta.linear_aggregates import FLOATS
from belvedere.views.delta.min_max import find_table_slot, match_plain_table_branch

REACH_MAX = 1_000
"""A frame or filter of more rows is done again by its partition."""

_SHIFTS = ("lag", "lead")
_OF_FRAMES = frozenset(
    ("sum", "avg", "count", "min", "max", "first_value", "last_value", "nth_value")
)
_OF_FIRST_ROWS = frozenset(("row_number", "rank"))


class Reach(NamedTuple):
    """How many rows before and after a row its result may depend on, and whether it depends on the
    first row of the partition, or the last."""

    preceding: int = 0
    following: int = 0
    first: bool = False
    last: bool = False


class WindowRowsQuery(NamedTuple):
    """`columns` are the slots that the operator reads; `place` the columns of its input that are
    indexed, of which the first `partition` are the partition's; `slots` those of the table.
    `descending`: the order of the window is the reverse of the index. Either `reach`, or
    `first_rows` of each partition."""

    relation: int
    columns: tuple[int, ...]
    place: tuple[int, ...]
    partition: int
    slots: tuple[int, ...]
    descending: bool
    reach: Reach | None
    first_rows: int | None


def match_window_rows_query(catalog: Catalog, tree: Recompute) -> WindowRowsQuery | None:
    """The tree as windows of one table that need a few rows of it; None where it is anything
    else."""
    plan = tree.plan
    branch = match_plain_table_branch(tree.inputs[0].tree)
    if not isinstance(plan, n.Window) or branch is None:
        return None
    reach, first = _find_window_reach(plan), tree.first_rows
    if reach is None and first is None:
        return None
    partition = [find_table_slot(branch, one) for one in plan.partition]
    columns = [find_table_slot(branch, e.Column(i, x.type)) for i, x in enumerate(branch.columns)]
    if None in partition or None in columns or len(set(partition)) < len(partition):
        return None
    order, descending = find_indexable_order(catalog, branch, plan.partition, plan.order)
    if not order or set(order) & set(partition) or len(set(order)) < len(order):
        return None
    wanted = [key.expression for key in plan.order if key.expression not in plan.partition]
    places = [*plan.partition, *wanted[: len(order)]]
    return WindowRowsQuery(
        branch.leaves[0].relation,
        tuple(slot for slot in columns if slot is not None),
        tuple(one.index for one in places if isinstance(one, e.Column)),
        len(partition),
        (*(slot for slot in partition if slot is not None), *order),
        descending,
        reach,
        first,
    )


def find_first_rows_filter(node: n.Filter) -> int | None:
    """The number of first rows of each partition that a filter of a window keeps at most, where all
    functions of that window look back only."""
    window = node.input
    if not isinstance(window, n.Window) or not all(
        call.function.name in _OF_FIRST_ROWS or _needs_no_later_row(window.frame, call)
        for call in window.calls
    ):
        return None
    width = len(window.input.fields)
    ranked = {
        width + at for at, call in enumerate(window.calls) if call.function.name in _OF_FIRST_ROWS
    }
    found = [
        count
        for one in transform.conjuncts(node.condition)
        if (count := _find_rank_limit(one, ranked)) is not None
    ]
    return min(found) if found and min(found) <= REACH_MAX else None


def _needs_no_later_row(frame: Frame, call: e.WindowCall) -> bool:
    """Whether a function depends on no row after the current one and its peers."""
    if call.function.name == "lag":
        return (_match_lag_or_lead_offset(call) or 0) > 0
    ends = frame.end.side in (FrameSide.CURRENT_ROW, FrameSide.PRECEDING)
    return call.function.name in _OF_FRAMES and ends and not _sums_floats(call)


def _find_rank_limit(condition: e.Expression, ranked: set[int]) -> int | None:
    """The k of `rank <= k`, `rank < k + 1` or `rank = k`."""
    match condition:
        case e.Call(arguments=(e.Column(index=at), e.Literal(value=int() as value))) if (
            at in ranked and not isinstance(value, bool)
        ):
            name = condition.function.name
            if name in ("<=", "="):
                return max(value, 0)
            return max(value - 1, 0) if name == "<" else None
        case _:
            return None


# -- reach -----------------------------------------------------------------------------------------


def _find_window_reach(window: n.Window) -> Reach | None:
    found = [_find_call_reach(window.frame, call) for call in window.calls]
    known = [one for one in found if one is not None]
    if not known or len(known) < len(found):
        return None
    reach = Reach(*map(max, zip(*known, strict=True)))
    return reach if max(reach.preceding, reach.following) <= REACH_MAX else None


def _find_call_reach(frame: Frame, call: e.WindowCall) -> Reach | None:
    name = call.function.name
    if name in _SHIFTS:
        shift = _match_lag_or_lead_offset(call)
        if shift is None:
            return None
        return Reach(shift, 0) if name == "lag" else Reach(0, shift)
    if name not in _OF_FRAMES or frame.exclude:
        return None
    edge = _find_edge(frame, name)
    if edge is not None or frame.mode is not FrameMode.ROWS:
        return edge
    start, end = _find_bound_offset(frame.start), _find_bound_offset(frame.end)
    if start is None or end is None or _sums_floats(call):
        return None
    return Reach(max(0, -start), max(0, end))


def _find_edge(frame: Frame, name: str) -> Reach | None:
    """The row that first_value or last_value shows for all rows of a partition, if it does, and
    ties do not leave it open (`views.delta.tie_break`)."""
    start, end = frame.start.side, frame.end.side
    from_start = start is FrameSide.UNBOUNDED_PRECEDING
    by_rows = frame.mode is FrameMode.ROWS
    if name == "first_value" and from_start:
        known = end in (FrameSide.CURRENT_ROW, FrameSide.UNBOUNDED_FOLLOWING)
        return Reach(first=True) if known or (by_rows and end is FrameSide.FOLLOWING) else None
    if name == "last_value" and end is FrameSide.UNBOUNDED_FOLLOWING:
        known = by_rows and start in (FrameSide.PRECEDING, FrameSide.CURRENT_ROW)
        return Reach(last=True) if known or from_start else None
    return None


def _match_lag_or_lead_offset(call: e.WindowCall) -> int | None:
    """The rows that a lag or lead goes; None where that is not a constant."""
    if len(call.arguments) == 1:
        return 1
    return _match_constant_count(call.arguments[1])


def _find_bound_offset(bound: FrameBound) -> int | None:
    """The rows from the current one to a bound of its frame, before it negative."""
    if bound.side is FrameSide.CURRENT_ROW:
        return 0
    count = None if bound.offset is None else _match_constant_count(bound.offset)
    if count is None or bound.side not in (FrameSide.PRECEDING, FrameSide.FOLLOWING):
        return None
    return -count if bound.side is FrameSide.PRECEDING else count


def _match_constant_count(expression: e.Expression) -> int | None:
    while isinstance(expression, e.Cast):
        expression = expression.operand
    match expression:
        case e.Literal(value=int() as value) if value >= 0 and not isinstance(value, bool):
            return value
        case _:
            return None


def _sums_floats(call: e.WindowCall) -> bool:
    """Whether the digits of a sum may depend on where the rows that it is over begin."""
    return call.function.name in ("sum", "avg") and _has_argument_of_kind(call.arguments, FLOATS)


def _has_argument_of_kind(arguments: Sequence[e.Expression], kinds: Sequence[Kind]) -> bool:
    return any(one.type.kind in kinds for one in arguments)
