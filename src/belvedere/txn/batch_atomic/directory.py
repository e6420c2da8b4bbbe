"""The store directory: its files, its identity file, and the lock of the process that has it open.

PATH/BELVEDERE   format, store id and token secret, as JSON with a checksum; written once
PATH/LOCK        flocked while open; holds the owner's pid
PATH/anchor      see txn.batch_atomic.anchor
PATH/data/       the key-value engine's files
PATH/scratch/    old row versions that did not fit into memory; emptied on open

A directory that is being made has BELVEDERE.restoring or BACKUP.unfinished instead of an identity
(txn.batch_atomic.draft_directory). All of it is readable to its owner only (kv.files).
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import msgspec

from belvedere import forks
from belvedere.codec.keyspace import STORE_FORMAT
from belvedere.errors import Corruption, InvalidInput, Unavailable, Unsupported
from belvedere.kv.files import sync_directory
from belvedere.txn.contracts import Identity

IDENTITY_FILE = "BELVEDERE"
NEW_IDENTITY_FILE = "BELVEDERE.new"  # while a store is being made
BACKUP_FILE = "BACKUP"  # what a backup has instead
MARKERS = {IDENTITY_FILE: "BELVEDERE.restoring", BACKUP_FILE: "BACKUP.unfinished"}
"""What the two are called while a restore or a backup is unfinished."""
LOCK_FILE = "LOCK"
ANCHOR_FILE = "anchor"
DATA_DIRECTORY = "data"
SCRATCH_DIRECTORY = "scratch"
SORTED_DIRECTORY = "sorted"


def prepare_identity(directory: Path, store_id: bytes, secret: bytes) -> Identity:
    """Write a new store's identity under a temporary name: the directory is not a store yet."""
    identity = Identity(STORE_FORMAT, store_id, secret)
    identity = msgspec.structs.replace(identity, checksum=identity.compute_checksum())
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    descriptor = os.open(directory / NEW_IDENTITY_FILE, flags, 0o600)
    try:
        os.write(descriptor, msgspec.json.encode(identity) + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_directory(directory)
    return identity


def install_identity(directory: Path) -> None:
    """Rename the prepared identity to its final name: from now on this is a store, also after a
    power cut."""
    (directory / NEW_IDENTITY_FILE).rename(directory / IDENTITY_FILE)
    sync_directory(directory)
    sync_directory(directory.absolute().parent)


def refuse_unfinished(directory: Path) -> None:
    """Refuse what a restore or a backup has not finished."""
    for final, command in ((IDENTITY_FILE, "restore"), (BACKUP_FILE, "backup")):
        if (directory / MARKERS[final]).exists():
            raise InvalidInput(
                f"the {command} that made this directory has not finished",
                sqlstate="55000",
                hint=f"wait for it; if it was interrupted, run `belvedere {command}` again",
                path=str(directory),
            )


def _find_store_hint(directory: Path, backup: bool) -> str:
    if backup:
        return "make a store of it with `belvedere restore`"
    if not directory.exists():
        return "the directory does not exist: belvedere.connect makes a store there"
    return "name a directory that belvedere made"


def read_identity(directory: Path, name: str = IDENTITY_FILE) -> Identity:
    path = directory / name
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        backup = (directory / BACKUP_FILE).exists()
        raise InvalidInput(
            "a backup cannot be opened" if backup else "not a belvedere store",
            sqlstate="58P01",
            hint=_find_store_hint(directory, backup),
            path=str(directory),
        ) from None
    try:
        identity = msgspec.json.decode(data, type=Identity)
    except msgspec.DecodeError as error:
        raise Corruption("the identity file is damaged", path=str(path)) from error
    if identity.checksum != identity.compute_checksum():
        raise Corruption("the identity file is damaged", path=str(path))
    if identity.format > STORE_FORMAT:
        raise Unsupported(
            "store format is newer than this program",
            hint="open it with a newer release of belvedere",
            found=identity.format,
            known=STORE_FORMAT,
        )
    return identity


def directory_error(path: Path, error: OSError) -> Unavailable:
    """The error for a directory that cannot be made, read or written."""
    return Unavailable(
        "the directory cannot be used",
        sqlstate="58030",
        detail=error.strerror,
        path=str(path),
    )


def is_store(directory: Path) -> bool:
    return (directory / IDENTITY_FILE).exists()


class Ownership:
    """The exclusive right to a store directory, held until `release` or the end of the process."""

    def __init__(self, directory: Path) -> None:
        try:
            self._descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise directory_error(directory, error) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise Unavailable(
                "the store is open in another process",
                sqlstate="55006",
                hint="close it there, or connect through that process",
                pid=pid or "unknown",
                path=str(directory),
            ) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
        forks.track_handle(self)

    def abandon_after_fork(self) -> None:
        self.release()  # a child's copy of it would hold the lock after its parent's end

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
