"""Window frames: which rows of its partition each row sees.

A frame is a `range` of row numbers, or a list of them when EXCLUDE leaves holes.
"""

from __future__ import annotations

import bisect
import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan import nodes as n
from belvedere.plan.functions.core.function import Function
from belvedere.types import Interval, Kind, SqlType

Edge = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class OrderedPartition:
    """A partition in order. `peers[i]` is the number of row i's peer group; `starts` where each
    group begins, with the length at the end; `values` the one ORDER BY value of each row, for
    RANGE with an offset."""

    length: int
    peers: Sequence[int]
    starts: Sequence[int]
    values: Sequence[Any]


@dataclass(frozen=True, slots=True)
class RangeOrder:
    """How RANGE offsets are computed: the column's type and direction, and its arithmetic."""

    type: SqlType
    descending: bool
    add: Function | None
    subtract: Function | None


def frames_of(
    frame: n.Frame, rows: OrderedPartition, start: Any, end: Any, order: RangeOrder | None
) -> list[Sequence[int]]:
    """The frame of every row; `start` and `end` are the offsets' values."""
    for bound, offset in ((frame.start, start), (frame.end, end)):
        if bound.offset is not None:
            _check_offset(offset)
    first = _frame_edge(frame, frame.start, rows, start, order, last=False)
    after = _frame_edge(frame, frame.end, rows, end, order, last=True)
    found: list[Sequence[int]] = []
    for i in range(rows.length):
        low, high = max(first(i), 0), min(after(i), rows.length)
        found.append(range(low, max(low, high)))
    if not frame.exclude:
        return found
    return [_exclude_rows(frame.exclude, one, i, rows) for i, one in enumerate(found)]


def _check_offset(offset: Any) -> None:
    if offset is None:
        raise InvalidInput("frame offset must not be null", sqlstate="22004")
    negative = offset.span < 0 if isinstance(offset, Interval) else offset < 0
    if negative:
        raise InvalidInput("frame offset must not be negative", sqlstate="22013")


def _frame_edge(
    frame: n.Frame,
    bound: n.FrameBound,
    rows: OrderedPartition,
    offset: Any,
    order: RangeOrder | None,
    *,
    last: bool,
) -> Edge:
    """Row number to the frame's first row, or to the row after its last one."""
    match bound.side:
        case n.FrameSide.UNBOUNDED_PRECEDING:
            return lambda i: 0
        case n.FrameSide.UNBOUNDED_FOLLOWING:
            return lambda i: rows.length
        case n.FrameSide.CURRENT_ROW if frame.mode is n.FrameMode.ROWS:
            return lambda i: i + last
        case n.FrameSide.CURRENT_ROW:
            return lambda i: rows.starts[rows.peers[i] + last]
        case _:
            sign = 1 if bound.side is n.FrameSide.FOLLOWING else -1
            return _offset_edge(frame.mode, rows, offset, sign, order, last)


def _offset_edge(
    mode: n.FrameMode,
    rows: OrderedPartition,
    offset: Any,
    sign: int,
    order: RangeOrder | None,
    last: bool,
) -> Edge:
    match mode:
        case n.FrameMode.ROWS:
            return lambda i: i + sign * offset + last
        case n.FrameMode.GROUPS:
            groups = len(rows.starts) - 1

            def group_edge(i: int) -> int:
                group: int = rows.peers[i] + sign * offset + last
                return rows.starts[min(max(group, 0), groups)]

            return group_edge
        case n.FrameMode.RANGE:
            assert order is not None
            return _range_edge(rows, offset, sign, order, last)


def _range_edge(
    rows: OrderedPartition, offset: Any, sign: int, order: RangeOrder, last: bool
) -> Edge:
    """By value: rows from `value - offset` on, or up to it; NULL rows see only NULL rows."""
    known = [i for i, value in enumerate(rows.values) if value is not None]
    low = known[0] if known else 0
    flip = -1 if order.descending else 1
    keys = [_DirectedValue(rows.values[i], flip) for i in known]
    move = _offset_adder(order, offset, sign * flip)

    def value_edge(i: int) -> int:
        value = rows.values[i]
        if value is None:
            return rows.starts[rows.peers[i] + last]
        target = _DirectedValue(move(value), flip)
        place = bisect.bisect_right(keys, target) if last else bisect.bisect_left(keys, target)
        return low + place

    return value_edge


class _DirectedValue:
    """Orders values by the direction of their column."""

    __slots__ = ("flip", "value")

    def __init__(self, value: Any, flip: int) -> None:
        if isinstance(value, Interval):
            value = value.span
        elif type(value) is datetime.date:  # a date moved by an interval is a timestamp
            value = datetime.datetime.combine(value, datetime.time())
        self.value = value
        self.flip = flip

    def __lt__(self, other: _DirectedValue) -> bool:
        if self.flip < 0:
            return bool(other.value < self.value)
        return bool(self.value < other.value)


def _offset_adder(order: RangeOrder, offset: Any, sign: int) -> Callable[[Any], Any]:
    if order.type.kind in (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT):
        return lambda value: value + sign * offset  # unbounded here: the edge is only compared
    if order.type.kind in (Kind.NUMERIC, Kind.REAL, Kind.DOUBLE):
        return lambda value: value + sign * offset
    function = order.add if sign > 0 else order.subtract
    if function is None or not callable(function.python):
        raise Unsupported("RANGE with an offset over this type", type=str(order.type))
    form = function.python
    return lambda value: form(value, offset)


def _exclude_rows(
    exclude: str, frame: Sequence[int], i: int, rows: OrderedPartition
) -> Sequence[int]:
    if exclude == "current row":
        return [one for one in frame if one != i]
    peers = rows.peers
    if exclude == "group":
        return [one for one in frame if peers[one] != peers[i]]
    return [one for one in frame if peers[one] != peers[i] or one == i]
