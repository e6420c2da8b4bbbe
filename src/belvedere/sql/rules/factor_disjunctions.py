"""Factors conditions that all alternatives of an OR share out of it: `(a AND b) OR (a AND c)`
is `a AND (b OR c)`.

So an equality that stands in each alternative becomes a key of the join instead of a condition on
every pair of rows. It holds for unknown truths too, and PostgreSQL does the same.
"""

from __future__ import annotations

from belvedere.plan import expressions as e
from belvedere.plan.functions.core.function import Volatility
from belvedere.plan.transform import conjunction, conjuncts, has_subplan
from belvedere.sql.bind.expressions.stored_expressions import find_volatility

ALTERNATIVES_MAX = 32
"""Beyond, as for IN lists written out, the search for common parts costs more than it saves."""


def factor_disjunctions(conditions: list[e.Expression]) -> list[e.Expression]:
    """The conditions, with common parts of their ORs as conditions of their own."""
    return [part for one in conditions for part in _factor_disjunction(one)]


def _factor_disjunction(condition: e.Expression) -> list[e.Expression]:
    if not isinstance(condition, e.Or) or len(condition.operands) > ALTERNATIVES_MAX:
        return [condition]
    first, *others = [conjuncts(one) for one in condition.operands]
    common = [one for one in first if all(one in other for other in others) and _may_run_once(one)]
    if not common:
        return [condition]
    rests = [
        conjunction([one for one in alternative if one not in common])
        for alternative in (first, *others)
    ]
    if any(rest is None for rest in rests):
        return common  # an alternative without a rest makes the OR of rests true
    return [*common, e.Or(tuple([rest for rest in rests if rest is not None]))]


def _may_run_once(condition: e.Expression) -> bool:
    return not has_subplan(condition) and find_volatility(condition) is not Volatility.VOLATILE
