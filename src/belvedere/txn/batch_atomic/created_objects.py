"""Indexes and views that a commit creates: filled by that commit, from the state after its changes.

Everything else in the commit is derived as if they were still being built: they have no rows yet by
which others could be found.
"""

from __future__ import annotations

from collections.abc import Sequence

from belvedere.codec import keyspace
from belvedere.txn.contracts import (
    BackfillParticipant,
    Participant,
    ParticipantsFor,
    Reader,
    RowChange,
    Rows,
)
from belvedere.txn.history.derived_rows import DerivedRows
from belvedere.txn.history.readers import OverlayReader


def derive_rows_and_backfill(
    reader: Reader,
    changes: Sequence[RowChange],
    participants: Sequence[Participant],
    participants_for: ParticipantsFor,
) -> Rows | None:
    """The derived rows of a commit that creates something; None: it does not. `reader` shows the
    state before it, by the catalog after it."""
    if all(change.old is not None for change in changes):
        return None
    drivers = [one for one in participants if isinstance(one, BackfillParticipant)]
    created = {id_: item for one in drivers for id_, item in one.find_created(changes).items()}
    if not created:
        return None
    building = reader.catalog.with_objects(created)
    before = OverlayReader(reader, {}, reader.position, building)
    writer = DerivedRows(before)
    writer.shared_results[BackfillParticipant] = created
    relations = frozenset([change.relation for change in changes])
    for participant in participants_for(building, relations):
        participant.writes(changes, before, writer)
    prefixes = {keyspace.row_prefix(id_) for id_ in created}
    kept = keyspace.ROW_PREFIX_BYTES
    rows = {key: row for key, row in writer.rows.items() if key[:kept] not in prefixes}
    overlay = {change.key: change.new for change in changes} | rows
    after = OverlayReader(reader, overlay, reader.position + 1, reader.catalog)
    for driver in drivers:
        rows.update(driver.backfill_created(created, after))
    return rows
