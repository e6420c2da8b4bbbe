"""One batch of deferred maintenance, which advances a group or a detached view along the log.

The views that share one watermark are a *unit*. A batch is computed at a snapshot, outside of the
commit section: the log after the watermark, consolidated per row, is applied to every view of the
unit, which gives the new state rows. The section only validates that nothing has changed
(watermark, views, no claim of another driver), then rows and watermark are written as one batch. So
a log range is applied exactly once, however many drivers try, and the views of a unit advance
together.

A view whose expression fails on a row does not stop the others: they advance, and it stays behind,
detached from the group, until the row that fails is changed or deleted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from belvedere import interrupts
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import ObjectState, View
from belvedere.errors import Error, InvalidInput, Unavailable
from belvedere.execution.run import CANCELED
from belvedere.kv.batch import KEY_BYTES_MAX, Write
from belvedere.txn.contracts import ChangeLog, CommitProtocol, KeyRange, Reader, RowChange
from belvedere.txn.gc_pause import pause_cycle_collector
from belvedere.views.changefeed.entries import Addition
from belvedere.views.cost.column_batches import (
    MaintainedView,
    find_least_changes,
    split_into_families,
    try_add_up_by_columns,
)
from belvedere.views.cost.maintenance_tier import MaintenanceTier
from belvedere.views.cost.row_counts import PositionSpan
from belvedere.views.cost.tier_selector import TierChoice
from belvedere.views.delta.sessionless_run import stop_with_statement
from belvedere.views.maintain.log_window import (
    LogWindow,
    RecordLookahead,
    build_reader_before_changes,
)
from belvedere.views.maintain.maintainer import ViewMaintainer
from belvedere.views.maintain.recent_log_columns import RecentLogColumns
from belvedere.views.registry.maintainer_provider import MaintainerProvider
from belvedere.views.state import claims
from belvedere.views.state.additions import AdditionRecorder, build_state_row_writes
from belvedere.views.state.state_update import ChangefeedStep, StateUpdate, commit_state_update
from belvedere.views.state.watermarks import (
    list_attached_group_views,
    list_group_views,
    read_maintenance_epoch,
    read_watermark,
)

if TYPE_CHECKING:
    from belvedere.views.maintain.logged_columns import LoggedColumns

POSITIONS_MAX = 100_000
"""The longest batch, in positions, of views whose deltas read only the changed rows."""


class MaintenanceUnit(NamedTuple):
    """Views that share the watermark stored under the id `mark`; `group` is theirs. `stays`: a
    detached view that does not rejoin its group when their watermarks are equal."""

    mark: int
    group: int
    start: int
    views: tuple[View, ...]
    stays: bool = False


class MaintenanceBatch(NamedTuple):
    """A computed batch of a unit: the new state rows and additions, the ranges that are emptied
    before, rows of the cost model, which views failed, and the tier that computed each view."""

    unit: MaintenanceUnit
    end: int
    catalog: Catalog
    rows: list[Write]
    additions: list[Addition]
    failures: dict[int, Error]
    seconds: dict[int, float]
    changes: int
    epoch: int
    choices: dict[int, TierChoice]
    cleared: Sequence[KeyRange] = ()
    costs: Sequence[Write] = ()


def find_maintenance_unit(reader: Reader, view: View) -> MaintenanceUnit | None:
    """The unit a view belongs to; None when it no longer follows the log."""
    own = read_watermark(reader, view.id)
    if own is not None:
        return MaintenanceUnit(view.id, view.group, own, (view,))
    mark = read_watermark(reader, view.group) if view.group else None
    return (
        None
        if mark is None
        else MaintenanceUnit(
            view.group, view.group, mark, list_attached_group_views(reader, view.group)
        )
    )


def list_group_units(reader: Reader, group: int) -> list[MaintenanceUnit]:
    """The units of a group: the group itself, also when all its views are detached, then each
    detached view."""
    mark = read_watermark(reader, group)
    together = list_attached_group_views(reader, group)
    found = [] if mark is None else [MaintenanceUnit(group, group, mark, together)]
    for view in list_group_views(reader.catalog, group):
        if view not in together:
            unit = find_maintenance_unit(reader, view)
            found += [] if unit is None else [unit]
    return found


def compute_batch_per_unit(
    registry: MaintainerProvider,
    log: ChangeLog,
    reader: Reader,
    units: Sequence[MaintenanceUnit],
    recent: RecentLogColumns | None = None,
) -> Iterator[MaintenanceBatch]:
    """Compute a batch for each of these units up to the reader's position, or a part of the way to
    it. The log is read and decoded once for all of them; as columns it may be `recent`."""
    recent = recent or RecentLogColumns()
    behind = [unit for unit in units if unit.start < reader.position]
    if not behind:
        return
    views = [view for unit in behind for view in unit.views]
    maintainers = {
        view.id: _get_maintainer_or_error(registry, reader.catalog, view) for view in views
    }
    reading = [view for view in views if _reads_unchanged_rows(maintainers[view.id])]
    after = min(unit.start for unit in behind)
    through = reader.position
    records = RecordLookahead(
        log.read_bytes(after, through), recent.count_changes_if_kept(after, through)
    )
    refilled = _try_compute_refill_batches(registry, reader, behind, maintainers, records)
    if refilled is None:
        refilled = _try_compute_column_batches(
            registry, reader, behind, maintainers, records, recent
        )
    if refilled is not None:
        yield from refilled
        return
    if not reading:
        through = min(through, after + POSITIONS_MAX)
    relations = frozenset(r for view in views for r in view.inputs)
    starts = [unit.start for unit in behind if unit.start < through]
    window = LogWindow(records.read_batches_until(through), starts, through, relations)
    looked_at = frozenset(r for view in reading for r in view.inputs)
    befores: dict[int, Reader] = {}
    for unit in behind:
        if unit.start >= through or not window.has_changes_after(unit.start):
            continue
        log_range = window.get_log_range_after(unit.start)
        registry.tiers.row_counts.add_changes_to_table_counts(
            PositionSpan(unit.start, through), log_range
        )
        if unit.start not in befores and any(
            _needs_tables_before(
                maintainers[view.id], log_range.get_changes_of_relations(frozenset(view.inputs))
            )
            for view in unit.views
        ):
            changed = log_range.get_changes_of_relations(looked_at)
            befores[unit.start] = build_reader_before_changes(reader, changed, registry.indexes)
        work = _BatchComputation(registry, reader, befores.get(unit.start, reader), unit, through)
        for view in unit.views:
            changes = log_range.get_changes_of_relations(frozenset(view.inputs))
            work.compute_view_additions(view, maintainers[view.id], changes, log_range.shared)
        yield work.build_batch(log_range.logged)


def _try_compute_refill_batches(
    registry: MaintainerProvider,
    reader: Reader,
    units: Sequence[MaintenanceUnit],
    maintainers: dict[int, ViewMaintainer | Error],
    records: RecordLookahead,
) -> list[MaintenanceBatch] | None:
    """Batches that recompute all views of the units from their tables, where that is cheaper than
    decoding the log; None where it is not cheaper, or not possible."""
    tiers = registry.tiers
    least = tiers.refill_min_changes
    if any(
        isinstance(one, Error) for one in maintainers.values()
    ) or not records.has_at_least_changes(least):
        return None
    for from_of in (tiers.refill_changes_lower_bound, tiers.find_refill_break_even):
        wanted = [
            from_of(view, maintainer, PositionSpan(unit.start, reader.position))
            for unit in units
            for view in unit.views
            if isinstance(maintainer := maintainers[view.id], ViewMaintainer)
        ]
        if not records.has_at_least_changes(max(wanted, default=math.inf)):
            return None
    choice = TierChoice(
        MaintenanceTier.REFILL, f"at least {records.counted_changes} changes, not decoded"
    )
    batches = []
    for unit in units:
        work = _BatchComputation(registry, reader, reader, unit, reader.position)
        for view in unit.views:
            maintainer = maintainers[view.id]
            assert isinstance(maintainer, ViewMaintainer)
            if not work.try_refill_view(view, maintainer, choice, records.counted_changes):
                return None
        batches.append(work.build_batch(records.counted_changes))
    return batches


def _try_compute_column_batches(
    registry: MaintainerProvider,
    reader: Reader,
    units: Sequence[MaintenanceUnit],
    maintainers: dict[int, ViewMaintainer | Error],
    records: RecordLookahead,
    recent: RecentLogColumns,
) -> list[MaintenanceBatch] | None:
    """Batches that add up the log by columns, for all views of the units; None where that is not
    cheaper than decoding it, or not possible."""
    if any(isinstance(one, Error) for one in maintainers.values()):
        return None
    families = [split_into_families(unit.views, maintainers) for unit in units]
    for counts in (False, True):
        least = [
            find_least_changes(
                registry.tiers, family, PositionSpan(unit.start, reader.position), counts=counts
            )
            for unit, split in zip(units, families, strict=True)
            for family in split
        ]
        if not records.has_at_least_changes(max(least, default=math.inf)):
            return None
    logged: dict[int, LoggedColumns] = {}
    batches = []
    for unit, split in zip(units, families, strict=True):
        if unit.start not in logged:
            found = recent.try_decode_range(records, unit.start, reader.position)
            if found is None:
                return None
            logged[unit.start] = found
        work = _BatchComputation(registry, reader, reader, unit, reader.position)
        for family in split:
            if not work.try_add_up_by_columns(family, logged[unit.start]):
                return None
        inputs = {relation for view in unit.views for relation in view.inputs}
        batches.append(work.build_batch(logged[unit.start].count_changes(inputs)))
    return batches


def _get_maintainer_or_error(
    registry: MaintainerProvider, catalog: Catalog, view: View
) -> ViewMaintainer | Error:
    try:
        return registry.get_view_maintainer(catalog, view)
    except Error as error:
        return error


def _reads_unchanged_rows(maintainer: ViewMaintainer | Error) -> bool:
    return isinstance(maintainer, ViewMaintainer) and maintainer.reads_unchanged_rows


def _needs_tables_before(maintainer: ViewMaintainer | Error, changes: Sequence[RowChange]) -> bool:
    return isinstance(maintainer, ViewMaintainer) and maintainer.needs_tables_before(changes)


class _BatchComputation:
    """Computes the batch of one unit, view by view."""

    def __init__(
        self,
        registry: MaintainerProvider,
        reader: Reader,
        before: Reader,
        unit: MaintenanceUnit,
        end: int,
    ) -> None:
        self._epoch = read_maintenance_epoch(reader)
        self._tier_selector = registry.tiers
        self._reader = reader
        self._before = before
        self._unit = unit
        self._end = end
        self._span = PositionSpan(unit.start, end)
        self._additions: list[Addition] = []
        self._rows: list[Write] = []
        self._cleared: list[KeyRange] = []
        self._failures: dict[int, Error] = {}
        self._seconds: dict[int, float] = {}
        self._choices: dict[int, TierChoice] = {}

    def try_refill_view(
        self, view: View, maintainer: ViewMaintainer, choice: TierChoice, changes: int
    ) -> bool:
        interrupts.check_statement()
        recorder, started = AdditionRecorder(), time.perf_counter()
        if (
            self._tier_selector.try_record_refill(
                view, maintainer, self._reader, recorder, changes, self._span
            )
            is not None
        ):
            return False
        self._additions += recorder.additions
        self._rows += recorder.rows
        self._cleared += recorder.cleared
        self._seconds[view.id] = time.perf_counter() - started
        self._choices[view.id] = choice
        return True

    def try_add_up_by_columns(
        self, family: Sequence[MaintainedView], logged: LoggedColumns
    ) -> bool:
        interrupts.check_statement()
        started = time.perf_counter()
        found = try_add_up_by_columns(self._tier_selector, family, logged, self._reader, self._span)
        if isinstance(found, str):
            return False
        self._rows += found.rows
        seconds = (time.perf_counter() - started) / len(family)
        for view, _ in family:
            self._seconds[view.id] = seconds
            self._choices[view.id] = found.choice
        return True

    def compute_view_additions(
        self,
        view: View,
        maintainer: ViewMaintainer | Error,
        changes: Sequence[RowChange],
        shared: dict[object, object],
    ) -> None:
        if isinstance(maintainer, Error):
            self._failures[view.id] = maintainer
            return
        if not changes:
            return
        interrupts.check_statement()
        recorder, started = AdditionRecorder(shared), time.perf_counter()
        try:
            with stop_with_statement():
                self._choices[view.id] = self._tier_selector.record_additions_by_tier(
                    view,
                    maintainer,
                    changes,
                    self._before,
                    self._reader,
                    recorder,
                    self._span,
                    at_end=self._end == self._reader.position,
                )
            _require_storable_keys(view, recorder.additions)
            self._additions += recorder.additions
            self._rows += recorder.rows
            self._cleared += recorder.cleared
        except Error as error:
            if error.sqlstate == CANCELED:  # the statement's end, not the view's failure
                raise
            self._failures[view.id] = error
        except Exception as error:  # noqa: BLE001 (an internal error: the other views continue)
            self._failures[view.id] = Unavailable(
                "maintenance of a view failed", sqlstate="XX000", detail=repr(error)
            )
        self._seconds[view.id] = time.perf_counter() - started

    def build_batch(self, changes: int) -> MaintenanceBatch:
        interrupts.check_statement()  # nothing is written yet
        return MaintenanceBatch(
            self._unit,
            self._end,
            self._reader.catalog,
            [*self._rows, *build_state_row_writes(self._reader, self._additions)],
            self._additions,
            self._failures,
            self._seconds,
            changes,
            self._epoch,
            self._choices,
            self._cleared,
            self._tier_selector.costs.build_kept_writes(),
        )


def _require_storable_keys(view: View, additions: Sequence[Addition]) -> None:
    """Refuse a key that no store takes here, where it concerns one view alone."""
    longest = max([len(key) for key, _, _ in additions], default=0)
    if longest > KEY_BYTES_MAX:
        raise InvalidInput(
            "key is too long",
            sqlstate="54000",
            view=view.name,
            key_bytes=longest,
            key_bytes_max=KEY_BYTES_MAX,
        )


# -- applying --------------------------------------------------------------------------------------


def write_batch_if_valid(commits: CommitProtocol, batch: MaintenanceBatch) -> bool:
    """Write a batch; False when somebody else has moved the unit, or it has changed."""
    unit = batch.unit
    alone = unit.mark != unit.group
    if alone and batch.failures:
        return False

    def build_batch_update(reader: Reader) -> StateUpdate | None:
        if not _is_batch_still_valid(reader, batch):
            return None
        joins = alone and _can_rejoin_group(reader, batch)
        behind = dict.fromkeys(batch.failures, unit.start)
        return StateUpdate(
            batch.additions,
            state_rows=batch.rows,
            changefeed=ChangefeedStep(unit.views, batch.end),
            watermarks={**behind, unit.mark: None if joins else batch.end},
            others=batch.costs,
        )

    return commit_state_update(commits, build_batch_update, batch.cleared)


def _is_batch_still_valid(reader: Reader, batch: MaintenanceBatch) -> bool:
    unit = batch.unit
    if (
        read_watermark(reader, unit.mark) != unit.start
        or read_maintenance_epoch(reader) != batch.epoch
    ):
        return False
    if reader.catalog is not batch.catalog:
        if any(reader.catalog.get(view.id) != view for view in unit.views):
            return False
    if unit.mark != unit.group:
        return True
    mine = {view.id for view in unit.views}
    others = [view for view in list_group_views(reader.catalog, unit.group) if view.id not in mine]
    beside = all(read_watermark(reader, view.id) is not None for view in others)
    return beside and claims.read_current_claim(reader, unit.group) is None


def _can_rejoin_group(reader: Reader, batch: MaintenanceBatch) -> bool:
    """Whether a detached view rejoins its group: their watermarks are equal, the view can be read,
    and no external driver, which would not know of it, maintains the group."""
    (view,), group = batch.unit.views, batch.unit.group
    if batch.unit.stays:
        return False
    if view.state is not ObjectState.READY or read_watermark(reader, group) != batch.end:
        return False
    return claims.read_current_claim(reader, group) is None


def advance_units_one_batch(
    commits: CommitProtocol,
    registry: MaintainerProvider,
    log: ChangeLog,
    wanted: Callable[[Reader], Sequence[MaintenanceUnit]],
    applied: Callable[[MaintenanceBatch, bool], None],
    recent: RecentLogColumns | None = None,
) -> bool:
    """Compute and write one batch for each unit that is behind. `applied` is called with each batch
    and whether it was written. Returns whether there was anything to do."""
    snapshot = commits.open_snapshot()
    try:
        reader = commits.reader(snapshot)
        units = wanted(reader)
        with pause_cycle_collector():
            batches = list(compute_batch_per_unit(registry, log, reader, units, recent))
    finally:
        commits.release(snapshot)
    for batch in batches:
        applied(batch, write_batch_if_valid(commits, batch))
    return bool(batches)
