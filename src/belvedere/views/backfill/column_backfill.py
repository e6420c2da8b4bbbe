"""The backfill of a view by columns: DuckDB evaluates its definition over the columnar copies of
its tables, and the store gets every entry once, in the order of keys.

After each batch of entries the progress is the key that follows it. A backfill that is resumed
evaluates the definition again, at the position it began at, and goes on from that key.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from belvedere import failpoints
from belvedere.errors import Error
from belvedere.execution.run import Interrupt
from belvedere.kv.batch import Pair
from belvedere.txn.contracts import CommitProtocol, Reader
from belvedere.views.backfill.backfill_plan import BY_COLUMNS, PlannedBackfill, ResumePoint
from belvedere.views.backfill.backfill_views import GROUPS_MAX, BuildControl
from belvedere.views.cost.tier_selector import TierSelector
from belvedere.views.state.backfill_progress import BackfillProgress
from belvedere.views.state.state_update import StateUpdate, commit_unread_state


def backfill_by_columns(
    commits: CommitProtocol,
    tiers: TierSelector,
    planned: PlannedBackfill,
    reader: Reader,
    begun: ResumePoint | None,
    build: BuildControl,
) -> str | None:
    """Write the state of a view as of `reader`, with its watermark; or the rest of it, for a
    backfill that has `begun`. Returns why DuckDB could not compute it; nothing is written then."""
    started = time.perf_counter()
    interrupt = _make_interrupt(build)
    found = tiers.compute_state_entries(planned.maintainer, reader, interrupt)
    build.check()
    if isinstance(found, str):
        return found
    build.report_rows_and_throttle(interrupt.rows, time.perf_counter() - started)
    id_ = planned.view.id
    marks = {id_: reader.position} if begun is None else {}

    def write_entries(rows: Sequence[Pair], place: BackfillProgress | None) -> None:
        update = StateUpdate((), state_rows=rows, progress={id_: place}, watermarks=marks)
        commit_unread_state(commits, update)

    for some in found.split_after(b"" if begun is None else begun.after, GROUPS_MAX):
        started = time.perf_counter()
        write_entries(some, BackfillProgress(BY_COLUMNS, 0, some[-1][0] + b"\0"))
        marks = {}
        if failpoints.armed:
            failpoints.hit("backfill.chunk")
        build.report_rows_and_throttle(0, time.perf_counter() - started)
    write_entries((), None)
    return None


def _make_interrupt(build: BuildControl) -> Interrupt:
    """Stops the statement when the build has to stop."""
    interrupt = Interrupt()

    def stop_with_build(rows: int) -> None:
        if interrupt.reason is None:
            try:
                build.check()
            except Error as error:
                interrupt.stop(error.detail or error.message)

    interrupt.progress = stop_with_build
    return interrupt
