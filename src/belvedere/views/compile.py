"""A view's definition to what maintains it and what reads it.

A definition is cut in two. The *core* (selections, projections, inner joins, UNION ALL) is linear:
its delta is a sum of ordinary plans (`views.delta`). What comes out goes into linear state: rows
with a multiplicity, or groups with the amounts of linear aggregates (`views.linear`). The *reading*
plan turns the state back into the view's rows: aggregate values, expressions over them, HAVING.

    SELECT city, count(*) AS n FROM people WHERE age > 17 GROUP BY city HAVING count(*) > 1

    core      filter age > 17 over changes of people
    state     city | rows, count
    reading   filter n > 1 over (city, value of count)

What is not of this form yet is refused with the construct named.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from belvedere.execution.direct.dependence import walk
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.fields import Field, Fields
from belvedere.plan.functions.function import Function, Volatility
from belvedere.plan.functions.registry import resolve
from belvedere.types import Kind
from belvedere.views.core import Branch, branches_of, refused
from belvedere.views.linear import AMOUNT_TYPE, Linear, finished, linear


@dataclass(frozen=True, slots=True)
class Group:
    """What is done with a core row: its group, and the argument of each aggregate (`keeps`)."""

    groups: tuple[e.Expression, ...]
    calls: tuple[e.AggregateCall, ...]
    keeps: tuple[Linear, ...]


@dataclass(frozen=True, slots=True)
class Compiled:
    """`branches` give rows of `core_fields`; `reading` has one Scan leaf, of the view itself."""

    branches: tuple[Branch, ...]
    core_fields: Fields
    group: Group | None
    stored: Fields
    amounts: int
    reading: Callable[[int], n.Node]

    @property
    def key_columns(self) -> int:
        return len(self.stored)

    @property
    def inputs(self) -> tuple[int, ...]:
        """The relations it is made of, each once."""
        leaves = [leaf.relation for branch in self.branches for leaf in branch.leaves]
        return tuple(dict.fromkeys(leaves))


def compile_view(plan: n.Node) -> Compiled:
    """How to keep the rows of a bound, unoptimized plan. Unsupported names what cannot be kept."""
    require_deterministic(plan)
    above: list[n.Filter | n.Project] = []
    node = plan
    while isinstance(node, n.Filter | n.Project):
        above.append(node)
        node = node.input
    if isinstance(node, n.Aggregate):
        return _aggregate(node, above)
    stored = plan.fields
    _require_keys(stored)

    def reading(view: int) -> n.Node:
        return _repeated(_state_scan(view, stored, 1), len(stored), stored)

    return Compiled(branches_of(plan), stored, None, stored, 1, reading)


def require_deterministic(plan: n.Node) -> None:
    for item, _ in walk(plan, 0):
        function = getattr(item, "function", None)
        if isinstance(function, Function) and function.volatility is not Volatility.IMMUTABLE:
            raise refused(f"function {function.name}", "its result depends on more than the rows")
        if isinstance(item, e.SequenceCall | e.Parameter):
            raise refused(type(item).__name__.lower(), "its value is not that of a row")


def _aggregate(node: n.Aggregate, above: list[n.Filter | n.Project]) -> Compiled:
    if node.grouping_sets is not None:
        raise refused("grouping sets", "they are not maintained incrementally yet")
    branches = branches_of(node.input)
    keeps = tuple(_kept(call) for call in node.aggregates)
    stored = node.fields[: len(node.groups)]
    _require_keys(stored)
    amounts = 1 + sum(keep.width for keep in keeps)

    def reading(view: int) -> n.Node:
        plan: n.Node = _state_scan(view, stored, amounts)
        if not node.groups:
            plan = _one_row(plan, amounts)
        plan = _finish(plan, node, keeps)
        for upper in reversed(above):
            plan = replace(upper, input=plan)
        return plan

    group = Group(node.groups, node.aggregates, keeps)
    return Compiled(branches, node.input.fields, group, stored, amounts, reading)


def _kept(call: e.AggregateCall) -> Linear:
    keep = linear(call)
    if keep is None:
        what = f"{call.function.name}({'distinct ' if call.distinct else ''}..)"
        raise refused(what, "this aggregate is not linear and not maintained incrementally yet")
    return keep


def _state_scan(view: int, stored: Fields, amounts: int) -> n.Scan:
    added = tuple(Field(f"amount {number}", AMOUNT_TYPE) for number in range(amounts))
    fields = stored + added
    return n.Scan(view, "state", tuple(range(len(fields))), fields)


def _finish(plan: n.Node, node: n.Aggregate, keeps: tuple[Linear, ...]) -> n.Project:
    """Groups and aggregate values, laid out as the Aggregate's own fields."""
    groups = len(node.groups)
    columns = [e.Column(i, f.type, f.name) for i, f in enumerate(plan.fields)]
    values: list[e.Expression] = list(columns[:groups])
    at = groups + 1
    for call, keep in zip(node.aggregates, keeps, strict=True):
        values.append(finished(keep.final, tuple(columns[at : at + keep.width]), call.type))
        at += keep.width
    return n.Project(plan, tuple(values), node.fields)


def _one_row(plan: n.Node, amounts: int) -> n.Node:
    """The state of a view without groups: one row, of zeros when nothing is stored."""
    zeros = n.Values((tuple(e.Literal(0, AMOUNT_TYPE) for _ in range(amounts)),), plan.fields)
    return n.Limit(n.SetOperation(n.SetKind.UNION, True, plan, zeros), e.Literal(1, AMOUNT_TYPE))


def _repeated(plan: n.Node, columns: int, fields: Fields) -> n.Node:
    """Each stored row as often as its row count says."""
    numbers = resolve("generate_series", (AMOUNT_TYPE, AMOUNT_TYPE))
    counter = (Field("number", AMOUNT_TYPE),)
    bounds = (e.Literal(1, AMOUNT_TYPE), e.OuterColumn(1, columns, AMOUNT_TYPE, "rows"))
    series = n.TableFunction((n.TableCall(numbers.function, bounds, counter),), counter)
    return n.Project(
        n.Join(n.JoinKind.INNER, plan, series, lateral=True),
        tuple(e.Column(i, f.type, f.name) for i, f in enumerate(fields)),
        fields,
    )


def _require_keys(fields: Fields) -> None:
    for field in fields:
        if field.type.kind in (Kind.JSON, Kind.ARRAY):
            raise refused(f"a {field.type} column", "rows of a view are found by their values")
