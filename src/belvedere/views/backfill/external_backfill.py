"""Backfills by another process: views WITH (backfill = 'later').

    begin_job    holds a position for the scan of the tables; the log is kept from it on
    finish_job   ingests the computed state, catches up from the log, makes the view READY

A view that waits is in state BUILDING: nobody reads or maintains it. `begin_backfill_job` makes it
empty and sets its watermark before the position is chosen, so that no change is lost between the
two.

`finish_backfill_job` may be asked again after a crash, wherever it was. While the watermark is the
position of the scan nothing was added since, and taking the same files in once more changes nothing
(they are linked, not moved, so they are still there). Catching up moves the watermark; that the
files were in by then is said by a file of the job, `VIEW.taken`, which the next
`begin_backfill_job` removes.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from belvedere import failpoints
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import ObjectState, View
from belvedere.codec import keyspace
from belvedere.errors import InvalidInput, Unavailable, Unsupported
from belvedere.kv.batch import Pair, Write
from belvedere.kv.files import sync_directory
from belvedere.txn.contracts import Reader
from belvedere.views.backfill.contracts import ExternalJob, Held, HostDatabase
from belvedere.views.deferred.driver import DeferredMaintenance
from belvedere.views.state.build_state import waits_for_backfill_command
from belvedere.views.state.watermarks import build_watermark_write, read_watermark


class ExternalBackfill:
    """The views that wait for another process. Jobs put their files into directories of `work`."""

    def __init__(self, host: HostDatabase, deferred: DeferredMaintenance, work: Path) -> None:
        self._host = host
        self._deferred = deferred
        self._directory = work
        self._mutex = threading.Lock()  # one job begins or ends at a time

    @property
    def _jobs_directory(self) -> Path:
        return self._directory.resolve()

    def begin_backfill_job(self, ids: Sequence[object], hold: Callable[[], Held]) -> Held:
        """Make the views empty; then `hold` the position that they are backfilled from."""
        views = [require_waiting_view(self._host.catalog, id_) for id_ in ids]
        with self._mutex:
            for view in views:
                for taken in self._jobs_directory.glob(f"*/{view.id}.taken"):
                    taken.unlink()
                    sync_directory(taken.parent)
                self._host.engine.store.delete_range(*keyspace.relation_range(view.id))
            _hit_failpoint("fill.emptied")
            self._write_watermarks(views, self._host.position)
            held = hold()
            self._write_watermarks(views, held.position)
            _hit_failpoint("fill.marked")
        return held

    def is_job_current(self, job: ExternalJob) -> bool:
        """Whether what a job has made is still what the view needs."""
        view = self._host.catalog.get(job.view)
        return (
            isinstance(view, View)
            and waits_for_backfill_command(view)
            and self._is_unchanged_since_job(job)
        )

    def write_state(self, job: ExternalJob, pairs: Sequence[Pair]) -> None:
        raise Unsupported("state of a view by its keys", hint="write it as a sorted file")

    def finish_backfill_job(self, job: ExternalJob, files: Sequence[str]) -> int:
        """Take the files of a job in; returns the position that the view has caught up to."""
        view = require_waiting_view(self._host.catalog, job.view)
        with self._mutex:
            if not self._is_unchanged_since_job(job):
                raise Unavailable(
                    "another job has begun to fill the view",
                    sqlstate="55006",
                    view=view.name,
                    position=job.position,
                )
            if not self._taken_marker_path(job).exists():
                self._ingest_files(job, [self._require_job_file(name) for name in files])
            reached = self._deferred.catch_up_unit_of_view(view)
            _hit_failpoint("fill.caught_up")
            self._host.change_schema(lambda edit: edit.set_state(view.id, ObjectState.READY))
            _hit_failpoint("fill.published")
        return reached

    def _write_watermarks(self, views: Sequence[View], position: int) -> None:
        def build_watermark_writes(reader: Reader) -> list[Write]:
            return [build_watermark_write(view.id, position) for view in views]

        self._host.commits.derive(build_watermark_writes)

    def _is_unchanged_since_job(self, job: ExternalJob) -> bool:
        """Whether the view is as this job left it."""
        with self._host.begin() as reader:
            at = read_watermark(reader, job.view)
        return at == job.position or self._taken_marker_path(job).exists()

    def _ingest_files(self, job: ExternalJob, files: Sequence[Path]) -> None:
        """Take the files in, and say so where a crash does not reach."""
        taken = self._taken_marker_path(job)
        links = taken.with_suffix(".links")
        shutil.rmtree(links, ignore_errors=True)
        links.mkdir()
        for file in files:
            os.link(file, links / file.name)
        _hit_failpoint("fill.before_ingest")
        self._host.engine.store.ingest([links / file.name for file in files])
        _hit_failpoint("fill.after_ingest")
        taken.touch()
        sync_directory(taken.parent)
        _hit_failpoint("fill.taken")

    def _taken_marker_path(self, job: ExternalJob) -> Path:
        directory = (self._jobs_directory / job.name).resolve()
        if directory.parent != self._jobs_directory or not directory.is_dir():
            raise InvalidInput("not a job of this store", sqlstate="22023", job=directory.name)
        return directory / f"{job.view}.taken"

    def _require_job_file(self, name: str) -> Path:
        """Only what a job has put beside the store is taken in."""
        path = Path(name).resolve()
        if self._jobs_directory not in path.parents or not path.is_file():
            raise InvalidInput("not a file of a job", sqlstate="22023", path=name)
        return path


def require_waiting_view(catalog: Catalog, id_: object) -> View:
    """The view, which must wait for a job."""
    view = catalog.get(id_) if isinstance(id_, int) else None
    if not isinstance(view, View):
        raise InvalidInput("no such view", sqlstate="42P01", id=id_)
    if not waits_for_backfill_command(view):
        raise InvalidInput(
            "view is filled already",
            sqlstate="55000",
            view=view.name,
            hint="create it WITH (backfill = 'later'), or repair it with REPAIR MATERIALIZED VIEW",
        )
    return view


def _hit_failpoint(place: str) -> None:
    if failpoints.armed:
        failpoints.hit(place)
