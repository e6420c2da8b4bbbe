"""Backup and restore.

A backup is a directory like a store's, taken while the store is in use: a checkpoint of the engine,
made in the commit section after a sync, with an anchor that says where it ends. It carries another
identity file, so that it is not opened by mistake and written under the same identity.

    DEST/BACKUP    the identity of the store it was taken from
    DEST/anchor    closed at the backup's position
    DEST/data/     the checkpoint

Restoring makes it a store with a new incarnation: tokens and stream offsets of the past are
refused. A position before the backup's is reached by undoing the log, as far back as it goes.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from belvedere import failpoints
from belvedere.codec import keyspace
from belvedere.errors import Corruption, InvalidInput
from belvedere.kv.batch import BatchStore
from belvedere.kv.files import sync_directory
from belvedere.kv.rocksdb import RocksStore
from belvedere.txn.batch_atomic import directory as files
from belvedere.txn.batch_atomic.anchor import Anchor, AnchorState
from belvedere.txn.batch_atomic.commit import BatchCommit
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
    _require_new(destination)
    try:
        destination.mkdir(parents=True)
    except OSError as error:
        raise files.directory_error(destination, error) from error
    taken: list[Snapshot] = []

    def copy_checkpoint(written: Snapshot) -> None:
        opened.store.sync()
        if failpoints.armed:
            failpoints.hit("checkpoint.before")
        opened.store.checkpoint(destination / files.DATA_DIRECTORY)
        if failpoints.armed:
            failpoints.hit("checkpoint.after")
        taken.append(written)

    try:
        commits.run_exclusively(copy_checkpoint)
        written = taken[0]
        _write_anchor(destination, opened.identity.store_id, opened.incarnation, written)
        shutil.copy(opened.directory / files.IDENTITY_FILE, destination / files.BACKUP_FILE)
        sync_directory(destination)
    except BaseException:
        shutil.rmtree(destination)
        raise
    return written.position


def restore(
    backup: Path,
    destination: Path,
    random: Callable[[int], bytes],
    participants_for: ParticipantsFor,
    position: int | None = None,
) -> int:
    """Make a store at `destination` from a backup, at `position` or where the backup ends."""
    if not (backup / files.BACKUP_FILE).exists():
        raise InvalidInput(
            "not a backup",
            sqlstate="58P01",
            hint="name what `belvedere backup` made",
            path=str(backup),
        )
    _require_new(destination)
    anchor = Anchor.open(backup / files.ANCHOR_FILE)
    mark = anchor.mark
    anchor.close()
    partial = destination.with_name(destination.name + ".restoring")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        _copy_backup(backup, partial)
        store = RocksStore.open(partial / files.DATA_DIRECTORY, create=False)
        try:
            written = _rewind_to_position(store, mark.position, position, participants_for)
            store.sync()
        finally:
            store.close()
        _write_anchor(partial, mark.store_id, next_incarnation(mark.incarnation, random), written)
        shutil.copy(backup / files.BACKUP_FILE, partial / files.IDENTITY_FILE)
        files.read_identity(partial)
        sync_directory(partial)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    partial.rename(destination)
    sync_directory(destination.parent)
    return written.position


def _copy_backup(backup: Path, partial: Path) -> None:
    left_out = shutil.ignore_patterns(files.BACKUP_FILE, files.ANCHOR_FILE)
    try:
        shutil.copytree(backup, partial, ignore=left_out)
    except OSError as error:
        raise files.directory_error(partial, error) from error


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


def _require_new(destination: Path) -> None:
    if destination.exists():
        raise InvalidInput("destination exists already", sqlstate="58P02", path=str(destination))
