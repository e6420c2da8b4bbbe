"""Batches that are added up by columns: which views are computed together, and what it took.

Views over the same rows and groups are one family (`views.maintain.view_family`), any other view is
one by itself. A family takes one statement, so that it is worth it from fewer changes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from belvedere.catalog.model import View
from belvedere.errors import Error
from belvedere.execution.duckdb.engine import DuckEngine
from belvedere.kv.batch import Write
from belvedere.txn.contracts import Reader
from belvedere.views.cost.cost_model import estimate_family_s
from belvedere.views.cost.maintenance_tier import MaintenanceTier
from belvedere.views.cost.measured_costs import start_timer
from belvedere.views.cost.row_counts import PositionSpan
from belvedere.views.cost.tier_selector import (
    NOT_OPEN,
    TierChoice,
    TierSelector,
    format_change_count,
)
from belvedere.views.delta.delta_tree import collect_relations
from belvedere.views.maintain.maintainer import ViewMaintainer
from belvedere.views.maintain.view_family import ViewFamily

if TYPE_CHECKING:
    from belvedere.views.maintain.logged_columns import LoggedColumns

FAMILIES_KEPT_MAX = 50


class MaintainedView(NamedTuple):
    view: View
    maintainer: ViewMaintainer


class FamilyBatch(NamedTuple):
    """The new state rows of all views of a family, and how they were computed."""

    rows: list[Write]
    choice: TierChoice


def split_into_families(
    views: Iterable[View], maintainers: Mapping[int, ViewMaintainer | Error]
) -> list[list[MaintainedView]]:
    """The views that are computed together, in the order of the first of each family. All have a
    maintainer."""
    found: dict[object, list[MaintainedView]] = {}
    for view in views:
        maintainer = maintainers[view.id]
        assert isinstance(maintainer, ViewMaintainer)
        key = maintainer.family_key
        family = found.setdefault(view.id if key is None else key, [])
        family.append(MaintainedView(view, maintainer))
    return list(found.values())


def find_least_changes(
    tiers: TierSelector, family: Sequence[MaintainedView], span: PositionSpan, *, counts: bool
) -> float:
    """From how many logged changes on it is cheaper to add them up by columns for these views;
    without `counts`, a lower bound for which nobody counts the rows of their tables."""
    ask = tiers.find_column_break_even if counts else tiers.column_changes_lower_bound
    return max(ask(view, maintainer, span, len(family)) for view, maintainer in family)


def try_add_up_by_columns(
    tiers: TierSelector,
    family: Sequence[MaintainedView],
    logged: LoggedColumns,
    reader: Reader,
    span: PositionSpan,
) -> FamilyBatch | str:
    """The state rows of a family after the changes of a log range, by columns; or why that is not
    possible, or not cheaper."""
    (view, maintainer), *_ = family
    count = logged.count_changes(view.inputs)
    partners = set(collect_relations(maintainer.tree)) - logged.relations
    alone_s = tiers.estimates.estimate_columns_s(maintainer, count, partners, span)
    seconds = estimate_family_s(alone_s, len(family)) / len(family)
    expected_s = tiers.estimates.expect_column_seconds(view, maintainer, seconds)
    by_rows_s = tiers.estimates.estimate_logged_changes_s(view, maintainer, count, span)
    if tiers.requested_tier is None and by_rows_s < expected_s:
        return "rows are cheaper"
    timer = start_timer(tiers.counts_waits)
    rows: list[Write] = []
    with tiers.borrow_duckdb_engine() as engine:
        if engine is None:
            return NOT_OPEN
        for found in _iterate_column_writes(tiers, family, engine, logged, reader):
            if isinstance(found, str):
                return found
            rows += found
    taken = timer() / len(family)
    for one, _ in family:
        tiers.costs.record_batch_cost(one.id, MaintenanceTier.DUCKDB, seconds, taken, count)
    reason = f"{format_change_count(count)}, by columns"
    if len(family) > 1:
        reason += f", with {len(family) - 1} other view{'' if len(family) == 2 else 's'}"
    return FamilyBatch(rows, TierChoice(MaintenanceTier.DUCKDB, reason, seconds))


def _iterate_column_writes(
    tiers: TierSelector,
    family: Sequence[MaintainedView],
    engine: DuckEngine,
    logged: LoggedColumns,
    reader: Reader,
) -> Iterator[list[Write] | str]:
    if len(family) == 1:
        yield family[0].maintainer.compute_column_writes(engine, logged, reader)
        return
    if not family[0].maintainer.can_sum_by_columns(logged.relations):
        yield "tables of one join changed together"
        return
    computed = _get_view_family(tiers, reader, family)
    yield from computed.iterate_column_writes(engine, logged, reader)


def _get_view_family(
    tiers: TierSelector, reader: Reader, family: Sequence[MaintainedView]
) -> ViewFamily:
    """The family as it was compiled for earlier batches."""
    maintainers = tuple(one.maintainer for one in family)
    known = tiers.families.get(maintainers)
    if known is None:
        if len(tiers.families) >= FAMILIES_KEPT_MAX:
            tiers.families.clear()
        members = [maintainer.family_member for maintainer in maintainers]
        known = tiers.families[maintainers] = ViewFamily(reader.catalog, members)
    return known
