"""A scan by the alternatives of an OR, each by its own key:

    WHERE customer = $1 OR referrer = $1

is read as the rows of the first alternative and, of the second, those that the first has not given
already. So every row comes once, as often as it is stored, and nothing has to be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.transform import conjunction, conjuncts, has_subplan
from belvedere.sql.rules.access.access_paths import AccessCandidate, remaining_conditions
from belvedere.sql.rules.push_predicates import is_volatile

ALTERNATIVES_MAX = 16
GAIN = 2.0
"""What it must save: estimates of several scans add up their errors."""

FindCheapest = Callable[[n.Scan], AccessCandidate | None]


def split_disjunction(scan: n.Scan, find_cheapest: FindCheapest, cost: float) -> n.Node | None:
    """The scan as several by keys, when together they cost less than `cost`."""
    conditions = conjuncts(scan.filter)
    best: n.Node | None = None
    for one in conditions:
        if not isinstance(one, e.Or) or len(one.operands) > ALTERNATIVES_MAX:
            continue
        if has_subplan(one) or is_volatile(one):
            continue
        others = [other for other in conditions if other is not one]
        scans, spent = _scan_alternatives(scan, one.operands, others, find_cheapest)
        if scans and spent * GAIN < cost:
            best, cost = _unite(scans), spent
    return best


def _scan_alternatives(
    scan: n.Scan,
    alternatives: tuple[e.Expression, ...],
    others: list[e.Expression],
    find_cheapest: FindCheapest,
) -> tuple[list[n.Scan], float]:
    """A scan for each alternative and their cost; none when one of them has no key."""
    found: list[n.Scan] = []
    spent = 0.0
    for place, alternative in enumerate(alternatives):
        before = [e.Test(one, e.Truth.TRUE, negated=True) for one in alternatives[:place]]
        conditions = [*conjuncts(alternative), *others, *before]
        one = replace(scan, filter=conjunction(conditions), residual=conjunction(conditions))
        best = find_cheapest(one)
        if best is None:
            return [], 0.0
        rest = conjunction(remaining_conditions(conditions, best.used))
        found.append(replace(one, access=best.access, residual=rest))
        spent += best.cost
    return found, spent


def _unite(scans: list[n.Scan]) -> n.Node:
    node: n.Node = scans[0]
    for one in scans[1:]:
        node = n.SetOperation(n.SetKind.UNION, True, node, one)
    return node
