"""A copy of the store at one moment, for the tasks of one batch: made of links, so it costs
milliseconds, and read by any number of processes at once.

The owner makes it like a backup (`txn.backup`); tasks open its data read-only. The directory lies
beside the store's own, because links do not leave a file system, and is removed by whoever asked
for it. Every job has a directory of its own there, under a lock that ends with its driver, so that
what a dead one left is known, and removed by the next one.

    pipeline/                    locked while a directory is made, or dead ones are looked for
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

from belvedere.errors import Unavailable
from belvedere.kv.rocksdb import RocksStore
from belvedere.kv.rocksdb_settings import store_options
from belvedere.pipeline.store import Store
from belvedere.txn.identity import DATA_DIRECTORY

DIRECTORY = "pipeline"
_PREFIX, _LOCK = "checkpoint-", "lock"
_CACHE_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where it is, and the position it shows. Pickles."""

    directory: Path
    position: int

    @contextmanager
    def opened(self) -> Iterator[RocksStore]:
        """The store, to be read only. In a task."""
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
def checkpoint(store: Store) -> Iterator[Checkpoint]:
    """A checkpoint of the open store, gone at the end. What dead jobs left goes now."""
    remove_leftovers(store)
    with job_directory(store, _PREFIX) as directory:
        try:
            with checkpoint_at(store, directory / "copy") as made:
                yield made
        finally:
            shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def checkpoint_at(store: Store, directory: Path) -> Iterator[Checkpoint]:
    """The same in this directory, which is on the file system of the store."""
    position = int(store.ask("backup", destination=str(directory)))
    try:
        yield Checkpoint(directory, position)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def remove_leftovers(store: Store) -> None:
    """Checkpoints of jobs whose drivers are no more."""
    with dead_jobs(store, _PREFIX) as found:
        for directory in found:
            shutil.rmtree(directory, ignore_errors=True)


# -- directories of jobs ---------------------------------------------------------------------------


def work_directory(store: Store) -> Path:
    """Where jobs keep what they need beside the store."""
    made = store.directory / DIRECTORY
    made.mkdir(mode=0o700, exist_ok=True)
    return made


@contextmanager
def job_directory(store: Store, prefix: str) -> Iterator[Path]:
    """A new directory, under a lock that ends with this process, however it ends."""
    with _alone(store):
        directory = work_directory(store) / f"{prefix}{secrets.token_hex(8)}"
        directory.mkdir()
        lock = open_locked(directory / _LOCK)
    assert lock is not None, "nobody else knows it"
    with lock:
        yield directory


@contextmanager
def dead_jobs(store: Store, prefix: str) -> Iterator[list[Path]]:
    """The directories of jobs that are gone, which nobody else gets meanwhile."""
    with ExitStack() as stack:
        found = []
        with _alone(store):
            for directory in sorted(work_directory(store).glob(f"{prefix}*")):
                lock = open_locked(directory / _LOCK)
                if lock is not None:  # else its driver lives
                    stack.enter_context(lock)
                    found.append(directory)
        yield found


@contextmanager
def _alone(store: Store) -> Iterator[None]:
    """Nobody looks at a directory between its making and its lock."""
    directory = os.open(work_directory(store), os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def open_locked(path: Path) -> IO[str] | None:
    """A file to read and append to, locked: the lock ends with the process, however it ends. None:
    another process has it."""
    file = path.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file
