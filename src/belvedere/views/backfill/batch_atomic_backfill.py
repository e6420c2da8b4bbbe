"""Backfills on a batch-atomic store: which views one scan backfills, and at which position.

How one goes is in `views.backfill.backfill_views`, and in `views.backfill.index_backfill` for an
index.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from belvedere.catalog.model import Index, View
from belvedere.codec import keyspace
from belvedere.txn.contracts import Reader
from belvedere.views.backfill.backfill_views import (
    BuildControl,
    backfill_views,
    can_resume_backfill,
    plan_view_backfill,
)
from belvedere.views.backfill.contracts import HostDatabase
from belvedere.views.backfill.index_backfill import backfill_index
from belvedere.views.maintain.log_window import build_reader_before_changes, consolidate_net_changes
from belvedere.views.state.backfill_progress import (
    build_progress_write,
    key_list_range,
    read_backfill_progress,
)
from belvedere.views.state.watermarks import build_watermark_write, read_watermark


class ResumePoint(NamedTuple):
    """The position of a backfill's scan, and its progress."""

    position: int
    phase: int
    after: bytes


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
            backfill_index(host.commits, host.catalog, item, host.compile_expression)
            return ()
        if self._has_backfill_ended(item):
            return (item,)
        with self._open_backfill_reader(item) as (reader, begun):
            together = self._list_views_of_same_scan(item, among, reader, begun)
            self.backfill_views(together, reader, build)
        return together

    def backfill_views(self, views: Sequence[View], reader: Reader, build: BuildControl) -> None:
        backfill_views(self._host.commits, self._host.registry, views, reader, build)

    def take_over_orphaned_builds(self) -> Sequence[Index | View]:
        """Nothing: what was left by a process that died is resumed when the store is opened."""
        return ()

    def may_drop_builds(self, ids: Sequence[int]) -> bool:
        return True

    def erase_backfill_progress(self, ids: Sequence[int]) -> None:
        for id_ in ids:
            self._host.engine.erase_range(*key_list_range(id_))

    def _has_backfill_ended(self, view: View) -> bool:
        """Whether it was backfilled, in the scan of another one or before the process died: it has
        a watermark, and no rest."""
        with self._host.begin() as reader:
            return (
                read_watermark(reader, view.id) is not None
                and read_backfill_progress(reader, view.id) is None
            )

    @contextmanager
    def _open_backfill_reader(self, view: View) -> Iterator[tuple[Reader, ResumePoint | None]]:
        """A reader of now for the backfill; or, to resume one that was interrupted, a reader of its
        position, and the point it had reached."""
        log = self._host.log
        with self._host.begin() as looked:
            begun = self._find_resume_point(looked, view)
            pin = log.pin(looked.position if begun is None else begun.position)
            try:
                if begun is None:
                    self._discard_partial_backfill(looked, view)
                    yield looked, None
                else:
                    records = log.read_bytes(begun.position, looked.position)
                    changes = consolidate_net_changes(
                        records, begun.position, frozenset(view.inputs)
                    )
                    yield (
                        build_reader_before_changes(looked, changes, self._host.registry.indexes),
                        begun,
                    )
            finally:
                log.unpin(pin)

    def _find_resume_point(self, reader: Reader, view: View) -> ResumePoint | None:
        """Where a backfill that can be resumed had begun, and what it had reached."""
        place, position = read_backfill_progress(reader, view.id), read_watermark(reader, view.id)
        if (
            place is None
            or position is None
            or not can_resume_backfill(self._host.registry, reader, view)
        ):
            return None
        return ResumePoint(position, place.phase, place.after)

    def _discard_partial_backfill(self, reader: Reader, view: View) -> None:
        """Erase a backfill that cannot be resumed."""
        if read_backfill_progress(reader, view.id) is not None:
            self._host.engine.erase_range(*keyspace.relation_range(view.id))
            self._host.engine.erase_range(*key_list_range(view.id))
            self._host.commits.derive(
                lambda newest: [
                    build_watermark_write(view.id, None),
                    build_progress_write(view.id, None),
                ]
            )

    def _list_views_of_same_scan(
        self, view: View, among: Sequence[View], reader: Reader, begun: ResumePoint | None
    ) -> list[View]:
        """The view, and others that are backfilled by the same walk of the same table, from the
        same place."""
        table = self._find_only_scanned_table(reader, view, begun)
        if table is None:
            return [view]
        with self._host.begin() as looked:
            others = [
                one
                for one in among
                if one.id != view.id
                and not self._has_backfill_ended(one)
                and self._find_resume_point(looked, one) == begun
                and self._find_only_scanned_table(reader, one, begun) == table
            ]
            for one in others if begun is None else ():
                self._discard_partial_backfill(looked, one)
        return [view, *others]

    def _find_only_scanned_table(
        self, reader: Reader, view: View, begun: ResumePoint | None
    ) -> int | None:
        """The table whose walk is all there is to the backfill of a view."""
        maintainer = self._host.registry.get_view_maintainer(reader.catalog, view)
        return plan_view_backfill(self._host.registry, maintainer, begun=begun is not None).table
