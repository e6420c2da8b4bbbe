"""Checkpoints: read-only copies of the store at one position, for the tasks of one batch. They
consist of links, so they cost milliseconds, and any number of processes read one at once.

The owner makes a checkpoint like a backup (`txn.batch_atomic.backup`); tasks open its data
read-only. The directory is on the store's file system, because links cannot leave it, and the job
that requested the checkpoint removes it. Every job has a directory of its own there, under a lock
that ends with its driver, so that the next job can recognize and remove the directories of dead
jobs.

    pipeline/                    locked while a directory is made, or dead ones are searched
        checkpoint-9f3c../lock   held as long as the driver lives
        checkpoint-9f3c../copy
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rocksdict import AccessType, Rdict

from belvedere.catalog.catalog import Catalog
from belvedere.errors import Unavailable
from belvedere.kv.rocksdb import RocksStore
from belvedere.kv.rocksdb_settings import store_options
from belvedere.pipeline.store.client import Store
from belvedere.txn.batch_atomic.directory import DATA_DIRECTORY
from belvedere.txn.contracts import Reader
from belvedere.txn.history.readers import NewestReader

DIRECTORY = "pipeline"
_PREFIX, _LOCK = "checkpoint-", "lock"
_CACHE_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The directory of a checkpoint, and the position it shows. Pickles."""

    directory: Path
    position: int

    @contextmanager
    def open_read_only_store(self) -> Iterator[RocksStore]:
        """Open the store read-only, in a task."""
        options = store_options(create=False, salvage=False, cache_bytes=_CACHE_BYTES)
        data = self.directory / DATA_DIRECTORY
        try:
            database = Rdict(
                str(data),
                options,
                column_families={"default": options},
                access_type=AccessType.read_only(False),
            )
        except Exception as error:
            raise Unavailable(
                "checkpoint cannot be opened", detail=str(error)[:200], path=str(data)
            ) from error
        store = RocksStore(database, data, options)
        try:
            yield store
        finally:
            store.close()

    @contextmanager
    def open_reader(self, catalog: Catalog) -> Iterator[Reader]:
        with self.open_read_only_store() as opened:
            yield NewestReader(opened, self.position, catalog)


@contextmanager
def hold_temporary_checkpoint(store: Store) -> Iterator[Checkpoint]:
    """A checkpoint of the open store, removed at the end. Checkpoints of dead jobs are removed
    first."""
    remove_checkpoints_of_ended_jobs(store)
    with hold_new_job_directory(store, _PREFIX) as directory:
        try:
            with hold_checkpoint_in_directory(store, directory / "copy") as made:
                yield made
        finally:
            shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def hold_checkpoint_in_directory(store: Store, directory: Path) -> Iterator[Checkpoint]:
    """A checkpoint in this directory, which must be on the file system of the store."""
    position = int(store.call_owner_verb("backup", destination=str(directory)))
    try:
        yield Checkpoint(directory, position)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def remove_checkpoints_of_ended_jobs(store: Store) -> None:
    """Remove the checkpoints of jobs whose drivers have ended."""
    with lock_dead_job_directories(store, _PREFIX) as found:
        for directory in found:
            shutil.rmtree(directory, ignore_errors=True)


# -- directories of jobs ---------------------------------------------------------------------------


def ensure_jobs_directory(store: Store) -> Path:
    """The directory of all jobs inside the store's directory."""
    made = store.directory / DIRECTORY
    made.mkdir(mode=0o700, exist_ok=True)
    return made


@contextmanager
def hold_new_job_directory(store: Store, prefix: str) -> Iterator[Path]:
    """A new directory, under a lock that the operating system drops with this process."""
    with _lock_jobs_directory(store):
        directory = ensure_jobs_directory(store) / f"{prefix}{secrets.token_hex(8)}"
        directory.mkdir()
        lock = try_open_locked_file(directory / _LOCK)
    assert lock is not None, "nobody else knows it"
    with lock:
        yield directory


@contextmanager
def lock_dead_job_directories(store: Store, prefix: str) -> Iterator[list[Path]]:
    """The directories of jobs whose drivers have ended, locked against other jobs meanwhile."""
    with ExitStack() as stack:
        found = []
        with _lock_jobs_directory(store):
            for directory in sorted(ensure_jobs_directory(store).glob(f"{prefix}*")):
                lock = try_open_locked_file(directory / _LOCK)
                if lock is not None:  # else its driver lives
                    stack.enter_context(lock)
                    found.append(directory)
        yield found


@contextmanager
def _lock_jobs_directory(store: Store) -> Iterator[None]:
    """Excludes other jobs, so that none sees a directory between its creation and its lock."""
    directory = os.open(ensure_jobs_directory(store), os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def try_open_locked_file(path: Path) -> IO[str] | None:
    """A file to read and append to, locked: the lock ends with the process, however it ends. None:
    another process has it."""
    file = path.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file
