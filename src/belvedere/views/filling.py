"""Filling the views of an open database: those of one transaction together, those of a restore.

A part of `ViewHost`. How a fill goes is in `views.backfill`; here is who is filled with whom, under
whose eyes, and from which position.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import State, View
from belvedere.codec import keyspace
from belvedere.kv.batch import BatchStore, Write
from belvedere.txn.border import SNAPSHOT, ChangeLog, CommitProtocol, Isolation, Published, Reader
from belvedere.txn.transaction import Transaction
from belvedere.views.backfill import Build, backfill, is_resumable
from belvedere.views.build import STAGED
from belvedere.views.deferred import Deferred
from belvedere.views.keep import Keeper
from belvedere.views.pending import required_position
from belvedere.views.stream import OPTION, stream_start
from belvedere.views.watermarks import watermark, watermark_write

_builds = threading.local()


class Filling:
    """Mixed into ViewHost."""

    store: BatchStore
    visibility: Published
    log: ChangeLog
    commits: CommitProtocol
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
        if view.id in build.filled or self._is_filled(view):
            return
        with self._as_begun(view) as reader:
            pin = self.log.pin(reader.position)
            try:
                together = self._scanned_together(view, among, reader)
                self._backfill(together, reader, build)
                for one in together:
                    self.deferred.refresh(one)
                    build.filled.add(one.id)
            finally:
                self.log.unpin(pin)

    def _build(self) -> Build:
        """Under whose eyes this thread fills a view."""
        return getattr(_builds, "build", None) or Build(share=lambda: self._share)

    def _is_filled(self, view: View) -> bool:
        """Whether it was filled in the scan of another one: it has a watermark, and no rest."""
        with self.begin() as reader:
            return watermark(reader, view.id) is not None and not is_resumable(reader, view)

    def resumable_views(self) -> list[int]:
        """The views whose fill was cut short and can go on."""
        with self.begin() as reader:
            building = [v for v in self.catalog.views if v.state is State.BUILDING]
            return [v.id for v in building if is_resumable(reader, v) and STAGED not in v.options]

    def _as_begun(self, view: View) -> AbstractContextManager[Reader]:
        """A reader for the fill: of now, or of where one that was cut short had begun."""
        with self.begin() as looked:
            begun = watermark(looked, view.id)
            if begun is not None and is_resumable(looked, view):
                return self.as_of(begun)
        return self.begin()

    def _scanned_together(
        self, view: View, among: Sequence[View] | None, reader: Reader
    ) -> list[View]:
        table = self.keeper.maintainer(reader.catalog, view).table
        if table is None:
            return [view]
        if among is None:
            made = [one for one in self.catalog.views if one.version == view.version]
            among = [one for one in made if one.state is State.BUILDING]
        return [
            view,
            *(
                one
                for one in among
                if one.id != view.id
                and self.keeper.maintainer(reader.catalog, one).table == table
                and not is_resumable(reader, one)
            ),
        ]

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
