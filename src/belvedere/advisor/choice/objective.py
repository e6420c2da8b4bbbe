"""What a set of candidates is worth: microseconds saved by queries less those added to writes.

Per query, candidates for different blocks add up, and of those for one block the best one counts;
a view of the whole query counts in place of them; together they save at most SHARED_SAVING_MAX of
a query, or what one of them saves alone. Every view of the set is paid by the writes it makes
costlier. A deferred view costs a share of that, outside of the commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from belvedere.advisor.pricing.cost_table import WHOLE_SITE, CandidateCost, CostTable
from belvedere.advisor.pricing.cost_units import DEFERRED_SHARE

DEFERRED_SAVING = 0.5
"""What a deferred view saves of what an immediate one does: between a write and its maintenance
queries over tables are not answered from it."""

SHARED_SAVING_MAX = 0.99
"""The share of a query that several views save together. What one saves alone was planned and is
not cut: cut to the same figure, rows of a join would look as good as the few groups of them."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A candidate in one form: immediate, or deferred."""

    price: CandidateCost
    deferred: bool = False

    @property
    def name(self) -> str:
        return self.price.candidate.name

    def find_write_cost(self, name: str) -> float:
        """Microseconds that a commit of this statement spends on it."""
        return 0.0 if self.deferred else self.price.write_us.get(name, 0.0)


class Objective:
    """Values sets of choices for one table of prices."""

    def __init__(self, table: CostTable) -> None:
        self.table = table
        helped = {name for price in table.prices for name in price.savings}
        queries = {name: us for name, us in table.query_us.items() if name in helped}
        self.total_us = sum(
            us * table.calls[name]
            for costs in (queries, table.write_us)
            for name, us in costs.items()
        )
        """What the workload takes without the queries that no candidate makes faster: views for the
        others pay, however long these take."""

    def value_set(self, chosen: Sequence[Choice]) -> float:
        return self.sum_savings(chosen) - self.sum_upkeep(chosen)

    def sum_savings(self, chosen: Sequence[Choice]) -> float:
        return sum(
            self.save_query(name, chosen) * self.table.calls[name] for name in self.table.query_us
        )

    def sum_upkeep(self, chosen: Iterable[Choice]) -> float:
        return sum(self.sum_upkeep_cost(one) for one in chosen)

    def sum_upkeep_cost(self, choice: Choice) -> float:
        share = DEFERRED_SHARE if choice.deferred else 1.0
        costs = choice.price.write_us.items()
        return sum(us * self.table.calls[name] for name, us in costs) * share

    def save_query(self, query: str, chosen: Sequence[Choice]) -> float:
        """Microseconds that the set saves one run of the query."""
        best: dict[str, float] = {}
        most = self.table.query_us[query] * SHARED_SAVING_MAX
        for choice in chosen:
            saving = choice.price.savings.get(query)
            if saving is None:
                continue
            share = DEFERRED_SAVING if choice.deferred else 1.0
            most = max(most, saving.saved_us * share)
            each = saving.saved_us * share / max(len(saving.sites), 1)
            for site in saving.sites:
                best[site] = max(best.get(site, 0.0), each)
        whole = best.pop(WHOLE_SITE, 0.0)
        return min(max(whole, sum(best.values())), most)

    def slow_write(self, write: str, chosen: Sequence[Choice]) -> float:
        """How many times as long a run of the write takes."""
        added = sum(one.find_write_cost(write) for one in chosen)
        return 1.0 + added / self.table.write_us[write]


class ChoiceSet:
    """Some choices, indexed by the queries they answer and the writes that pay for them: what one
    more is worth takes as long as it has queries and writes, not as there are others."""

    def __init__(self, objective: Objective, chosen: Sequence[Choice]) -> None:
        self.objective = objective
        self.choices = tuple(chosen)
        self.stored_bytes = sum_bytes(chosen)
        self.value = objective.value_set(chosen)
        self._by_query: dict[str, list[Choice]] = {}
        self._write_us: dict[str, float] = {}
        for choice in chosen:
            for query in choice.price.savings:
                self._by_query.setdefault(query, []).append(choice)
            for write in choice.price.write_us:
                added = self._write_us.get(write, 0.0) + choice.find_write_cost(write)
                self._write_us[write] = added
        self._saved_us = {
            query: objective.save_query(query, some) for query, some in self._by_query.items()
        }

    def value_addition(self, choice: Choice) -> float:
        """By how much the set would be worth more with the choice."""
        objective = self.objective
        gained = 0.0
        for query in choice.price.savings:
            saved = objective.save_query(query, [*self._by_query.get(query, ()), choice])
            gained += (saved - self._saved_us.get(query, 0.0)) * objective.table.calls[query]
        return gained - objective.sum_upkeep_cost(choice)

    def list_allowed_forms(self, price: CandidateCost, slowdown_max: float) -> Iterator[Choice]:
        """The forms in which a candidate keeps every write within its limit; only those views are
        made deferred for which it is a limit."""
        table = self.objective.table
        slow = any(
            1.0 + (self._write_us.get(write, 0.0) + us) / table.write_us[write] > slowdown_max
            for write, us in price.write_us.items()
            if table.calls[write]
        )
        if not slow:
            yield Choice(price)
        elif not price.candidate.is_index:
            yield Choice(price, deferred=True)


def sum_bytes(chosen: Iterable[Choice]) -> int:
    return sum(one.price.stored_bytes for one in chosen)
