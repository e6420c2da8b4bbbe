"""The driver of backfills: it brings new indexes and views to READY, or drops them.

    a change of the catalog   puts them there in state BUILDING; then `backfill_and_mark_ready` a
    process that died       leaves some unfinished: `resume_or_drop_builds` when the store is
    opened, on a
                              row-atomic store `adopt_orphaned_builds` on any other node
    a restore                 makes the state of every view again: `rebuild_all_views`
    another process           fills those that wait for it: `views.backfill.external_backfill`

How they are backfilled depends on the kind of store: `StoreBackfill`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from belvedere import interrupts
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import Index, ObjectState, View
from belvedere.codec import keyspace
from belvedere.errors import InvalidInput, Unavailable
from belvedere.kv.batch import Write
from belvedere.txn.contracts import Reader
from belvedere.views.backfill.backfill_views import BuildControl
from belvedere.views.backfill.contracts import HostDatabase, StoreBackfill
from belvedere.views.changefeed.entries import build_retention_start_write
from belvedere.views.deferred.driver import DeferredMaintenance
from belvedere.views.state.build_state import list_unfinished_builds, select_builds_to_resume
from belvedere.views.state.builder_node import TAKEN_OVER
from belvedere.views.state.watermarks import build_watermark_write, require_applied_position

_builds = threading.local()


class BackfillDriver:
    """The backfills of an open database. `share` is the share of time that they may use."""

    def __init__(
        self,
        host: HostDatabase,
        store: StoreBackfill,
        deferred: DeferredMaintenance,
        share: Callable[[], float],
    ) -> None:
        self.store = store
        self._host = host
        self._deferred = deferred
        self._share = share

    @contextmanager
    def use_build_control(self, build: BuildControl) -> Iterator[None]:
        """Backfills that this thread starts meanwhile report to `build`, which can cancel them."""
        build.share = self._share
        _builds.build = build
        try:
            yield
        finally:
            _builds.build = None

    # -- builds -------------------------------------------------------------------------------

    def backfill_and_mark_ready(self, ids: Sequence[int]) -> None:
        """Fill what one change of the catalog made and let it be read, one after the other; when
        one fails, all of them are dropped."""
        for id_ in ids:
            self._finish_build_or_drop(id_, ids)

    def resume_or_drop_builds(self, *, compiled: bool) -> None:
        """Go on with what was unfinished when the store was last closed, or drop it. Definitions
        that are not `compiled` here are left for a process that can."""
        left = list_unfinished_builds(self._host.catalog)
        kept = self._drop_builds_not_kept(
            left, select_builds_to_resume(left, every=self._host.resume_builds)
        )
        if compiled:
            self._finish_resumed_builds(kept)

    def adopt_orphaned_builds(self) -> int:
        """On a row-atomic store: finish, or drop, what nodes that died were building. Returns how
        many indexes and views that were. A node calls it by itself from time to time."""
        taken = self.store.take_over_orphaned_builds()
        kept = [
            item
            for item in select_builds_to_resume(taken, every=self._host.resume_builds)
            if not isinstance(item, View) or item.replaces is None
        ]
        self._finish_resumed_builds(self._drop_builds_not_kept(taken, kept))
        return len(taken)

    def adopt_orphans_until_closed(self) -> None:
        """The same, until the database is closed."""
        with self.use_build_control(BuildControl(check=self._require_database_open)):
            self.adopt_orphaned_builds()

    def _require_database_open(self) -> None:
        if self._host.is_closed():
            raise Unavailable("the database is closed", sqlstate="08003")

    def _drop_builds_not_kept(
        self, left: Sequence[Index | View], kept: Sequence[Index | View]
    ) -> Sequence[Index | View]:
        if len(kept) < len(left):
            self._drop_unfinished_builds([item.id for item in left if item not in kept])
        return kept

    def _finish_resumed_builds(self, kept: Sequence[Index | View]) -> None:
        for item in kept:
            self._finish_build_or_drop(
                item.id, [one.id for one in kept if one.version == item.version]
            )

    def _finish_build_or_drop(self, id_: int, made: Sequence[int]) -> None:
        """Fill an index or view and let it be read; on failure drop all that were made with it."""
        try:
            item = self._host.catalog.get(id_)
            if not isinstance(item, Index | View) or item.state is not ObjectState.BUILDING:
                return
            self._backfill_index_or_view(item)
            self._host.change_schema(lambda edit: _set_build_ready(edit, id_))
        except BaseException as error:
            if not (isinstance(error, Unavailable) and error.message == TAKEN_OVER):
                self._drop_unfinished_builds(made)
            raise

    def _drop_unfinished_builds(self, ids: Sequence[int]) -> None:
        with interrupts.undo_statement():
            if self.store.may_drop_builds(ids):
                self._host.change_schema(lambda edit: _drop_indexes_and_views(edit, ids))
                self.store.erase_backfill_progress(ids)

    # -- backfills ----------------------------------------------------------------------------

    def _backfill_index_or_view(
        self, item: Index | View, among: Sequence[View] | None = None
    ) -> None:
        """Fill an index; or a view, and with it those of its transaction (or `among`) that the same
        scan can fill."""
        build = getattr(_builds, "build", None) or BuildControl(share=self._share)
        if item.id in build.backfilled_ids:
            return
        others = self._list_views_made_with(item) if among is None else among
        try:
            filled = self.store.backfill_index_or_view(item, others, build)
        except InvalidInput as error:
            raise self._add_view_to_backfill_error(item, error) from error
        for view in filled:
            self._deferred.catch_up_unit_of_view(view)
            build.backfilled_ids.add(view.id)

    def _add_view_to_backfill_error(self, item: Index | View, error: InvalidInput) -> InvalidInput:
        if isinstance(item, Index):
            return error
        with self._host.begin() as reader:
            maintainer = self._host.registry.get_view_maintainer(reader.catalog, item)
            return maintainer.build_backfill_error(reader, error)

    def _list_views_made_with(self, item: Index | View) -> list[View]:
        made = [one for one in self._host.catalog.views if one.version == item.version]
        return [one for one in made if one.state is ObjectState.BUILDING]

    def rebuild_all_views(self) -> None:
        """Make the state of every view again from its tables, while nobody else is here."""
        commits, store = self._host.commits, self._host.engine.store
        ready = [view for view in self._host.catalog.views if view.state is ObjectState.READY]
        commits.derive(
            lambda reader: [
                build_watermark_write(mark, None) for v in ready for mark in (v.id, v.group)
            ]
        )
        for view in ready:
            store.delete_range(*keyspace.relation_range(view.id))
            store.delete_range(*keyspace.stream_range(view.id))
        with self.use_build_control(BuildControl()):
            for view in ready:
                self._backfill_index_or_view(view, ready)
        commits.derive(lambda reader: list(_build_rejoin_writes(reader, ready)))


def _set_build_ready(edit: CatalogEdit, id_: int) -> None:
    item = edit.catalog.get(id_)
    if not isinstance(item, Index | View) or item.state is not ObjectState.BUILDING:
        raise Unavailable(TAKEN_OVER, sqlstate="55006")
    edit.set_state(id_, ObjectState.READY)


def _drop_indexes_and_views(edit: CatalogEdit, ids: Sequence[int]) -> None:
    for id_ in ids:
        item = edit.catalog.get(id_)
        if isinstance(item, Index) and item.state is not ObjectState.DROPPED:
            edit.drop_index(id_, cascade=True)
        elif isinstance(item, View) and item.state is not ObjectState.DROPPED:
            edit.drop_view(id_, cascade=True)


def _build_rejoin_writes(reader: Reader, views: Sequence[View]) -> Iterator[Write]:
    """Writes that let rebuilt views share their groups' watermarks, all at one position."""
    for view in views:
        yield build_watermark_write(view.id, None)
        if view.group:
            yield build_watermark_write(view.group, require_applied_position(reader, view))
        if view.options.keep_changes is not None:
            yield build_retention_start_write(view.id, require_applied_position(reader, view))
