"""What views require of the database that owns them, and of backfills on its kind of store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import Index, View
from belvedere.kv.batch import Pair
from belvedere.txn.contracts import ChangeLog, CommitProtocol, Reader
from belvedere.txn.engine import BeginTransaction, Engine
from belvedere.views.backfill.backfill_views import BuildControl
from belvedere.views.deferred.driver import DeferredMaintenance
from belvedere.views.indexes.entries import CompileExpression
from belvedere.views.registry.view_registry import ViewRegistry

T = TypeVar("T")


class ChangeSchema(Protocol):
    """Applies a change of the catalog as one transaction, and backfills what it created."""

    def __call__(self, change: Callable[[CatalogEdit], T]) -> T: ...


@dataclass(frozen=True, slots=True)
class HostDatabase:
    """The database that owns the views, as they use it. `resume_builds`: every interrupted backfill
    is resumed, also of views that are not resumable."""

    engine: Engine
    registry: ViewRegistry
    begin: BeginTransaction
    change_schema: ChangeSchema
    compile_expression: CompileExpression
    is_closed: Callable[[], bool]
    resume_builds: bool

    @property
    def catalog(self) -> Catalog:
        return self.engine.visibility.published_snapshot.catalog

    @property
    def position(self) -> int:
        return self.engine.latest_position

    @property
    def commits(self) -> CommitProtocol:
        return self.engine.commits

    @property
    def log(self) -> ChangeLog:
        return self.engine.log

    def open_past_reader(self, position: int) -> AbstractContextManager[Reader]:
        """A reader of base tables at a past position that the log still reaches."""
        return self.engine.open_past_reader(position, self.begin)


class HeldPosition(Protocol):
    """A position that stays readable."""

    @property
    def position(self) -> int: ...


Held = TypeVar("Held", bound=HeldPosition)


class ExternalJob(NamedTuple):
    """One view that a job of another process backfills: the position of its scan, and the name of
    the job's directory."""

    view: int
    position: int
    name: str


class JobBackfill(Protocol):
    """Backfills by jobs, on one kind of store: ExternalBackfill, ExternalCellBackfill."""

    def begin_backfill_job(self, ids: Sequence[object], hold: Callable[[], Held]) -> Held:
        """`hold` the position that these views are backfilled from."""

    def is_job_current(self, job: ExternalJob) -> bool:
        """Whether what a job has made is still what the view needs."""

    def write_state(self, job: ExternalJob, pairs: Sequence[Pair]) -> None:
        """Write the state of some keys of a view. Unsupported where a job makes files instead."""

    def finish_backfill_job(self, job: ExternalJob, files: Sequence[str]) -> int:
        """Let the view be read; returns the position that it has caught up to."""


class StoreBackfill(Protocol):
    """Backfills of indexes and views on one kind of store. Two implementations:
    `views.backfill.batch_atomic_backfill` and `views.backfill.row_atomic_backfill`."""

    def backfill_index_or_view(
        self, item: Index | View, among: Sequence[View], build: BuildControl
    ) -> Sequence[View]:
        """Write the content of an index or view that is being built; with a view perhaps others of
        `among`. Returns the views that have to catch up from the log before they can be read."""

    def take_over_orphaned_builds(self) -> Sequence[Index | View]:
        """What dead processes were building, and this one builds from now on."""

    def may_drop_builds(self, ids: Sequence[int]) -> bool:
        """Whether nobody else builds any of these."""

    def erase_backfill_progress(self, ids: Sequence[int]) -> None:
        """Remove what backfills of these have written for themselves; they are dropped."""

    def open_external_backfill(self, deferred: DeferredMaintenance, work: Path) -> JobBackfill:
        """Backfills by jobs of other processes, which have their directories in `work`."""
