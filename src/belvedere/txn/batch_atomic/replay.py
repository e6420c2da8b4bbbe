"""Replay of log records into a store, forward (replay) and backward (rewind).

Forward: records applied to a store in groups. The changes of a group are consolidated per key
(first old row, last new row), participants derive their rows once per group, and log records, base
rows and derived rows go in as one batch. A group ends where the catalog changes; an index that
becomes ready is backfilled from its table there.

Backward (`rewind`): the same with the changes turned around, then the log is cut. Rows of a dropped
table are still there while the log remembers the drop, so a rewind past it brings the table back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from msgspec import structs

from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog, is_dropped
from belvedere.catalog.model import Index, ObjectState, Table
from belvedere.codec import keyspace
from belvedere.codec.record import LogRecord, decode_record
from belvedere.errors import Corruption
from belvedere.kv.batch import BatchStore, Write
from belvedere.txn.batch_atomic.commit import apply_catalog_changes
from belvedere.txn.batch_atomic.log_chunks import delete_log_range, split_record
from belvedere.txn.contracts import Participant, ParticipantsFor, RowChange
from belvedere.txn.history.derived_rows import DerivedRows
from belvedere.txn.history.past_reader import before_images, catalog_before
from belvedere.txn.history.readers import NewestReader

GROUP_CHANGES = 4096


@dataclass(slots=True)
class _RecordGroup:
    """Consecutive records, their changes consolidated."""

    log: list[Write] = field(default_factory=list)
    old: dict[bytes, bytes | None] = field(default_factory=dict)
    new: dict[bytes, bytes | None] = field(default_factory=dict)
    relations: set[int] = field(default_factory=set)
    position: int = 0

    def net_changes(self) -> tuple[RowChange, ...]:
        return tuple(
            RowChange(key, self.old[key], new)
            for key, new in self.new.items()
            if self.old[key] != new
        )


def replay_records(
    records: Iterable[bytes],
    store: BatchStore,
    catalog: Catalog,
    participants_for: ParticipantsFor,
) -> int:
    """Apply encoded records, in order, to a store at the state before them; returns how many
    changes there were."""
    prefixes: dict[int, bytes] = {}
    group, total, expected = _RecordGroup(), 0, None
    for data in records:
        record = decode_record(data)
        if expected is not None and record.position != expected:
            raise Corruption("the log has a hole", expected=expected, found=record.position)
        expected = record.position + 1
        schema_change = _collect_record(record, data, group, prefixes)
        total += record.change_count
        if schema_change or len(group.new) >= GROUP_CHANGES:
            catalog = _apply_group(group, store, catalog, participants_for)
            group = _RecordGroup()
    if group.log:
        _apply_group(group, store, catalog, participants_for)
    return total


def _collect_record(
    record: LogRecord, data: bytes, group: _RecordGroup, prefixes: dict[int, bytes]
) -> bool:
    group.log += split_record(record.position, data)
    group.position = record.position
    old_rows, new_rows, relations = group.old, group.new, group.relations
    for relation, key, old, new in record.changes():
        prefix = prefixes.get(relation)
        if prefix is None:
            prefix = prefixes[relation] = keyspace.row_prefix(relation)
        whole = prefix + key
        if whole not in new_rows:
            old_rows[whole] = old
        new_rows[whole] = new
        relations.add(relation)
    return model.CATALOG_RELATION in relations


def _apply_group(
    group: _RecordGroup, store: BatchStore, catalog: Catalog, participants_for: ParticipantsFor
) -> Catalog:
    after, derived = catalog, []
    if model.CATALOG_RELATION in group.relations:
        after = apply_catalog_changes(catalog, group.net_changes())
    # By the catalog after them: columns are only ever added, so it reads the older rows too.
    if _live_participants(group.relations, after, participants_for):
        derived = _derive_rows(group.net_changes(), store, after, group.position, participants_for)
    store.write([*group.log, *group.new.items(), *derived])
    if after is not catalog:
        _rebuild_indexes(store, catalog, after, participants_for)
    return after


def _derive_rows(
    changes: tuple[RowChange, ...],
    store: BatchStore,
    catalog: Catalog,
    position: int,
    participants_for: ParticipantsFor,
) -> list[Write]:
    touched = {int.from_bytes(prefix[1:]) for prefix in {c.key[:5] for c in changes}}
    reader = NewestReader(store, position, catalog)
    writer = DerivedRows(reader)
    for participant in _live_participants(touched, catalog, participants_for):
        participant.writes(changes, reader, writer)
    return writer.writes()


def _live_participants(
    relations: set[int], catalog: Catalog, participants_for: ParticipantsFor
) -> tuple[Participant, ...]:
    live = frozenset(id_ for id_ in relations if _is_live_table(catalog.get(id_)))
    return participants_for(catalog, live)


def _is_live_table(item: model.AnyObject | None) -> bool:
    return isinstance(item, Table) and not is_dropped(item)


def _rebuild_indexes(
    store: BatchStore, before: Catalog, after: Catalog, participants_for: ParticipantsFor
) -> None:
    """Backfill the indexes that became ready; remove the rows of relations that no longer exist. An
    index that is being built may not be unique, has no readers, and is dropped on open."""
    for id_ in before.objects.keys() | after.objects.keys():
        old, new = before.get(id_), after.get(id_)
        if isinstance(new, Index) and _is_ready(new) and not _is_ready(old):
            store.delete_range(*keyspace.relation_range(id_))
            store.write(list(_index_rows(store, after, new, participants_for)))
        elif new is None and isinstance(old, model.Relation):
            store.delete_range(*keyspace.relation_range(id_))


def _index_rows(
    store: BatchStore, catalog: Catalog, index: Index, participants_for: ParticipantsFor
) -> Iterator[Write]:
    """The rows of one index, made from its table as if every row were inserted now."""
    start, end = keyspace.relation_range(index.table)
    others: dict[int, model.AnyObject | None] = {
        other.id: None for other in catalog.table_indexes(index.table) if other.id != index.id
    }
    only = catalog.with_objects({**others, **_without_foreign_keys(catalog)})
    for batch in store.scan(start, end):
        changes = tuple(RowChange(key, None, value) for key, value in batch)
        yield from _derive_rows(changes, store, only, 0, participants_for)


def rewind(
    store: BatchStore,
    records: list[LogRecord],
    position: int,
    catalog: Catalog,
    participants_for: ParticipantsFor,
) -> Catalog:
    """Take the store back to `position` by undoing `records`, the log after it, and truncate the
    log."""
    before = before_images(records)
    earlier = catalog_before(catalog, before)
    keys = list(before)
    current = dict(zip(keys, store.multi_get(keys), strict=True))
    changes = tuple(
        RowChange(key, current[key], before[key]) for key in keys if current[key] != before[key]
    )
    # By the later catalog, which reads the earlier rows too; indexes that it lacks are rebuilt.
    deriving = _without_later_indexes(catalog, earlier)
    derived = _derive_rows(changes, store, deriving, position, participants_for)
    store.write([*before.items(), *derived])
    _rebuild_indexes(store, catalog, earlier, participants_for)
    delete_log_range(store, position, keyspace.POSITION_MAX)
    return earlier


def _without_later_indexes(catalog: Catalog, earlier: Catalog) -> Catalog:
    """The catalog without indexes that were not ready then: they must not reject older rows."""
    indexes = [item for item in catalog.objects.values() if isinstance(item, Index)]
    later = {one.id: None for one in indexes if not _is_ready(earlier.get(one.id))}
    return catalog.with_objects({**later, **_without_foreign_keys(catalog)})


def _without_foreign_keys(catalog: Catalog) -> dict[int, model.AnyObject | None]:
    """The tables without foreign keys, which depend on indexes and derive no rows."""
    return {table.id: structs.replace(table, foreign_keys=()) for table in catalog.tables}


def _is_ready(item: model.AnyObject | None) -> bool:
    return isinstance(item, Index) and item.state is ObjectState.READY
