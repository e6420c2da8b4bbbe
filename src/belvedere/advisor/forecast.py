"""What every statement would take with the chosen views, read as sessions read by default.

By default a query reads a deferred view only while the view is as fresh as the tables, and runs
over tables otherwise. How often that is depends on when writes come, which a workload does not say.
So a query that reads deferred views has three times:

    fresh    every read finds them fresh, or the session allows them to lag: SET freshness
    stale    no read does; only immediate views count
    after    the share DEFERRED_SAVING of reads finds them fresh: the share that the choice counts

`after` is what the reports add up, with what maintenance takes outside of commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from belvedere.advisor.choice.objective import DEFERRED_SAVING, Choice, Objective
from belvedere.advisor.pricing.chosen_set import plan_chosen_set
from belvedere.advisor.pricing.cost_table import CostTable
from belvedere.advisor.pricing.cost_units import CostUnits
from belvedere.advisor.pricing.host import AdvisedDatabase
from belvedere.advisor.workload.bound_workload import BoundWorkload


@dataclass(frozen=True, slots=True)
class StatementForecast:
    """Microseconds of one run before and after, and the views that answer it. `fresh_us` and
    `stale_us` bound `after_us` where `deferred` views are among them."""

    name: str
    text: str
    calls: float
    before_us: float
    after_us: float
    fresh_us: float
    stale_us: float
    views: tuple[str, ...] = ()
    deferred: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkloadForecast:
    """Every statement, and microseconds that maintenance of deferred views takes for one run of the
    workload, outside of its commits."""

    queries: tuple[StatementForecast, ...]
    writes: tuple[StatementForecast, ...]
    maintenance_us: float

    @property
    def statements(self) -> tuple[StatementForecast, ...]:
        return (*self.queries, *self.writes)

    @property
    def before_us(self) -> float:
        return sum(one.before_us * one.calls for one in self.statements)

    @property
    def after_us(self) -> float:
        return self.maintenance_us + sum(one.after_us * one.calls for one in self.statements)

    @property
    def fresh_us(self) -> float:
        return self.maintenance_us + sum(one.fresh_us * one.calls for one in self.statements)

    @property
    def stale_us(self) -> float:
        return self.maintenance_us + sum(one.stale_us * one.calls for one in self.statements)

    @property
    def reads_deferred_views(self) -> bool:
        return any(one.deferred for one in self.queries)


def forecast_workload(
    database: AdvisedDatabase, workload: BoundWorkload, table: CostTable, chosen: Sequence[Choice]
) -> WorkloadForecast:
    objective = Objective(table)
    return WorkloadForecast(
        _forecast_queries(database, workload, table, chosen),
        _forecast_writes(workload, objective, chosen),
        objective.sum_upkeep(one for one in chosen if one.deferred),
    )


def _forecast_queries(
    database: AdvisedDatabase, workload: BoundWorkload, table: CostTable, chosen: Sequence[Choice]
) -> tuple[StatementForecast, ...]:
    immediate = [one for one in chosen if not one.deferred]
    deferred = {one.name for one in chosen if one.deferred}
    planned = plan_chosen_set(database, workload, [one.price.candidate for one in chosen])
    without = planned
    if deferred:
        without = plan_chosen_set(database, workload, [one.price.candidate for one in immediate])
    found = []
    for query in workload.queries:
        statement, one = query.statement, planned[query.name]
        late = tuple(name for name in one.views if name in deferred)
        before = table.query_us[query.name]
        fresh = _scale_cost(before, one.cost_before, one.cost_after)
        stale = fresh
        if late:
            stale = _scale_cost(before, one.cost_before, without[query.name].cost_after)
        after = DEFERRED_SAVING * fresh + (1 - DEFERRED_SAVING) * stale
        times = (before, after, fresh, stale)
        found.append(
            StatementForecast(query.name, statement.text, statement.calls, *times, one.views, late)
        )
    return tuple(found)


def _scale_cost(before_us: float, cost_before: float, cost_after: float) -> float:
    """Microseconds at the cost after, where those at the cost before are known."""
    units = CostUnits()
    scale = before_us / units.convert_query_cost(cost_before)
    return min(before_us, units.convert_query_cost(cost_after) * scale)


def _forecast_writes(
    workload: BoundWorkload, objective: Objective, chosen: Sequence[Choice]
) -> tuple[StatementForecast, ...]:
    found = []
    for write in workload.writes:
        before = objective.table.write_us[write.name]
        after = before * objective.slow_write(write.name, chosen)
        paid = [one for one in chosen if one.price.write_us.get(write.name)]
        views = tuple(one.name for one in paid)
        late = tuple(one.name for one in paid if one.deferred)
        statement = write.statement
        times = (before, after, after, after)
        found.append(
            StatementForecast(write.name, statement.text, statement.calls, *times, views, late)
        )
    return tuple(found)
