"""The choice, checked with the planner: what is chosen is used for what it is said to serve.

Candidates are priced alone, so a set may hold two for one query of which the planner takes one, and
the other is only paid for by writes. Every query is planned with the whole set; what a choice was
to save a query whose plan does not use it is left out, and the choice is made again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from belvedere.advisor.choice.choose_views import ChoiceLimits, choose_views
from belvedere.advisor.choice.objective import Choice
from belvedere.advisor.forecast import forecast_workload
from belvedere.advisor.pricing.chosen_set import plan_chosen_set
from belvedere.advisor.pricing.cost_table import CandidateCost, CostTable
from belvedere.advisor.pricing.host import AdvisedDatabase
from belvedere.advisor.workload.bound_workload import BoundWorkload

ROUNDS_MAX = 8
UNUSED = "with the others of a set the planner does not use it"

Uses = Mapping[str, frozenset[str]]
"""By query, the names of what its plans read."""


@dataclass(frozen=True, slots=True)
class CheckedChoice:
    """A set all of which is used, and the prices without the savings that no plan shows."""

    chosen: list[Choice]
    table: CostTable


def choose_used_views(
    database: AdvisedDatabase, workload: BoundWorkload, table: CostTable, limits: ChoiceLimits
) -> CheckedChoice:
    """The best of the sets that the rounds find, by what the planner expects of it."""
    best, best_us = CheckedChoice([], table), float("inf")
    for _ in range(ROUNDS_MAX):
        chosen = choose_views(table, limits)
        uses = _find_uses(database, workload, chosen)
        checked = _remove_unused_savings(table, chosen, uses)
        changed = checked.table is not table
        table = checked.table
        after_us = forecast_workload(database, workload, table, checked.chosen).after_us
        if after_us < best_us:
            best, best_us = checked, after_us
        if not changed:
            break
    return best


def _find_uses(
    database: AdvisedDatabase, workload: BoundWorkload, chosen: Sequence[Choice]
) -> Uses:
    """With the deferred views, and without them: they are read while they are fresh."""
    plans = plan_chosen_set(database, workload, [one.price.candidate for one in chosen])
    immediate = [one.price.candidate for one in chosen if not one.deferred]
    stale = plans
    if len(immediate) < len(chosen):
        stale = plan_chosen_set(database, workload, immediate)
    return {name: one.used | stale[name].used for name, one in plans.items()}


def _remove_unused_savings(table: CostTable, chosen: Sequence[Choice], uses: Uses) -> CheckedChoice:
    """The choices that some query uses; the table is the same one when all are as they were."""
    made = {id(one.price): _reduce_candidate_cost(one.price, uses) for one in chosen}
    if all(made[id(one.price)] is one.price for one in chosen):
        return CheckedChoice(list(chosen), table)
    prices = [made.get(id(price), price) for price in table.prices]
    kept = [replace(one, price=made[id(one.price)]) for one in chosen]
    return CheckedChoice([one for one in kept if one.price.savings], replace(table, prices=prices))


def _reduce_candidate_cost(price: CandidateCost, uses: Uses) -> CandidateCost:
    unused = [query for query in price.savings if price.candidate.name not in uses[query]]
    if not unused:
        return price
    savings = {query: saved for query, saved in price.savings.items() if query not in unused}
    return replace(price, savings=savings, refusals=price.refusals | dict.fromkeys(unused, UNUSED))
