"""The state of a store at the two ends of a log range, read in tasks from a checkpoint.

A checkpoint shows one position, the end of the range or a little later. Later commits are undone by
the log: for one table and its indexes where a task looks up rows of that table, for all inputs of
auxiliary views where it recomputes operators.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from belvedere.catalog.model import CATALOG_RELATION
from belvedere.errors import Retry
from belvedere.pipeline.checkpoint import Checkpoint
from belvedere.pipeline.inputs import Definitions
from belvedere.pipeline.logged import Logged, logged, net
from belvedere.pipeline.ready import Ready, ready
from belvedere.pipeline.store import Store
from belvedere.txn.border import Reader
from belvedere.txn.history.readers import NewestReader
from belvedere.views.window import state_before


@dataclass(frozen=True, slots=True)
class Held:
    """A range (start, end] of the log, the relations that changed in it, and a checkpoint at its
    end or later. Pickles; its methods open readers in a task."""

    store: Store
    start: int
    end: int
    changed: frozenset[int]
    objects: tuple[bytes, ...]
    definitions: Definitions
    checkpoint: Checkpoint

    @property
    def known(self) -> Ready:
        return ready(self.objects, self.definitions)

    @contextmanager
    def table(self, relation: int, *, at_end: bool) -> Iterator[Reader]:
        """A table with its indexes, at the start or at the end; other tables are not undone."""
        with self._newest() as newest:
            undone = list(self._later())
            if not at_end and relation in self.changed:
                undone = [*logged(self.store, self.start, self.end, relation), *undone]
            changes = net(undone, frozenset((relation,)))
            yield state_before(newest, changes, self.known.plain_indexes) if changes else newest

    @contextmanager
    def ends(self) -> Iterator[tuple[Reader, Reader]]:
        """Readers of all tables and views at the start, and at the end."""
        known = self.known
        relations = frozenset(r for view in known.catalog.views for r in view.inputs)
        with self._newest() as newest:
            later = net(self._later(), relations)
            after = state_before(newest, later, known.indexes) if later else newest
            changes = net(logged(self.store, self.start, self.end), relations)
            yield state_before(after, changes, known.indexes), after

    @contextmanager
    def _newest(self) -> Iterator[Reader]:
        with self.checkpoint.opened() as opened:
            yield NewestReader(opened, self.checkpoint.position, self.known.catalog)

    def _later(self) -> Iterator[Logged]:
        """The changes in the checkpoint after the end of the range."""
        for change in logged(self.store, self.end, self.checkpoint.position):
            if change[0] == CATALOG_RELATION:
                raise Retry("the catalog changed while a batch was made")
            yield change
