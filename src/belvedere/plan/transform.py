"""Traversal and rebuilding of plans and expressions: every stage that changes a plan uses these.

Depths. An expression is evaluated on a row; a plan inside it (a sub-query) is one level deeper, as
is the right side of a lateral join. A reference to the row a walk began on is therefore `Column(i)`
at level 0 and `OuterColumn(k, i)` at level k; references to rows further out have a larger depth
than the level. All functions here return the very same object when nothing changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n

OnExpression = Callable[[e.Expression], e.Expression]
OnNode = Callable[[n.Node], n.Node]
Kinds = type[Any] | tuple[type[Any], ...]


# -- one level of an expression --------------------------------------------------------------------


_OPERANDS: dict[type[Any], Callable[[Any], tuple[e.Expression, ...]]] = {
    e.Call: lambda one: one.arguments,
    e.Coalesce: lambda one: one.arguments,
    e.SequenceCall: lambda one: one.arguments,
    e.And: lambda one: one.operands,
    e.Or: lambda one: one.operands,
    e.QuantifiedSubquery: lambda one: one.operands,
    e.Cast: lambda one: (one.operand,),
    e.Not: lambda one: (one.operand,),
    e.Test: lambda one: (one.operand,),
    e.IsDistinct: lambda one: (one.left, one.right),
    e.Case: lambda one: (*(x for pair in one.whens for x in pair), one.default),
    e.InList: lambda one: (one.operand, *one.items),
    e.Quantified: lambda one: (one.operand, one.array),
    e.Array: lambda one: one.items,
}


def operands(expression: e.Expression) -> tuple[e.Expression, ...]:
    """The direct operands of an expression, without sub-queries."""
    give = _OPERANDS.get(type(expression))
    return () if give is None else give(expression)


_WITH_SUBPLAN = (e.ScalarSubquery, e.Exists, e.QuantifiedSubquery, e.ArraySubquery)


def subplan(expression: e.Expression) -> n.Node | None:
    return expression.plan if isinstance(expression, _WITH_SUBPLAN) else None


def rebuild_operands(expression: e.Expression, change: OnExpression) -> e.Expression:
    """The expression with `change` applied to each of its operands."""
    old = operands(expression)
    if not old:
        return expression
    new = tuple([change(one) for one in old])
    if all(a is b for a, b in zip(old, new)):
        return expression
    return with_operands(expression, new)


def with_operands(expression: e.Expression, new: tuple[e.Expression, ...]) -> e.Expression:
    match expression:
        case e.Call():
            return e.Call(expression.function, new, expression.type)
        case e.Coalesce() | e.SequenceCall():
            return replace(expression, arguments=new)
        case e.And():
            return e.And(new)
        case e.Or():
            return e.Or(new)
        case e.QuantifiedSubquery():
            return replace(expression, operands=new)
        case e.Cast() | e.Not() | e.Test():
            return replace(expression, operand=new[0])
        case e.IsDistinct():
            return replace(expression, left=new[0], right=new[1])
        case e.Case():
            pairs = tuple(zip(new[:-1:2], new[1:-1:2]))
            return e.Case(pairs, new[-1], expression.type)
        case e.InList():
            return replace(expression, operand=new[0], items=new[1:])
        case e.Quantified():
            return replace(expression, operand=new[0], array=new[1])
        case e.Array():
            return e.Array(new, expression.type)
        case _:
            return expression


def with_subplan(expression: e.Expression, change: OnNode) -> e.Expression:
    if not isinstance(expression, _WITH_SUBPLAN):
        return expression
    changed = change(expression.plan)
    return expression if changed is expression.plan else replace(expression, plan=changed)


# -- one level of a plan ---------------------------------------------------------------------------


def inputs(node: n.Node) -> tuple[n.Node, ...]:
    match node:
        case n.Join() | n.SetOperation():
            return (node.left, node.right)
        case n.RecursiveUnion():
            return (node.base, node.step)
        case n.With():
            return (*(cte.plan for cte in node.ctes), node.body)
        case (
            n.Scan()
            | n.VirtualScan()
            | n.ForeignScan()
            | n.Values()
            | n.TableFunction()
            | n.CteScan()
            | n.Changes()
            | n.State()
        ):
            return ()
        case _:
            return (node.input,)


def rebuild_inputs(node: n.Node, change: OnNode) -> n.Node:
    """The node with `change` applied to each of its inputs."""
    old = inputs(node)
    if not old:
        return node
    new = [change(one) for one in old]
    if all(a is b for a, b in zip(old, new)):
        return node
    return with_inputs(node, tuple(new))


def with_inputs(node: n.Node, new: tuple[n.Node, ...]) -> n.Node:
    match node:
        case n.Join() | n.SetOperation():
            return replace(node, left=new[0], right=new[1])
        case n.RecursiveUnion():
            return replace(node, base=new[0], step=new[1])
        case n.With():
            ctes = tuple(cte._replace(plan=plan) for cte, plan in zip(node.ctes, new))
            return n.With(ctes, new[-1])
        case (
            n.Scan()
            | n.VirtualScan()
            | n.ForeignScan()
            | n.Values()
            | n.TableFunction()
            | n.CteScan()
            | n.Changes()
            | n.State()
        ):
            return node
        case _:
            return replace(node, input=new[0])


def rebuild_expressions(node: n.Node, change: OnExpression) -> n.Node:
    """The node with `change` applied to each of its own expressions, on whichever row they are."""
    changed: dict[str, Any] = {}
    for name, value in _expression_fields(node):
        new = _change_expressions(value, change)
        if new is not value:
            changed[name] = new
    return replace(node, **changed) if changed else node


_EXPRESSION_FIELDS: dict[type[Any], tuple[str, ...]] = {
    n.Scan: ("access", "filter", "residual"),
    n.VirtualScan: (),
    n.ForeignScan: ("filter",),
    n.Values: ("rows",),
    n.TableFunction: ("calls",),
    n.CteScan: (),
    n.Changes: ("filter",),
    n.State: ("access", "filter", "residual"),
    n.Filter: ("condition",),
    n.Project: ("expressions",),
    n.Aggregate: ("groups", "aggregates"),
    n.Window: ("partition", "order", "frame", "calls"),
    n.Sort: ("keys",),
    n.Limit: ("count", "offset"),
    n.TopN: ("keys", "count", "offset"),
    n.Distinct: ("on",),
    n.Lock: (),
    n.Join: ("keys", "residual", "lookup"),
    n.SetOperation: (),
    n.RecursiveUnion: (),
    n.With: (),
    n.Insert: ("rules", "on_conflict", "returning"),
    n.Update: ("assignments", "rules", "returning"),
    n.Delete: ("returning",),
}


def _expression_fields(node: n.Node) -> Iterator[tuple[str, Any]]:
    for name in _EXPRESSION_FIELDS[type(node)]:
        yield name, getattr(node, name)


_EXPRESSION_HOLDERS: dict[type[Any], tuple[str, ...]] = {
    e.SortKey: ("expression",),
    e.AggregateCall: ("arguments", "filter", "order_by"),
    e.WindowCall: ("arguments", "filter"),
    paths.Access: ("parts", "range"),
    paths.EqualityPart: ("value",),
    paths.InListPart: ("values",),
    paths.AnyElementPart: ("array",),
    paths.IsNullPart: (),
    paths.Range: ("low", "high", "pattern"),
    paths.Bound: ("value",),
    n.RowRules: ("generated", "checks"),
    n.OnConflict: ("assignments", "where"),
}
_EXPRESSIONS = frozenset(e.Expression.__args__)


def _change_expressions(value: Any, change: OnExpression) -> Any:
    kind = type(value)
    if kind in _EXPRESSIONS:
        return change(value)
    if kind in _EXPRESSION_HOLDERS:
        changed = {
            name: new
            for name in _EXPRESSION_HOLDERS[kind]
            if (new := _change_expressions(old := getattr(value, name), change)) is not old
        }
        return replace(value, **changed) if changed else value
    if isinstance(value, tuple):
        new = [_change_expressions(one, change) for one in value]
        if all(a is b for a, b in zip(value, new)):
            return value
        return tuple(new) if kind is tuple else kind(*new)
    return value


def own_expressions(node: n.Node) -> list[e.Expression]:
    """Every expression of the node itself, not of its inputs."""
    found: list[e.Expression] = []

    def collect_expression(expression: e.Expression) -> e.Expression:
        found.append(expression)
        return expression

    rebuild_expressions(node, collect_expression)
    return found


# -- rows ------------------------------------------------------------------------------------------


def lift_expression(expression: e.Expression, levels: int) -> e.Expression:
    """The expression moved `levels` deeper, with its references adjusted to mean the same."""
    if levels == 0:
        return expression

    def lift_columns(one: e.Expression) -> e.Expression:
        match one:
            case e.Column():
                return e.OuterColumn(levels, one.index, one.type, one.name)
            case e.OuterColumn():
                return replace(one, depth=one.depth + levels)
        new = rebuild_operands(one, lift_columns)
        return with_subplan(new, lambda plan: lift_plan(plan, levels, 1))

    return lift_columns(expression)


def lift_plan(plan: n.Node, levels: int, start: int = 1) -> n.Node:
    """A plan moved `levels` deeper: references that leave it reach further. Negative moves it out.

    `start` is the level of the plan relative to the row from which on references are moved."""

    def lift_reference(reference: e.OuterColumn, at: int) -> e.Expression:
        if reference.depth < at:
            return reference
        return replace(reference, depth=reference.depth + levels)

    return map_outer_columns(plan, lift_reference, start)


OnOuter = Callable[[e.OuterColumn, int], e.Expression]


def map_outer_columns(plan: n.Node, change: OnOuter, level: int = 1) -> n.Node:
    """The plan with `change(reference, level)` applied to every outer reference inside."""

    def on_expression(one: e.Expression, at: int) -> e.Expression:
        if isinstance(one, e.OuterColumn):
            return change(one, at)
        new = rebuild_operands(one, lambda inner: on_expression(inner, at))
        return with_subplan(new, lambda inner: on_plan(inner, at + 1))

    def on_plan(node: n.Node, at: int) -> n.Node:
        new = rebuild_expressions(node, lambda one: on_expression(one, at))
        if isinstance(new, n.Join) and new.lateral:
            left, right = on_plan(new.left, at), on_plan(new.right, at + 1)
            if left is new.left and right is new.right:
                return new
            return replace(new, left=left, right=right)
        return rebuild_inputs(new, lambda inner: on_plan(inner, at))

    return on_plan(plan, level)


def outer_references(plan: n.Node) -> set[tuple[int, int]]:
    """(depth, index) of every reference that leaves the plan; depth 1 is the row just around it."""
    found: set[tuple[int, int]] = set()

    def collect_reference(reference: e.OuterColumn, at: int) -> e.Expression:
        if reference.depth >= at:
            found.add((reference.depth - at + 1, reference.index))
        return reference

    map_outer_columns(plan, collect_reference)
    return found


def columns_of(expression: e.Expression) -> set[int]:
    """The columns of its row that the expression reads, also from inside its sub-queries."""
    found: set[int] = set()
    _collect_columns(expression, found)
    return found


def columns_of_all(expressions: Iterable[e.Expression]) -> set[int]:
    found: set[int] = set()
    for one in expressions:
        _collect_columns(one, found)
    return found


def _collect_columns(expression: e.Expression, found: set[int]) -> None:
    if isinstance(expression, e.Column):
        found.add(expression.index)
        return
    for one in operands(expression):
        _collect_columns(one, found)
    plan = subplan(expression)
    if plan is not None:
        found.update(index for depth, index in outer_references(plan) if depth == 1)


def has_outer_column(expression: e.Expression) -> bool:
    """Whether the expression reads rows further out."""
    if isinstance(expression, e.OuterColumn):
        return True
    plan = subplan(expression)
    if plan is not None and any(depth > 1 for depth, _ in outer_references(plan)):
        return True
    return any(has_outer_column(one) for one in operands(expression))


def has_subplan(expression: e.Expression) -> bool:
    if subplan(expression) is not None:
        return True
    return any(has_subplan(one) for one in operands(expression))


def shift_columns(expression: e.Expression, offset: int) -> e.Expression:
    """The expression over a row that has `offset` more columns in front."""
    if offset == 0:
        return expression
    return map_columns(expression, lambda one: replace(one, index=one.index + offset))


def shift_all(expressions: Iterable[e.Expression], offset: int) -> tuple[e.Expression, ...]:
    return tuple([shift_columns(one, offset) for one in expressions])


def renumber_columns(expression: e.Expression, places: Mapping[int, int]) -> e.Expression:
    """The expression with column i of its row as column `places[i]`."""

    def move_column(column: e.Column) -> e.Expression:
        place = places[column.index]
        return column if place == column.index else e.Column(place, column.type, column.name)

    return map_columns(expression, move_column)


def renumber_all(
    expressions: Iterable[e.Expression], places: Mapping[int, int]
) -> tuple[e.Expression, ...]:
    return tuple([renumber_columns(one, places) for one in expressions])


def substitute_columns(expression: e.Expression, values: Sequence[e.Expression]) -> e.Expression:
    """The expression over the row from which `values` compute the columns of its own row."""
    return map_columns(expression, lambda column: values[column.index])


def map_columns(
    expression: e.Expression, change: Callable[[e.Column], e.Expression]
) -> e.Expression:
    """The expression with `change` applied to every column of its row, in sub-queries too."""
    match expression:
        case e.Column():
            return change(expression)
        case e.Literal() | e.Parameter() | e.OuterColumn():
            return expression
    new = rebuild_operands(expression, lambda one: map_columns(one, change))

    def map_outer_reference(reference: e.OuterColumn, at: int) -> e.Expression:
        if reference.depth != at:
            return reference
        return lift_expression(
            change(e.Column(reference.index, reference.type, reference.name)), at
        )

    return with_subplan(new, lambda plan: map_outer_columns(plan, map_outer_reference))


def conjuncts(condition: e.Expression | None) -> list[e.Expression]:
    """The conditions that AND joins, nested ANDs opened."""
    if condition is None:
        return []
    if not isinstance(condition, e.And):
        return [condition]
    return [one for operand in condition.operands for one in conjuncts(operand)]


def conjunction(conditions: list[e.Expression]) -> e.Expression | None:
    if not conditions:
        return None
    return conditions[0] if len(conditions) == 1 else e.And(tuple(conditions))


# -- whole plans -----------------------------------------------------------------------------------


def walk_plan(plan: n.Node) -> list[n.Node]:
    """Every node of the plan, those of sub-queries too, parents first."""
    found: list[n.Node] = []
    stack: list[Any] = [plan]
    while stack:
        one = stack.pop()
        if type(one) in _EXPRESSIONS:
            stack += reversed(operands(one))
            inner = subplan(one)
            if inner is not None:
                stack.append(inner)
        else:
            found.append(one)
            stack += reversed(inputs(one))
            stack += reversed(own_expressions(one))
    return found


def rewrite_nodes(
    plan: n.Node, kinds: Kinds, change: Callable[[Any], n.Node], *, subplans: bool = False
) -> n.Node:
    """The plan with `change` applied to every node of these kinds, its inputs first; with
    `subplans` also to those of sub-queries."""

    def rewrite_node(node: n.Node) -> n.Node:
        node = rebuild_inputs(node, rewrite_node)
        if subplans:
            node = rebuild_expressions(node, rewrite_subplans)
        return change(node) if isinstance(node, kinds) else node

    def rewrite_subplans(expression: e.Expression) -> e.Expression:
        return with_subplan(rebuild_operands(expression, rewrite_subplans), rewrite_node)

    return rewrite_node(plan)


def rewrite_expressions(
    plan: n.Node, kinds: Kinds, change: Callable[[Any], e.Expression]
) -> n.Node:
    """The plan with `change` applied to every expression of these kinds, its operands first. Plans
    of sub-queries stay as they are."""

    def rewrite_node(node: n.Node) -> n.Node:
        return rebuild_expressions(rebuild_inputs(node, rewrite_node), rewrite_expression)

    def rewrite_expression(expression: e.Expression) -> e.Expression:
        found = rebuild_operands(expression, rewrite_expression)
        return change(found) if isinstance(found, kinds) else found

    return rewrite_node(plan)


def map_subplans(plan: n.Node, change: OnNode) -> n.Node:
    """The plan with `change` applied to the plans that stand in its expressions."""

    def map_node(node: n.Node) -> n.Node:
        return rebuild_inputs(rebuild_expressions(node, map_expression), map_node)

    def map_expression(one: e.Expression) -> e.Expression:
        return with_subplan(rebuild_operands(one, map_expression), change)

    return map_node(plan)
