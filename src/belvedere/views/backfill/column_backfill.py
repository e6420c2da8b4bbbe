"""The backfill of a view by columns: DuckDB evaluates its definition over the columnar copies of
its tables, and the store gets every entry once, in the order of keys.

Many entries go to the store as sorted files, which it takes in whole, few as batches. After each
the progress is the key that follows it. A backfill that is resumed evaluates the definition again,
at the position it began at, and continues from that key. The progress is there before the first
file, so that a file whose progress was not written is written again, or erased.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from belvedere import failpoints
from belvedere.execution.run import make_checked_interrupt
from belvedere.kv.batch import Pair
from belvedere.txn.contracts import CommitProtocol, Reader
from belvedere.txn.gc_pause import pause_cycle_collector
from belvedere.views.backfill.backfill_plan import BY_COLUMNS, PlannedBackfill, ResumePoint
from belvedere.views.backfill.backfill_views import GROUPS_MAX, BuildControl
from belvedere.views.cost.tier_selector import TierSelector
from belvedere.views.state.backfill_progress import BackfillProgress
from belvedere.views.state.state_update import StateUpdate, commit_unread_state

INGEST_MIN = 50_000
"""Fewer entries are written in batches of GROUPS_MAX: a file costs a sync."""

FILE_ENTRIES_MAX = 250_000


def try_backfill_by_columns(
    commits: CommitProtocol,
    ingest: Callable[[Iterable[Pair]], bool],
    tiers: TierSelector,
    planned: PlannedBackfill,
    reader: Reader,
    begun: ResumePoint | None,
    build: BuildControl,
) -> str | None:
    """Write the state of a view as of `reader`, with its watermark; or the rest of it, for a
    backfill that has `begun`. Returns why DuckDB could not compute it; nothing is written then."""
    started = time.perf_counter()
    interrupt = make_checked_interrupt(build.check)
    found = tiers.compute_state_by_duckdb(planned.maintainer, reader, interrupt)
    build.check()
    if isinstance(found, str):
        return found
    build.report_rows_and_throttle(interrupt.rows, time.perf_counter() - started)
    id_ = planned.view.id
    marks = {id_: reader.position} if begun is None else {}

    def write_entries(rows: Sequence[Pair], place: BackfillProgress | None) -> None:
        update = StateUpdate((), state_rows=rows, progress={id_: place}, watermarks=marks)
        commit_unread_state(commits, update)

    after = b"" if begun is None else begun.after
    by_files = len(found) >= INGEST_MIN and ingest(())
    if by_files:
        write_entries((), BackfillProgress(BY_COLUMNS, 0, after))
        marks = {}
    with pause_cycle_collector():
        for some in found.list_batches_from(after, FILE_ENTRIES_MAX if by_files else GROUPS_MAX):
            started = time.perf_counter()
            place = BackfillProgress(BY_COLUMNS, 0, some[-1][0] + b"\0")
            write_entries(() if by_files and ingest(some) else some, place)
            marks = {}
            if failpoints.armed:
                failpoints.hit("backfill.chunk")
            build.report_rows_and_throttle(0, time.perf_counter() - started)
    write_entries((), None)
    return None
