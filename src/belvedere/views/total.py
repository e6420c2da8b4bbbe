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
from belvedere.plan.looks import all_keys

_BY_ROW = frozenset(("row_number", "ntile", "lag", "lead"))
_OF_ONE = frozenset(("first_value", "last_value", "nth_value"))
_WHOLE = Frame(FrameMode.ROWS, end=FrameBound(FrameSide.UNBOUNDED_FOLLOWING))
_IN_ORDER = frozenset(("string_agg", "json_agg", "json_object_agg", "array_agg"))


def leaves_open(plan: n.Node) -> bool:
    """Whether the order of equal rows may show in the result."""
    return any(
        isinstance(node, n.Limit | n.TopN | n.Window)
        or (isinstance(node, n.Distinct) and node.on is not None)
        or (isinstance(node, n.Aggregate) and any(map(_in_order, node.aggregates)))
        for node in transform.walk(plan)
    )


def decided(plan: n.Node) -> n.Node:
    """The plan with a total order wherever the order of equal rows may show."""

    def on_expression(one: e.Expression) -> e.Expression:
        return transform.with_subplan(transform.rebuild(one, on_expression), decided)

    node = transform.rebuild_inputs(plan, decided)
    node = transform.rebuild_expressions(node, on_expression)
    match node:
        case (
            n.Limit(input=n.Sort() as ordered, with_ties=False)
            | n.Distinct(input=n.Sort() as ordered)
        ):
            return replace(node, input=_total(ordered))
        case n.Distinct() if node.on is not None:
            return replace(node, input=n.Sort(node.input, all_keys(node.input.fields)))
        case n.TopN(with_ties=False):
            return replace(node, keys=node.keys + all_keys(node.fields))
        case n.Window():
            return _window(node)
        case n.Aggregate():
            more = all_keys(node.input.fields)
            calls = [
                replace(call, order_by=call.order_by + more) if _in_order(call) else call
                for call in node.aggregates
            ]
            return replace(node, aggregates=tuple(calls))
        case _:
            return node


def _total(ordered: n.Sort) -> n.Sort:
    return n.Sort(ordered.input, ordered.keys + all_keys(ordered.fields))


def _in_order(call: e.AggregateCall) -> bool:
    return call.function.name in _IN_ORDER and not call.distinct


class _Form(NamedTuple):
    """The window of a function: partition, order and frame."""

    partition: tuple[e.Expression, ...]
    order: tuple[e.SortKey, ...]
    frame: Frame


def _window(node: n.Window) -> n.Node:
    """Functions that count rows, or take one of them, get a total order; those that compare peers
    keep theirs. Each distinct definition is a Window node of its own, one above the other."""
    forms = [_form(node, call) for call in node.calls]
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


def _form(node: n.Window, call: e.WindowCall) -> _Form:
    name, frame, every = call.function.name, node.frame, all_keys(node.input.fields)
    total = node.order + every
    if name in _BY_ROW or frame.mode is FrameMode.ROWS:
        return _Form(node.partition, total, frame)
    from_start = frame.start.side is FrameSide.UNBOUNDED_PRECEDING and not frame.exclude
    if name in _OF_ONE and from_start:
        if frame.end.side is FrameSide.UNBOUNDED_FOLLOWING:
            return _Form(node.partition, total, _WHOLE)
        if frame.end.side is FrameSide.CURRENT_ROW and name == "first_value":
            return _Form(node.partition, total, frame._replace(mode=FrameMode.ROWS))
        if frame.end.side is FrameSide.CURRENT_ROW and name == "last_value":
            peers = tuple(key.expression for key in node.order)
            return _Form(node.partition + peers, every, _WHOLE)
    return _Form(node.partition, node.order, frame)
