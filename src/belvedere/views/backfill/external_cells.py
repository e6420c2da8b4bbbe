"""Backfills by tasks of another process on a row-atomic store: views WITH (backfill = 'later').

    begin_backfill_job    holds the position s of the scan, and marks it as the views' watermark
    write_state           in a task: the state of some keys as of s, as folds (`data_cells`)
    finish_backfill_job   zeros as of s where nothing was written; makes the view READY

Every commit maintains an immediate view from its CREATE on, so its state is the fold at s and what
was added after it: there is nothing to catch up, and nothing has to be emptied, since the fold of
a later scan takes the place of an earlier one. A deferred view goes on from its watermark.

The state as of s is one and the same whoever computes it, and writing it twice changes nothing. So
a job that died is done again, at another position or the same; what is still under way of its tasks
is either right, or below the fold of the next job. A task that comes later is refused: it looks at
the watermark within the time in which its writes have to arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from belvedere import failpoints
from belvedere.catalog.model import ObjectState, View
from belvedere.codec import accumulator, keyspace
from belvedere.errors import Unavailable
from belvedere.kv.batch import Pair, Write
from belvedere.kv.cell import BeginWork, CellScan, Step
from belvedere.txn.contracts import Reader
from belvedere.txn.row_atomic import read_rows
from belvedere.txn.row_atomic.cells import data_cells
from belvedere.txn.row_atomic.cells.layout import Record, RowWrite
from belvedere.txn.row_atomic.cells.placement import list_row_ranges, row_of
from belvedere.txn.row_atomic.commit_protocol import RowCommit
from belvedere.txn.row_atomic.log import advance
from belvedere.txn.row_atomic.reader import ROW
from belvedere.views.backfill.contracts import ExternalJob, Held, HostDatabase
from belvedere.views.backfill.external_backfill import require_waiting_view
from belvedere.views.state.watermarks import (
    build_watermark_write,
    decode_watermark,
    read_watermark,
)

ROWS_AT_ONCE = 1_000


class ExternalCellBackfill:
    """The views that wait for a job, as one node sees them: that of the job, or that of a task."""

    def __init__(self, commits: RowCommit, host: HostDatabase) -> None:
        self._commits = commits
        self._host = host

    def begin_backfill_job(self, ids: Sequence[object], hold: Callable[[], Held]) -> Held:
        views = [require_waiting_view(self._host.catalog, id_) for id_ in ids]
        self._commits.wait_for_lock_holders()  # whoever does not maintain the views yet is over
        self._write_watermarks(views, self._host.position)
        held = hold()
        self._write_watermarks(views, held.position)
        _hit_failpoint("fill.marked")
        return held

    def is_job_current(self, job: ExternalJob) -> bool:
        with self._host.begin(at_least=self._host.position) as reader:
            return read_watermark(reader, job.view) == job.position

    def write_state(self, job: ExternalJob, pairs: Sequence[Pair]) -> None:
        """Write the state of these keys as of the position of the job."""
        for start in range(0, len(pairs), ROWS_AT_ONCE):
            some = pairs[start : start + ROWS_AT_ONCE]
            rows = ((row_of(self._host.catalog, key), value) for key, value in some)
            folds = [data_cells.set_sum(row, *accumulator.decode(value)) for row, value in rows]
            self._commits.run_repeatable(partial(_write_folds, job, folds))

    def finish_backfill_job(self, job: ExternalJob, files: Sequence[str]) -> int:
        """Returns the position that the view has."""
        view = require_waiting_view(self._host.catalog, job.view)
        if not self.is_job_current(job):
            raise _taken_over(job)
        whole = keyspace.relation_range(view.id)
        for start, end in list_row_ranges(self._host.catalog, *whole):
            self._commits.run_repeatable(partial(_write_missing_zeros, job, start, end))
        _hit_failpoint("fill.caught_up")
        self._host.change_schema(lambda edit: edit.set_state(view.id, ObjectState.READY))
        _hit_failpoint("fill.published")
        return self._host.position

    def _write_watermarks(self, views: Sequence[View], position: int) -> None:
        def build_watermark_writes(reader: Reader) -> list[Write]:
            return [build_watermark_write(view.id, position) for view in views]

        self._commits.derive(build_watermark_writes)


def _write_folds(job: ExternalJob, folds: Sequence[RowWrite]) -> Step[None]:
    yield BeginWork()
    row = yield from read_rows.get_row(keyspace.watermark_key(job.view), None)
    mark = None if row is None else row.columns.get(ROW)
    if mark is None or decode_watermark(mark) != job.position:
        raise _taken_over(job)
    yield from advance.write_cells(job.position, Record(0, b"", 0, 0, tuple(folds)))


def _write_missing_zeros(job: ExternalJob, start: bytes, end: bytes) -> Step[None]:
    """Of keys that have something up to the position, but no rows as of it: additions that came to
    nothing, and folds of earlier jobs."""
    while True:
        rows = yield CellScan(start, end, as_of=job.position, all_versions=True, limit=ROWS_AT_ONCE)
        zeros = []
        for row, cells in rows:
            total = data_cells.total_sum(row, cells)
            folds = [cell.timestamp for cell in cells if cell.column == data_cells.FOLD]
            if total is not None and job.position not in folds:
                amounts = (0,) * len(total.amounts)
                zeros.append(data_cells.set_sum(row, total.payload, amounts))
        if zeros:
            yield from _write_folds(job, zeros)
        if len(rows) < ROWS_AT_ONCE:
            return
        start = rows[-1][0] + b"\x00"


def _taken_over(job: ExternalJob) -> Unavailable:
    return Unavailable(
        "another job has begun to fill the view",
        sqlstate="55006",
        view=job.view,
        position=job.position,
    )


def _hit_failpoint(place: str) -> None:
    if failpoints.armed:
        failpoints.hit(place)
