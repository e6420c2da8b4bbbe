"""A copy of the store at one moment, for the tasks of one batch: made of links, so it costs
milliseconds, and read by any number of processes at once.

The owner makes it like a backup (`txn.backup`); tasks open its data read-only. The directory lies
beside the store's own, because links do not leave a file system, and is removed by whoever asked
for it; what a dead job left is removed by the next one.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rocksdict import AccessType, Rdict

from belvedere.errors import Unavailable
from belvedere.kv.rocksdb import RocksStore
from belvedere.kv.rocksdb_settings import store_options
from belvedere.pipeline.store import Store
from belvedere.txn.identity import DATA_DIRECTORY

DIRECTORY = "pipeline"
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


def work_directory(store: Store) -> Path:
    """Where jobs keep what they need beside the store."""
    made = store.directory / DIRECTORY
    made.mkdir(mode=0o700, exist_ok=True)
    return made


@contextmanager
def checkpoint(
    store: Store, owner: str, new_id: Callable[[], str] = lambda: secrets.token_hex(8)
) -> Iterator[Checkpoint]:
    """A checkpoint of the open store, gone at the end. `owner` names what its job may remove."""
    with checkpoint_at(store, work_directory(store) / f"checkpoint-{owner}-{new_id()}") as made:
        yield made


@contextmanager
def checkpoint_at(store: Store, directory: Path) -> Iterator[Checkpoint]:
    """The same in this directory, which is on the file system of the store."""
    position = int(store.ask("backup", destination=str(directory)))
    try:
        yield Checkpoint(directory, position)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def remove_leftovers(store: Store, owner: str) -> None:
    """What a former life of the same job left behind."""
    for found in work_directory(store).glob(f"checkpoint-{owner}-*"):
        shutil.rmtree(found, ignore_errors=True)
