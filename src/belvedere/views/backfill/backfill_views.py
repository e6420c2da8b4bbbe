"""The backfill of views: while writers continue, several views in one scan, in resumable steps.

    1  the caller opens a reader at a position s, and pins the log there: it retains what the views
       will need
    2  the tables are read at s, phase after phase (`views.backfill.backfill_plan`); views whose
       only phase is a scan of one table are backfilled together, in one walk of it. After some rows
       the sums so far are written, with the progress of all these views, as one batch; the first
       also writes s as their watermark, which retains the log from then on
    3  the caller catches up from the log and marks the views ready

A backfill interrupted by the death of the process can be resumed from its last batch: the tables as
of s are their newest rows undone by the log. With `BuildControl` the caller monitors, slows down or
stops a backfill.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from belvedere import failpoints, interrupts
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.kv.batch import SCAN_BATCH_ROWS, Write
from belvedere.txn.contracts import CommitProtocol, Reader
from belvedere.txn.history.readers import ReaderWrapper
from belvedere.types import Row
from belvedere.views.backfill.backfill_plan import (
    BY_COLUMNS,
    IN_ONE_STEP,
    BackfillPlan,
    PlannedBackfill,
    ResumePoint,
    ViewBackfill,
    plan_python_backfill,
)
from belvedere.views.changefeed.entries import Addition
from belvedere.views.cost.row_counts import RowCounts
from belvedere.views.delta.delta_tree import collect_relations
from belvedere.views.maintain.maintainer import ViewMaintainer
from belvedere.views.operators.backfill_parts import KeyList
from belvedere.views.registry.maintainer_provider import MaintainerProvider
from belvedere.views.state.additions import build_state_row_writes
from belvedere.views.state.backfill_progress import BackfillProgress, key_list_range
from belvedere.views.state.state_update import StateUpdate, commit_unread_state

T = TypeVar("T")
GROUPS_MAX = 20_000
"""The groups that are summed in memory before they are written: one batch, one short section."""

BATCH_ROWS = SCAN_BATCH_ROWS
"""The rows that are read at a time."""

ROWS_MAX = 500_000
"""The most rows that are walked again after a kill."""


@dataclass(slots=True)
class BuildControl:
    """Controls a build: `check` raises when the build has to stop, `progress` is called with the
    number of rows read so far, `share` is the share of time that the build may use."""

    check: Callable[[], None] = interrupts.check_statement
    progress: Callable[[int], None] = lambda rows: None
    share: Callable[[], float] = lambda: 1.0
    sleep: Callable[[float], None] = time.sleep
    rows: int = 0
    backfilled_ids: set[int] = field(default_factory=set)
    row_counts: dict[int, float] = field(default_factory=dict)

    def count_rows_once(self, counts: RowCounts, relation: int) -> float:
        """About how many rows a relation has; counted once for all that is built together."""
        found = self.row_counts.get(relation)
        if found is None:
            found = self.row_counts[relation] = counts.count_rows(relation)
        return found

    def report_rows_and_throttle(self, rows: int, spent_s: float) -> None:
        """Report rows read, in so much time: checks for a stop, and sleeps to keep the share."""
        self.rows += rows
        self.progress(self.rows)
        self.check()
        share = self.share()
        if share < 1.0:
            self.sleep(spent_s * (1 - share) / share)


def backfill_views(
    commits: CommitProtocol,
    planned: Sequence[PlannedBackfill],
    reader: Reader,
    begun: ResumePoint | None,
    build: BuildControl,
) -> None:
    """Write the state of these views as of `reader`, with their watermarks; or the rest of it, for
    a backfill that has `begun` at the position of `reader`."""
    position = reader.position
    phase, after = (0, b"") if begun is None else (begun.phase, begun.after)
    readers = (reader, ProgressReader(reader, build))
    unmarked = [] if begun is not None else [one.view.id for one in planned]
    runner = BackfillRunner(
        commits, reader, build, _BatchSink(commits, dict.fromkeys(unmarked, position))
    )
    walks: dict[int, list[ViewBackfill]] = {}
    for one in planned:
        fill = ViewBackfill(one, readers)
        if one.plan.name == IN_ONE_STEP:
            commit_unread_state(commits, fill.compute_full_state_update())
        elif one.plan.table is None:
            runner.run_view_phases(fill, phase, after)
        else:
            walks.setdefault(one.plan.table, []).append(fill)
    for table, fills in walks.items():
        runner.walk_table_for_views(fills, 0, table, after)


def plan_view_backfill(
    registry: MaintainerProvider,
    maintainer: ViewMaintainer,
    build: BuildControl,
    *,
    begun: str | None,
) -> BackfillPlan:
    """How a view is backfilled; one whose backfill has `begun` keeps the plan of this name."""
    if begun is not None:
        by_columns = begun == BY_COLUMNS
        return BackfillPlan(BY_COLUMNS, None) if by_columns else plan_python_backfill(maintainer)
    driving = maintainer.driving_table
    tables = collect_relations(maintainer.tree) if driving is None else (driving,)
    counts = registry.tiers.row_counts
    rows = sum([build.count_rows_once(counts, table) for table in tables])
    if registry.tiers.backfills_by_columns(maintainer, rows):
        return BackfillPlan(BY_COLUMNS, None)
    return plan_python_backfill(maintainer, small=rows <= ROWS_MAX)


NextStep = tuple[int, bytes] | None
"""The next phase, and the key at which it continues; None: the backfill has ended."""


class BackfillSink(Protocol):
    """Writes the sums of backfills, and their progress, atomically."""

    def write_sums_and_progress(
        self, fills: Sequence[ViewBackfill], following: NextStep
    ) -> None: ...


class BackfillRunner:
    """Runs the phases of backfills: walks tables and key lists, and writes the sums every few
    rows."""

    def __init__(
        self, commits: CommitProtocol, reader: Reader, build: BuildControl, sink: BackfillSink
    ) -> None:
        self._commits = commits
        self._reader = reader
        self._build = build
        self._sink = sink

    def run_view_phases(self, fill: ViewBackfill, first: int, after: bytes) -> None:
        """Run the phases of one view, the first of them from a key on."""
        for number in range(first, fill.plan.phase_count):
            start = after if number == first else b""
            phase = fill.plan.phases[number]
            if isinstance(phase.part.driver, int):
                self.walk_table_for_views([fill], number, phase.part.driver, start)
            elif phase.part.driver is None:
                fill.sum_walked_rows(number, ())
                self._write_sums_at_phase_end([fill], number)
            else:
                self._walk_key_list(fill, number, phase.part.driver, start)
        if fill.plan.has_key_lists:
            self._delete_key_lists(fill)

    def walk_table_for_views(
        self, fills: Sequence[ViewBackfill], number: int, table: int, after: bytes
    ) -> None:
        """Walk a table once for several views."""
        compiled = compiled_table(self._reader.catalog, table)
        key_of, decode = compiled.key_of, compiled.decode
        start = after or compiled.start
        batches = self._reader.scan_values(start, compiled.end, batch_rows=BATCH_ROWS)
        self._sum_batches_and_write(fills, number, batches, lambda value: key_of(decode(value)))

    def _walk_key_list(
        self, fill: ViewBackfill, number: int, listed: KeyList, after: bytes
    ) -> None:
        """Walk the keys that earlier phases have listed."""
        start, end = key_list_range(fill.view.id, fill.plan.phases[number].input_list)
        pairs = open_newest_reader(self._commits).scan(after or start, end, batch_rows=BATCH_ROWS)
        last: list[bytes] = []

        def decode_key_batches() -> Iterator[list[Row]]:
            for batch in pairs:
                last[:] = [batch[-1][0]]
                yield [listed.decode_key(value) for _, value in batch]

        self._sum_batches_and_write([fill], number, decode_key_batches(), lambda _: last[0])

    def _sum_batches_and_write(
        self,
        fills: Sequence[ViewBackfill],
        number: int,
        batches: Iterator[list[T]],
        key_of: Callable[[T], bytes],
    ) -> None:
        together = min(ROWS_MAX, max(fill.get_rows_per_step(number) for fill in fills))
        walked: list[T] = []
        since = 0
        for batch in batches:
            started = time.perf_counter()
            walked += batch
            since += len(batch)
            if len(walked) >= together:
                for fill in fills:
                    fill.sum_walked_rows(number, walked)
                if since >= ROWS_MAX or max(map(len, fills)) >= GROUPS_MAX:
                    self._write_sums_and_progress(fills, (number, key_of(walked[-1]) + b"\0"))
                    since = 0
                walked = []
            self._build.report_rows_and_throttle(len(batch), time.perf_counter() - started)
        for fill in fills if walked else ():
            fill.sum_walked_rows(number, walked)
        self._write_sums_at_phase_end(fills, number)

    def _write_sums_at_phase_end(self, fills: Sequence[ViewBackfill], number: int) -> None:
        """End a phase; the last one also ends the backfill, unless key lists remain to delete."""
        over = number + 1 == fills[0].plan.phase_count and not fills[0].plan.has_key_lists
        self._write_sums_and_progress(fills, None if over else (number + 1, b""))

    def _write_sums_and_progress(self, fills: Sequence[ViewBackfill], following: NextStep) -> None:
        self._sink.write_sums_and_progress(fills, following)
        if failpoints.armed and following is not None:
            failpoints.hit("backfill.chunk")

    def _delete_key_lists(self, fill: ViewBackfill) -> None:
        looked = open_newest_reader(self._commits)
        for batch in looked.scan(*key_list_range(fill.view.id)):
            gone: list[Write] = [(key, None) for key, _ in batch]
            self._commits.derive(lambda newest, gone=gone: gone)  # type: ignore[misc]
        self._write_sums_and_progress([fill], None)


class _BatchSink:
    """Writes all backfills of a walk in one batch. `unmarked` are views without a watermark, which
    the first batch writes, with their position."""

    def __init__(self, commits: CommitProtocol, unmarked: dict[int, int]) -> None:
        self._commits = commits
        self._unmarked = unmarked

    def write_sums_and_progress(self, fills: Sequence[ViewBackfill], following: NextStep) -> None:
        """Add what was added up to what is stored. Nobody else writes a view that is being built,
        so that its rows can be read outside of the section."""
        ids = [fill.view.id for fill in fills]
        additions: list[Addition] = []
        keys: list[Write] = []
        for fill in fills:
            added, found = fill.take_additions_and_key_entries()
            additions += added
            keys += found
        update = StateUpdate(
            additions,
            state_rows=build_state_row_writes(open_newest_reader(self._commits), additions),
            progress={
                fill.view.id: None
                if following is None
                else BackfillProgress(fill.plan.name, *following)
                for fill in fills
            },
            watermarks={id_: self._unmarked.pop(id_) for id_ in ids if id_ in self._unmarked},
            others=keys,
        )
        commit_unread_state(self._commits, update)


def open_newest_reader(commits: CommitProtocol) -> Reader:
    """A reader of the newest published state that holds no snapshot."""
    snapshot = commits.open_snapshot()
    try:
        return commits.reader(snapshot)
    finally:
        commits.release(snapshot)


class ProgressReader(ReaderWrapper):
    """A Reader whose scans report the rows they have read to the build, and stop with it."""

    def __init__(self, under: Reader, build: BuildControl) -> None:
        super().__init__(under)
        self._build = build

    def _passed_on(self, batches: Iterator[list[T]]) -> Iterator[list[T]]:
        started = time.perf_counter()
        for batch in batches:
            yield batch
            now = time.perf_counter()
            self._build.report_rows_and_throttle(len(batch), now - started)
            started = now
