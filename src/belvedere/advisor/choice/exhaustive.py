"""The best set of candidates by trying all: for few candidates only, to judge the other choice."""

from __future__ import annotations

from itertools import combinations

from belvedere.advisor.choice.choose_views import ChoiceLimits
from belvedere.advisor.choice.objective import Choice, Objective, sum_bytes
from belvedere.advisor.pricing.cost_table import CostTable

CANDIDATES_MAX = 14


def choose_exhaustively(table: CostTable, limits: ChoiceLimits) -> list[Choice]:
    """The set of immediate views with the largest worth."""
    prices = [price for price in table.prices if price.savings]
    assert len(prices) <= CANDIDATES_MAX, "too many candidates to try all sets"
    objective = Objective(table)
    best: list[Choice] = []
    for count in range(1, len(prices) + 1):
        for some in combinations(prices, count):
            chosen = [Choice(price) for price in some]
            slow = any(
                objective.slow_write(write, chosen) > limits.slowdown_max
                for write in table.write_us
            )
            if slow or sum_bytes(chosen) > limits.budget_bytes:
                continue
            if objective.value_set(chosen) > objective.value_set(best):
                best = chosen
    return best
