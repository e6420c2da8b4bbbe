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
from belvedere.execution.direct.context import Bound, Context, key_text
from belvedere.execution.direct.expressions import Writer
from belvedere.execution.direct.order import Passes, compile_order, sort_rows
from belvedere.execution.direct.source import Source, tuple_source
from belvedere.execution.memory import CHUNK_ROWS
from belvedere.execution.run import Rows, Run
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.function import Accumulator, Function
from belvedere.types import Row, SqlType

Step = Callable[[Any, Row], Any]
"""The state after one more row."""


class Reckoner:
    """One aggregate within one run: a fresh state, a step per row, the result of a state."""

    __slots__ = ("initial", "result", "step")

    def __init__(
        self, initial: Callable[[], Any], step: Step, result: Callable[[Any], Any]
    ) -> None:
        self.initial = initial
        self.step = step
        self.result = result


CompiledCall = Callable[[Run], Reckoner]


def compile_call(context: Context, call: e.AggregateCall) -> CompiledCall:
    ordered_set = call.function.direct is not None
    inputs = tuple(key.expression for key in call.order_by) if ordered_set else call.arguments
    accumulator = accumulator_of(call.function, tuple([one.type for one in inputs]))
    arguments = context.tuple_of(inputs)
    keep = None if call.filter is None else context.truth_of(call.filter)
    if not call.distinct and not call.order_by:
        return _stepping(accumulator, arguments, keep, call.function.strict)
    return _collecting(context, call, accumulator, arguments, keep)


def accumulator_of(function: Function, types: tuple[SqlType, ...]) -> Accumulator:
    form = function.python if function.specialize is None else function.specialize(types)
    if not isinstance(form, Accumulator):
        raise Unsupported("function is not an aggregate", name=function.name)
    return form


def _stepping(
    accumulator: Accumulator, arguments: Bound, keep: Bound | None, strict: bool
) -> CompiledCall:
    step = accumulator.step

    def compiled(run: Run) -> Reckoner:
        given = arguments(run)
        kept = None if keep is None else keep(run)

        def stepped(state: Any, row: Row) -> Any:
            if kept is not None and not kept(row):
                return state
            values = given(row)
            if strict and None in values:
                return state
            return step(state, *values)

        return Reckoner(accumulator.initial, stepped, accumulator.finish)

    return compiled


@dataclass(frozen=True, slots=True)
class _Collection:
    """How the collected rows of an ordered or distinct aggregate become its value."""

    accumulator: Accumulator
    arguments: Bound
    key: Bound | None
    order: Passes | None
    direct: Bound | None
    strict: bool


def _collecting(
    context: Context,
    call: e.AggregateCall,
    accumulator: Accumulator,
    arguments: Bound,
    keep: Bound | None,
) -> CompiledCall:
    ordered_set = call.function.direct is not None
    inputs = tuple(key.expression for key in call.order_by) if ordered_set else call.arguments
    collection = _Collection(
        accumulator,
        arguments,
        context.key_of(inputs) if call.distinct else None,
        compile_order(context, call.order_by) if call.order_by else _natural(context, inputs),
        context.tuple_of(call.arguments) if ordered_set else None,
        call.function.strict,
    )

    def compiled(run: Run) -> Reckoner:
        kept = None if keep is None else keep(run)

        def collected(state: list[Row], row: Row) -> list[Row]:
            if kept is None or kept(row):
                state.append(row)
                if not len(state) % CHUNK_ROWS:
                    run.memory.grown(CHUNK_ROWS, row)
            return state

        return Reckoner(list, collected, lambda state: _reckon(run, collection, state))

    return compiled


def _natural(context: Context, inputs: tuple[e.Expression, ...]) -> Passes:
    """DISTINCT without an order: PostgreSQL sorts, so the values are in ascending order."""
    return compile_order(context, [e.SortKey(one) for one in inputs])


def _reckon(run: Run, collection: _Collection, rows: list[Row]) -> Any:
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


def compile_aggregate(context: Context, node: n.Aggregate) -> Rows:
    each = context.plan(node.input)
    if node.grouping_sets is None and not any(map(_collects, node.aggregates)):
        return _plain_loop(context, node, each)
    calls = [compile_call(context, call) for call in node.aggregates]
    if not node.groups and node.grouping_sets is None:
        return _one_group(each, calls)
    key_of, values_of = context.key_of(node.groups), context.tuple_of(node.groups)
    if node.grouping_sets is None:
        return _grouped(each, calls, key_of, values_of)
    return _grouping_sets(node, each, calls, (key_of, values_of))


def _collects(call: e.AggregateCall) -> bool:
    return call.distinct or bool(call.order_by)


def _one_group(each: Rows, calls: list[CompiledCall]) -> Rows:
    def rows(run: Run) -> Iterator[Row]:
        reckoners = [call(run) for call in calls]
        states = [one.initial() for one in reckoners]
        steps = [one.step for one in reckoners]
        for row in each(run):
            states = [step(state, row) for step, state in zip(steps, states)]
        yield tuple([one.result(state) for one, state in zip(reckoners, states)])

    return rows


def _plain_loop(context: Context, node: n.Aggregate, each: Rows) -> Rows:
    """Aggregates that only step, as one generated loop:

    for row in rows(run):
        t1 = row[0]; group = groups.get(t1) ...
        if (t2 := row[3]) is not None: group[1] = step_0(group[1], t2)
    """
    source = Source()
    writer = Writer(source, context.plan)
    accumulators = [
        accumulator_of(call.function, tuple([one.type for one in call.arguments]))
        for call in node.aggregates
    ]
    steps: list[str] = []
    for number, (call, accumulator) in enumerate(zip(node.aggregates, accumulators)):
        steps += _step_lines(writer, call, accumulator, f"states[{number}]")
    made = "[" + ", ".join(f"{source.constant(a.initial, 'new')}()" for a in accumulators) + "]"
    results = tuple_source(
        f"{source.constant(a.finish, 'finish')}(states[{i}])" for i, a in enumerate(accumulators)
    )
    rows = source.constant(each, "rows")
    if not node.groups:
        body = [f"states = {made}", f"for row in {rows}(run):", *indent(steps or ["pass"])]
        return source.function("aggregate", [*body, f"yield {results}"])
    key = tuple_source(key_text(writer, group) for group in node.groups)
    values = tuple_source(writer.value(group) for group in node.groups)
    loop = [
        f"key = {key}",
        "group = groups.get(key)",
        "if group is None:",
        f"    group = groups[key] = ({values}, {made})",
        f"    if not len(groups) % {CHUNK_ROWS}: grown({CHUNK_ROWS}, key)",
        "states = group[1]",
        *steps,
    ]
    body = ["groups = {}", "grown = run.memory.grown", f"for row in {rows}(run):", *indent(loop)]
    body += ["for values, states in groups.values():", f"    yield values + {results}"]
    return source.function("aggregate", body)


def _step_lines(
    writer: Writer, call: e.AggregateCall, accumulator: Accumulator, state: str
) -> list[str]:
    """The lines that step one state by one row."""
    step = writer.source.constant(accumulator.step, "step")
    if call.function.strict:
        tests, given = writer.held(call.arguments)
        test = f"not ({tests})" if tests else ""
    else:
        test, given = "", [writer.value(argument) for argument in call.arguments]
    if call.filter is not None:
        kept = writer.truth(call.filter)
        test = f"{kept} and {test}" if test else kept
    line = f"{state} = {step}({', '.join([state, *given])})"
    return [f"if {test}: {line}" if test else line]


def _grouped(each: Rows, calls: list[CompiledCall], key_of: Bound, values_of: Bound) -> Rows:
    def rows(run: Run) -> Iterator[Row]:
        reckoners = [call(run) for call in calls]
        groups = _fill(run, each(run), reckoners, key_of(run), values_of(run))
        for values, states in groups.values():
            yield values + tuple([one.result(s) for one, s in zip(reckoners, states)])

    return rows


Groups = dict[Any, tuple[Row, list[Any]]]


def _fill(
    run: Run,
    rows: Iterable[Row],
    reckoners: list[Reckoner],
    key: Callable[[Row], Any],
    values: Callable[[Row], Row],
) -> Groups:
    groups: Groups = {}
    steps = list(enumerate([one.step for one in reckoners]))
    for row in rows:
        at = key(row)
        group = groups.get(at)
        if group is None:
            group = groups[at] = (values(row), [one.initial() for one in reckoners])
            if not len(groups) % CHUNK_ROWS:
                run.memory.grown(CHUNK_ROWS, row)
        states = group[1]
        for i, step in steps:
            states[i] = step(states[i], row)
    return groups


def _grouping_sets(
    node: n.Aggregate, each: Rows, calls: list[CompiledCall], of_groups: tuple[Bound, Bound]
) -> Rows:
    assert node.grouping_sets is not None
    width = len(node.groups)
    sets = [(frozenset(one), _grouping_values(node, frozenset(one))) for one in node.grouping_sets]

    def rows(run: Run) -> Iterator[Row]:
        reckoners = [call(run) for call in calls]
        key, values = of_groups[0](run), of_groups[1](run)
        found = run.memory.hold(each(run))
        for chosen, numbers in sets:
            mask = [i in chosen for i in range(width)]
            groups = _fill(run, found, reckoners, _masked(key, mask), _masked(values, mask))
            if not chosen and not groups:
                groups[()] = ((None,) * width, [one.initial() for one in reckoners])
            for group, states in groups.values():
                results = [one.result(s) for one, s in zip(reckoners, states)]
                yield (*group, *results, *numbers)

    return rows


def _masked(function: Callable[[Row], Row], mask: list[bool]) -> Callable[[Row], Row]:
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
