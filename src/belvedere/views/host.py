"""Views of an open database: creating, filling and driving them.

The part of `Database` that knows views. Immediate views are participants of every commit; deferred
ones are driven from here, by a worker thread, by REFRESH, or for one read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import msgspec

from belvedere.catalog.definitions import IndexDefinition, KeyPartDefinition
from belvedere.catalog.edit import Edit
from belvedere.catalog.model import Maintenance, View
from belvedere.codec import keyspace
from belvedere.errors import Error
from belvedere.kv.batch import Write
from belvedere.txn.border import (
    Published,
    Reader,
)
from belvedere.txn.engine import Engine
from belvedere.txn.transaction import Transaction
from belvedere.views.create import create_auxiliaries
from belvedere.views.deferred import Deferred
from belvedere.views.delta import Wish
from belvedere.views.filling import Filling
from belvedere.views.pending import at_watermark, required_position, with_pending
from belvedere.views.schedule import group_for, schedule_of
from belvedere.views.stream import kept_positions, trimmed
from belvedere.views.stream_cells import log_of
from belvedere.views.watermarks import deferred_views
from belvedere.views.worker import Worker

TRIMMED_ENTRIES_MAX = 10_000
T = TypeVar("T")


class NewView(NamedTuple):
    """What `create_views` is told of a view."""

    name: str
    definition: str
    maintenance: Maintenance = Maintenance.IMMEDIATE
    schema: str = "public"
    options: dict[str, str] | None = None
    columns: tuple[str, ...] = ()
    reads: tuple[int, ...] = ()


class ViewHost(Filling):
    """Mixed into Database, which has everything that is only declared here."""

    engine: Engine
    visibility: Published
    view_errors: dict[int, Error]
    _worker: Worker | None
    _share: float = 1.0
    _closed: bool

    @property
    def row_atomic(self) -> bool:
        """Whether only one row of the store is written at a time."""
        return self.engine.row_atomic

    @property
    def position(self) -> int:
        """The newest published position."""
        return self.visibility.published.position

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

        one = NewView(name, definition, maintenance, schema, options, tuple(columns), tuple(reads))
        return self.create_views([one])[0]

    def create_views(self, wanted: Sequence[NewView]) -> list[int]:
        """Define several views in one step; those that can are filled by one scan of their
        table."""
        return self.change_schema(lambda edit: [self._create(edit, one) for one in wanted])

    def _create(self, edit: Edit, new: NewView) -> int:
        wanted = self.keeper.define(edit.catalog, *_defined(new))
        shared = self.keeper.shared_indexes(edit.catalog, wanted)
        made = [self._helping_index(edit, one) for one in self.keeper.wishes(edit.catalog, wanted)]
        supports = create_auxiliaries(self.keeper, edit, wanted)
        auxiliaries = tuple(dict.fromkeys([*shared, *made, *supports]))
        immediate = new.maintenance is Maintenance.IMMEDIATE
        group = 0 if immediate else group_for(edit, schedule_of(wanted.options))
        view = edit.create_view(replace(wanted, auxiliaries=auxiliaries))
        found = edit.catalog.expect(View, new.name, new.schema)
        edit.put(msgspec.structs.replace(found, group=group, supports=supports))
        return view

    def _helping_index(self, edit: Edit, wish: Wish) -> int:
        table = edit.catalog.table(wish.relation)
        names = [table.columns[slot].name for slot in wish.slots]
        definition = IndexDefinition(
            table.name,
            tuple(KeyPartDefinition(column) for column in names),
            schema=next(s.name for s in edit.catalog.schemas if s.id == table.schema),
        )
        return edit.create_index(definition, hidden=True)

    # -- deferred views -----------------------------------------------------------------------

    @cached_property
    def deferred(self) -> Deferred:  # type: ignore[override]
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
        while True:
            with self.begin() as transaction:
                tables, _ = self.at_watermark(transaction, view)
                wrong = self.keeper.repair(self.commits, view, tables, transaction)
            if wrong is not None:
                return wrong

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

    def kept_in_log(self) -> int | None:
        """The position from which on views have their changes in the log itself, and want to keep
        them; None: none has."""
        views = [view for view in self.catalog.views if log_of(self.log, view) is not None]
        kept = [positions for view in views if (positions := kept_positions(view)) is not None]
        return self.position - max(kept) if kept else None

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


def _defined(new: NewView) -> tuple[Any, ...]:
    """As `Keeper.define` takes it."""
    given = (new.name, new.schema, new.definition, new.maintenance)
    return (*given, new.options, new.columns, new.reads)
