"""Scans by keys that a sub-query gives: `WHERE id > (SELECT max(id) - 100 FROM t)`.

A condition with a sub-query stays in a filter above its scan, so that an executor may run it as it
likes. When the sub-query reads no row of the scan, its value is known before the first of them, and
a key may serve the condition as it would with a parameter. The rule comes last, when sub-queries
are optimized: only those are taken that cost little, because Python computes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.transform import (
    conjunction,
    conjuncts,
    operands,
    own_expressions,
    rebuild_inputs,
    subplan,
    walk_plan,
)
from belvedere.sql.rules.access.access_paths import (
    AccessCandidate,
    list_candidates,
    list_condition_sargs,
    remaining_conditions,
)
from belvedere.sql.rules.access.choose_access import describe_key
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.plan_cost import DUCKDB_STATEMENT, estimate_cost
from belvedere.sql.rules.push_predicates import add_filter, is_volatile


def seek_subqueries(plan: n.Node, context: OptimizerContext) -> n.Node:
    node = rebuild_inputs(plan, lambda one: seek_subqueries(one, context))
    if not isinstance(node, n.Filter) or not isinstance(node.input, n.Scan):
        return node
    conditions = conjuncts(node.condition)
    known = [one for one in conditions if _is_cheap(one, context)]
    best = _find_seek(node.input, known, context) if known else None
    if best is None:
        return node
    scan = _apply_access(node.input, known, best)
    return add_filter(scan, remaining_conditions(conditions, best.used))


def _is_cheap(condition: e.Expression, context: OptimizerContext) -> bool:
    plans = list(_list_subplans(condition))
    if not plans or is_volatile(condition):
        return False
    if not all(map(_is_self_contained, plans)):
        return False
    return sum(estimate_cost(one, context) for one in plans) <= DUCKDB_STATEMENT


def _is_self_contained(plan: n.Node) -> bool:
    """Whether the plan gives the same wherever it runs: no CTE of the statement, nothing random."""
    return not any(
        isinstance(node, n.CteScan) or any(map(is_volatile, own_expressions(node)))
        for node in walk_plan(plan)
    )


def _list_subplans(expression: e.Expression) -> Iterator[n.Node]:
    plan = subplan(expression)
    if plan is not None:
        yield plan
    for one in operands(expression):
        yield from _list_subplans(one)


def _find_seek(
    scan: n.Scan, known: list[e.Expression], context: OptimizerContext
) -> AccessCandidate | None:
    """The cheapest access by one of the conditions that reads less than the scan does now, in the
    same order if the order matters."""
    key = describe_key(scan, context)
    if key is None:
        return None
    table, sargs = key.table, list(key.given)
    wanted = [*conjuncts(scan.filter), *known]
    for one in wanted:
        sargs += list_condition_sargs(one, scan, table)
    whole = replace(scan, filter=conjunction(wanted))
    present = estimate_cost(scan, context)
    chosen = {id(one) for one in known}
    found = [
        one
        for one in list_candidates(whole, table, sargs, context)
        if any(id(sarg.condition) in chosen for sarg in one.used)
        and _keeps_order(one.access, scan.access)
        and one.cost <= present
    ]
    return min(found, key=lambda one: one.cost, default=None)


def _keeps_order(access: paths.Access, before: paths.Access) -> bool:
    same = access.index == before.index
    return not before.ordered or (same and access.parts[: len(before.parts)] == before.parts)


def _apply_access(scan: n.Scan, known: list[e.Expression], best: AccessCandidate) -> n.Scan:
    used = {id(one.condition) for one in best.used}
    own = conjuncts(scan.filter)
    served = [one for one in known if id(one) in used]
    before = scan.access
    access = replace(best.access, ordered=before.ordered, reverse=before.reverse)
    rest = conjunction(remaining_conditions(own, best.used))
    return replace(scan, access=access, filter=conjunction([*own, *served]), residual=rest)
