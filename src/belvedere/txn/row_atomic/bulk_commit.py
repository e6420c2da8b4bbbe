"""The commit of a transaction of many rows: one lock and a hold on its tables, not a lock a row.

    1  take the lock of the load; hold the tables (`load_holds`); wait for everybody who has locks
    2  read the marker of every row to be written, some thousands at a time
    3  derive what participants derive, write the record in parts
    4  position, stamp and log row, as for every commit
    5  write the cells part by part; give back the hold, then the lock

What is held are the tables that the transaction changes, with all that a foreign key or a
materialized view joins to them: so no lock that one of these would have asked for can be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.foreign_key_graph import child_foreign_keys
from belvedere.catalog.model import Table
from belvedere.errors import Error, Retry
from belvedere.kv.cell import ReplyLost, Step, WorkExpired
from belvedere.txn.contracts import Intent, LockRequest
from belvedere.txn.row_atomic import catalog_barrier, commit, load_holds, locks
from belvedere.txn.row_atomic.cells import placement
from belvedere.txn.row_atomic.cells.layout import Record
from belvedere.txn.row_atomic.commit import CommitRequest
from belvedere.txn.row_atomic.locks import AttemptLocks
from belvedere.txn.row_atomic.log import advance, record_parts
from belvedere.txn.row_atomic.node import Node
from belvedere.txn.row_atomic.required_locks import build_request

BULK_CHANGES_MIN = 2_000
"""From so many changed rows on, waiting for all others once costs less than locks for the rows."""


def is_bulk(intent: Intent, relations: Iterable[int]) -> bool:
    """Whether a transaction is to be committed this way. One that changes the catalog is not."""
    if len(intent.changes) < BULK_CHANGES_MIN or model.CATALOG_RELATION in relations:
        return False
    return any(relation >= model.FIRST_USER_ID for relation in relations)


def list_held_relations(catalog: Catalog, relations: Collection[int]) -> set[int]:
    """These tables, and all that foreign keys and views join to them, directly or not."""
    found: set[int] = set()
    left = [relation for relation in relations if relation >= model.FIRST_USER_ID]
    while left:
        relation = left.pop()
        if relation not in found:
            found.add(relation)
            left += _list_joined(catalog, relation)
    return found


def _list_joined(catalog: Catalog, relation: int) -> Iterator[int]:
    item = catalog.get(relation)
    if isinstance(item, Table):
        yield from (key.parent for key in item.foreign_keys)
        yield from (child.id for child, _ in child_foreign_keys(catalog, relation))
    for view in catalog.dependent_views(relation):
        yield view.id
        yield from view.inputs


def prepare_bulk(
    node: Node, held: AttemptLocks, intent: Intent, catalog: Catalog, time: int
) -> Step[Record]:
    """Steps 1 and 2. The tables are held and everything seen is still so; otherwise nothing is
    held."""
    relations = {change.relation for change in intent.changes}
    tables = list_held_relations(catalog, relations)
    work = build_request(intent, catalog, _list_locks(intent, tables), time)
    return (yield from hold_and_verify(node, held, work, tables))


def hold_and_verify(
    node: Node, held: AttemptLocks, work: CommitRequest, tables: Collection[int]
) -> Step[Record]:
    """Take the lock of the load, hold its tables, wait for who has locks, and verify all rows."""
    try:
        yield from locks.take_locks(node, held, work.locks, advance.finish_attempt)
        yield from load_holds.add_hold(node, held, tables, work.transaction)
        yield from catalog_barrier.wait_for_writers(node)
        writes = yield from commit.verify_rows(node, held, work)
    except (ReplyLost, WorkExpired) as lost:
        yield from give_back(node, held)
        raise Retry("store does not answer") from lost
    except Error:
        yield from give_back(node, held)
        raise
    return Record(held.attempt, work.transaction, work.version, work.time, writes, work.body)


def _list_locks(intent: Intent, tables: set[int]) -> Iterator[LockRequest]:
    """That of the load, and those which the hold does not stand for."""
    yield LockRequest(catalog_barrier.LOAD, min(tables).to_bytes(4))
    for change in intent.changes:
        if change.relation < model.FIRST_USER_ID:
            yield LockRequest("claim", change.key)
    for request in intent.locks:
        if request.kind != "root" or placement.relation_of(request.key) not in tables:
            yield request


def complete_bulk(node: Node, held: AttemptLocks, record: Record) -> Step[int]:
    """Steps 4 and 5: the position of the commit. The hold goes when the rows are written, and when
    it is certain that they never will be."""
    try:
        position = yield from commit.append_record(node, held, record)
    except Retry:
        yield from record_parts.remove_parts(held.attempt)
        yield from load_holds.remove_hold(held.attempt)
        raise
    if (yield from commit.apply_and_release_again(node, held, position)):
        yield from load_holds.remove_hold(held.attempt)
    return position


def give_back(node: Node, held: AttemptLocks) -> Step[None]:
    """Give up an attempt that is not committed."""
    yield from load_holds.remove_hold(held.attempt)
    yield from locks.release_locks(node, held)


def commit_bulk(
    run: Callable[[Step[object]], object],
    node: Node,
    intent: Intent,
    catalog: Catalog,
    time: int,
    derive: Callable[[Record], Record],
) -> int:
    """The whole commit; `derive` completes the record with what participants write."""
    held = AttemptLocks(node.start_attempt(), intent.snapshot.catalog.version)
    try:
        record = run(prepare_bulk(node, held, intent, catalog, time))
        assert isinstance(record, Record)
        try:
            record = derive(record)
        except BaseException:
            run(give_back(node, held))
            raise
        position = run(complete_bulk(node, held, record))
        assert isinstance(position, int)
        return position
    finally:
        node.end_attempt(held.attempt)
