"""Job directories of backfills: finished files are recorded next to the store's data, so that a job
started after a crash resumes from them.

    pipeline/jobs/backfill-9f3c../         one job
        lock                          held as long as its driver lives
        7-11ab...sst ..               sorted files of view 7
        made                          written last: position, files, rows of every view

A job without the file `made` counts for nothing. The work of a job with it is never repeated: the
next job for one of its views that is still pending at that position ingests the files and finishes
the view. The store decides whether a view is pending (`fill_known`), by the view's watermark.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from belvedere.errors import Unavailable
from belvedere.kv.files import sync_directory
from belvedere.pipeline.store.checkpoint import (
    hold_new_job_directory,
    lock_dead_job_directories,
)
from belvedere.pipeline.store.client import Store

_MADE, _PREFIX = "made", "backfill-"


class ViewFiles(NamedTuple):
    """The sorted files of one view, and their number of rows together."""

    names: tuple[str, ...] = ()
    rows: int = 0


@dataclass(frozen=True, slots=True)
class BackfillJob:
    """The directory of a job and its finished files: those of each view at one position of a
    store, in one incarnation (`store_incarnation`: store and incarnation)."""

    directory: Path
    position: int
    files: Mapping[int, ViewFiles]
    store_incarnation: tuple[str, str]

    @property
    def name(self) -> str:
        return self.directory.name

    def must_ingest_view(self, store: Store, view: int) -> bool:
        """Whether the view is still to be finished from the files of this job."""
        identity = store.identity()
        if view not in self.files or self.store_incarnation != (
            identity.store,
            identity.incarnation,
        ):
            return False
        return bool(
            store.call_owner_verb("fill_known", view=view, position=self.position, job=self.name)
        )

    def has_views_to_ingest(self, store: Store) -> bool:
        """Whether some view is pending; True also when the owner cannot be reached."""
        try:
            return any(self.must_ingest_view(store, view) for view in self.files)
        except Unavailable:
            return True


@contextmanager
def hold_backfill_job_directory(store: Store) -> Iterator[Path]:
    """The directory of a new job. It is removed at the end, unless its files are recorded and some
    view is still pending."""
    with hold_new_job_directory(store, _PREFIX) as directory:
        try:
            yield directory
        finally:
            job = _read_recorded_backfill_job(directory)
            if job is None or not job.has_views_to_ingest(store):
                shutil.rmtree(directory, ignore_errors=True)


def record_backfill_files(
    store: Store, directory: Path, position: int, files: Mapping[int, ViewFiles]
) -> BackfillJob:
    """Record the files of a job durably; from here on they survive a crash of any process."""
    identity = store.identity()
    made = {
        "store": identity.store,
        "incarnation": identity.incarnation,
        "position": position,
        "views": {str(view): [list(some.names), some.rows] for view, some in files.items()},
    }
    draft = directory / f"{_MADE}.draft"
    with draft.open("w") as file:
        json.dump(made, file)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(directory / _MADE)
    sync_directory(directory)
    return BackfillJob(directory, position, files, (identity.store, identity.incarnation))


@contextmanager
def lock_dead_backfill_jobs(store: Store) -> Iterator[list[BackfillJob]]:
    """The recorded jobs whose drivers have ended. At the end, the directories without a pending
    view are removed."""
    with lock_dead_job_directories(store, _PREFIX) as found:
        jobs = [
            job
            for directory in found
            if (job := _read_recorded_backfill_job(directory)) is not None
        ]
        try:
            yield jobs
        finally:
            waited_for = {job.directory for job in jobs if job.has_views_to_ingest(store)}
            for directory in found:
                if directory not in waited_for:
                    shutil.rmtree(directory, ignore_errors=True)


def _read_recorded_backfill_job(directory: Path) -> BackfillJob | None:
    """The recorded job of a directory; None when its files were not all written."""
    path = directory / _MADE
    if not path.exists():
        return None
    made = json.loads(path.read_text())
    files = {
        int(view): ViewFiles(tuple(names), rows) for view, (names, rows) in made["views"].items()
    }
    return BackfillJob(directory, made["position"], files, (made["store"], made["incarnation"]))
