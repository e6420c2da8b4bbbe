"""Every error of the RocksDB binding as one of ours.

The binding raises bare `Exception` with RocksDB's status text, so the text is all there is to go
by: its first words are the status class and stable across releases. What is not recognised is
Unavailable with the text as detail, never silence.
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

from rocksdict import DbClosedError

from belvedere.errors import Corruption, Error, InvalidInput, Unavailable
from belvedere.kv.files import DISK_FULL, IO_ERROR

_FULL_WORDS = ("No space left on device", "Space limit reached", "Disk quota exceeded")
_LOCK_WORDS = ("lock hold by current process", "While lock file")
_FLOCK = struct.Struct("hhqqi4x")


def translated(error: Exception, directory: Path) -> Error:
    """The error to raise for `error` of an open store."""
    if isinstance(error, Error):
        return error
    if isinstance(error, DbClosedError):
        return Unavailable("store is closed", sqlstate="57P01", directory=directory)
    text = str(error)
    if "raw mode only support bytes" in text:
        return InvalidInput("keys and values must be bytes", sqlstate="42804")
    if text.startswith("Corruption"):
        return Corruption("store is damaged", detail=text, directory=directory)
    if any(words in text for words in _FULL_WORDS):
        return Unavailable("disk is full", sqlstate=DISK_FULL, detail=text, directory=directory)
    if text.startswith("IO error"):
        return Unavailable(
            "input or output failed", sqlstate=IO_ERROR, detail=text, directory=directory
        )
    return Unavailable("store refused the operation", detail=text, directory=directory)


def translated_open(error: Exception, directory: Path) -> Error:
    """The error to raise for `error` while opening: a missing file counts as damage."""
    text = str(error)
    if any(words in text for words in _LOCK_WORDS):
        return Unavailable(
            "store is open in another process",
            sqlstate="55006",
            hint="close the other one, or connect to it",
            directory=directory,
            owner_pid=_lock_owner(directory, text),
        )
    if "No such file or directory" in text or text.startswith("Invalid argument"):
        return Corruption("store is damaged", detail=text, directory=directory)
    return translated(error, directory)


def _lock_owner(directory: Path, text: str) -> int | None:
    """The process that holds the lock file; None when it is gone by now."""
    if "lock hold by current process" in text:
        # Opening and closing the file here would drop this process's own lock (POSIX).
        return os.getpid()
    with (directory / "LOCK").open("rb") as lock_file:
        wanted = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        held = _FLOCK.unpack(fcntl.fcntl(lock_file, fcntl.F_GETLK, wanted))
    return held[4] if held[0] != fcntl.F_UNLCK else None
