"""The backfill of an index of a table, while writers continue.

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

import time
from collections.abc import Callable, Iterable

from belvedere import failpoints, interrupts
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Index
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.codec import keyspace
from belvedere.kv.batch import Write
from belvedere.txn.contracts import Reader
from belvedere.txn.engine import Engine
from belvedere.views.backfill.backfill_views import open_newest_reader
from belvedere.views.indexes.entries import CompileExpression, IndexParticipant
from belvedere.views.state.backfill_progress import (
    BackfillProgress,
    build_progress_write,
    read_backfill_progress,
)

CHUNK_ROWS = 256
"""The rows of the first chunk; later ones grow as long as a chunk keeps commits waiting for less
than CHUNK_S."""

CHUNK_ROWS_MAX = 16_384
CHUNK_S = 0.02

Progress = Callable[[int], None]
"""Called with the number of rows walked so far."""


def backfill_index(
    engine: Engine,
    catalog: Catalog,
    index: Index,
    compile_expression: CompileExpression,
    progress: Progress | None = None,
) -> None:
    """Write the index entries of every row of the table. 23505 when values are not unique."""
    commits = engine.commits
    table = compiled_table(catalog, index.table)
    participant = IndexParticipant(catalog, index, compile_expression)
    begun = read_backfill_progress(open_newest_reader(commits), index.id)
    if begun is not None and begun.plan_name != _PLAN_NAME:
        engine.erase_range(*keyspace.relation_range(index.id))
        begun = None
    start, done, limit = table.start if begun is None else begun.after, 0, CHUNK_ROWS
    while True:
        walked: list[bytes] = []
        entries: list[Write] = []
        seconds = [0.0]

        def build_chunk_writes(
            reader: Reader,
            start: bytes = start,
            limit: int = limit,
            walked: list[bytes] = walked,
            entries: list[Write] = entries,
            seconds: list[float] = seconds,
        ) -> list[Write]:
            started = time.perf_counter()
            scanned = reader.scan(start, table.end, limit=limit, batch_rows=limit)
            rows = next(iter(scanned), [])
            walked[:] = [key for key, _ in rows]
            more = len(rows) == limit
            place = BackfillProgress(_PLAN_NAME, 0, walked[-1] + b"\0") if more else None
            entries[:] = _build_chunk_entries(participant, [value for _, value in rows], reader)
            seconds[0] = time.perf_counter() - started
            return [build_progress_write(index.id, place)]

        commits.derive(build_chunk_writes, entries)
        done += len(walked)
        if failpoints.armed and walked:
            failpoints.hit("backfill.chunk")
        if progress is not None:
            progress(done)
        interrupts.check_statement()
        if len(walked) < limit:
            return
        start = walked[-1] + b"\0"
        limit = _adapt_chunk_rows(limit, seconds[0])


_PLAN_NAME = "rows of its table"


def _adapt_chunk_rows(rows: int, seconds: float) -> int:
    """The rows of the next chunk, when this many took so long in the commit section."""
    if seconds > CHUNK_S:
        return max(rows // 2, CHUNK_ROWS)
    return min(2 * rows, CHUNK_ROWS_MAX) if seconds < CHUNK_S / 3 else rows


def _build_chunk_entries(
    participant: IndexParticipant, values: list[bytes], reader: Reader
) -> Iterable[Write]:
    if not participant.unique:  # keys hold the primary key: nothing to collide with
        return participant.build_index_entries(values)
    mine: dict[bytes, bytes] = {}
    for value in values:
        entry = participant.build_index_entry(value)
        if entry is not None:
            key, stored = entry
            known = mine.get(key) or reader.get(key)
            if known is not None and known != stored:
                raise participant.duplicate_key_error(stored)
            mine[key] = stored
    return mine.items()
