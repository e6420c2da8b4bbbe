"""Tie-breaking: gives a query the total order that views use, by all columns of the ordered rows.

SQL does not define which of several equal rows a LIMIT takes, which one DISTINCT ON shows, how
row_number counts them, and in which order string_agg reads them. A view has one answer, so that the
same rows always give the same view; a query that recomputes the view must break ties the same way.

Ties that stay undefined: nth_value of peers, and first_value and last_value where a frame by values
neither begins at the first row nor ends at the current one or the last.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.frames import Frame, FrameBound, FrameMode, FrameSide
from belvedere.plan.representation import column_sort_keys

_ROW_POSITION_FUNCTIONS = frozenset(("row_number", "ntile", "lag", "lead"))
_SINGLE_VALUE_FUNCTIONS = frozenset(("first_value", "last_value", "nth_value"))
_ENTIRE_PARTITION = Frame(FrameMode.ROWS, end=FrameBound(FrameSide.UNBOUNDED_FOLLOWING))
_ORDERED_AGGREGATES = frozenset(("string_agg", "json_agg", "json_object_agg", "array_agg"))


def has_ambiguous_order(plan: n.Node) -> bool:
    """Whether the order of equal rows may show in the result."""
    return any(
        isinstance(node, n.Limit | n.TopN | n.Window)
        or (isinstance(node, n.Distinct) and node.on is not None)
        or (isinstance(node, n.Aggregate) and any(map(_is_order_sensitive, node.aggregates)))
        for node in transform.walk_plan(plan)
    )


def with_total_order(plan: n.Node) -> n.Node:
    """The plan with a total order wherever the order of equal rows may show."""

    def rewrite_expression(one: e.Expression) -> e.Expression:
        return transform.with_subplan(
            transform.rebuild_operands(one, rewrite_expression), with_total_order
        )

    node = transform.rebuild_inputs(plan, with_total_order)
    node = transform.rebuild_expressions(node, rewrite_expression)
    match node:
        case (
            n.Limit(input=n.Sort() as ordered, with_ties=False)
            | n.Distinct(input=n.Sort() as ordered)
        ):
            return replace(node, input=_extend_sort_to_total_order(ordered))
        case n.Distinct() if node.on is not None:
            return replace(node, input=n.Sort(node.input, column_sort_keys(node.input.fields)))
        case n.TopN(with_ties=False):
            return replace(node, keys=node.keys + column_sort_keys(node.fields))
        case n.Window():
            return _break_window_ties(node)
        case n.Aggregate():
            more = column_sort_keys(node.input.fields)
            calls = [
                replace(call, order_by=call.order_by + more) if _is_order_sensitive(call) else call
                for call in node.aggregates
            ]
            return replace(node, aggregates=tuple(calls))
        case _:
            return node


def _extend_sort_to_total_order(ordered: n.Sort) -> n.Sort:
    return n.Sort(ordered.input, ordered.keys + column_sort_keys(ordered.fields))


def _is_order_sensitive(call: e.AggregateCall) -> bool:
    return call.function.name in _ORDERED_AGGREGATES and not call.distinct


class _WindowDefinition(NamedTuple):
    """The window of a function: partition, order and frame."""

    partition: tuple[e.Expression, ...]
    order: tuple[e.SortKey, ...]
    frame: Frame


def _break_window_ties(node: n.Window) -> n.Node:
    """Functions that count rows, or take one of them, get a total order; those that compare peers
    keep theirs. Each distinct definition is a Window node of its own, one above the other."""
    forms = [_make_tie_free_window(node, call) for call in node.calls]
    if len(set(forms)) == 1:
        return replace(
            node, partition=forms[0].partition, order=forms[0].order, frame=forms[0].frame
        )
    below, made = node.input, list(range(len(node.input.fields)))
    for form in dict.fromkeys(forms):
        which = [i for i, one in enumerate(forms) if one == form]
        calls, names = tuple(node.calls[i] for i in which), tuple(node.names[i] for i in which)
        below = n.Window(below, form.partition, form.order, form.frame, calls, names)
        made += [len(node.input.fields) + i for i in which]
    columns = tuple(
        e.Column(made.index(i), field.type, field.name) for i, field in enumerate(node.fields)
    )
    return n.Project(below, columns, node.fields)


def _make_tie_free_window(node: n.Window, call: e.WindowCall) -> _WindowDefinition:
    name, frame, every = call.function.name, node.frame, column_sort_keys(node.input.fields)
    total = node.order + every
    if name in _ROW_POSITION_FUNCTIONS or frame.mode is FrameMode.ROWS:
        return _WindowDefinition(node.partition, total, frame)
    from_start = frame.start.side is FrameSide.UNBOUNDED_PRECEDING and not frame.exclude
    if name in _SINGLE_VALUE_FUNCTIONS and from_start:
        if frame.end.side is FrameSide.UNBOUNDED_FOLLOWING:
            return _WindowDefinition(node.partition, total, _ENTIRE_PARTITION)
        if frame.end.side is FrameSide.CURRENT_ROW and name == "first_value":
            return _WindowDefinition(node.partition, total, frame._replace(mode=FrameMode.ROWS))
        if frame.end.side is FrameSide.CURRENT_ROW and name == "last_value":
            peers = tuple(key.expression for key in node.order)
            return _WindowDefinition(node.partition + peers, every, _ENTIRE_PARTITION)
    return _WindowDefinition(node.partition, node.order, frame)
