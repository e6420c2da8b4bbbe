"""What a dump reads: the store itself, or a copy at one position when a process has it open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.config import Config, Durability
from belvedere.database import Database, open_sql_database
from belvedere.kv.batch import BatchStore
from belvedere.kv.hbase.url import is_hbase_url
from belvedere.remote.client import is_reachable
from belvedere.txn.batch_atomic.recovery import find_newest_state
from belvedere.txn.contracts import Reader


class DumpSource(NamedTuple):
    store: BatchStore | Reader
    catalog: Catalog
    position: int
    incarnation: int


@contextmanager
def open_dump_source(location: Path | str) -> Iterator[DumpSource]:
    """The store at a path or URL, which nothing changes meanwhile."""
    if is_hbase_url(location):
        with _open_snapshot(str(location)) as snapshot:
            yield snapshot
        return
    path = Path(location)
    if is_reachable(path):
        with _open_copy(path) as copy:
            yield copy
        return
    with Database.open(path, Config(durability=Durability.OFF), create=False) as db:
        yield DumpSource(db.store, db.catalog, db.position, db.incarnation)


@contextmanager
def _open_snapshot(url: str) -> Iterator[DumpSource]:
    """A snapshot of a database that other processes may go on writing."""
    database, _ = open_sql_database(url, create=False)
    with database, database.begin(at_least=database.position) as reader:
        yield DumpSource(reader, reader.catalog, reader.position, database.incarnation)


@contextmanager
def _open_copy(path: Path) -> Iterator[DumpSource]:
    """A checkpoint that the owner makes in the store's directory: links, so it costs nothing."""
    from belvedere.pipeline.store.checkpoint import hold_temporary_checkpoint  # heavy
    from belvedere.pipeline.store.client import Store  # heavy

    owner = Store.in_directory(path.resolve())
    incarnation = int(owner.identity().incarnation, 16)
    with hold_temporary_checkpoint(owner) as made, made.open_read_only_store() as store:
        newest = find_newest_state(store)
        yield DumpSource(store, newest.catalog, newest.position, incarnation)
