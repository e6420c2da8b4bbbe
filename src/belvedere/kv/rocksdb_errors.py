"""Translation of the RocksDB binding's exceptions into this project's errors.

The binding raises bare `Exception` with RocksDB's status text, so the text decides: its first words
are the status class and stable across releases. What is not recognised is Unavailable with the text
as detail, never silence.
"""

from __future__ import annotations

import os
from pathlib import Path

from rocksdict import DbClosedError

from belvedere.errors import Corruption, Error, InvalidInput, Unavailable
from belvedere.kv.files import DISK_FULL, IO_ERROR

_FULL_WORDS = ("No space left on device", "Space limit reached", "Disk quota exceeded")
_LOCK_WORDS = ("lock hold by current process", "While lock file")


def translate_error(error: Exception, directory: Path) -> Error:
    """The error to raise for `error` of an open store."""
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


def translate_open_error(error: Exception, directory: Path) -> Error:
    """The error to raise for `error` while opening: a missing file counts as damage."""
    text = str(error)
    if any(words in text for words in _LOCK_WORDS):
        return already_open_error(directory, lock_owner(directory))
    if "No such file or directory" in text or text.startswith("Invalid argument"):
        return Corruption("store is damaged", detail=text, directory=directory)
    return translate_error(error, directory)


def already_open_error(directory: Path, owner_pid: int | None) -> Unavailable:
    return Unavailable(
        "store is open already",
        sqlstate="55006",
        hint="close the other one, or connect to it",
        directory=directory,
        owner_pid=owner_pid,
    )


def lock_owner(directory: Path) -> int | None:
    """The process that holds the lock file; None when there is none or that cannot be known.

    Read from the kernel's list: opening the lock file and closing it again would drop the lock if
    this process has it (POSIX).
    """
    lock, kernel_list = directory / "LOCK", Path("/proc/locks")
    if not lock.exists() or not kernel_list.exists():
        return None
    found = lock.stat()
    name = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    for line in kernel_list.read_text().splitlines():
        fields = line.split()
        if name in fields and "POSIX" in fields:
            return int(fields[fields.index(name) - 1])
    return None
