"""The maintenance worker: a thread that advances deferred groups by their schedules.

`MaintenanceScheduler` decides when a group is due; it gets the time as an argument and knows no
threads. A group with a lag goal is delayed after its first pending commit, so that changes gather,
but starts early enough to end within the goal; a group with a period advances on its ticks. In
between the worker sleeps: a commit wakes it only when nothing was pending.

`share` caps its share of the time: after work of t it rests t * (1 - share) / share.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import NamedTuple

from belvedere.catalog.view_options import Schedule
from belvedere.txn.contracts import PublishedState
from belvedere.views.deferred.driver import DeferredMaintenance

GATHER_SHARE = 0.6
"""The share of its lag goal for which a group may gather changes."""

CROWD_COMMITS = 250
CROWD_MAX = 4.0
"""A group without an explicit goal gathers up to CROWD_MAX times longer when more commits than this
arrive between two steps: many changes of one row then consolidate to one."""

SLOW_POLL_S = 0.05
FAILURE_WAIT_S = 1.0
"""How long to wait after a step that failed altogether."""

_log = logging.getLogger("belvedere.views")


class WorkerPlan(NamedTuple):
    """The groups due now, and when to plan again (None: at the next commit). `idle`: some group has
    nothing pending, so that the next commit matters."""

    due: frozenset[int]
    look_at: float | None
    idle: bool = False


class MaintenanceScheduler:
    """Decides when each group is due. A group that has changes to apply is pending."""

    def __init__(self) -> None:
        self._pending_since: dict[int, float] = {}
        self._ticks: dict[int, float] = {}
        self._spent_s: dict[int, float] = {}
        self._position: dict[int, int] = {}
        self._crowd: dict[int, float] = {}

    def find_due_groups(
        self, schedules: dict[int, Schedule], reached: dict[int, int], position: int, now: float
    ) -> WorkerPlan:
        due: set[int] = set()
        wake_times: list[float] = []
        idle = not schedules
        for group, schedule in schedules.items():
            if reached.get(group, -1) >= position:
                self._pending_since.pop(group, None)
                idle = True
                continue
            at = self._compute_due_time(group, schedule, now)
            if at <= now:
                due.add(group)
            else:
                wake_times.append(at)
        return WorkerPlan(frozenset(due), min(wake_times, default=None), idle)

    def _compute_due_time(self, group: int, schedule: Schedule, now: float) -> float:
        period = schedule.period_s
        if period is not None:
            return self._ticks.setdefault(group, now + period)
        since = self._pending_since.setdefault(group, now)
        goal = schedule.goal_s
        if schedule.max_lag_us is None:
            goal *= self._crowd.get(group, 1.0)
        return since + max(0.0, goal * GATHER_SHARE - 2 * self._spent_s.get(group, 0.0))

    def record_step_end(
        self,
        groups: frozenset[int],
        schedules: dict[int, Schedule],
        now: float,
        spent_s: float,
        position: int,
    ) -> None:
        """Record that a step of these groups to `position` ended at `now` and took `spent_s`."""
        for group in groups:
            self._pending_since.pop(group, None)
            moved = position - self._position.get(group, position)
            self._position[group] = position
            self._crowd[group] = min(max(1.0, moved / CROWD_COMMITS), CROWD_MAX)
            known = self._spent_s.get(group, spent_s)
            self._spent_s[group] = 0.75 * known + 0.25 * spent_s
            period = schedules[group].period_s
            if period is not None:
                late = now - self._ticks.get(group, now)
                self._ticks[group] = now - late % period + period


class MaintenanceWorker:
    """The worker thread. `ended` tells whether maintenance fails only because the store closes."""

    def __init__(
        self, deferred: DeferredMaintenance, published: PublishedState, ended: Callable[[], bool]
    ) -> None:
        self._deferred = deferred
        self._published = published
        self._ended = ended
        self._stopped = threading.Event()
        self._woken = threading.Event()
        self.share = 1.0
        self._slow_thread: threading.Thread | None = None
        self._thread = threading.Thread(
            target=self._advance_until_stopped, name="belvedere views", daemon=True
        )
        self._thread.start()

    def stop_and_join_threads(self) -> None:
        """Stop the threads after their current batch, and wait for them."""
        self._stopped.set()
        self._woken.set()
        self._thread.join()
        if self._slow_thread is not None:
            self._slow_thread.join()

    def wake_up(self) -> None:
        """Plan again: the groups may have changed."""
        self._woken.set()

    def _advance_until_stopped(self) -> None:
        pace = MaintenanceScheduler()
        while not self._stopped.is_set():
            try:
                if not self._advance_due_or_sleep(pace):
                    return
            except Exception:  # noqa: BLE001 (logged; the thread continues)
                if self._ended():
                    return
                _log.exception("views are not maintained: the store does not answer; tried again")
                self._stopped.wait(FAILURE_WAIT_S)

    def _advance_due_or_sleep(self, pace: MaintenanceScheduler) -> bool:
        """Advance the groups that are due, or sleep until one is; False when the store closes."""
        deferred = self._deferred
        position, now = deferred.sample_published_position(), deferred.clock()
        schedules = deferred.get_schedules_by_group()
        plan = pace.find_due_groups(schedules, deferred.reached, position, now)
        due, again_at = plan.due, deferred.find_next_retry_time()
        if again_at is not None and again_at <= now:
            due |= deferred.groups_to_retry
        if not due:
            return self._sleep_until_due(plan, again_at, position, now)
        self._advance_due_groups(due)
        spent = deferred.clock() - now
        pace.record_step_end(due & schedules.keys(), schedules, deferred.clock(), spent, position)
        self._rest_to_cap_share(spent)
        return True

    def _advance_due_groups(self, due: frozenset[int]) -> None:
        try:
            self._deferred.advance_groups(due)
            if self._deferred.slow and self._slow_thread is None:
                self._slow_thread = threading.Thread(
                    target=self._advance_slow_until_stopped,
                    name="belvedere slow views",
                    daemon=True,
                )
                self._slow_thread.start()
        except Exception as error:  # noqa: BLE001 (shown by the views; the thread continues)
            if self._ended():
                return
            self._deferred.record_group_errors(due, error)
            self._stopped.wait(FAILURE_WAIT_S)

    def _advance_slow_until_stopped(self) -> None:
        """Maintain slow views, one batch after the other, so that other views do not wait."""
        while not self._stopped.is_set():
            try:
                moved = self._deferred.advance_slow_views() if self._deferred.slow else False
            except Exception as error:  # noqa: BLE001 (shown by the views; the thread continues)
                if self._ended():
                    return
                self._deferred.record_view_errors(frozenset(self._deferred.slow), error)
                moved = False
            self._stopped.wait(0.0 if moved else SLOW_POLL_S)

    def _rest_to_cap_share(self, spent_s: float) -> None:
        share = self.share
        if share < 1.0:
            self._stopped.wait(spent_s * (1 - share) / share)

    def _sleep_until_due(
        self, plan: WorkerPlan, again_at: float | None, position: int, now: float
    ) -> bool:
        """Sleep until a group is due or a commit is published; False when the store is closing."""
        wake_times = [at for at in (plan.look_at, again_at) if at is not None]
        timeout = (
            min(max(0.0, min(wake_times) - now), threading.TIMEOUT_MAX) if wake_times else None
        )
        if plan.idle or timeout is None:
            if self._published.wait_past(position, timeout):
                return True
            return timeout is not None and self._deferred.clock() - now >= timeout
        self._woken.wait(timeout)
        self._woken.clear()
        return True
