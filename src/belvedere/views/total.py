"""A query whose ties are broken as views break them: by all columns of what is ordered.

SQL leaves open which of several equal rows a LIMIT takes, which one DISTINCT ON shows, how
row_number counts them, and in which order string_agg meets them. A view has one answer, so that the
same rows always make the same view; whoever recomputes it has to be asked for the same one.

Not decided: first_value, last_value and nth_value of peers in a frame by values.
"""

from __future__ import annotations

from dataclasses import replace

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.frames import FrameMode
from belvedere.views.tree import all_keys

_BY_ROW = frozenset(("row_number", "ntile", "lag", "lead"))
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
    """The plan with every tie broken."""

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


def _window(node: n.Window) -> n.Node:
    """Functions that count rows get a total order; those that compare peers keep theirs."""
    by_row = [
        i
        for i, call in enumerate(node.calls)
        if call.function.name in _BY_ROW or node.frame.mode is FrameMode.ROWS
    ]
    if not by_row:
        return node
    keys = node.order + all_keys(node.input.fields)
    if len(by_row) == len(node.calls):
        return replace(node, order=keys)
    others = [i for i in range(len(node.calls)) if i not in by_row]
    below = _only(node, others)
    above = replace(_only(node, by_row), input=below, order=keys)
    width, fields = len(node.input.fields), node.fields
    made = [*range(width), *(width + i for i in (*others, *by_row))]
    columns = tuple(
        e.Column(made.index(i), field.type, field.name) for i, field in enumerate(fields)
    )
    return n.Project(above, columns, fields)


def _only(node: n.Window, which: list[int]) -> n.Window:
    calls = tuple(node.calls[i] for i in which)
    return replace(node, calls=calls, names=tuple(node.names[i] for i in which))
