"""Look-ups in the state of a view, for the right side of a join with few rows on the left.

A view is read by a plan over its state: projections and filters over a scan, and rows repeated as
often as they are there. Joined by a column that its state is sorted by, the plan becomes the right
side of a lateral join: for each left row it reads the stored rows with that value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from belvedere.catalog.model import View
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.row_repeat import find_repeat_column
from belvedere.plan.transform import (
    conjunction,
    conjuncts,
    has_outer_column,
    lift_expression,
    lift_plan,
)
from belvedere.sql.rules.access.access_paths import NEXT, SEEK
from belvedere.sql.rules.access.choose_access import choose_access
from belvedere.sql.rules.access.key_values import fit_key_value
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.equality import make_equality
from belvedere.sql.rules.estimates import estimate_rows

_KINDS = (n.JoinKind.INNER, n.JoinKind.LEFT, n.JoinKind.SEMI, n.JoinKind.ANTI)


class StateLookup(NamedTuple):
    """The lateral join, and what one left row costs."""

    join: n.Join
    cost: float


class _CorrelatedPlan(NamedTuple):
    """A plan with conditions in its scan: those on the columns `served` of its row."""

    plan: n.Node
    scan: n.Scan
    served: frozenset[int]


def find_state_lookup(node: n.Join, context: OptimizerContext) -> StateLookup | None:
    """None: the right side is not a view, or none of the keys begins the key of its state."""
    if node.kind not in _KINDS or _find_state_scan(node.right, context) is None:
        return None
    values = {
        key.right.index: lift_expression(key.left, 1)
        for key in node.keys
        if isinstance(key.right, e.Column)
        and not key.null_safe
        and fit_key_value(key.right, key.left) is not None
    }
    found = _correlate(lift_plan(node.right, 1), values, context)
    if found is None:
        return None
    rest = tuple(
        [
            key
            for key in node.keys
            if not (isinstance(key.right, e.Column) and key.right.index in found.served)
        ]
    )
    made = replace(node, right=found.plan, keys=rest, lateral=True)
    return StateLookup(made, SEEK + estimate_rows(found.scan, context) * NEXT)


def _find_state_scan(node: n.Node, context: OptimizerContext) -> n.Scan | None:
    while True:
        match node:
            case n.Project() | n.Filter():
                node = node.input
            case n.Join() if find_repeat_column(node) is not None:
                node = node.left
            case n.Scan() if isinstance(context.catalog.get(node.relation), View):
                return node
            case _:
                return None


def _correlate(
    node: n.Node, values: Mapping[int, e.Expression], context: OptimizerContext
) -> _CorrelatedPlan | None:
    """The plan for rows whose columns have these values, as far as they are columns of its scan."""
    match node:
        case n.Project():
            below = {
                one.index: values[place]
                for place, one in enumerate(node.expressions)
                if place in values and isinstance(one, e.Column)
            }
            found = _correlate(node.input, below, context)
            if found is None:
                return None
            served = frozenset(
                place
                for place, one in enumerate(node.expressions)
                if place in values and isinstance(one, e.Column) and one.index in found.served
            )
            return found._replace(plan=replace(node, input=found.plan), served=served)
        case n.Filter():
            found = _correlate(node.input, values, context)
            return found and found._replace(plan=replace(node, input=found.plan))
        case n.Join():
            width = len(node.left.fields)
            inner = {place: value for place, value in values.items() if place < width}
            found = _correlate(node.left, inner, context)
            return found and found._replace(plan=replace(node, left=found.plan))
        case n.Scan():
            return _narrow_scan(node, values, context)
    return None


def _narrow_scan(
    scan: n.Scan, values: Mapping[int, e.Expression], context: OptimizerContext
) -> _CorrelatedPlan | None:
    given = conjuncts(scan.filter)
    for place, value in values.items():
        field = scan.fields[place]
        given.append(make_equality(e.Column(place, field.type, field.name), value))
    condition = conjunction(given)
    wide = replace(scan, access=paths.FULL, filter=condition, residual=condition)
    found = choose_access(wide, context)
    if not isinstance(found, n.Scan) or not _reads_outer_row(found.access):
        return None
    return _CorrelatedPlan(found, found, frozenset(values))


def _reads_outer_row(access: paths.Access) -> bool:
    return any(
        isinstance(part, paths.EqualityPart) and has_outer_column(part.value)
        for part in access.parts
    )
