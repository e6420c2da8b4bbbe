"""Window functions: partitions, peers, frames, and one value per row for every call.

Rows are returned partition by partition, each in its order. An aggregate over a frame that only
grows (the default one) steps its state incrementally; any other frame is recomputed where it
differs from that of the row before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from belvedere.execution.python.context import BindRun, CompileContext
from belvedere.execution.python.expressions.expression_source import python_form
from belvedere.execution.python.operators.aggregates import CompiledAggregate, compile_call
from belvedere.execution.python.operators.sort import compile_order, sort_rows
from belvedere.execution.python.operators.window_frames import (
    OrderedPartition,
    RangeOrder,
    frames_of,
)
from belvedere.execution.run import Rows, Run
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.core.function import FunctionKind, WindowPartition
from belvedere.plan.functions.registry import resolve
from belvedere.types import INTERVAL, Kind, Row

Sequences = Sequence[Sequence[int]]


class _WindowFunctionCall(NamedTuple):
    """Either an aggregate or the Python form of a window function with its arguments."""

    aggregate: CompiledAggregate | None
    form: Callable[..., Any] | None
    arguments: BindRun | None


def compile_window(context: CompileContext, node: n.Window) -> Rows:
    each = context.plan(node.input)
    partition = context.key_of(node.partition) if node.partition else None
    order = compile_order(context, node.order)
    peers = context.key_of([key.expression for key in node.order])
    offsets = [_compile_offset(context, bound) for bound in (node.frame.start, node.frame.end)]
    calls = [_compile_call(context, call) for call in node.calls]
    range_order = _range_order(node)
    value_of = context.value_of(node.order[0].expression) if range_order is not None else None

    def window_rows(run: Run) -> Iterator[Row]:
        found = run.memory.hold_rows(each(run))
        passes, key = order(run), peers(run)
        start, end = (None if one is None else one(run)(run.outer) for one in offsets)
        value = None if value_of is None else value_of(run)
        for part in _split_partitions(found, None if partition is None else partition(run)):
            run.interrupt.check()
            sort_rows(part, passes)
            ordered = _find_peers(part, key, value)
            frames = frames_of(node.frame, ordered, start, end, range_order)
            columns = [_compute_column(run, call, part, ordered, frames) for call in calls]
            for row, *values in zip(part, *columns):
                yield (*row, *values)

    return window_rows


def _compile_offset(context: CompileContext, bound: n.FrameBound) -> BindRun | None:
    return None if bound.offset is None else context.value_of(bound.offset)


def _compile_call(context: CompileContext, call: e.WindowCall) -> _WindowFunctionCall:
    if call.function.kind is FunctionKind.AGGREGATE:
        aggregate = e.AggregateCall(call.function, call.arguments, call.type, filter=call.filter)
        return _WindowFunctionCall(compile_call(context, aggregate), None, None)
    types = tuple([argument.type for argument in call.arguments])
    return _WindowFunctionCall(
        None, python_form(call.function, types), context.tuple_of(call.arguments)
    )


def _range_order(node: n.Window) -> RangeOrder | None:
    """The arithmetic of RANGE offsets, when the frame has one."""
    frame = node.frame
    if frame.mode is not n.FrameMode.RANGE or not (frame.start.offset or frame.end.offset):
        return None
    key = node.order[0]
    kind = key.expression.type
    if kind.kind in (
        Kind.SMALLINT,
        Kind.INTEGER,
        Kind.BIGINT,
        Kind.NUMERIC,
        Kind.REAL,
        Kind.DOUBLE,
    ):
        return RangeOrder(kind, key.descending, None, None)
    return RangeOrder(
        kind,
        key.descending,
        resolve("+", (kind, INTERVAL)).function,
        resolve("-", (kind, INTERVAL)).function,
    )


def _split_partitions(rows: list[Row], key: Callable[[Row], Any] | None) -> Iterator[list[Row]]:
    if key is None:
        if rows:
            yield rows
        return
    parts: dict[Any, list[Row]] = {}
    for row in rows:
        parts.setdefault(key(row), []).append(row)
    yield from parts.values()


def _find_peers(
    rows: list[Row], key: Callable[[Row], Any], value: Callable[[Row], Any] | None
) -> OrderedPartition:
    peers: list[int] = []
    starts: list[int] = []
    last: Any = None
    for i, row in enumerate(rows):
        now = key(row)
        if not starts or now != last:
            starts.append(i)
            last = now
        peers.append(len(starts) - 1)
    starts.append(len(rows))
    values = [] if value is None else [value(row) for row in rows]
    return OrderedPartition(len(rows), peers, starts, values)


def _compute_column(
    run: Run,
    call: _WindowFunctionCall,
    rows: list[Row],
    ordered: OrderedPartition,
    frames: Sequences,
) -> Sequence[Any]:
    if call.aggregate is not None:
        return _aggregate_frames(run, call.aggregate, rows, frames)
    assert call.form is not None
    assert call.arguments is not None
    given = call.arguments(run)
    arguments = [given(row) for row in rows]
    found: Sequence[Any] = call.form(WindowPartition(arguments, ordered.peers, frames))
    return found


def _aggregate_frames(
    run: Run, call: CompiledAggregate, rows: list[Row], frames: Sequences
) -> list[Any]:
    bound_call = call(run)
    values: list[Any] = []
    state: Any = None
    seen: Sequence[int] | None = None
    for frame in frames:
        if seen is not None and frame == seen:
            values.append(values[-1])
            continue
        grows = (
            isinstance(frame, range)
            and isinstance(seen, range)
            and len(seen) > 0
            and frame.start == seen.start
            and frame.stop >= seen.stop
        )
        if grows:
            assert seen is not None
            added: Sequence[int] = frame[len(seen) :]
        else:
            state, added = bound_call.initial(), frame
        for i in added:
            state = bound_call.step(state, rows[i])
        values.append(bound_call.result(state))
        seen = frame
    return values
