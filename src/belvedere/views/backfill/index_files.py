"""The backfill of a large index by columns: as sorted files of one snapshot, which the store takes
in whole.

Commits maintain the entries of an index that is being built. A file holds the entries of the
snapshot and hides what commits have written or deleted since, so afterwards the log tells which
rows have changed: inside the commit section the entry that the file has of such a row is deleted,
and the newest one is put.

The progress says that files are taken in. Of a backfill that was interrupted meanwhile the entries
are erased first, as they may be those of rows that are gone.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from belvedere import failpoints
from belvedere.catalog.model import Index
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.codec import keyspace
from belvedere.kv.batch import BULK_BATCH_ROWS, Write
from belvedere.txn.contracts import Reader
from belvedere.txn.gc_pause import pause_cycle_collector
from belvedere.views.backfill.backfill_views import BuildControl, open_newest_reader
from belvedere.views.backfill.column_backfill import FILE_ENTRIES_MAX
from belvedere.views.backfill.contracts import HostDatabase
from belvedere.views.indexes.entries import IndexParticipant
from belvedere.views.maintain.state_entries import StateEntries
from belvedere.views.state.backfill_progress import (
    BackfillProgress,
    build_progress_write,
    read_backfill_progress,
)

BY_FILES = "sorted files"

POSITIONS_MAX = 2_000
"""The most positions of the log that one stay in the commit section catches up with."""


def try_backfill_index_by_files(host: HostDatabase, index: Index, build: BuildControl) -> bool:
    """Write the entries of every row of the table; False where they have no form by columns, the
    store takes no files, or the backfill was begun by rows: nothing is written then."""
    begun = read_backfill_progress(open_newest_reader(host.commits), index.id)
    if not host.engine.ingest_pairs(()) or (begun is not None and begun.plan_name != BY_FILES):
        return False
    participant = IndexParticipant(host.catalog, index, host.compile_expression)
    if begun is not None:
        host.engine.erase_range(*keyspace.relation_range(index.id))
    place = BackfillProgress(BY_FILES)
    with host.begin() as reader:
        pin = host.log.pin(reader.position)
        try:
            entries = _try_collect_sorted_entries(participant, reader, build)
            if entries is None:
                return False
            host.commits.derive(lambda newest: [build_progress_write(index.id, place)])
            with pause_cycle_collector():
                for some in entries.list_batches_from(b"", FILE_ENTRIES_MAX):
                    host.engine.ingest_pairs(some)
                    if failpoints.armed:
                        failpoints.hit("backfill.chunk")
                    build.check()
            _catch_up_changed_entries(host, participant, reader.position, build)
        finally:
            host.log.unpin(pin)
    return True


def _try_collect_sorted_entries(
    participant: IndexParticipant, reader: Reader, build: BuildControl
) -> StateEntries | None:
    import pyarrow as pa  # heavy

    from belvedere.codec.arrow.arrow_to_state import sort_pairs  # heavy

    table = compiled_table(reader.catalog, participant.table_id)
    found = []
    started = time.perf_counter()
    for values in reader.scan_values(table.start, table.end, batch_rows=BULK_BATCH_ROWS):
        columns = participant.try_encode_entries_by_columns(values)
        if columns is None:
            return None
        found.append(columns)
        build.report_rows_and_throttle(len(values), time.perf_counter() - started)
        started = time.perf_counter()
    if not found:
        return StateEntries()
    return StateEntries(columns=sort_pairs(*[pa.concat_arrays(arrays) for arrays in zip(*found)]))


def _catch_up_changed_entries(
    host: HostDatabase, participant: IndexParticipant, position: int, build: BuildControl
) -> None:
    """Make the entries of rows that have changed since `position` those of the newest rows."""
    reached = [position]
    while True:
        entries: list[Write] = []
        ended = [False]

        def build_catch_up_writes(
            newest: Reader, entries: list[Write] = entries, ended: list[bool] = ended
        ) -> list[Write]:
            through = min(newest.position, reached[0] + POSITIONS_MAX)
            entries[:] = _build_changed_entry_writes(host, participant, newest, reached[0], through)
            reached[0] = through
            ended[0] = through == newest.position
            place = None if ended[0] else BackfillProgress(BY_FILES)
            return [build_progress_write(participant.index_id, place)]

        host.commits.derive(build_catch_up_writes, entries)
        if ended[0]:
            return
        build.check()


def _build_changed_entry_writes(
    host: HostDatabase, participant: IndexParticipant, newest: Reader, after: int, through: int
) -> Sequence[Write]:
    """The entries of the rows that changed in this range of the log, as their newest rows have
    them; those before the range are deleted."""
    prefix = keyspace.row_prefix(participant.table_id)
    before: dict[bytes, bytes | None] = {}
    for record in host.log.read_written(after, through):
        for change in record.changes():
            if change.relation == participant.table_id:
                before.setdefault(prefix + change.key, change.old)
    rows = newest.multi_get(list(before))
    found: dict[bytes, bytes | None] = {}
    for old, new in zip(before.values(), rows, strict=True):
        stale, entry = participant.build_index_entry(old), participant.build_index_entry(new)
        if stale is not None:
            found[stale[0]] = None
        if entry is not None:
            found[entry[0]] = entry[1]
    return list(found.items())
