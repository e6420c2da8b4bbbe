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
from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import State, View
from belvedere.errors import Error, Unavailable
from belvedere.kv.batch import Write
from belvedere.txn.border import ChangeLog, CommitProtocol, Reader, RowChange
from belvedere.views import claim
from belvedere.views.additions import Recorder, state_rows
from belvedere.views.collecting import uncollected
from belvedere.views.maintain import Maintainer
from belvedere.views.maintainers import Maintainers
from belvedere.views.sizes import Span
from belvedere.views.state_update import ChangefeedStep, StateUpdate, write_update
from belvedere.views.stream import Addition
from belvedere.views.tiers import Choice
from belvedere.views.watermarks import (
    epoch,
    members,
    next_epoch,
    views_of,
    watermark,
    watermark_write,
)
from belvedere.views.way import Way
from belvedere.views.window import Peeked, Window, state_before

POSITIONS_MAX = 100_000
"""The longest batch, in positions, of views whose deltas read only the changed rows."""


class Unit(NamedTuple):
    """Views that share the watermark stored under the id `mark`; `group` is theirs. `stays`: a
    detached view that does not rejoin its group when their watermarks are equal."""

    mark: int
    group: int
    start: int
    views: tuple[View, ...]
    stays: bool = False


class Batch(NamedTuple):
    """A computed batch of a unit: the new state rows and additions, which views failed, and the
    tier that computed each view."""

    unit: Unit
    end: int
    catalog: Catalog
    rows: list[Write]
    additions: list[Addition]
    failures: dict[int, Error]
    seconds: dict[int, float]
    changes: int
    epoch: int
    choices: dict[int, Choice]


def unit_of(reader: Reader, view: View) -> Unit | None:
    """The unit a view belongs to; None when it no longer follows the log."""
    own = watermark(reader, view.id)
    if own is not None:
        return Unit(view.id, view.group, own, (view,))
    mark = watermark(reader, view.group) if view.group else None
    return None if mark is None else Unit(view.group, view.group, mark, members(reader, view.group))


def units_of(reader: Reader, group: int) -> list[Unit]:
    """The units of a group: the group itself, also when all its views are detached, then each
    detached view."""
    mark = watermark(reader, group)
    together = members(reader, group)
    found = [] if mark is None else [Unit(group, group, mark, together)]
    for view in views_of(reader.catalog, group):
        if view not in together:
            unit = unit_of(reader, view)
            found += [] if unit is None else [unit]
    return found


def work_out(
    keeper: Maintainers, log: ChangeLog, reader: Reader, units: Sequence[Unit]
) -> Iterator[Batch]:
    """Compute a batch for each of these units up to the reader's position, or a part of the way to
    it. The log is read and decoded once for all of them."""
    behind = [unit for unit in units if unit.start < reader.position]
    if not behind:
        return
    views = [view for unit in behind for view in unit.views]
    maintainers = {view.id: _maintainer(keeper, reader.catalog, view) for view in views}
    reading = [view for view in views if _reads_state(maintainers[view.id])]
    after = min(unit.start for unit in behind)
    through = reader.position
    records = Peeked(log.read_bytes(after, through))
    refilled = _all_refilled(keeper, reader, behind, maintainers, records)
    if refilled is not None:
        yield from refilled
        return
    if not reading:
        through = min(through, after + POSITIONS_MAX)
    relations = frozenset(r for view in views for r in view.inputs)
    starts = [unit.start for unit in behind if unit.start < through]
    window = Window(records.until(through), starts, through, relations)
    looked_at = frozenset(r for view in reading for r in view.inputs)
    befores: dict[int, Reader] = {}
    for unit in behind:
        if unit.start >= through or not window.moves(unit.start):
            continue
        stretch = window.stretch(unit.start)
        keeper.tiers.sizes.moved(Span(unit.start, through), stretch)
        if unit.start not in befores and any(
            _looks_back(maintainers[view.id], stretch.of(frozenset(view.inputs)))
            for view in unit.views
        ):
            changed = stretch.of(looked_at)
            befores[unit.start] = state_before(reader, changed, keeper.indexes)
        work = _Work(keeper, reader, befores.get(unit.start, reader), unit, through)
        for view in unit.views:
            changes = stretch.of(frozenset(view.inputs))
            work.of_view(view, maintainers[view.id], changes, stretch.shared)
        yield work.batch(stretch.logged)


def _all_refilled(
    keeper: Maintainers,
    reader: Reader,
    units: Sequence[Unit],
    maintainers: dict[int, Maintainer | Error],
    records: Peeked,
) -> list[Batch] | None:
    """Batches that recompute all views of the units from their tables, where that is cheaper than
    decoding the log; None where it is not cheaper, or not possible."""
    tiers = keeper.tiers
    least = tiers.refills_at_least
    if any(isinstance(one, Error) for one in maintainers.values()) or not records.has(least):
        return None
    for from_of in (tiers.refills_not_below, tiers.refills_from):
        wanted = [
            from_of(view, maintainer, Span(unit.start, reader.position))
            for unit in units
            for view in unit.views
            if isinstance(maintainer := maintainers[view.id], Maintainer)
        ]
        if not records.has(max(wanted, default=math.inf)):
            return None
    choice = Choice(Way.REFILL, f"at least {records.counted} changes, not decoded")
    batches = []
    for unit in units:
        work = _Work(keeper, reader, reader, unit, reader.position)
        for view in unit.views:
            maintainer = maintainers[view.id]
            assert isinstance(maintainer, Maintainer)
            if not work.refill(view, maintainer, choice, records.counted):
                return None
        batches.append(work.batch(records.counted))
    return batches


def _maintainer(keeper: Maintainers, catalog: Catalog, view: View) -> Maintainer | Error:
    try:
        return keeper.maintainer(catalog, view)
    except Error as error:
        return error


def _reads_state(maintainer: Maintainer | Error) -> bool:
    return isinstance(maintainer, Maintainer) and maintainer.reads_state


def _looks_back(maintainer: Maintainer | Error, changes: Sequence[RowChange]) -> bool:
    return isinstance(maintainer, Maintainer) and maintainer.looks_back(changes)


class _Work:
    """Computes the batch of one unit, view by view."""

    def __init__(
        self, keeper: Maintainers, reader: Reader, before: Reader, unit: Unit, end: int
    ) -> None:
        self._epoch = epoch(reader)
        self._tiers = keeper.tiers
        self._reader = reader
        self._before = before
        self._unit = unit
        self._end = end
        self._span = Span(unit.start, end)
        self._additions: list[Addition] = []
        self._failures: dict[int, Error] = {}
        self._seconds: dict[int, float] = {}
        self._choices: dict[int, Choice] = {}

    def refill(self, view: View, maintainer: Maintainer, choice: Choice, changes: int) -> bool:
        recorder, started = Recorder(), time.perf_counter()
        if (
            self._tiers.refill(view, maintainer, self._reader, recorder, changes, self._span)
            is not None
        ):
            return False
        self._additions += recorder.additions
        self._seconds[view.id] = time.perf_counter() - started
        self._choices[view.id] = choice
        return True

    def of_view(
        self,
        view: View,
        maintainer: Maintainer | Error,
        changes: Sequence[RowChange],
        shared: dict[object, object],
    ) -> None:
        if isinstance(maintainer, Error):
            self._failures[view.id] = maintainer
            return
        if not changes:
            return
        recorder = Recorder(shared)
        started = time.perf_counter()
        try:
            self._choices[view.id] = self._tiers.work_out(
                view,
                maintainer,
                changes,
                self._before,
                self._reader,
                recorder,
                self._span,
                at_end=self._end == self._reader.position,
            )
            self._additions += recorder.additions
        except Error as error:
            self._failures[view.id] = error
        except Exception as error:  # noqa: BLE001 (an internal error: the other views continue)
            self._failures[view.id] = Unavailable(
                "maintenance of a view failed", sqlstate="XX000", detail=repr(error)
            )
        self._seconds[view.id] = time.perf_counter() - started

    def batch(self, changes: int) -> Batch:
        return Batch(
            self._unit,
            self._end,
            self._reader.catalog,
            state_rows(self._reader, self._additions),
            self._additions,
            self._failures,
            self._seconds,
            changes,
            self._epoch,
            self._choices,
        )


# -- applying --------------------------------------------------------------------------------------


def apply_batch(commits: CommitProtocol, batch: Batch) -> bool:
    """Write a batch; False when somebody else has moved the unit, or it has changed."""
    unit = batch.unit
    alone = unit.mark != unit.group
    if alone and batch.failures:
        return False

    def make(reader: Reader) -> StateUpdate | None:
        if not _still_holds(reader, batch):
            return None
        joins = alone and _meets_group(reader, batch)
        behind = dict.fromkeys(batch.failures, unit.start)
        return StateUpdate(
            batch.additions,
            state_rows=batch.rows,
            changefeed=ChangefeedStep(unit.views, batch.end),
            watermarks={**behind, unit.mark: None if joins else batch.end},
        )

    return write_update(commits, make)


def _still_holds(reader: Reader, batch: Batch) -> bool:
    unit = batch.unit
    if watermark(reader, unit.mark) != unit.start or epoch(reader) != batch.epoch:
        return False
    if reader.catalog is not batch.catalog:
        if any(reader.catalog.get(view.id) != view for view in unit.views):
            return False
    if unit.mark != unit.group:
        return True
    mine = {view.id for view in unit.views}
    others = [view for view in views_of(reader.catalog, unit.group) if view.id not in mine]
    beside = all(watermark(reader, view.id) is not None for view in others)
    return beside and claim.holder(reader, unit.group) is None


def _meets_group(reader: Reader, batch: Batch) -> bool:
    """Whether a detached view rejoins its group: their watermarks are equal, the view can be read,
    and no external driver, which would not know of it, maintains the group."""
    (view,), group = batch.unit.views, batch.unit.group
    if batch.unit.stays:
        return False
    if view.state is not State.READY or watermark(reader, group) != batch.end:
        return False
    return claim.holder(reader, group) is None


def put_aside(commits: CommitProtocol, view: View) -> None:
    """Detach a view from its group, at the group's present watermark."""

    def make(reader: Reader) -> list[Write]:
        at = watermark(reader, view.group)
        if at is None or watermark(reader, view.id) is not None:
            return []
        # A batch of the group that was computed with the view becomes void.
        return [watermark_write(view.id, at), next_epoch(reader)]

    commits.derive(make)


def come_back(commits: CommitProtocol, view: View) -> None:
    """Let a detached view share its group's watermark again, if the two are equal."""

    def make(reader: Reader) -> list[Write]:
        own, now = watermark(reader, view.id), reader.catalog.get(view.id)
        if own is None or now != view or watermark(reader, view.group) != own:
            return []
        if claim.holder(reader, view.group) is not None:
            return []
        return [watermark_write(view.id, None)]

    commits.derive(make)


def catch_up(
    commits: CommitProtocol,
    keeper: Maintainers,
    log: ChangeLog,
    wanted: Callable[[Reader], Sequence[Unit]],
    applied: Callable[[Batch, bool], None],
) -> bool:
    """Compute and write one batch for each unit that is behind. `applied` is called with each batch
    and whether it was written. Returns whether there was anything to do."""
    snapshot = commits.snapshot()
    try:
        reader = commits.reader(snapshot)
        units = wanted(reader)
        with uncollected():
            batches = list(work_out(keeper, log, reader, units))
    finally:
        commits.release(snapshot)
    for batch in batches:
        applied(batch, apply_batch(commits, batch))
    return bool(batches)
