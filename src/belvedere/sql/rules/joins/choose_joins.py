"""Join methods: look the right rows up by key, or hash them, or loop over them.

An index nested loop costs a few gets per left row, so it wins while there are few of those; of an
inner join either side may be the one that is looked up. `l.a = r.id OR l.b = r.id` looks up several
keys for each left row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from belvedere.catalog.model import Table
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.access import FULL
from belvedere.plan.transform import (
    conjunction,
    conjuncts,
    has_subplan,
    map_columns,
    rebuild_inputs,
    shift_columns,
)
from belvedere.sql.rules.access.access_paths import (
    AccessCandidate,
    Sarg,
    collect_sargs,
    list_candidates,
    map_to_table_row,
    remaining_conditions,
)
from belvedere.sql.rules.access.key_values import fit_key_value
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.equality import make_equality
from belvedere.sql.rules.estimates import estimate_rows
from belvedere.sql.rules.joins.state_lookups import find_state_lookup
from belvedere.sql.rules.push_predicates import match_join_key

HASH_BUILD = 0.3  # per row of the hashed side, in addition to reading it
HASH_PROBE = 0.15
READ = 0.1
LOOP_TEST = 0.03  # per pair of rows that a nested loop compares
_LOOKUP_KINDS = (n.JoinKind.INNER, n.JoinKind.LEFT, n.JoinKind.SEMI, n.JoinKind.ANTI)


def choose_joins(plan: n.Node, context: OptimizerContext) -> n.Node:
    node = rebuild_inputs(plan, lambda one: choose_joins(one, context))
    if not isinstance(node, n.Join) or node.lateral or node.method is not n.JoinMethod.LOOP:
        return node
    left, right = estimate_rows(node.left, context), estimate_rows(node.right, context)
    best, cost = _choose_without_lookup(node, left, right)
    straight = _find_lookup_join(node, context)
    if straight is not None and left * straight.cost < cost:
        best, cost = straight.join, left * straight.cost
    if node.kind is not n.JoinKind.INNER:
        return best
    turned = exchange_sides(node)
    back = _find_lookup_join(turned, context)
    if back is not None and right * back.cost < cost:
        return restore_column_order(back.join, node)
    if right > left and best.method is n.JoinMethod.HASH:
        return restore_column_order(replace(turned, method=n.JoinMethod.HASH), node)
    return best


def _choose_without_lookup(node: n.Join, left: float, right: float) -> tuple[n.Join, float]:
    """The join that reads both sides, and its cost."""
    if not node.keys:
        return node, left * right * LOOP_TEST
    hashed = left * HASH_PROBE + right * (HASH_BUILD + READ)
    return replace(node, method=n.JoinMethod.HASH), hashed


def exchange_sides(node: n.Join) -> n.Join:
    """The inner join with its sides exchanged."""
    left, right = len(node.left.fields), len(node.right.fields)
    keys = tuple([n.JoinKey(key.right, key.left, key.null_safe) for key in node.keys])
    residual = node.residual
    if residual is not None:
        residual = _exchange_columns(residual, left, right)
    return replace(node, left=node.right, right=node.left, keys=keys, residual=residual)


def _exchange_columns(expression: e.Expression, left: int, right: int) -> e.Expression:
    def exchange_column(one: e.Column) -> e.Expression:
        place = one.index + right if one.index < left else one.index - left
        return replace(one, index=place)

    return map_columns(expression, exchange_column)


def restore_column_order(node: n.Node, original: n.Join) -> n.Node:
    """The join with exchanged sides, its columns back in their original order."""
    left, right = len(original.left.fields), len(original.right.fields)
    places = [right + i for i in range(left)] + list(range(right))
    fields = original.fields
    columns = tuple([e.Column(p, f.type, f.name) for p, f in zip(places, fields)])
    return n.Project(node, columns, fields)


# -- look-ups --------------------------------------------------------------------------------------


class LookupJoin(NamedTuple):
    """The join by look-ups, and what one left row costs."""

    join: n.Join
    cost: float


def _find_lookup_join(node: n.Join, context: OptimizerContext) -> LookupJoin | None:
    """The cheapest join that looks right rows up: in a table, or in the state of a view."""
    if node.kind not in _LOOKUP_KINDS:
        return None
    shown = _expose_scan(node)
    found = _find_lookup(shown, context)
    if found is not None:
        return LookupJoin(_make_lookup_join(shown, found), found.cost)
    state = find_state_lookup(node, context) if node.keys else None
    return None if state is None else LookupJoin(state.join, state.cost)


def _expose_scan(node: n.Join) -> n.Join:
    """The join with the filter of its right side among its own conditions, over the scan itself."""
    right = node.right
    if not isinstance(right, n.Filter) or not isinstance(right.input, n.Scan):
        return node
    width = len(node.left.fields)
    moved = [shift_columns(one, width) for one in conjuncts(right.condition)]
    residual = conjunction(conjuncts(node.residual) + moved)
    return replace(node, right=right.input, residual=residual)


def _find_lookup(node: n.Join, context: OptimizerContext) -> AccessCandidate | None:
    """The cheapest access to the right side by the join keys; its values are over the left row."""
    scan = node.right
    table = context.catalog.get(scan.relation) if isinstance(scan, n.Scan) else None
    if not isinstance(scan, n.Scan) or not isinstance(table, Table):
        return None
    keys = [
        Sarg(map_to_table_row(key.right, scan, table), "=", fitted, None)
        for key in node.keys
        if not key.null_safe and (fitted := fit_key_value(key.right, key.left)) is not None
    ]
    keys += _list_alternatives(node, scan, table)
    if not keys:
        return None
    found = [
        one
        for one in list_candidates(scan, table, keys + collect_sargs(scan, table), context)
        if any(sarg.condition is None for sarg in one.used)
    ]
    return min(found, key=lambda one: one.cost, default=None)


def _list_alternatives(node: n.Join, scan: n.Scan, table: Table) -> Iterator[Sarg]:
    """Conditions `right = left OR right = left ..` about one right column."""
    width = len(node.left.fields)
    for one in conjuncts(node.residual):
        if not isinstance(one, e.Or) or has_subplan(one):
            continue
        keys = [match_join_key(each, width) for each in one.operands]
        known = [key for key in keys if key is not None and not key.null_safe]
        if len(known) < len(keys) or len({key.right for key in known}) > 1:
            continue
        side = known[0].right
        values = tuple([x for key in known if (x := fit_key_value(side, key.left)) is not None])
        if len(values) == len(known):
            yield Sarg(map_to_table_row(side, scan, table), "in", values, None, exact=False)


def _make_lookup_join(node: n.Join, chosen: AccessCandidate) -> n.Join:
    scan = node.right
    assert isinstance(scan, n.Scan)
    width = len(node.left.fields)
    checks = [
        shift_columns(one, width)
        for one in remaining_conditions(conjuncts(scan.filter), chosen.used)
    ]
    checks += [
        make_equality(key.left, shift_columns(key.right, width), key.null_safe)
        for key in node.keys
        if not _is_key_served(key, chosen)
    ]
    condition = conjunction(checks + conjuncts(node.residual))
    plain = replace(scan, access=FULL, residual=scan.filter)
    return replace(
        node,
        right=plain,
        method=n.JoinMethod.LOOKUP,
        lookup=n.Lookup(chosen.access, condition),
    )


def _is_key_served(key: n.JoinKey, chosen: AccessCandidate) -> bool:
    fitted = fit_key_value(key.right, key.left)
    return any(one.condition is None and one.value == fitted for one in chosen.used)
