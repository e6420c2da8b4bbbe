"""Backfills on a batch-atomic store: which views one scan backfills, and at which position.

How one goes is in `views.backfill.backfill_views`, and in `views.backfill.index_backfill` for an
index.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from belvedere.catalog.model import Index, View
from belvedere.codec import keyspace
from belvedere.txn.contracts import Reader
from belvedere.views.backfill.backfill_plan import (
    BY_COLUMNS,
    PlannedBackfill,
    ResumePoint,
    plan_python_backfill,
)
from belvedere.views.backfill.backfill_views import (
    BuildControl,
    backfill_views,
    plan_view_backfill,
)
from belvedere.views.backfill.column_backfill import try_backfill_by_columns
from belvedere.views.backfill.contracts import HostDatabase
from belvedere.views.backfill.external_backfill import ExternalBackfill
from belvedere.views.backfill.index_backfill import backfill_index
from belvedere.views.backfill.index_files import try_backfill_index_by_files
from belvedere.views.deferred.driver import DeferredMaintenance
from belvedere.views.maintain.log_window import build_reader_before_changes, consolidate_net_changes
from belvedere.views.state.backfill_progress import (
    BackfillState,
    build_progress_write,
    key_list_range,
    read_backfill_state,
)
from belvedere.views.state.watermarks import build_watermark_write


class BatchAtomicBackfill:
    """Backfills by the one process that has the store open."""

    def __init__(self, host: HostDatabase) -> None:
        self._host = host

    def backfill_index_or_view(
        self, item: Index | View, among: Sequence[View], build: BuildControl
    ) -> Sequence[View]:
        """Backfill an index; or a view, with those of `among` that the same scan can backfill."""
        host = self._host
        if isinstance(item, Index):
            self._backfill_index(item, build)
            return ()
        with host.begin() as newest:
            state = read_backfill_state(newest, item.id)
            if state.has_ended:  # in the scan of another one, or before the process died
                return (item,)
            begun = self._find_resume_point_or_discard(newest, item, state, build)
            with self._open_pinned_reader(newest, item, begun) as reader:
                together = self._plan_views_of_same_scan(newest, item, among, reader, begun, build)
                self.backfill_views(together, reader, begun, build)
        return [one.view for one in together]

    def _backfill_index(self, index: Index, build: BuildControl) -> None:
        host, tiers = self._host, self._host.registry.tiers
        if tiers.prefers_backfill_by_columns(build.count_rows_once(tiers.row_counts, index.table)):
            if try_backfill_index_by_files(host, index, build):
                return
        backfill_index(host.engine, host.catalog, index, host.compile_expression)

    def backfill_views(
        self,
        planned: Sequence[PlannedBackfill],
        reader: Reader,
        begun: ResumePoint | None,
        build: BuildControl,
    ) -> None:
        commits, first = self._host.commits, planned[0]
        if first.plan.name == BY_COLUMNS:  # alone in its scan
            tiers, ingest = self._host.registry.tiers, self._host.engine.ingest_pairs
            if try_backfill_by_columns(commits, ingest, tiers, first, reader, begun, build) is None:
                return
            if begun is not None:
                self._discard_partial_backfill(first.view)
            planned, begun = [first._replace(plan=plan_python_backfill(first.maintainer))], None
        backfill_views(commits, planned, reader, begun, build)

    def take_over_orphaned_builds(self) -> Sequence[Index | View]:
        """Nothing: what was left by a process that died is resumed when the store is opened."""
        return ()

    def may_drop_builds(self, ids: Sequence[int]) -> bool:
        return True

    def erase_backfill_progress(self, ids: Sequence[int]) -> None:
        for id_ in ids:
            self._host.engine.erase_range(*key_list_range(id_))

    def open_external_backfill(self, deferred: DeferredMaintenance, work: Path) -> ExternalBackfill:
        return ExternalBackfill(self._host, deferred, work)

    def _find_resume_point_or_discard(
        self, reader: Reader, view: View, state: BackfillState, build: BuildControl
    ) -> ResumePoint | None:
        """The point an interrupted backfill had reached; None where none was saved, or where this
        program would backfill the view in another way. What was saved is then erased."""
        position, progress = state
        if progress is None:
            return None
        if position is not None and not progress.is_at_start:
            name = progress.plan_name
            if self._plan_backfill(reader, view, build, begun=name).plan.name == name:
                return ResumePoint(position, name, progress.phase, progress.after)
        self._discard_partial_backfill(view)
        return None

    def _discard_partial_backfill(self, view: View) -> None:
        self._host.engine.erase_range(*keyspace.relation_range(view.id))
        self._host.engine.erase_range(*key_list_range(view.id))
        self._host.commits.derive(
            lambda newest: [
                build_watermark_write(view.id, None),
                build_progress_write(view.id, None),
            ]
        )

    @contextmanager
    def _open_pinned_reader(
        self, newest: Reader, view: View, begun: ResumePoint | None
    ) -> Iterator[Reader]:
        """The newest reader; or, to resume a backfill that was interrupted, one of its position."""
        log = self._host.log
        pin = log.pin(newest.position if begun is None else begun.position)
        try:
            if begun is None:
                yield newest
                return
            records = log.read_bytes(begun.position, newest.position)
            changes = consolidate_net_changes(records, begun.position, frozenset(view.inputs))
            yield build_reader_before_changes(newest, changes, self._host.registry.indexes)
        finally:
            log.unpin(pin)

    def _plan_views_of_same_scan(
        self,
        newest: Reader,
        view: View,
        among: Sequence[View],
        reader: Reader,
        begun: ResumePoint | None,
        build: BuildControl,
    ) -> list[PlannedBackfill]:
        """The view, and others that are backfilled by the same walk of the same table, from the
        same place."""
        name = None if begun is None else begun.plan_name
        first = self._plan_backfill(reader, view, build, begun=name)
        found = [first]
        for one in among if first.plan.table is not None else ():
            if one.id == view.id:
                continue
            state = read_backfill_state(newest, one.id)
            if state.has_ended:
                continue
            other = self._plan_backfill(reader, one, build, begun=name)
            if other.plan.table == first.plan.table:
                if self._find_resume_point_or_discard(newest, one, state, build) == begun:
                    found.append(other)
        return found

    def _plan_backfill(
        self, reader: Reader, view: View, build: BuildControl, *, begun: str | None
    ) -> PlannedBackfill:
        registry = self._host.registry
        maintainer = registry.get_view_maintainer(reader.catalog, view)
        return PlannedBackfill(
            view, maintainer, plan_view_backfill(registry, maintainer, build, begun=begun)
        )
