"""The build state of indexes and views, and the backfill of an index while writers continue.

The index is in the catalog first, in state BUILDING, so every commit from then on maintains its
entries. The rows that existed before are then walked in chunks; each chunk is read and its entries
are written inside the commit section, so no row can change in between, and an entry is right from
the moment it is written. A row seen twice (by a commit and by its chunk) gives the same entry
twice. No statement reads the index before it is READY.

A failed build leaves nothing: the index is dropped again, with its entries. A build interrupted by
a crash is dropped when the store is opened, or resumed together with the views that need the index
(its progress is written with every chunk).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from belvedere import failpoints
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Index, State, View
from belvedere.catalog.relation import compiled_table
from belvedere.catalog.view_options import Backfill
from belvedere.kv.batch import Write
from belvedere.txn.border import CommitProtocol, Reader
from belvedere.views.fill_place import Place, place_of, place_write
from belvedere.views.rekey import CompileExpression, RekeyParticipant

CHUNK_ROWS = 256

Progress = Callable[[int], None]
"""Called with the number of rows walked so far."""


def unfinished(catalog: Catalog) -> tuple[Index | View, ...]:
    """The indexes and views whose build has begun and not ended: not backfilled yet, or staged and
    not yet put in place of the view they replace."""
    return tuple(
        item
        for item in catalog.objects.values()
        if isinstance(item, Index | View) and unfinished_item(item)
    )


def unfinished_item(item: Index | View | None) -> bool:
    if item is None or (isinstance(item, View) and filled_later(item)):
        return False
    return item.state is State.BUILDING or is_staged(item)


def is_staged(item: Index | View) -> bool:
    """Whether it was made to take the place of another view and has not done so."""
    return isinstance(item, View) and item.state is State.READY and item.replaces is not None


def gone_on_with(left: Sequence[Index | View], *, every: bool) -> list[Index | View]:
    """The unfinished items whose build is resumed: resumable views, or with `every` all views; and
    the indexes and auxiliary views they depend on. In the order in which they are backfilled."""
    asked = [item for item in left if _is_resumable(item) or (every and not _is_second(item))]
    views = [item for item in asked if isinstance(item, View)]
    below = {id_ for view in views for id_ in (*view.supporting_objects, *view.auxiliary_views)}
    kept = [item for item in left if item in asked or item.id in below]
    return sorted(kept, key=lambda item: item.id)


def _is_resumable(item: Index | View) -> bool:
    return isinstance(item, View) and item.options.backfill is Backfill.RESUMABLE


def _is_second(item: Index | View) -> bool:
    """Whether it was to take the place of another view, which serves."""
    return isinstance(item, View) and item.replaces is not None


def filled_later(view: View) -> bool:
    """Whether the view waits for `belvedere pipeline backfill`, also across a restart."""
    return view.state is State.BUILDING and view.options.backfill is Backfill.LATER


def fill_index(
    commits: CommitProtocol,
    catalog: Catalog,
    index: Index,
    compile_expression: CompileExpression,
    progress: Progress | None = None,
) -> None:
    """Write the index entries of every row of the table. 23505 when values are not unique."""
    table = compiled_table(catalog, index.table)
    participant = RekeyParticipant(catalog, index, compile_expression)
    start, done = _begun(commits, index) or table.start, 0
    while True:
        walked: list[bytes] = []

        def chunk(
            reader: Reader, start: bytes = start, walked: list[bytes] = walked
        ) -> list[Write]:
            rows = next(iter(reader.scan(start, table.end, limit=CHUNK_ROWS)), [])
            walked.extend(key for key, _ in rows)
            place = Place(_WAY, 0, walked[-1] + b"\0") if walked else None
            entries = _entries(participant, (value for _, value in rows), reader)
            return [*entries, place_write(index.id, place)]

        commits.derive(chunk)
        if not walked:
            return
        start, done = walked[-1] + b"\0", done + len(walked)
        if failpoints.armed:
            failpoints.hit("backfill.chunk")
        if progress is not None:
            progress(done)


_WAY = "rows of its table"


def _begun(commits: CommitProtocol, index: Index) -> bytes | None:
    """The key at which an interrupted backfill continues."""
    found: list[Place | None] = []

    def look(newest: Reader) -> list[Write]:
        found.append(place_of(newest, index.id))
        return []

    commits.derive(look)
    return None if found[0] is None else found[0].after


def _entries(
    participant: RekeyParticipant, values: Iterable[bytes], reader: Reader
) -> Iterable[Write]:
    if not participant.unique:  # keys hold the primary key: nothing to collide with
        return [entry for value in values if (entry := participant.entry(value)) is not None]
    mine: dict[bytes, bytes] = {}
    for value in values:
        entry = participant.entry(value)
        if entry is not None:
            key, stored = entry
            known = mine.get(key) or reader.get(key)
            if known is not None and known != stored:
                raise participant.duplicate(stored)
            mine[key] = stored
    return mine.items()
