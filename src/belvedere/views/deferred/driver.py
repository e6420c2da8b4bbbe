"""The driver of deferred maintenance: which units are advanced when, with errors and statistics.

`advance_groups` advances groups, with one read of the log for all of them; `catch_up_unit_of_view`
advances the unit of one view at once. Views that fail are detached from their group and tried
again, with a growing delay, until the log's net changes no longer hold what fails; their error is
in `errors` until then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from belvedere import interrupts
from belvedere.catalog.catalog import Catalog, is_dropped
from belvedere.catalog.model import View
from belvedere.catalog.view_options import Schedule
from belvedere.errors import Error, Unavailable
from belvedere.txn.contracts import ChangeLog, CommitProtocol, PublishedState, Reader
from belvedere.views.deferred.batch import (
    MaintenanceBatch,
    MaintenanceUnit,
    advance_units_one_batch,
    find_maintenance_unit,
    list_group_units,
)
from belvedere.views.deferred.group_membership import (
    detach_view_from_group,
    rejoin_view_to_group,
)
from belvedere.views.deferred.lag import MaintenanceStatistics, PositionSamples
from belvedere.views.maintain.recent_log_columns import RecentLogColumns
from belvedere.views.registry.maintainer_provider import MaintainerProvider
from belvedere.views.state import claims
from belvedere.views.state.schedule_groups import map_groups_to_schedules
from belvedere.views.state.watermarks import list_ready_deferred_views

RETRY_S_MIN = 0.05
RETRY_S_MAX = 2.0
SLOW_S = 1.0
"""A view that takes longer than this for a batch, and longer than all others of its group together,
is detached from it and maintained in a thread of its own, until it is fast again."""

CLAIM_EXPIRY_S = 60.0
"""The owner of a claim that has not advanced for so long is taken for dead."""

CLAIM_POLL_S = 0.2


class _RetryDelay(NamedTuple):
    wait_s: float
    again_at: float


class _ForeignClaim(NamedTuple):
    """An external driver's claim, since when it has not advanced, and when to check it again."""

    claim: claims.Claim
    since: float
    again_at: float


class DeferredMaintenance:
    """Maintains the deferred views of an open store."""

    def __init__(
        self,
        commits: CommitProtocol,
        log: ChangeLog,
        registry: MaintainerProvider,
        published: PublishedState,
        errors: dict[int, Error],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`errors` receives the error of each view that fails. `clock` is monotonic."""
        self._commits = commits
        self._log = log
        self._registry = registry
        self._published = published
        self._errors = errors
        self.clock = clock
        self.samples = PositionSamples()
        self.upkeep: dict[int, MaintenanceStatistics] = {}
        self.verified: dict[int, str] = {}
        self.reached: dict[int, int] = {}
        self._retry_delays: dict[int, _RetryDelay] = {}
        self._claims: dict[int, _ForeignClaim] = {}
        self.slow: set[int] = set()
        self._busy: dict[int, float] = {}
        self._recent = RecentLogColumns()
        self._mutex = threading.Lock()
        self._moved = threading.Condition()
        self.moves = 0  # batches written so far

    @property
    def catalog(self) -> Catalog:
        return self._published.published_snapshot.catalog

    def sample_published_position(self) -> int:
        """Record the published position as a sample, and return it."""
        position = self._published.published_snapshot.position
        self.samples.add_sample(position, self.clock())
        return position

    def get_schedules_by_group(self) -> dict[int, Schedule]:
        """The schedule of every maintenance group."""
        return map_groups_to_schedules(list_ready_deferred_views(self.catalog))

    # -- advancing ----------------------------------------------------------------------------

    def advance_groups(self, groups: Collection[int]) -> bool:
        """Advance these groups towards the published position; returns whether all reached it."""
        late: list[MaintenanceUnit] = []
        beside: list[View] = []

        def find_units(reader: Reader) -> list[MaintenanceUnit]:
            found = [unit for group in groups for unit in list_group_units(reader, group)]
            ours = [unit for unit in found if self._may_advance_unit(reader, unit)]
            beside.extend(unit.views[0] for unit in ours if unit.mark != unit.group)
            for group in groups:
                self.reached[group] = reader.position
            self._busy = self._estimate_group_end_times(ours, reader.position)
            return ours

        def record_outcome(batch: MaintenanceBatch, written: bool) -> None:
            self._record_batch_outcome(batch, written)
            if written:
                self._detach_views_slow_in_batch(batch)
            if not written or batch.end < self._published.published_snapshot.position:
                late.append(batch.unit)

        try:
            advance_units_one_batch(
                self._commits, self._registry, self._log, find_units, record_outcome, self._recent
            )
        finally:
            self._busy = {}
        for view in beside:
            if view.id not in self._retry_delays and view.id not in self.slow:
                rejoin_view_to_group(self._commits, view)
        for unit in late:
            if unit.mark not in self._retry_delays:
                self.reached[unit.group] = min(self.reached.get(unit.group, 0), unit.start)
        return not late

    def advance_slow_views(self) -> bool:
        """One batch for each of the slow views; returns whether there was anything to do. A view
        that is fast again is brought to its group's watermark, so that it rejoins the group."""
        back: set[int] = set()

        def find_slow_units(reader: Reader) -> list[MaintenanceUnit]:
            views = [
                view for view in list_ready_deferred_views(reader.catalog) if view.id in self.slow
            ]
            self.slow &= {view.id for view in views}
            found = [find_maintenance_unit(reader, view) for view in views]
            return [
                unit._replace(stays=True) for unit in found if unit and self._is_retry_due(unit)
            ]

        def record_outcome(batch: MaintenanceBatch, written: bool) -> None:
            self._record_batch_outcome(batch, written)
            if written and sum(batch.seconds.values()) < SLOW_S / 4:
                self.slow.discard(batch.unit.mark)
                back.add(batch.unit.group)

        moved = advance_units_one_batch(
            self._commits, self._registry, self._log, find_slow_units, record_outcome
        )
        if back:
            self.advance_groups(back)
        return moved

    def detach_slow_view(self, view: View) -> None:
        """Maintain a view detached from its group from now on: it is too slow for the others."""
        self.slow.add(view.id)
        detach_view_from_group(self._commits, view)

    def _detach_views_slow_in_batch(self, batch: MaintenanceBatch) -> None:
        total = sum(batch.seconds.values())
        for view in batch.unit.views:
            spent = batch.seconds.get(view.id, 0.0)
            if len(batch.unit.views) > 1 and spent > max(SLOW_S, total / 2):
                self.detach_slow_view(view)

    def catch_up_unit_of_view(self, view: View) -> int:
        """Bring the unit of a view to the published position, or beyond; returns its watermark
        then. Another thread may advance the same unit: the second to reach a log range skips it."""
        goal, at = self.sample_published_position(), -1
        while at < goal:
            interrupts.check_statement()
            failed: list[Error] = []
            reached: list[int] = []

            def find_unit(reader: Reader, reached: list[int] = reached) -> list[MaintenanceUnit]:
                unit = find_maintenance_unit(reader, view)
                reached[:] = [goal if unit is None else unit.start]  # dropped, or immediate by now
                if unit is not None and unit.mark == unit.group:
                    _require_unclaimed_group(reader, unit.group)
                return [] if unit is None else [unit]

            def record_outcome(
                batch: MaintenanceBatch,
                written: bool,
                failed: list[Error] = failed,
                reached: list[int] = reached,
            ) -> None:
                self._record_batch_outcome(batch, written)
                failed += [batch.failures[view.id]] if view.id in batch.failures else []
                if written:
                    reached[:] = [batch.end]

            if not advance_units_one_batch(
                self._commits, self._registry, self._log, find_unit, record_outcome, self._recent
            ):
                return max(goal, reached[0])  # the log has nothing more for it
            if failed:
                raise failed[0]
            at = reached[0]
        return at

    def _may_advance_unit(self, reader: Reader, unit: MaintenanceUnit) -> bool:
        if unit.mark != unit.group:
            return unit.mark not in self.slow and self._is_retry_due(unit)
        held = claims.read_current_claim(reader, unit.group)
        if held is None:
            self._claims.pop(unit.group, None)
            return True
        now = self.clock()
        known = self._claims.get(unit.group)
        since = known.since if known is not None and known.claim == held else now
        self._claims[unit.group] = _ForeignClaim(held, since, now + CLAIM_POLL_S)
        return now - since > CLAIM_EXPIRY_S and claims.revoke_stalled_claim(self._commits, held)

    def _is_retry_due(self, unit: MaintenanceUnit) -> bool:
        trouble = self._retry_delays.get(unit.mark)
        return trouble is None or self.clock() >= trouble.again_at

    # -- errors and statistics ----------------------------------------------------------------

    def _record_batch_outcome(self, batch: MaintenanceBatch, written: bool) -> None:
        now = self.clock()
        lag = self.samples.estimate_commit_age_after(batch.unit.start, now)
        for view in batch.unit.views:
            error = batch.failures.get(view.id)
            if error is not None:
                self._record_view_failure(view, error, now)
            elif written:
                self._retry_delays.pop(view.id, None)
                self._errors.pop(view.id, None)
                self.get_maintenance_statistics(view).add_batch(
                    batch.changes, batch.seconds.get(view.id, 0.0), lag
                )
                choice = batch.choices.get(view.id)
                if choice is not None:
                    self.get_maintenance_statistics(
                        view
                    ).last_choice = f"{choice.tier}: {choice.reason}"

        if written:
            with self._moved:
                self.moves += 1
                self._moved.notify_all()

    def _estimate_group_end_times(
        self, units: list[MaintenanceUnit], position: int
    ) -> dict[int, float]:
        """When a step of these units is expected to end, by the measured cost of changes."""
        seconds = sum(
            (position - unit.start)
            * (self.get_maintenance_statistics(view).seconds_per_change or 0.0)
            for unit in units
            for view in unit.views
        )
        ends = self.clock() + seconds
        return {unit.group: ends for unit in units}

    def estimate_busy_seconds_left(self, group: int) -> float | None:
        """For how much longer the worker will be busy with this group; None when it is not."""
        ends = self._busy.get(group)
        return None if ends is None else max(0.0, ends - self.clock())

    def wait_for_batch(self, seen: int, timeout_s: float) -> None:
        """Block until `moves` differs from `seen`, or the timeout has passed."""
        with self._moved:
            self._moved.wait_for(lambda: self.moves != seen, timeout_s)

    def _record_view_failure(self, view: View, error: Error, now: float) -> None:
        if is_dropped(self.catalog.objects.get(view.id, view)):
            return
        known = self._retry_delays.get(view.id)
        wait = RETRY_S_MIN if known is None else min(2 * known.wait_s, RETRY_S_MAX)
        self._retry_delays[view.id] = _RetryDelay(wait, now + wait)
        self._errors[view.id] = error

    def get_maintenance_statistics(self, view: View) -> MaintenanceStatistics:
        with self._mutex:
            return self.upkeep.setdefault(view.id, MaintenanceStatistics())

    def find_next_retry_time(self) -> float | None:
        """When a failed view, or a group with an external driver, is to be tried again."""
        views = list_ready_deferred_views(self.catalog)
        _drop_unknown_ids(self._retry_delays, {view.id for view in views})
        _drop_unknown_ids(self._claims, {view.group for view in views})
        times = [one.again_at for one in list(self._retry_delays.values())]
        times += [one.again_at for one in list(self._claims.values())]
        return min(times, default=None)

    @property
    def groups_to_retry(self) -> set[int]:
        views = list_ready_deferred_views(self.catalog)
        return {v.group for v in views if v.id in self._retry_delays or v.group in self._claims}

    def record_group_errors(self, groups: Collection[int], error: Exception) -> None:
        """Record the error of a step that failed altogether for every view of these groups."""
        views = [
            view.id for view in list_ready_deferred_views(self.catalog) if view.group in groups
        ]
        self.record_view_errors(views, error)

    def record_view_errors(self, views: Collection[int], error: Exception) -> None:
        shown = error if isinstance(error, Error) else _wrap_unexpected_error(error)
        self._errors.update(dict.fromkeys(views, shown))


def _drop_unknown_ids(known: dict[int, Any], ids: set[int]) -> None:
    for gone in [id_ for id_ in list(known) if id_ not in ids]:
        known.pop(gone, None)


def _wrap_unexpected_error(error: Exception) -> Unavailable:
    return Unavailable("maintenance of a view failed", sqlstate="XX000", detail=repr(error))


def _require_unclaimed_group(reader: Reader, group: int) -> None:
    held = claims.read_current_claim(reader, group)
    if held is not None:
        raise Unavailable(
            "the view's group is maintained elsewhere",
            sqlstate="55006",
            hint="read it with freshness 'latest', or wait",
            owner=held.owner,
        )
