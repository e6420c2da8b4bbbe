"""Opening and recovery of a store directory, with a check that no acknowledged commit is lost.

The engine replays its own write-ahead log. Then the change log is compared with the anchor: it must
reach the position last acknowledged, with the record that was there, in an unbroken chain to its
end. Otherwise acknowledged commits are missing and the store refuses to open, saying what was
acknowledged and what was found; `accept_data_loss` opens what is left, as a new incarnation, so
that tokens and stream offsets of the lost past are refused.

A record after the anchor was written but never acknowledged. It is complete, since a batch is
atomic, and stays.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from belvedere import failpoints
from belvedere.catalog import catalog, model
from belvedere.codec import keyspace
from belvedere.codec.record import LogRecord, decode_record
from belvedere.config import Config, Durability
from belvedere.errors import Corruption, InvalidInput, Unavailable
from belvedere.kv.batch import BatchStore
from belvedere.kv.files import DISK_FULL, make_private_directory, make_tree_private
from belvedere.kv.rocksdb import RocksStore
from belvedere.kv.rocksdb_gather import GatheringStore
from belvedere.txn.batch_atomic import directory as files
from belvedere.txn.batch_atomic.anchor import ACCEPT_HINT, RESTORE_HINT, Anchor, AnchorState
from belvedere.txn.batch_atomic.log_chunks import assemble_batches, assemble_record
from belvedere.txn.contracts import Identity, Snapshot

_COUNT_BATCH_ROWS = 1 << 14
_INCARNATION_KEY = keyspace.meta_key("incarnation")


@dataclass(slots=True)
class RecoveredStore:
    """A store that passed every check, with its newest state, identity, anchor and file lock."""

    store: BatchStore
    written: Snapshot
    incarnation: int
    identity: Identity
    anchor: Anchor | None = None
    ownership: files.Ownership | None = None
    directory: Path | None = None
    failure: Unavailable | None = None  # why the store could be opened for reading only

    def close(self, written: Snapshot, *, failed: bool) -> None:
        """Close the store cleanly; after a failure the anchor stays as it is."""
        try:
            if self.anchor is not None and not failed and self.failure is None:
                self.store.sync()
                if failpoints.armed:
                    failpoints.hit("close.before_anchor")
                self.write_anchor(written.position, written.hash, AnchorState.CLOSED)
                if failpoints.armed:
                    failpoints.hit("close.after_anchor")
        finally:
            try:
                self.store.close()  # fails after some failures of the engine, and is closed then
            finally:
                if self.anchor is not None:
                    self.anchor.close()
                if self.ownership is not None:
                    self.ownership.release()

    def write_anchor(self, position: int, hash_: int, state: AnchorState) -> None:
        assert self.anchor is not None
        self.anchor.write(incarnation=self.incarnation, position=position, hash_=hash_, state=state)

    def write_anchor_of_commits(self, position: int, hash_: int) -> None:
        """The same for commits that are in the synced log; the anchor is synced soon after."""
        assert self.anchor is not None
        self.anchor.write_soon_durable(
            incarnation=self.incarnation, position=position, hash_=hash_, state=AnchorState.OPEN
        )


def open_memory(store: BatchStore, random: Callable[[int], bytes]) -> RecoveredStore:
    """A store without a directory: its contents as they are, nothing to anchor."""
    identity = Identity(keyspace.STORE_FORMAT, random(16), random(32))
    return RecoveredStore(store, find_newest_state(store), 1, identity)


def open_directory(
    directory: Path,
    config: Config,
    random: Callable[[int], bytes],
    *,
    create: bool = True,
    accept_data_loss: bool = False,
) -> RecoveredStore:
    """Open the store in `directory`, making it when there is none and `create` allows."""
    if not files.is_store(directory):
        files.refuse_unfinished(directory)
        _create_store(directory, random, create, accept_data_loss)
    ownership = files.Ownership(directory)
    try:
        make_tree_private(directory)
        identity = _load_identity(directory, random, accept_data_loss)
        return _open_owned(directory, config, identity, ownership, accept_data_loss, random)
    except BaseException:
        ownership.release()
        raise


def open_restored(
    directory: Path, config: Config, random: Callable[[int], bytes]
) -> RecoveredStore:
    """Open what a restore has not finished yet, for the restore itself."""
    ownership = files.Ownership(directory)
    try:
        identity = files.read_identity(directory, files.MARKERS[files.IDENTITY_FILE])
        return _open_owned(directory, config, identity, ownership, False, random)
    except BaseException:
        ownership.release()
        raise


def _create_store(
    directory: Path, random: Callable[[int], bytes], create: bool, accept_data_loss: bool
) -> None:
    """Make an empty store. The new identity has a temporary name from the first to the last step,
    so that the remains of a crash are distinguished from a store that has lost its identity."""
    names = {entry.name for entry in directory.iterdir()} if directory.is_dir() else set()
    whole = {files.ANCHOR_FILE, files.DATA_DIRECTORY} <= names and files.BACKUP_FILE not in names
    if whole and files.NEW_IDENTITY_FILE not in names:
        if accept_data_loss:
            return
        raise _refusal_error("the identity file is missing", directory)
    if not create or files.BACKUP_FILE in names or (directory.exists() and not directory.is_dir()):
        files.read_identity(directory)  # says what it is instead
    if not _only_leftovers(names):
        raise InvalidInput(
            "not a belvedere store",
            sqlstate="58P01",
            hint="name an empty directory or one that does not exist yet",
            path=str(directory),
        )
    try:
        make_private_directory(directory)
    except OSError as error:
        raise files.directory_error(directory, error) from error
    ownership = files.Ownership(directory)
    try:
        if files.is_store(directory):
            return  # another process was faster
        identity = files.prepare_identity(directory, random(16), random(32))
        shutil.rmtree(directory / files.DATA_DIRECTORY, ignore_errors=True)
        (directory / files.ANCHOR_FILE).unlink(missing_ok=True)
        RocksStore.open(directory / files.DATA_DIRECTORY, create=True).close()
        Anchor.create(directory / files.ANCHOR_FILE, identity.store_id).close()
        files.install_identity(directory)
    finally:
        ownership.release()


def _only_leftovers(names: set[str]) -> bool:
    """Whether the directory holds only the remains of an interrupted creation."""
    if names <= {files.LOCK_FILE}:
        return True
    known = {files.LOCK_FILE, files.ANCHOR_FILE, files.DATA_DIRECTORY, files.NEW_IDENTITY_FILE}
    return files.NEW_IDENTITY_FILE in names and names <= known


def _load_identity(
    directory: Path, random: Callable[[int], bytes], accept_data_loss: bool
) -> Identity:
    if files.is_store(directory):
        try:
            return files.read_identity(directory)
        except Corruption as error:
            if not accept_data_loss:
                raise _refusal_error(error.message, directory) from error
    files.prepare_identity(directory, random(16), random(32))
    files.install_identity(directory)
    return files.read_identity(directory)


def _open_owned(
    directory: Path,
    config: Config,
    identity: Identity,
    ownership: files.Ownership,
    accept_data_loss: bool,
    random: Callable[[int], bytes],
) -> RecoveredStore:
    for leftover in (files.SCRATCH_DIRECTORY, files.SORTED_DIRECTORY):
        shutil.rmtree(directory / leftover, ignore_errors=True)
    anchor = _open_anchor(directory, identity, accept_data_loss)
    kind = GatheringStore if config.durability is Durability.FULL else RocksStore
    if failpoints.armed:
        failpoints.hit("open.before_store")
    data = directory / files.DATA_DIRECTORY
    try:
        store = kind.open(data, create=False, salvage=accept_data_loss)
    except Corruption as error:
        raise _damage_error("the store's files are damaged", anchor, None, error) from error
    except Unavailable as error:
        if error.sqlstate != DISK_FULL or accept_data_loss:
            raise
        return _open_for_reading(data, anchor, identity, ownership, error)
    try:
        if failpoints.armed:
            failpoints.hit("open.after_store")
        opened = open_anchored(store, anchor, identity, config, random, accept_data_loss)
    except BaseException as error:
        store.close()
        if isinstance(error, Unavailable) and error.sqlstate == DISK_FULL and not accept_data_loss:
            return _open_for_reading(data, anchor, identity, ownership, error)
        anchor.close()
        raise
    opened.ownership, opened.directory = ownership, directory
    return opened


def _open_for_reading(
    data: Path, anchor: Anchor, identity: Identity, ownership: files.Ownership, full: Unavailable
) -> RecoveredStore:
    """Open a store on a full disk: checked like any other, and never written."""
    try:
        store = RocksStore.open(data, create=False, read_only=True)
    except BaseException:
        anchor.close()
        raise
    try:
        _check_against_anchor(store, anchor, identity, accept_data_loss=False)
        incarnation = max(anchor.mark.incarnation, stored_incarnation(store))
        opened = RecoveredStore(store, find_newest_state(store), incarnation, identity, anchor)
    except BaseException:
        store.close()
        anchor.close()
        raise
    opened.ownership, opened.directory, opened.failure = ownership, data.parent, full
    return opened


def open_anchored(
    store: BatchStore,
    anchor: Anchor,
    identity: Identity,
    config: Config,
    random: Callable[[int], bytes],
    accept_data_loss: bool = False,
) -> RecoveredStore:
    """Check a store against its anchor and open it."""
    lost = _check_against_anchor(store, anchor, identity, accept_data_loss)
    if lost:
        anchor.adopt_store(identity.store_id)
    # The store knows its incarnation too, so that an old copy of the anchor does not bring it back.
    incarnation = max(anchor.mark.incarnation, stored_incarnation(store))
    end = find_newest_state(store)
    opened = RecoveredStore(store, end, incarnation, identity, anchor)
    _begin_incarnation(opened, config, lost, random)
    return opened


def _begin_incarnation(
    opened: RecoveredStore, config: Config, lost: bool, random: Callable[[int], bytes]
) -> None:
    """Make what was found durable and record it in the anchor, as a new incarnation where
    needed."""
    assert opened.anchor is not None
    unclean = opened.anchor.mark.state is AnchorState.OPEN_UNSYNCED
    if lost or unclean:
        opened.incarnation = next_incarnation(opened.incarnation, random)
        opened.store.write([(_INCARNATION_KEY, opened.incarnation.to_bytes(8))])
    opened.store.sync()
    if failpoints.armed:
        failpoints.hit("open.before_incarnation")
    off = config.durability is Durability.OFF
    written = opened.written
    opened.write_anchor(
        written.position, written.hash, AnchorState.OPEN_UNSYNCED if off else AnchorState.OPEN
    )
    if failpoints.armed:
        failpoints.hit("open.after_incarnation")


def _open_anchor(directory: Path, identity: Identity, accept_data_loss: bool) -> Anchor:
    path = directory / files.ANCHOR_FILE
    try:
        return Anchor.open(path)
    except Corruption as error:
        if not accept_data_loss:
            raise _refusal_error(error.message, directory) from error
        path.unlink(missing_ok=True)
        return Anchor.create(path, identity.store_id)


def _check_against_anchor(
    store: BatchStore, anchor: Anchor, identity: Identity, accept_data_loss: bool
) -> bool:
    """Raise Corruption when the log is not what the anchor promised; True when that was
    accepted."""
    lost = False
    try:
        _require_acknowledged(store, anchor, identity)
    except Corruption as error:
        if not accept_data_loss and "acknowledged_through" in error.facts:
            raise
        if not accept_data_loss:
            raise _damage_error("the log is damaged", anchor, None, error) from error
        lost = True
    try:
        _require_dense(store, anchor)
    except Corruption as error:
        if "acknowledged_through" in error.facts:
            raise
        message = "the store's files are damaged"
        raise _damage_error(message, anchor, None, error, hint=RESTORE_HINT) from error
    return lost


def _require_acknowledged(store: BatchStore, anchor: Anchor, identity: Identity) -> None:
    mark = anchor.mark
    last = last_record(store)
    found = last.position if last else 0
    if mark.store_id != identity.store_id:
        raise _damage_error("the anchor belongs to another store", anchor, found)
    if found < mark.position:
        raise _damage_error("acknowledged commits are missing from the log", anchor, found)
    if mark.state is AnchorState.CLOSED and found > mark.position:
        raise _damage_error("the log goes on after the store was closed", anchor, found)
    _require_chain(store, anchor, found)


def _require_dense(store: BatchStore, anchor: Anchor) -> None:
    """No hole from the first record on. An engine that lost one of its sorted files, with rows of
    any age in it, may open without an error; what it flushed last had records of the log too.
    Such a loss cannot be accepted: what is left is not the past, but no state that ever was."""
    log = keyspace.log_range(0, keyspace.POSITION_MAX)
    count = sum(map(len, store.scan_values(*log, batch_rows=_COUNT_BATCH_ROWS)))
    last = last_record(store)
    for batch in store.scan(*log, limit=1):
        first = int.from_bytes(batch[0][0][1:])
        if last is None or count != last.position - first + 1:
            found = last.position if last else None
            raise _damage_error("the log has a hole", anchor, found, hint=RESTORE_HINT)


def _require_chain(store: BatchStore, anchor: Anchor, found: int) -> None:
    """From the anchor's record to the end: no hole, every hash right."""
    mark = anchor.mark
    expected, previous = max(mark.position, 1), None
    start, end = keyspace.log_range(expected - 1, keyspace.POSITION_MAX)
    for batch in assemble_batches(store, store.scan_values(start, end)):
        for data in batch:
            record = decode_record(data)
            if previous is None and mark.state is AnchorState.OPEN_UNSYNCED:
                expected = max(expected, record.position)  # it may be trimmed past the anchor
            broken = record.position != expected or (
                previous is not None and record.previous_hash != previous
            )
            if broken or (record.position == mark.position and record.hash != mark.hash):
                raise _damage_error("the log's chain is broken", anchor, record.position)
            expected, previous = record.position + 1, record.hash
    if expected != max(found, mark.position, 0) + 1 and found:
        raise _damage_error("the log's chain is broken", anchor, expected - 1)


def _damage_error(
    message: str,
    anchor: Anchor,
    found: int | None,
    cause: Exception | None = None,
    *,
    hint: str = ACCEPT_HINT,
) -> Corruption:
    return Corruption(
        message,
        detail=str(cause) if cause else None,
        hint=hint,
        acknowledged_through=anchor.mark.position,
        found="unreadable" if found is None else found,
    )


def _refusal_error(message: str, directory: Path) -> Corruption:
    """The error for damage outside the log; it still says how far acknowledgements and log
    reach."""
    try:
        anchor = Anchor.open(directory / files.ANCHOR_FILE)
        acknowledged: int | str = anchor.mark.position
        anchor.close()
    except Corruption:
        acknowledged = "unknown"
    found: int | str = "unreadable"
    detail = None
    try:
        store = RocksStore.open(directory / files.DATA_DIRECTORY, create=False)
        try:
            last = last_record(store)
            found = last.position if last else 0
        finally:
            store.close()
    except (Corruption, InvalidInput) as error:
        detail = str(error)
    return Corruption(
        message,
        detail=detail,
        hint=ACCEPT_HINT,
        path=str(directory),
        acknowledged_through=acknowledged,
        found=found,
    )


def stored_incarnation(store: BatchStore) -> int:
    """The incarnation that the store itself remembers; 1 when there was never another."""
    return int.from_bytes(store.get(_INCARNATION_KEY) or b"\1")


def last_record(store: BatchStore) -> LogRecord | None:
    start, end = keyspace.log_range(0, keyspace.POSITION_MAX)
    for batch in store.scan(start, end, reverse=True, limit=1):
        return decode_record(assemble_record(store, batch[0][1]))
    return None


def read_records(store: BatchStore, after: int, through: int) -> list[LogRecord]:
    """The records with after < position <= through that are there."""
    batches = store.scan_values(*keyspace.log_range(after, through))
    return [decode_record(assemble_record(store, data)) for batch in batches for data in batch]


def next_incarnation(incarnation: int, random: Callable[[int], bytes]) -> int:
    """A higher one that no other restore of the same past will choose: a count and 32 random
    bits."""
    return ((incarnation >> 32) + 1 << 32) | int.from_bytes(random(4))


def find_newest_state(store: BatchStore) -> Snapshot:
    """The newest state in the store, with the hash of the last record."""
    last = last_record(store)
    position, hash_ = (last.position, last.hash) if last else (0, 0)
    return Snapshot(0, position, load_catalog(store), hash_)


def load_catalog(store: BatchStore) -> catalog.Catalog:
    """The catalog as stored; that of a new store when there is none yet."""
    objects: dict[int, model.AnyObject] = {}
    start, end = keyspace.relation_range(model.CATALOG_RELATION)
    for batch in store.scan_values(start, end):
        for data in batch:
            item = model.decode(data)
            objects[item.id] = item
    return catalog.empty_catalog().with_objects(objects)
