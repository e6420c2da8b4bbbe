"""The first fill of views: beside running writers, several in one scan, in steps that are kept.

    1  the position s of a snapshot is written as the watermark of each view: from here on the log
       keeps what they will need
    2  the tables are read at s. Views that take the rows of one table each by itself (with rows of
       others by their keys) are filled together, in one walk of the table: after some rows what
       was added up so far is written, with the place in the table, as one batch. Other views are
       worked out as a whole
    3  the caller catches up from the log and lets the views be read

A walk that was cut short by the death of the process can go on: the table as of s is its newest
rows undone by the log. `Build` is how whoever asked for the views watches, slows or stops it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from belvedere import failpoints
from belvedere.catalog.model import View
from belvedere.catalog.relation import compiled_table
from belvedere.kv.batch import SCAN_BATCH_ROWS, Pair
from belvedere.txn.border import CommitProtocol, Get, Reader
from belvedere.txn.commit.derived import DerivedRows
from belvedere.views.additions import Nothing, Recorder, state_rows
from belvedere.views.group import Keeps
from belvedere.views.maintain import Maintainer
from belvedere.views.quick import Remembered
from belvedere.views.summing import Sums
from belvedere.views.watermarks import place_key, watermark, watermark_write

T = TypeVar("T")
GROUPS_MAX = 20_000
"""So many groups are added up in memory before they are written: one batch, one short section."""

ROWS_MAX = 500_000
"""So many rows at most are walked again after a kill."""


@dataclass(slots=True)
class Build:
    """`check` raises when the build is to stop; `progress` is told the rows read so far; `share`
    is how much of the time it may take."""

    check: Callable[[], None] = lambda: None
    progress: Callable[[int], None] = lambda rows: None
    share: Callable[[], float] = lambda: 1.0
    sleep: Callable[[float], None] = time.sleep
    rows: int = 0
    filled: set[int] = field(default_factory=set)

    def read(self, rows: int, spent_s: float) -> None:
        """Some rows are done, in so much time."""
        self.rows += rows
        self.progress(self.rows)
        self.check()
        share = self.share()
        if share < 1.0:
            self.sleep(spent_s * (1 - share) / share)


def place_of(reader: Reader, view: int) -> bytes | None:
    """Where the walk of a view's table is: rows of smaller keys are in the view. None: it was not
    begun, or is over."""
    return reader.get(place_key(view))


def backfill(
    commits: CommitProtocol, keeper: Keeps, views: Sequence[View], reader: Reader, build: Build
) -> None:
    """Write the state of these views as of `reader`, with their watermarks. Views that were begun
    before go on where they were; `reader` is then at their watermark."""
    position = reader.position
    if failpoints.armed and failpoints.planted("view_snapshot_early"):
        position = commits.newest.position
    looked = commits_reader(commits)
    new = [view for view in views if place_of(looked, view.id) is None]
    commits.derive(lambda newest: [watermark_write(view.id, position) for view in new])
    walks: dict[int, list[View]] = {}
    for view in views:
        table = keeper.maintainer(reader.catalog, view).table
        if table is None:
            _whole(commits, keeper.maintainer(reader.catalog, view), reader, build)
        else:
            walks.setdefault(table, []).append(view)
    for table, together in walks.items():
        _walk(commits, keeper, table, together, reader, build)


def _whole(commits: CommitProtocol, maintainer: Maintainer, reader: Reader, build: Build) -> None:
    recorder = Recorder()
    maintainer.fill(Watched(reader, build), recorder)
    writer = DerivedRows(Nothing(reader.catalog))
    for addition in recorder.additions:
        writer.add(*addition)
    rows = writer.writes()
    commits.derive(lambda newest: rows)


def _walk(
    commits: CommitProtocol,
    keeper: Keeps,
    table: int,
    views: Sequence[View],
    reader: Reader,
    build: Build,
) -> None:
    """One walk of a table for several views, from where the first of them is."""
    compiled = compiled_table(reader.catalog, table)
    get = Remembered(reader.get).__getitem__
    steps = [
        _Filling(commits, view, keeper.maintainer(reader.catalog, view), get) for view in views
    ]
    begun = {step.begun for step in steps}
    if len(begun) > 1:  # views of several builds: each walks by itself
        for view in views:
            _walk(commits, keeper, table, [view], reader, build)
        return
    (start,) = begun
    walked = 0
    for values in reader.scan_values(start or compiled.start, compiled.end):
        started = time.perf_counter()
        for step in steps:
            step.add(values)
        walked += len(values)
        if walked >= ROWS_MAX or max(len(step.sums) for step in steps) >= GROUPS_MAX:
            for step in steps:
                step.write(compiled.key_of(compiled.decode(values[-1])) + b"\0")
            walked = 0
            if failpoints.armed:
                failpoints.hit("backfill.chunk")
        build.read(len(values), time.perf_counter() - started)
    for step in steps:
        step.write(None)


class _Filling:
    """One view on a walk."""

    def __init__(
        self, commits: CommitProtocol, view: View, maintainer: Maintainer, get: Get
    ) -> None:
        self._commits = commits
        self._get = get
        self._view = view
        self._maintainer = maintainer
        self.sums: Sums = {}
        self.begun = place_of(commits_reader(commits), view.id)

    def add(self, values: list[bytes]) -> None:
        self._maintainer.sum_rows(values, self._get, self.sums)

    def write(self, following: bytes | None) -> None:
        """Add what was added up to what is stored. Nobody else writes a view that is being built,
        so that its rows can be read outside of the section."""
        recorder = Recorder()
        self._maintainer.write_sums(self.sums, recorder)
        self.sums = {}
        rows = state_rows(commits_reader(self._commits), recorder.additions)
        place = (place_key(self._view.id), following)
        self._commits.derive(lambda newest: [*rows, place])


def commits_reader(commits: CommitProtocol) -> Reader:
    """What is published now, for looking."""
    snapshot = commits.snapshot()
    try:
        return commits.reader(snapshot)
    finally:
        commits.release(snapshot)


def is_resumable(reader: Reader, view: View) -> bool:
    """Whether a walk was begun that can go on."""
    return place_of(reader, view.id) is not None and watermark(reader, view.id) is not None


class Watched:
    """A Reader whose scans tell the build how many rows they have given, and stop with it."""

    def __init__(self, under: Reader, build: Build) -> None:
        self._under = under
        self._build = build
        self.position = under.position
        self.catalog = under.catalog
        self.get = under.get
        self.multi_get = under.multi_get

    def scan(
        self,
        start: bytes,
        end: bytes,
        *,
        reverse: bool = False,
        limit: int | None = None,
        batch_rows: int = SCAN_BATCH_ROWS,
    ) -> Iterator[list[Pair]]:
        pairs = self._under.scan(start, end, reverse=reverse, limit=limit, batch_rows=batch_rows)
        return self._told(pairs)

    def scan_values(
        self, start: bytes, end: bytes, *, batch_rows: int = SCAN_BATCH_ROWS
    ) -> Iterator[list[bytes]]:
        return self._told(self._under.scan_values(start, end, batch_rows=batch_rows))

    def _told(self, batches: Iterator[list[T]]) -> Iterator[list[T]]:
        started = time.perf_counter()
        for batch in batches:
            yield batch
            now = time.perf_counter()
            self._build.read(len(batch), now - started)
            started = now
