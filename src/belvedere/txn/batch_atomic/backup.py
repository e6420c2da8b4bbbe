"""Backup and restore.

A backup is a directory like a store's, taken while the store is in use: a checkpoint of the engine,
made in the commit section after a sync, with an anchor that says where it ends. It carries another
identity file, so that it is not opened by mistake and written under the same identity.

    DEST/BACKUP    the identity of the store it was taken from
    DEST/anchor    closed at the backup's position
    DEST/data/     the checkpoint

Restoring makes it a store with a new incarnation: tokens and stream offsets of the past are
refused. A position before the backup's is reached by undoing the log, as far back as it goes.

Both are unfinished, and say so when they are opened, until everything in them is there and durable
(`DraftDirectory`); run again, they begin from the start.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from belvedere import failpoints
from belvedere.codec import keyspace
from belvedere.errors import Corruption, InvalidInput
from belvedere.kv.batch import BatchStore
from belvedere.kv.files import make_tree_private
from belvedere.kv.rocksdb import RocksStore
from belvedere.txn.batch_atomic import directory as files
from belvedere.txn.batch_atomic.anchor import Anchor, AnchorMark, AnchorState
from belvedere.txn.batch_atomic.commit import BatchCommit
from belvedere.txn.batch_atomic.draft_directory import DraftDirectory
from belvedere.txn.batch_atomic.recovery import (
    RecoveredStore,
    find_newest_state,
    next_incarnation,
    read_records,
)
from belvedere.txn.batch_atomic.replay import rewind
from belvedere.txn.contracts import ParticipantsFor, Snapshot


def back_up(opened: RecoveredStore, commits: BatchCommit, destination: Path) -> int:
    """Copy the open store to `destination`, which must not exist; returns its position."""
    if opened.directory is None:
        raise InvalidInput("a store in memory cannot be backed up", sqlstate="0A000")
    identity = (opened.directory / files.IDENTITY_FILE).read_bytes()
    taken: list[Snapshot] = []

    def copy_checkpoint(written: Snapshot) -> None:
        opened.store.sync()
        if failpoints.armed:
            failpoints.hit("checkpoint.before")
        opened.store.checkpoint(destination / files.DATA_DIRECTORY)
        if failpoints.armed:
            failpoints.hit("checkpoint.after")
        taken.append(written)

    with DraftDirectory(destination, files.BACKUP_FILE, identity) as draft:
        if failpoints.armed:
            failpoints.hit("backup.marked")
        commits.run_exclusively(copy_checkpoint)
        written = taken[0]
        _write_anchor(destination, opened.identity.store_id, opened.incarnation, written)
        make_tree_private(destination)
        if failpoints.armed:
            failpoints.hit("backup.before_install")
        draft.install()
    if failpoints.armed:
        failpoints.hit("backup.after_install")
    return written.position


def restore(
    backup: Path,
    destination: Path,
    random: Callable[[int], bytes],
    participants_for: ParticipantsFor,
    rebuild_views: Callable[[], None],
    position: int | None = None,
) -> int:
    """Make a store at `destination` from a backup, at `position` or where the backup ends.
    `rebuild_views` computes the rows of views again after a rewind, which does not reach them."""
    files.refuse_unfinished(backup)
    if not (backup / files.BACKUP_FILE).exists():
        raise InvalidInput(
            "not a backup",
            sqlstate="58P01",
            hint="name what `belvedere backup` made",
            path=str(backup),
        )
    files.read_identity(backup, files.BACKUP_FILE)
    mark = _read_anchor_mark(backup)
    identity = (backup / files.BACKUP_FILE).read_bytes()
    with DraftDirectory(destination, files.IDENTITY_FILE, identity) as draft:
        if failpoints.armed:
            failpoints.hit("restore.marked")
        _copy_backup(backup, destination)
        written = _rewind_data(destination, mark.position, position, participants_for)
        incarnation = next_incarnation(mark.incarnation, random)
        _write_anchor(destination, mark.store_id, incarnation, written)
        if position is not None:
            draft.unlock()
            rebuild_views()
        if failpoints.armed:
            failpoints.hit("restore.before_install")
        draft.install()
    if failpoints.armed:
        failpoints.hit("restore.after_install")
    return written.position


def _read_anchor_mark(backup: Path) -> AnchorMark:
    anchor = Anchor.open(backup / files.ANCHOR_FILE)
    anchor.close()
    return anchor.mark


def _copy_backup(backup: Path, destination: Path) -> None:
    left_out = shutil.ignore_patterns(files.BACKUP_FILE, files.ANCHOR_FILE, files.LOCK_FILE)
    try:
        shutil.copytree(backup, destination, ignore=left_out, dirs_exist_ok=True)
        make_tree_private(destination)
    except OSError as error:
        raise files.directory_error(destination, error) from error


def _rewind_data(
    destination: Path, expected: int, position: int | None, participants_for: ParticipantsFor
) -> Snapshot:
    store = RocksStore.open(destination / files.DATA_DIRECTORY, create=False)
    try:
        written = _rewind_to_position(store, expected, position, participants_for)
        store.sync()
    finally:
        store.close()
    return written


def _rewind_to_position(
    store: BatchStore, expected: int, position: int | None, participants_for: ParticipantsFor
) -> Snapshot:
    found = find_newest_state(store)
    if found.position != expected:
        raise _damage_error(expected, found.position)
    if position is None or position == expected:
        return found
    first = _first_position(store, expected)
    if not first <= position <= expected:
        raise InvalidInput(
            "the backup does not reach that position",
            sqlstate="22023",
            hint="use an older or a newer backup",
            wanted=position,
            first=first,
            last=expected,
        )
    records = read_records(store, position, expected)
    if len(records) != expected - position:
        raise _damage_error(expected, position + len(records))
    if failpoints.armed:
        failpoints.hit("restore.before_rewind")
    rewind(store, records, position, found.catalog, participants_for)
    if failpoints.armed:
        failpoints.hit("restore.after_rewind")
    return find_newest_state(store)


def _first_position(store: BatchStore, last: int) -> int:
    """The earliest position that the log leads back to."""
    for batch in store.scan(*keyspace.log_range(0, last), limit=1):
        key = keyspace.parse_key(batch[0][0])
        assert isinstance(key, keyspace.LogKey)
        return key.position if key.position > 1 else 0
    return last


def _damage_error(expected: int, found: int) -> Corruption:
    return Corruption(
        "the backup is damaged",
        hint="restore another one",
        expected=expected,
        found=found,
    )


def _write_anchor(directory: Path, store_id: bytes, incarnation: int, written: Snapshot) -> None:
    anchor = Anchor.create(directory / files.ANCHOR_FILE, store_id)
    anchor.write(
        incarnation=incarnation,
        position=written.position,
        hash_=written.hash,
        state=AnchorState.CLOSED,
    )
    anchor.close()
