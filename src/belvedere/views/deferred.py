"""The driver of deferred maintenance: which units are advanced when, with errors and statistics.

`step` advances groups, with one read of the log for all of them; `refresh` advances the unit of one
view at once. Views that fail are detached from their group and tried again, with a growing delay,
until the log's net changes no longer hold what fails; their error is in `errors` until then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from belvedere.catalog.catalog import Catalog, is_dropped
from belvedere.catalog.model import View
from belvedere.catalog.view_options import Schedule
from belvedere.errors import Error, Unavailable
from belvedere.txn.border import ChangeLog, CommitProtocol, Published, Reader
from belvedere.views import claim
from belvedere.views.group import (
    Batch,
    Unit,
    catch_up,
    come_back,
    put_aside,
    unit_of,
    units_of,
)
from belvedere.views.lag import Samples, Upkeep
from belvedere.views.maintainers import Maintainers
from belvedere.views.schedule import schedules
from belvedere.views.watermarks import deferred_views

RETRY_S_MIN = 0.05
RETRY_S_MAX = 2.0
SLOW_S = 1.0
"""A view that takes longer than this for a batch, and longer than all others of its group together,
is detached from it and maintained in a thread of its own, until it is fast again."""

CLAIM_EXPIRY_S = 60.0
"""The owner of a claim that has not advanced for so long is taken for dead."""

CLAIM_LOOK_S = 0.2


class _Trouble(NamedTuple):
    wait_s: float
    again_at: float


class _Seen(NamedTuple):
    """An external driver's claim, since when it has not advanced, and when to check it again."""

    claim: claim.Claim
    since: float
    again_at: float


class Deferred:
    """Maintains the deferred views of an open store."""

    def __init__(
        self,
        commits: CommitProtocol,
        log: ChangeLog,
        keeper: Maintainers,
        published: Published,
        errors: dict[int, Error],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`errors` receives the error of each view that fails. `clock` is monotonic."""
        self._commits = commits
        self._log = log
        self._keeper = keeper
        self._published = published
        self._errors = errors
        self.clock = clock
        self.samples = Samples()
        self.upkeep: dict[int, Upkeep] = {}
        self.verified: dict[int, str] = {}
        self.reached: dict[int, int] = {}
        self._troubles: dict[int, _Trouble] = {}
        self._claims: dict[int, _Seen] = {}
        self.slow: set[int] = set()
        self._busy: dict[int, float] = {}
        self._mutex = threading.Lock()
        self._moved = threading.Condition()
        self.moves = 0  # batches written so far

    @property
    def catalog(self) -> Catalog:
        return self._published.published.catalog

    def sample(self) -> int:
        """Record the published position as a sample, and return it."""
        position = self._published.published.position
        self.samples.note(position, self.clock())
        return position

    def schedules(self) -> dict[int, Schedule]:
        """The schedule of every maintenance group."""
        return schedules(deferred_views(self.catalog))

    # -- advancing ----------------------------------------------------------------------------

    def step(self, groups: Collection[int]) -> bool:
        """Advance these groups towards the published position; returns whether all reached it."""
        late: list[Unit] = []
        beside: list[View] = []

        def wanted(reader: Reader) -> list[Unit]:
            found = [unit for group in groups for unit in units_of(reader, group)]
            ours = [unit for unit in found if self._is_ours(reader, unit)]
            beside.extend(unit.views[0] for unit in ours if unit.mark != unit.group)
            for group in groups:
                self.reached[group] = reader.position
            self._busy = self._expected(ours, reader.position)
            return ours

        def applied(batch: Batch, written: bool) -> None:
            self._note(batch, written)
            if written:
                self._put_aside_slow(batch)
            if not written or batch.end < self._published.published.position:
                late.append(batch.unit)

        try:
            catch_up(self._commits, self._keeper, self._log, wanted, applied)
        finally:
            self._busy = {}
        for view in beside:
            if view.id not in self._troubles and view.id not in self.slow:
                come_back(self._commits, view)
        for unit in late:
            if unit.mark not in self._troubles:
                self.reached[unit.group] = min(self.reached.get(unit.group, 0), unit.start)
        return not late

    def step_slow(self) -> bool:
        """One batch for each of the slow views; returns whether there was anything to do. A view
        that is fast again is brought to its group's watermark, so that it rejoins the group."""
        back: set[int] = set()

        def wanted(reader: Reader) -> list[Unit]:
            views = [view for view in deferred_views(reader.catalog) if view.id in self.slow]
            self.slow &= {view.id for view in views}
            found = [unit_of(reader, view) for view in views]
            return [unit._replace(stays=True) for unit in found if unit and self._is_due(unit)]

        def applied(batch: Batch, written: bool) -> None:
            self._note(batch, written)
            if written and sum(batch.seconds.values()) < SLOW_S / 4:
                self.slow.discard(batch.unit.mark)
                back.add(batch.unit.group)

        moved = catch_up(self._commits, self._keeper, self._log, wanted, applied)
        if back:
            self.step(back)
        return moved

    def put_aside(self, view: View) -> None:
        """Maintain a view detached from its group from now on: it is too slow for the others."""
        self.slow.add(view.id)
        put_aside(self._commits, view)

    def _put_aside_slow(self, batch: Batch) -> None:
        total = sum(batch.seconds.values())
        for view in batch.unit.views:
            spent = batch.seconds.get(view.id, 0.0)
            if len(batch.unit.views) > 1 and spent > max(SLOW_S, total / 2):
                self.put_aside(view)

    def refresh(self, view: View) -> int:
        """Bring the unit of a view to the published position, or beyond; returns its watermark
        then. Another thread may advance the same unit: the second to reach a log range skips it."""
        goal, at = self.sample(), -1
        while at < goal:
            failed: list[Error] = []
            reached: list[int] = []

            def wanted(reader: Reader, reached: list[int] = reached) -> list[Unit]:
                unit = unit_of(reader, view)
                reached[:] = [goal if unit is None else unit.start]  # dropped, or immediate by now
                if unit is not None and unit.mark == unit.group:
                    _require_unclaimed(reader, unit.group)
                return [] if unit is None else [unit]

            def applied(batch: Batch, written: bool, failed: list[Error] = failed) -> None:
                self._note(batch, written)
                failed += [batch.failures[view.id]] if view.id in batch.failures else []

            if not catch_up(self._commits, self._keeper, self._log, wanted, applied):
                return max(goal, reached[0])  # the log has nothing more for it
            if failed:
                raise failed[0]
            at = reached[0]
        return at

    def _is_ours(self, reader: Reader, unit: Unit) -> bool:
        if unit.mark != unit.group:
            return unit.mark not in self.slow and self._is_due(unit)
        held = claim.holder(reader, unit.group)
        if held is None:
            self._claims.pop(unit.group, None)
            return True
        now = self.clock()
        known = self._claims.get(unit.group)
        since = known.since if known is not None and known.claim == held else now
        self._claims[unit.group] = _Seen(held, since, now + CLAIM_LOOK_S)
        return now - since > CLAIM_EXPIRY_S and claim.forget(self._commits, held)

    def _is_due(self, unit: Unit) -> bool:
        trouble = self._troubles.get(unit.mark)
        return trouble is None or self.clock() >= trouble.again_at

    # -- errors and statistics ----------------------------------------------------------------

    def _note(self, batch: Batch, written: bool) -> None:
        now = self.clock()
        lag = self.samples.age_about(batch.unit.start, now)
        for view in batch.unit.views:
            error = batch.failures.get(view.id)
            if error is not None:
                self._failed(view, error, now)
            elif written:
                self._troubles.pop(view.id, None)
                self._errors.pop(view.id, None)
                self.of(view).note(batch.changes, batch.seconds.get(view.id, 0.0), lag)
                choice = batch.choices.get(view.id)
                if choice is not None:
                    self.of(view).evaluated = f"{choice.way}: {choice.reason}"

        if written:
            with self._moved:
                self.moves += 1
                self._moved.notify_all()

    def _expected(self, units: list[Unit], position: int) -> dict[int, float]:
        """When a step of these units is expected to end, by the measured cost of changes."""
        seconds = sum(
            (position - unit.start) * (self.of(view).seconds_per_change or 0.0)
            for unit in units
            for view in unit.views
        )
        ends = self.clock() + seconds
        return {unit.group: ends for unit in units}

    def seconds_left(self, group: int) -> float | None:
        """For how much longer the worker will be busy with this group; None when it is not."""
        ends = self._busy.get(group)
        return None if ends is None else max(0.0, ends - self.clock())

    def wait_moved(self, seen: int, timeout_s: float) -> None:
        """Block until `moves` differs from `seen`, or the timeout has passed."""
        with self._moved:
            self._moved.wait_for(lambda: self.moves != seen, timeout_s)

    def _failed(self, view: View, error: Error, now: float) -> None:
        if is_dropped(self.catalog.objects.get(view.id, view)):
            return
        known = self._troubles.get(view.id)
        wait = RETRY_S_MIN if known is None else min(2 * known.wait_s, RETRY_S_MAX)
        self._troubles[view.id] = _Trouble(wait, now + wait)
        self._errors[view.id] = error

    def of(self, view: View) -> Upkeep:
        with self._mutex:
            return self.upkeep.setdefault(view.id, Upkeep())

    def again_at(self) -> float | None:
        """When a failed view, or a group with an external driver, is to be tried again."""
        views = deferred_views(self.catalog)
        _keep(self._troubles, {view.id for view in views})
        _keep(self._claims, {view.group for view in views})
        times = [one.again_at for one in list(self._troubles.values())]
        times += [one.again_at for one in list(self._claims.values())]
        return min(times, default=None)

    @property
    def troubled_groups(self) -> set[int]:
        views = deferred_views(self.catalog)
        return {v.group for v in views if v.id in self._troubles or v.group in self._claims}

    def fail(self, groups: Collection[int], error: Exception) -> None:
        """Record the error of a step that failed altogether for every view of these groups."""
        views = [view.id for view in deferred_views(self.catalog) if view.group in groups]
        self.fail_views(views, error)

    def fail_views(self, views: Collection[int], error: Exception) -> None:
        shown = error if isinstance(error, Error) else _fault(error)
        self._errors.update(dict.fromkeys(views, shown))


def _keep(known: dict[int, Any], ids: set[int]) -> None:
    for gone in [id_ for id_ in list(known) if id_ not in ids]:
        known.pop(gone, None)


def _fault(error: Exception) -> Unavailable:
    return Unavailable("maintenance of a view failed", sqlstate="XX000", detail=repr(error))


def _require_unclaimed(reader: Reader, group: int) -> None:
    held = claim.holder(reader, group)
    if held is not None:
        raise Unavailable(
            "the view's group is maintained elsewhere",
            sqlstate="55006",
            hint="read it with freshness 'latest', or wait",
            owner=held.owner,
        )
