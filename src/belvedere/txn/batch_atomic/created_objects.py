"""Objects that a commit changes in the catalog, or creates.

Indexes and views that it creates are filled by it, from the state after its changes. Everything
else in the commit is derived as if they were still being built: they have no rows yet by which
others could be found. What it creates goes together with what others changed (`catalog.merge`).
"""

from __future__ import annotations

from collections.abc import Sequence

from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog, is_dropped
from belvedere.catalog.merge import accepts_rows_of, merge_created_objects
from belvedere.codec import keyspace
from belvedere.errors import Corruption
from belvedere.txn.contracts import (
    BackfillParticipant,
    Intent,
    Participant,
    ParticipantsFor,
    Reader,
    RowChange,
    Rows,
    Snapshot,
)
from belvedere.txn.history.derived_rows import DerivedRows
from belvedere.txn.history.readers import OverlayReader
from belvedere.txn.transaction.schema_change import encode_catalog_key

CATALOG_PREFIX = keyspace.row_prefix(model.CATALOG_RELATION)


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


def decode_catalog_changes(changes: Sequence[RowChange]) -> dict[int, model.AnyObject | None]:
    """The objects of the catalog rows among these changes, by id (None: removed)."""
    changed: dict[int, model.AnyObject | None] = {}
    for change in changes:
        if change.key.startswith(CATALOG_PREFIX):
            stored = change.new if change.new is not None else change.old
            if stored is None:
                raise Corruption("a catalog change without a row")
            item = model.decode(stored)
            changed[item.id] = item if change.new is not None else None
    return changed


def merge_catalog_changes(intent: Intent, newest: Snapshot) -> Intent:
    """The intent with what it creates as a change of the newest catalog; as it is where it creates
    nothing, or where the two do not go together."""
    changed = decode_catalog_changes(intent.changes)
    merged = merge_created_objects(intent.snapshot.catalog, newest.catalog, changed)
    if merged is None:
        return intent
    head = model.encode(newest.catalog.head)
    rows = dict(zip(map(encode_catalog_key, merged), model.encode_all(merged.values())))
    head_key = encode_catalog_key(model.HEAD_ID)
    changes = [
        RowChange(one.key, head if one.key == head_key else None, rows[one.key], newest.batch)
        if one.key in rows
        else one
        for one in intent.changes
    ]
    return intent._replace(changes=tuple(changes))


def redefines_written_table(intent: Intent, newest: Catalog) -> bool:
    """Whether a table that was written is not what it was. One that the transaction itself has made
    is in neither catalog."""
    planned = intent.snapshot.catalog
    for relation in {change.relation for change in intent.changes}:
        item, before = newest.get(relation), planned.get(relation)
        if relation < model.FIRST_USER_ID or (item is None and before is None):
            continue
        if item is None or is_dropped(item):
            return True
        if item.version > planned.version and not accepts_rows_of(before, item):
            return True
    return False
