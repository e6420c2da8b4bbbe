"""The state of a store at the two ends of a log range, read in tasks from a checkpoint.

A checkpoint shows one position, the end of the range or a little later. Later commits are undone by
the log: for one table and its indexes where a task looks up rows of that table, for all inputs of
auxiliary views where it recomputes operators.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from belvedere.catalog.model import CATALOG_RELATION
from belvedere.errors import Retry
from belvedere.pipeline.store.client import Store
from belvedere.pipeline.store.compiled_views import CompiledViews, get_compiled_views
from belvedere.pipeline.store.log_changes import LoggedChange, compute_net_changes, read_log_changes
from belvedere.pipeline.store.store_copy import StoreCopy
from belvedere.pipeline.store.tables import DefinitionCompiler
from belvedere.txn.contracts import Reader
from belvedere.views.maintain.log_window import build_reader_before_changes


@dataclass(frozen=True, slots=True)
class LogRangeState:
    """A range (start, end] of the log, the relations that changed in it, and a checkpoint at its
    end or later. Pickles; its methods open readers in a task."""

    store: Store
    start: int
    end: int
    changed: frozenset[int]
    objects: tuple[bytes, ...]
    definitions: DefinitionCompiler
    checkpoint: StoreCopy

    @property
    def compiled_views(self) -> CompiledViews:
        return get_compiled_views(self.objects, self.definitions)

    @contextmanager
    def open_table_reader(self, relation: int, *, at_end: bool) -> Iterator[Reader]:
        """A table with its indexes, at the start or at the end; other tables are not undone."""
        with self._open_checkpoint_reader() as newest:
            undone = list(self._read_changes_after_range())
            if not at_end and relation in self.changed:
                undone = [*read_log_changes(self.store, self.start, self.end, relation), *undone]
            changes = compute_net_changes(undone, frozenset((relation,)))
            yield (
                build_reader_before_changes(
                    newest, changes, self.compiled_views.build_plain_index_participants
                )
                if changes
                else newest
            )

    @contextmanager
    def open_start_and_end_readers(self) -> Iterator[tuple[Reader, Reader]]:
        """Readers of all tables and views at the start, and at the end."""
        known = self.compiled_views
        relations = frozenset(r for view in known.catalog.views for r in view.inputs)
        with self._open_checkpoint_reader() as newest:
            later = compute_net_changes(self._read_changes_after_range(), relations)
            after = build_reader_before_changes(newest, later, known.indexes) if later else newest
            changes = compute_net_changes(
                read_log_changes(self.store, self.start, self.end), relations
            )
            yield build_reader_before_changes(after, changes, known.indexes), after

    def _open_checkpoint_reader(self) -> AbstractContextManager[Reader]:
        return self.checkpoint.open_reader(self.compiled_views.catalog)

    def _read_changes_after_range(self) -> Iterator[LoggedChange]:
        """The changes in the checkpoint after the end of the range."""
        for change in read_log_changes(self.store, self.end, self.checkpoint.position):
            if change[0] == CATALOG_RELATION:
                raise Retry("the catalog changed while a batch was made")
            yield change
