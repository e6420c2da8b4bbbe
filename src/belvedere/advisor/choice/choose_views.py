"""The choice of views within a budget: greedy, then improved by exchanges.

Each step adds the candidate that raises the worth of the set most, per byte while a budget is
scarce. A view that would more than double a write is added in the deferred form, or not at all.
Then single views are dropped and exchanged as long as that raises the worth. Nothing is chosen that
is worth less than a small share of the time that the workload still takes: a view is also something
to look after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from belvedere.advisor.choice.objective import Choice, ChoiceSet, Objective
from belvedere.advisor.pricing.cost_table import CandidateCost, CostTable

WORTH_SHARE_MIN = 0.002
"""The share that a view has to be worth of the time that the workload takes with the others."""

SLOWDOWN_MAX = 2.0
EXCHANGED_MAX = 400
"""Candidates that exchanges are tried with, the most valuable ones."""

ROUNDS_MAX = 10


@dataclass(frozen=True, slots=True)
class ChoiceLimits:
    budget_bytes: float = float("inf")
    slowdown_max: float = SLOWDOWN_MAX


def choose_views(table: CostTable, limits: ChoiceLimits) -> list[Choice]:
    objective = Objective(table)
    prices = [price for price in table.prices if price.savings]
    chosen = _choose_greedily(objective, prices, limits)
    best = _exchange_views(objective, prices, chosen, limits)
    return _drop_worthless(objective, best)


def _choose_greedily(
    objective: Objective, prices: Sequence[CandidateCost], limits: ChoiceLimits
) -> list[Choice]:
    """By worth, and by worth per byte: the better one of both."""
    results = []
    for per_byte in (False, True) if limits.budget_bytes != float("inf") else (False,):
        chosen: list[Choice] = []
        left = list(prices)
        while left:
            step = _find_best_addition(objective, left, chosen, limits, per_byte)
            if step is None:
                break
            chosen.append(step)
            left = [price for price in left if price is not step.price]
        results.append(chosen)
    return max(results, key=objective.value_set)


def _find_best_addition(
    objective: Objective,
    prices: Sequence[CandidateCost],
    chosen: list[Choice],
    limits: ChoiceLimits,
    per_byte: bool,
) -> Choice | None:
    beside = ChoiceSet(objective, chosen)
    least = find_least_worth(objective, beside.value)
    best, best_score = None, 0.0
    for price in prices:
        if beside.stored_bytes + price.stored_bytes > limits.budget_bytes:
            continue
        for choice in beside.list_allowed_forms(price, limits.slowdown_max):
            gain = beside.value_addition(choice)
            score = gain / max(price.stored_bytes, 1) if per_byte else gain
            if gain > least and score > best_score:
                best, best_score = choice, score
    return best


def find_least_worth(objective: Objective, value: float) -> float:
    """What one more view has to be worth beside a set of this value."""
    return WORTH_SHARE_MIN * max(objective.total_us - value, 0.0)


def _exchange_views(
    objective: Objective,
    prices: Sequence[CandidateCost],
    chosen: list[Choice],
    limits: ChoiceLimits,
) -> list[Choice]:
    """Drop one view, or exchange it for another one, as long as the set gains by it."""
    alone = sorted(prices, key=lambda price: -objective.value_set([Choice(price)]))
    tried = alone[:EXCHANGED_MAX]
    for _ in range(ROUNDS_MAX):
        better = _find_best_exchange(objective, tried, chosen, limits)
        if better is None:
            return chosen
        chosen = better
        step = _find_best_addition(objective, _list_unused(prices, chosen), chosen, limits, False)
        while step is not None:
            chosen = [*chosen, step]
            step = _find_best_addition(
                objective, _list_unused(prices, chosen), chosen, limits, False
            )
    return chosen


def _list_unused(prices: Sequence[CandidateCost], chosen: Sequence[Choice]) -> list[CandidateCost]:
    used = {id(one.price) for one in chosen}
    return [price for price in prices if id(price) not in used]


def _find_best_exchange(
    objective: Objective,
    prices: Sequence[CandidateCost],
    chosen: list[Choice],
    limits: ChoiceLimits,
) -> list[Choice] | None:
    best, best_value = None, objective.value_set(chosen) * (1 + 1e-9) + 1e-9
    unused = _list_unused(prices, chosen)
    for number in range(len(chosen)):
        rest = ChoiceSet(objective, [*chosen[:number], *chosen[number + 1 :]])
        if rest.value > best_value:
            best, best_value = list(rest.choices), rest.value
        for price in unused:
            if rest.stored_bytes + price.stored_bytes > limits.budget_bytes:
                continue
            for choice in rest.list_allowed_forms(price, limits.slowdown_max):
                value = rest.value + rest.value_addition(choice)
                if value > best_value:
                    best, best_value = [*rest.choices, choice], value
    return best


def _drop_worthless(objective: Objective, chosen: list[Choice]) -> list[Choice]:
    """Without views that others have made superfluous."""
    for choice in sorted(chosen, key=lambda one: objective.value_set([one])):
        rest = [one for one in chosen if one is not choice]
        without = objective.value_set(rest)
        gain = objective.value_set(chosen) - without
        if gain <= find_least_worth(objective, without):
            chosen = rest
    return chosen
