"""GROUP BY: accumulators per group, with FILTER, DISTINCT, ORDER BY, WITHIN GROUP, grouping sets.

A plain aggregate steps its state row by row. One with DISTINCT or an order collects its rows and
steps through them at the end. Groups are returned in the order of their first rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from belvedere.codec.compile import indent
from belvedere.errors import Unsupported
from belvedere.execution.memory_limit import CHUNK_ROWS
from belvedere.execution.python.context import BindRun, CompileContext, key_text
from belvedere.execution.python.expressions.expression_source import ExpressionWriter
from belvedere.execution.python.expressions.generated_function import (
    GeneratedFunction,
    tuple_source,
)
from belvedere.execution.python.operators.sort import SortPasses, compile_order, sort_rows
from belvedere.execution.run import Rows, Run
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.core.function import Accumulator, Function
from belvedere.types import Row, SqlType

Step = Callable[[Any, Row], Any]
"""The state after one more row."""


class BoundAggregate:
    """One aggregate within one run: a fresh state, a step per row, the result of a state."""

    __slots__ = ("initial", "result", "step")

    def __init__(
        self, initial: Callable[[], Any], step: Step, result: Callable[[Any], Any]
    ) -> None:
        self.initial = initial
        self.step = step
        self.result = result


CompiledAggregate = Callable[[Run], BoundAggregate]


def compile_call(context: CompileContext, call: e.AggregateCall) -> CompiledAggregate:
    ordered_set = call.function.direct is not None
    inputs = tuple(key.expression for key in call.order_by) if ordered_set else call.arguments
    accumulator = accumulator_of(call.function, tuple([one.type for one in inputs]))
    arguments = context.tuple_of(inputs)
    keep = None if call.filter is None else context.truth_of(call.filter)
    if not call.distinct and not call.order_by:
        return _compile_stepping(accumulator, arguments, keep, call.function.strict)
    return _compile_collecting(context, call, accumulator, arguments, keep)


def accumulator_of(function: Function, types: tuple[SqlType, ...]) -> Accumulator:
    form = function.python if function.specialize is None else function.specialize(types)
    if not isinstance(form, Accumulator):
        raise Unsupported("function is not an aggregate", name=function.name)
    return form


def _compile_stepping(
    accumulator: Accumulator, arguments: BindRun, keep: BindRun | None, strict: bool
) -> CompiledAggregate:
    step = accumulator.step

    def bind_run(run: Run) -> BoundAggregate:
        given = arguments(run)
        kept = None if keep is None else keep(run)

        def step_row(state: Any, row: Row) -> Any:
            if kept is not None and not kept(row):
                return state
            values = given(row)
            if strict and None in values:
                return state
            return step(state, *values)

        return BoundAggregate(accumulator.initial, step_row, accumulator.finish)

    return bind_run


@dataclass(frozen=True, slots=True)
class _Collection:
    """How the collected rows of an ordered or distinct aggregate become its value."""

    accumulator: Accumulator
    arguments: BindRun
    key: BindRun | None
    order: SortPasses | None
    direct: BindRun | None
    strict: bool


def _compile_collecting(
    context: CompileContext,
    call: e.AggregateCall,
    accumulator: Accumulator,
    arguments: BindRun,
    keep: BindRun | None,
) -> CompiledAggregate:
    ordered_set = call.function.direct is not None
    inputs = tuple(key.expression for key in call.order_by) if ordered_set else call.arguments
    collection = _Collection(
        accumulator,
        arguments,
        context.key_of(inputs) if call.distinct else None,
        compile_order(context, call.order_by)
        if call.order_by
        else _ascending_order(context, inputs),
        context.tuple_of(call.arguments) if ordered_set else None,
        call.function.strict,
    )

    def bind_run(run: Run) -> BoundAggregate:
        kept = None if keep is None else keep(run)

        def collect_row(state: list[Row], row: Row) -> list[Row]:
            if kept is None or kept(row):
                state.append(row)
                if not len(state) % CHUNK_ROWS:
                    run.memory.reserve_rows(CHUNK_ROWS, row)
            return state

        return BoundAggregate(
            list, collect_row, lambda state: _aggregate_collected(run, collection, state)
        )

    return bind_run


def _ascending_order(context: CompileContext, inputs: tuple[e.Expression, ...]) -> SortPasses:
    """DISTINCT without an order: PostgreSQL sorts, so the values are in ascending order."""
    return compile_order(context, [e.SortKey(one) for one in inputs])


def _aggregate_collected(run: Run, collection: _Collection, rows: list[Row]) -> Any:
    rows = list(rows)
    if collection.key is not None:
        rows = list(_first_of_each(rows, collection.key(run)))
    if collection.order is not None:
        sort_rows(rows, collection.order(run))
    given = collection.arguments(run)
    state = collection.accumulator.initial()
    for row in rows:
        values = given(row)
        if not (collection.strict and None in values):
            state = collection.accumulator.step(state, *values)
    if collection.direct is None:
        return collection.accumulator.finish(state)
    direct = collection.direct(run)(rows[0] if rows else ())
    return collection.accumulator.finish(state, *direct)


def _first_of_each(rows: Iterable[Row], key: Callable[[Row], Any]) -> Iterator[Row]:
    seen = set()
    for row in rows:
        value = key(row)
        if value not in seen:
            seen.add(value)
            yield row


# -- groups ----------------------------------------------------------------------------------------


def compile_aggregate(context: CompileContext, node: n.Aggregate) -> Rows:
    each = context.plan(node.input)
    if node.grouping_sets is None and not any(map(_needs_collecting, node.aggregates)):
        return _generate_loop(context, node, each)
    calls = [compile_call(context, call) for call in node.aggregates]
    if not node.groups and node.grouping_sets is None:
        return _compile_one_group(each, calls)
    key_of, values_of = context.key_of(node.groups), context.tuple_of(node.groups)
    if node.grouping_sets is None:
        return _compile_groups(each, calls, key_of, values_of)
    return _compile_grouping_sets(node, each, calls, (key_of, values_of))


def _needs_collecting(call: e.AggregateCall) -> bool:
    return call.distinct or bool(call.order_by)


def _compile_one_group(each: Rows, calls: list[CompiledAggregate]) -> Rows:
    def aggregate_rows(run: Run) -> Iterator[Row]:
        bound_calls = [call(run) for call in calls]
        states = [one.initial() for one in bound_calls]
        steps = [one.step for one in bound_calls]
        for row in each(run):
            states = [step(state, row) for step, state in zip(steps, states)]
        yield tuple([one.result(state) for one, state in zip(bound_calls, states)])

    return aggregate_rows


def _generate_loop(context: CompileContext, node: n.Aggregate, each: Rows) -> Rows:
    """Aggregates that only step, as one generated loop:

    for row in rows(run):
        t1 = row[0]; group = groups.get(t1) ...
        if (t2 := row[3]) is not None: group[1] = step_0(group[1], t2)
    """
    source = GeneratedFunction()
    writer = ExpressionWriter(source, context.plan)
    accumulators = [
        accumulator_of(call.function, tuple([one.type for one in call.arguments]))
        for call in node.aggregates
    ]
    steps: list[str] = []
    for number, (call, accumulator) in enumerate(zip(node.aggregates, accumulators)):
        steps += _step_lines(writer, call, accumulator, f"states[{number}]")
    made = "[" + ", ".join(f"{source.add_constant(a.initial, 'new')}()" for a in accumulators) + "]"
    results = tuple_source(
        f"{source.add_constant(a.finish, 'finish')}(states[{i}])"
        for i, a in enumerate(accumulators)
    )
    rows = source.add_constant(each, "rows")
    if not node.groups:
        body = [f"states = {made}", f"for row in {rows}(run):", *indent(steps or ["pass"])]
        return source.build_function("aggregate", [*body, f"yield {results}"])
    key = tuple_source(key_text(writer, group) for group in node.groups)
    values = tuple_source(writer.write_value(group) for group in node.groups)
    loop = [
        f"key = {key}",
        "group = groups.get(key)",
        "if group is None:",
        f"    group = groups[key] = ({values}, {made})",
        f"    if not len(groups) % {CHUNK_ROWS}: grown({CHUNK_ROWS}, key)",
        "states = group[1]",
        *steps,
    ]
    body = [
        "groups = {}",
        "grown = run.memory.reserve_rows",
        f"for row in {rows}(run):",
        *indent(loop),
    ]
    body += ["for values, states in groups.values():", f"    yield values + {results}"]
    return source.build_function("aggregate", body)


def _step_lines(
    writer: ExpressionWriter, call: e.AggregateCall, accumulator: Accumulator, state: str
) -> list[str]:
    """The lines that step one state by one row."""
    step = writer.source.add_constant(accumulator.step, "step")
    if call.function.strict:
        tests, given = writer.hold_arguments(call.arguments)
        test = f"not ({tests})" if tests else ""
    else:
        test, given = "", [writer.write_value(argument) for argument in call.arguments]
    if call.filter is not None:
        kept = writer.write_truth(call.filter)
        test = f"{kept} and {test}" if test else kept
    line = f"{state} = {step}({', '.join([state, *given])})"
    return [f"if {test}: {line}" if test else line]


def _compile_groups(
    each: Rows, calls: list[CompiledAggregate], key_of: BindRun, values_of: BindRun
) -> Rows:
    def aggregate_groups(run: Run) -> Iterator[Row]:
        bound_calls = [call(run) for call in calls]
        groups = _accumulate_groups(run, each(run), bound_calls, key_of(run), values_of(run))
        for values, states in groups.values():
            yield values + tuple([one.result(s) for one, s in zip(bound_calls, states)])

    return aggregate_groups


GroupStates = dict[Any, tuple[Row, list[Any]]]


def _accumulate_groups(
    run: Run,
    rows: Iterable[Row],
    bound_calls: list[BoundAggregate],
    key: Callable[[Row], Any],
    values: Callable[[Row], Row],
) -> GroupStates:
    groups: GroupStates = {}
    steps = list(enumerate([one.step for one in bound_calls]))
    for row in rows:
        at = key(row)
        group = groups.get(at)
        if group is None:
            group = groups[at] = (values(row), [one.initial() for one in bound_calls])
            if not len(groups) % CHUNK_ROWS:
                run.memory.reserve_rows(CHUNK_ROWS, row)
        states = group[1]
        for i, step in steps:
            states[i] = step(states[i], row)
    return groups


def _compile_grouping_sets(
    node: n.Aggregate,
    each: Rows,
    calls: list[CompiledAggregate],
    of_groups: tuple[BindRun, BindRun],
) -> Rows:
    assert node.grouping_sets is not None
    width = len(node.groups)
    sets = [(frozenset(one), _grouping_values(node, frozenset(one))) for one in node.grouping_sets]

    def aggregate_sets(run: Run) -> Iterator[Row]:
        bound_calls = [call(run) for call in calls]
        key, values = of_groups[0](run), of_groups[1](run)
        found = run.memory.hold_rows(each(run))
        for chosen, numbers in sets:
            mask = [i in chosen for i in range(width)]
            groups = _accumulate_groups(
                run, found, bound_calls, _mask_columns(key, mask), _mask_columns(values, mask)
            )
            if not chosen and not groups:
                groups[()] = ((None,) * width, [one.initial() for one in bound_calls])
            for group, states in groups.values():
                results = [one.result(s) for one, s in zip(bound_calls, states)]
                yield (*group, *results, *numbers)

    return aggregate_sets


def _mask_columns(function: Callable[[Row], Row], mask: list[bool]) -> Callable[[Row], Row]:
    return lambda row: tuple([v if shown else None for v, shown in zip(function(row), mask)])


def _grouping_values(node: n.Aggregate, chosen: frozenset[int]) -> Row:
    """The values of grouping() calls for one grouping set."""
    numbers = []
    for groups in node.groupings:
        number = 0
        for group in groups:
            number = number * 2 + (group not in chosen)
        numbers.append(number)
    return tuple(numbers)
