"""Views of an open database: creating, filling and driving them.

The part of `Database` that knows views. Immediate views are participants of every commit; deferred
ones are driven from here, by a worker thread, by REFRESH, or for one read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TypeVar

import msgspec

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.definitions import IndexDefinition, KeyPartDefinition
from belvedere.catalog.edit import Edit
from belvedere.catalog.model import Maintenance, State, View
from belvedere.codec import keyspace
from belvedere.errors import Error
from belvedere.kv.batch import BatchStore, Write
from belvedere.txn.border import (
    SNAPSHOT,
    ChangeLog,
    CommitProtocol,
    Isolation,
    Published,
    Reader,
)
from belvedere.txn.transaction import Transaction
from belvedere.views.create import create_auxiliaries
from belvedere.views.deferred import Deferred
from belvedere.views.delta import Wish
from belvedere.views.keep import Keeper
from belvedere.views.pending import at_watermark, required_position, with_pending
from belvedere.views.schedule import group_for, schedule_of
from belvedere.views.stream import OPTION, kept_positions, stream_start, trimmed
from belvedere.views.watermarks import deferred_views, watermark_write
from belvedere.views.worker import Worker

TRIMMED_ENTRIES_MAX = 10_000
T = TypeVar("T")


class ViewHost:
    """Mixed into Database, which has everything that is only declared here."""

    store: BatchStore
    visibility: Published
    log: ChangeLog
    commits: CommitProtocol
    keeper: Keeper
    view_errors: dict[int, Error]
    _worker: Worker | None
    _share: float = 1.0
    _closed: bool

    @property
    def catalog(self) -> Catalog:
        return self.visibility.published.catalog

    @property
    def position(self) -> int:
        """The newest published position."""
        return self.visibility.published.position

    def begin(
        self, isolation: Isolation = SNAPSHOT, *, at_least: int = 0, wait_s: float = 30.0
    ) -> Transaction:
        raise NotImplementedError

    def change_schema(self, change: Callable[[Edit], T]) -> T:
        raise NotImplementedError

    # -- creating and filling -----------------------------------------------------------------

    def create_view(
        self,
        name: str,
        definition: str,
        maintenance: Maintenance = Maintenance.IMMEDIATE,
        *,
        schema: str = "public",
        options: dict[str, str] | None = None,
        columns: Sequence[str] = (),
        reads: Sequence[int] = (),
    ) -> int:
        """Define a materialized view, with the indexes its maintenance wants; returns when it is
        filled. `reads` are the views that its definition names."""

        def create(edit: Edit) -> int:
            wanted = self.keeper.define(
                edit.catalog, name, schema, definition, maintenance, options, columns, reads
            )
            shared = self.keeper.shared_indexes(edit.catalog, wanted)
            made = [
                self._helping_index(edit, wish) for wish in self.keeper.wishes(edit.catalog, wanted)
            ]
            supports = create_auxiliaries(self.keeper, edit, wanted)
            auxiliaries = tuple(dict.fromkeys([*shared, *made, *supports]))
            schedule = schedule_of(wanted.options)
            group = 0 if maintenance is Maintenance.IMMEDIATE else group_for(edit, schedule)
            view = edit.create_view(replace(wanted, auxiliaries=auxiliaries))
            found = edit.catalog.expect(View, name, schema)
            edit.put(msgspec.structs.replace(found, group=group, supports=supports))
            return view

        return self.change_schema(create)

    def _helping_index(self, edit: Edit, wish: Wish) -> int:
        table = edit.catalog.table(wish.relation)
        names = [table.columns[slot].name for slot in wish.slots]
        definition = IndexDefinition(
            table.name,
            tuple(KeyPartDefinition(column) for column in names),
            schema=next(s.name for s in edit.catalog.schemas if s.id == table.schema),
        )
        return edit.create_index(definition, hidden=True)

    def _fill_view(self, view: View) -> None:
        with self.begin() as snapshot:
            pin = self.log.pin(snapshot.position)
            try:
                self.keeper.backfill(self.commits, view, snapshot)
                self.deferred.refresh(view)
            finally:
                self.log.unpin(pin)

    def rebuild_views(self) -> None:
        """Make the state of every view again from its tables, while nobody else is here."""
        ready = [view for view in self.catalog.views if view.state is State.READY]
        self.commits.derive(lambda reader: [watermark_write(view.group, None) for view in ready])
        for view in ready:
            self.store.delete_range(*keyspace.relation_range(view.id))
            self.store.delete_range(*keyspace.stream_range(view.id))
            self._fill_view(view)
        self.commits.derive(lambda reader: list(_settled(reader, ready)))

    # -- deferred views -----------------------------------------------------------------------

    @cached_property
    def deferred(self) -> Deferred:
        return Deferred(self.commits, self.log, self.keeper, self.visibility, self.view_errors)

    def deferred_views(self) -> tuple[View, ...]:
        return deferred_views(self.catalog)

    def watermark(self, view: View) -> int:
        """The position a view shows: its group's watermark, or the newest for an immediate one."""
        if view.maintenance is Maintenance.IMMEDIATE:
            return self.position
        with self.begin() as reader:
            return required_position(reader, view)

    def catch_up(self, view: View) -> int:
        """Bring a deferred view, and those that move with it, to what is published now; returns
        the position it is at."""
        return self.deferred.refresh(view)

    def repair(self, view: View) -> int:
        """Bring the stored state of a view to what its tables give; returns how many entries were
        wrong."""
        with self.begin() as transaction:
            tables, _ = self.at_watermark(transaction, view)
            return self.keeper.repair(self.commits, view, tables, transaction)

    def stored_size(self, view: View) -> tuple[int, int]:
        """Entries and bytes of a view's state: keys and values, as they are stored."""
        with self.begin() as reader:
            sizes = [
                len(key) + len(value)
                for batch in reader.scan(*keyspace.relation_range(view.id))
                for key, value in batch
            ]
        return len(sizes), sum(sizes)

    def with_pending(self, transaction: Transaction, views: Sequence[View]) -> Reader:
        """The transaction with deferred views brought to its position, for one read."""
        return with_pending(self.keeper, self.log, transaction, views)

    def at_watermark(self, transaction: Transaction, view: View) -> tuple[Reader, int]:
        """A view's tables at the position the view has reached, and that position."""
        return at_watermark(self.keeper, self.log, transaction, view)

    def trim_streams(self) -> None:
        """Forget changes of views that are older than the views keep them."""
        position = self.position
        for view in self.catalog.views:
            kept = kept_positions(view)
            if kept is not None and position > kept:
                forget = partial(_trimmed, view.id, position - kept)
                self.commits.derive(forget)

    @property
    def maintenance_share(self) -> float:
        """How much of the time the worker may work, at most."""
        return self._share

    @maintenance_share.setter
    def maintenance_share(self, share: float) -> None:
        self._share = share
        if self._worker is not None:
            self._worker.share = share

    def _start_worker(self) -> None:
        if self._worker is None and self.deferred_views():
            self._worker = Worker(self.deferred, self.visibility, lambda: self._closed)
            self._worker.share = self._share
        elif self._worker is not None:
            self._worker.wake()


def _trimmed(view: int, through: int, reader: Reader) -> Sequence[Write]:
    return trimmed(reader, view, through, TRIMMED_ENTRIES_MAX)


def _settled(reader: Reader, views: Sequence[View]) -> Iterator[Write]:
    """Views that were made again move with their groups, all from one position."""
    for view in views:
        yield watermark_write(view.id, None)
        if view.group:
            yield watermark_write(view.group, required_position(reader, view))
        if OPTION in view.options:
            yield stream_start(view.id, required_position(reader, view))
