"""Column pruning: no node gives columns that no node above it reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.transform import (
    columns_of,
    columns_of_all,
    map_outer_columns,
    outer_references,
    rebuild_inputs,
    renumber_all,
    renumber_columns,
)
from belvedere.sql.rules.context import OptimizerContext

Places = dict[int, int]
"""Old index to new index of a node's columns."""


def prune_columns(plan: n.Node, context: OptimizerContext) -> n.Node:
    """The plan's own columns all stay, in their order."""
    width = len(plan.fields)
    node, places = _prune_node(plan, set(range(width)))
    if len(node.fields) == width and all(places[i] == i for i in range(width)):
        return node
    columns = tuple(
        e.Column(places[i], field.type, field.name) for i, field in enumerate(plan.fields)
    )
    return n.Project(node, columns, plan.fields)


def _prune_node(node: n.Node, needed: set[int]) -> tuple[n.Node, Places]:
    """The node without columns that are not needed (some may stay), and the new indexes."""
    match node:
        case n.Scan() | n.State() | n.ForeignScan():
            return _prune_scan(node, needed)
        case n.Project():
            return _prune_project(node, needed)
        case n.Filter():
            inner, places = _prune_node(node.input, needed | columns_of(node.condition))
            return n.Filter(inner, renumber_columns(node.condition, places)), places
        case n.Sort() | n.TopN():
            used = needed | columns_of_all([key.expression for key in node.keys])
            inner, places = _prune_node(node.input, used)
            return replace(node, input=inner, keys=_move_keys(node.keys, places)), places
        case n.Limit():
            inner, places = _prune_node(node.input, needed)
            return replace(node, input=inner), places
        case n.Aggregate():
            return _prune_aggregate(node, needed)
        case n.Window():
            return _prune_window(node, needed)
        case n.Join():
            return _prune_join(node, needed)
        case n.Update():
            return _prune_update(node)
        case n.Delete():
            return _prune_delete(node)
        case n.With():
            ctes = tuple([cte._replace(plan=_prune_keeping_all(cte.plan)) for cte in node.ctes])
            body, places = _prune_node(node.body, needed)
            return n.With(ctes, body), places
        case n.SetOperation() if node.kind is n.SetKind.UNION and node.all:
            return _prune_union_all(node, needed)
        case _:
            return rebuild_inputs(node, _prune_keeping_all), {i: i for i in range(len(node.fields))}


def _prune_keeping_all(node: n.Node) -> n.Node:
    """An input all of whose columns are needed, in their order."""
    width = len(node.fields)
    new, places = _prune_node(node, set(range(width)))
    if all(places[i] == i for i in range(width)) and len(new.fields) == width:
        return new
    columns = tuple(e.Column(places[i], f.type, f.name) for i, f in enumerate(node.fields))
    return n.Project(new, columns, node.fields)


def _move_optional(expression: e.Expression | None, places: Places) -> e.Expression | None:
    return None if expression is None else renumber_columns(expression, places)


def _move_keys(keys: Iterable[e.SortKey], places: Places) -> tuple[e.SortKey, ...]:
    return tuple(
        [replace(key, expression=renumber_columns(key.expression, places)) for key in keys]
    )


def _number_columns(kept: list[int]) -> Places:
    return {old: new for new, old in enumerate(kept)}


def _prune_scan(node: n.Scan | n.State | n.ForeignScan, needed: set[int]) -> tuple[n.Node, Places]:
    used = set(needed)
    if node.filter is not None:
        used |= columns_of(node.filter)
    if len(used) == len(node.slots):
        return node, {i: i for i in range(len(node.slots))}
    kept = sorted(used)
    places = _number_columns(kept)
    made = replace(
        node,
        slots=tuple([node.slots[i] for i in kept]),
        fields=tuple([node.fields[i] for i in kept]),
        filter=_move_optional(node.filter, places),
    )
    if not isinstance(made, n.ForeignScan) and not isinstance(node, n.ForeignScan):
        made = replace(made, residual=_move_optional(node.residual, places))
    return made, places


def _prune_project(node: n.Project, needed: set[int]) -> tuple[n.Node, Places]:
    kept = sorted(needed)
    expressions = [node.expressions[i] for i in kept]
    inner, places = _prune_node(node.input, columns_of_all(expressions))
    made = n.Project(
        inner, renumber_all(expressions, places), tuple([node.fields[i] for i in kept])
    )
    return made, _number_columns(kept)


def _prune_aggregate(node: n.Aggregate, needed: set[int]) -> tuple[n.Node, Places]:
    """Groups stay, since they decide which rows there are; unread aggregates go."""
    groups = len(node.groups)
    kept = [i for i, _ in enumerate(node.aggregates) if groups + i in needed]
    calls = [node.aggregates[i] for i in kept]
    read = [one for call in calls for one in _list_call_expressions(call)]
    used = columns_of_all([*node.groups, *read])
    inner, places = _prune_node(node.input, used)
    aggregates = tuple([_move_call(call, places) for call in calls])
    outputs = [*range(groups), *(groups + i for i in kept)]
    outputs += range(groups + len(node.aggregates), len(node.fields))
    made = replace(
        node,
        input=inner,
        groups=renumber_all(node.groups, places),
        aggregates=aggregates,
        fields=tuple([node.fields[i] for i in outputs]),
    )
    return made, _number_columns(outputs)


def _list_call_expressions(call: e.AggregateCall) -> list[e.Expression]:
    found = [*call.arguments, *(key.expression for key in call.order_by)]
    return found if call.filter is None else [*found, call.filter]


def _move_call(call: e.AggregateCall, places: Places) -> e.AggregateCall:
    return replace(
        call,
        arguments=renumber_all(call.arguments, places),
        filter=_move_optional(call.filter, places),
        order_by=_move_keys(call.order_by, places),
    )


def _prune_window(node: n.Window, needed: set[int]) -> tuple[n.Node, Places]:
    width = len(node.input.fields)
    used = {i for i in needed if i < width}
    used |= columns_of_all(node.partition) | columns_of_all([key.expression for key in node.order])
    for call in node.calls:
        used |= columns_of_all(call.arguments)
        used |= set() if call.filter is None else columns_of(call.filter)
    inner, places = _prune_node(node.input, used)
    calls = tuple(
        [
            replace(
                call,
                arguments=renumber_all(call.arguments, places),
                filter=_move_optional(call.filter, places),
            )
            for call in node.calls
        ]
    )
    made = replace(
        node,
        input=inner,
        partition=renumber_all(node.partition, places),
        order=_move_keys(node.order, places),
        calls=calls,
    )
    new_width = len(inner.fields)
    added = {width + i: new_width + i for i in range(len(node.calls))}
    return made, {**places, **added}


def _prune_join(node: n.Join, needed: set[int]) -> tuple[n.Node, Places]:
    width = len(node.left.fields)
    used = set(needed)
    if node.residual is not None:
        used |= columns_of(node.residual)
    left_used = {i for i in used if i < width} | columns_of_all([key.left for key in node.keys])
    right_used = {i - width for i in used if i >= width} | columns_of_all(
        [key.right for key in node.keys]
    )
    if node.lateral:
        left_used |= {i for depth, i in outer_references(node.right) if depth == 1}
    left, left_places = _prune_node(node.left, left_used)
    right, right_places = _prune_node(node.right, right_used)
    if node.lateral:
        right = _move_outer(right, left_places)
    new_width = len(left.fields)
    both = {**left_places, **{width + i: new_width + p for i, p in right_places.items()}}
    keys = tuple(
        [
            n.JoinKey(
                renumber_columns(k.left, left_places),
                renumber_columns(k.right, right_places),
                k.null_safe,
            )
            for k in node.keys
        ]
    )
    made = replace(
        node, left=left, right=right, keys=keys, residual=_move_optional(node.residual, both)
    )
    if node.kind in (n.JoinKind.SEMI, n.JoinKind.ANTI):
        return made, left_places
    return made, both


def _move_outer(plan: n.Node, places: Places) -> n.Node:
    """The right side of a lateral join after columns of its left side have moved."""

    def move_reference(reference: e.OuterColumn, at: int) -> e.Expression:
        if reference.depth != at or places[reference.index] == reference.index:
            return reference
        return replace(reference, index=places[reference.index])

    return map_outer_columns(plan, move_reference)


def _prune_union_all(node: n.SetOperation, needed: set[int]) -> tuple[n.Node, Places]:
    kept = sorted(needed) or [0]
    left, right = _prune_to_columns(node.left, kept), _prune_to_columns(node.right, kept)
    return replace(node, left=left, right=right), _number_columns(kept)


def _prune_to_columns(node: n.Node, kept: list[int]) -> n.Node:
    new, places = _prune_node(node, set(kept))
    fields = tuple([node.fields[i] for i in kept])
    if [places[i] for i in kept] == list(range(len(new.fields))):
        return new
    columns = tuple([e.Column(places[i], field.type, field.name) for i, field in zip(kept, fields)])
    return n.Project(new, columns, fields)


def _prune_update(node: n.Update) -> tuple[n.Node, Places]:
    """All columns of the table row stay in front; of the others only those that are read."""
    used = set(range(node.width)) | columns_of_all([one.value for one in node.assignments])
    inner, places = _prune_node(node.input, used | columns_of_all(node.returning))
    sets = [one._replace(value=renumber_columns(one.value, places)) for one in node.assignments]
    made = replace(
        node,
        input=inner,
        assignments=tuple(sets),
        returning=renumber_all(node.returning, places),
    )
    return made, {i: i for i in range(len(node.fields))}


def _prune_delete(node: n.Delete) -> tuple[n.Node, Places]:
    used = set(range(node.width)) | columns_of_all(node.returning)
    inner, places = _prune_node(node.input, used)
    made = replace(node, input=inner, returning=renumber_all(node.returning, places))
    return made, {i: i for i in range(len(node.fields))}
