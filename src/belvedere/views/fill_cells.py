"""A fill in steps on a row-atomic store, which another node can go on with.

    1  what writers have added since the view is in the catalog is taken for nothing, as of a
       snapshot s: sums of zero, as folds at s. What they add later stays
    2  one batch of maintenance writes s as the view's watermark, which keeps the log and the
       versions of rows from s on, and the place where the fill begins
    3  the tables are walked as of s (`views.fill_steps`). After some rows what was added up is
       added to the view, with the place, by a batch of maintenance: a record of the log, written
       once, and only while this node is the builder (`views.builders`)
    4  the view becomes ready; of an immediate one, the watermark goes

A fill that cannot go on (its way has changed) begins at 1 again: the zeros of the later snapshot
take in what the earlier one had added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from belvedere import failpoints
from belvedere.catalog.model import View
from belvedere.codec import keyspace
from belvedere.kv.batch import Write
from belvedere.txn.border import Reader
from belvedere.txn.row import cells
from belvedere.txn.row.protocol import Addition, RowCommit
from belvedere.txn.transaction import Transaction
from belvedere.views.backfill import Build, Following, Steps, Watched
from belvedere.views.builders import require_builder
from belvedere.views.fill_place import Place, place_of, place_write
from belvedere.views.fill_steps import WHOLE, Fill, way_of
from belvedere.views.keep import Keeper
from belvedere.views.watermarks import watermark, watermark_write

AsOf = Callable[[int], AbstractContextManager[Reader]]


def fill_in_steps(
    commits: RowCommit,
    begin: Callable[[], Transaction],
    as_of: AsOf,
    keeper: Keeper,
    view: View,
    build: Build,
) -> bool:
    """Fill a view, or go on with it; False when it has to be filled as a whole."""
    with begin() as snapshot:
        maintainer = keeper.maintainer(snapshot.catalog, view)
        way = way_of(maintainer, small=False)
        if way.name == WHOLE:
            return False
        place, position = place_of(snapshot, view.id), watermark(snapshot, view.id)
        if place is None or position is None or place.way != way.name:
            place, position = Place(way.name), snapshot.position
            _begin(commits, snapshot, view, place)
    with as_of(position) as reader:
        fill = Fill(view, maintainer, way, (reader, Watched(reader, build)))
        steps = Steps(commits, reader, build, _Records(commits))
        if way.table is None:
            steps.alone(fill, place)
        elif place.phase == 0:
            steps.walk([fill], 0, way.table, place.after)
    return True


def _begin(commits: RowCommit, snapshot: Transaction, view: View, place: Place) -> None:
    at = snapshot.position
    found = commits.sums(*keyspace.relation_range(view.id), at)
    zeros = [
        cells.set_sum(key, payload, (0,) * len(amounts))
        for key, (payload, amounts) in found.items()
    ]
    commits.fill(at, zeros)

    def make(newest: Reader) -> list[Write]:
        require_builder(newest, view.id, commits.node.id)
        return [watermark_write(view.id, at), place_write(view.id, place)]

    commits.derive(make)
    if failpoints.armed:
        failpoints.hit("backfill.chunk")


class _Records:
    """One record of the log for each step."""

    def __init__(self, commits: RowCommit) -> None:
        self._commits = commits

    def write(self, fills: Sequence[Fill], following: Following) -> None:
        """A fill that is over stays at its end until the view is ready."""
        (fill,) = fills
        additions, keys = fill.taken()
        phase, after = following or (fill.way.steps, b"")
        rows = [*keys, place_write(fill.view.id, Place(fill.way.name, phase, after))]
        node, id_ = self._commits.node.id, fill.view.id

        def make(newest: Reader) -> tuple[list[Write], list[Addition]]:
            require_builder(newest, id_, node)
            return rows, additions

        self._commits.add(make)
