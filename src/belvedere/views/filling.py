"""Filling the views of an open database: those of one transaction together, those of a restore.

A part of `ViewHost`. How a fill goes is in `views.backfill`; here is who is filled with whom, under
whose eyes, and from which position.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import State, View
from belvedere.codec import keyspace
from belvedere.kv.batch import BatchStore, Write
from belvedere.txn.border import SNAPSHOT, ChangeLog, CommitProtocol, Isolation, Published, Reader
from belvedere.txn.engine import Engine
from belvedere.txn.transaction import Transaction
from belvedere.views.backfill import Build, backfill, may_go_on, way_for
from belvedere.views.deferred import Deferred
from belvedere.views.fill_place import listed_range, place_of, place_write
from belvedere.views.keep import Keeper
from belvedere.views.pending import required_position
from belvedere.views.stream import OPTION, stream_start
from belvedere.views.watermarks import watermark, watermark_write
from belvedere.views.window import consolidated, state_before

_builds = threading.local()


class Begun(NamedTuple):
    """The position a fill is of, and how far it is."""

    position: int
    phase: int
    after: bytes


class Filling:
    """Mixed into ViewHost."""

    store: BatchStore
    visibility: Published
    log: ChangeLog
    commits: CommitProtocol
    engine: Engine
    keeper: Keeper
    deferred: Deferred
    _share: float

    @property
    def catalog(self) -> Catalog:
        return self.visibility.published.catalog

    def begin(
        self, isolation: Isolation = SNAPSHOT, *, at_least: int = 0, wait_s: float = 30.0
    ) -> Transaction:
        raise NotImplementedError

    def as_of(self, position: int) -> AbstractContextManager[Reader]:
        raise NotImplementedError

    @contextmanager
    def watched(self, build: Build) -> Iterator[None]:
        """Views made in this thread meanwhile are filled under the eyes of `build`."""
        build.share = lambda: self._share
        _builds.build = build
        try:
            yield
        finally:
            _builds.build = None

    def _fill_view(self, view: View, among: Sequence[View] | None = None) -> None:
        """Fill a view, and with it those of its transaction (or `among`) that the same scan can
        fill."""
        build = self._build()
        if view.id in build.filled:
            return
        together = [view]
        if not self._is_filled(view):
            with self._as_begun(view) as (reader, begun):
                together = self._scanned_together(view, among, reader, begun)
                self._backfill(together, reader, build)
        for one in together:
            self.deferred.refresh(one)
            build.filled.add(one.id)

    def _build(self) -> Build:
        """Under whose eyes this thread fills a view."""
        return getattr(_builds, "build", None) or Build(share=lambda: self._share)

    def _is_filled(self, view: View) -> bool:
        """Whether it was filled, in the scan of another one or before the process died: it has a
        watermark, and no rest."""
        with self.begin() as reader:
            return watermark(reader, view.id) is not None and place_of(reader, view.id) is None

    @contextmanager
    def _as_begun(self, view: View) -> Iterator[tuple[Reader, Begun | None]]:
        """A reader for the fill, of now; or, where one was cut short and can go on, of where that
        had begun, and what it had reached."""
        with self.begin() as looked:
            begun = self._begun(looked, view)
            pin = self.log.pin(looked.position if begun is None else begun.position)
            try:
                if begun is None:
                    self._begin_again(looked, view)
                    yield looked, None
                else:
                    records = self.log.read_bytes(begun.position, looked.position)
                    changes = consolidated(records, begun.position, frozenset(view.inputs))
                    yield state_before(looked, changes, self.keeper.indexes), begun
            finally:
                self.log.unpin(pin)

    def _begun(self, reader: Reader, view: View) -> Begun | None:
        """Where a fill that can go on had begun, and what it had reached."""
        place, position = place_of(reader, view.id), watermark(reader, view.id)
        if place is None or position is None or not may_go_on(self.keeper, reader, view):
            return None
        return Begun(position, place.phase, place.after)

    def _begin_again(self, reader: Reader, view: View) -> None:
        """Forget a fill that cannot go on."""
        if place_of(reader, view.id) is not None:
            self.engine.erase(*keyspace.relation_range(view.id))
            self.engine.erase(*listed_range(view.id))
            self.commits.derive(
                lambda newest: [watermark_write(view.id, None), place_write(view.id, None)]
            )

    def _scanned_together(
        self, view: View, among: Sequence[View] | None, reader: Reader, begun: Begun | None
    ) -> list[View]:
        """The view, and others that are filled by the same walk of the same table, from the same
        place."""
        table = self._walked(reader, view, begun)
        if table is None:
            return [view]
        if among is None:
            made = [one for one in self.catalog.views if one.version == view.version]
            among = [one for one in made if one.state is State.BUILDING]
        with self.begin() as looked:
            others = [
                one
                for one in among
                if one.id != view.id
                and not self._is_filled(one)
                and self._begun(looked, one) == begun
                and self._walked(reader, one, begun) == table
            ]
            for one in others if begun is None else ():
                self._begin_again(looked, one)
        return [view, *others]

    def _walked(self, reader: Reader, view: View, begun: Begun | None) -> int | None:
        """The table whose walk is all there is to the fill of a view."""
        maintainer = self.keeper.maintainer(reader.catalog, view)
        return way_for(self.keeper, maintainer, begun=begun is not None).table

    def _backfill(self, views: Sequence[View], reader: Reader, build: Build) -> None:
        backfill(self.commits, self.keeper, views, reader, build)

    def rebuild_views(self) -> None:
        """Make the state of every view again from its tables, while nobody else is here."""
        ready = [view for view in self.catalog.views if view.state is State.READY]
        self.commits.derive(
            lambda reader: [watermark_write(mark, None) for v in ready for mark in (v.id, v.group)]
        )
        for view in ready:
            self.store.delete_range(*keyspace.relation_range(view.id))
            self.store.delete_range(*keyspace.stream_range(view.id))
        with self.watched(Build()):
            for view in ready:
                self._fill_view(view, ready)
        self.commits.derive(lambda reader: list(_settled(reader, ready)))


def _settled(reader: Reader, views: Sequence[View]) -> Iterator[Write]:
    """Views that were made again move with their groups, all from one position."""
    for view in views:
        yield watermark_write(view.id, None)
        if view.group:
            yield watermark_write(view.group, required_position(reader, view))
        if OPTION in view.options:
            yield stream_start(view.id, required_position(reader, view))
