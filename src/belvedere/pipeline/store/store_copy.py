"""The store at one position, as the tasks of one batch read it: directly, not through its owner.

Checkpoint     of a store in a directory: links to its files, newer than any batch before it
PastPosition   of a database on HBase, which keeps what rows were: a position that the driver
               holds, read by every task over connections of its own
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from belvedere.catalog.catalog import Catalog
from belvedere.pipeline.store.checkpoint import (
    hold_temporary_checkpoint,
    remove_checkpoints_of_ended_jobs,
)
from belvedere.pipeline.store.client import Store
from belvedere.pipeline.store.verb_hosts import NodeHost
from belvedere.txn.contracts import Reader


class StoreCopy(Protocol):
    """Pickles. Implemented by Checkpoint and PastPosition."""

    @property
    def position(self) -> int: ...

    def open_reader(self, catalog: Catalog) -> AbstractContextManager[Reader]:
        """Open, in a task, a reader of all that is stored; `catalog` is that of the batch."""


@dataclass(frozen=True, slots=True)
class PastPosition:
    host: NodeHost
    position: int

    def open_reader(self, catalog: Catalog) -> AbstractContextManager[Reader]:
        return self.host.open_reader(self.position)


@contextmanager
def hold_store_copy(store: Store) -> Iterator[StoreCopy]:
    """The store as it is now, or a little later, until the block ends."""
    if not isinstance(store.host, NodeHost):
        with hold_temporary_checkpoint(store) as copy:
            yield copy
        return
    lease = store.take_position_lease()
    try:
        yield PastPosition(store.host, lease.position)
    finally:
        store.release_position_lease(lease)


def remove_copies_of_ended_jobs(store: Store) -> None:
    """Remove what killed drivers left; a position that was held ends with its process."""
    if not isinstance(store.host, NodeHost):
        remove_checkpoints_of_ended_jobs(store)
