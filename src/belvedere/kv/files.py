"""File operations of the stores: mapped OS errors, existence checks, durable replacement."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from belvedere.errors import InvalidInput, Unavailable

DISK_FULL = "53100"
IO_ERROR = "58030"

_FULL = {errno.ENOSPC, errno.EDQUOT}


@contextmanager
def map_os_errors(path: Path) -> Iterator[None]:
    """Turn an OSError into Unavailable; it never passes silently and never stays bare."""
    try:
        yield
    except OSError as error:
        full = error.errno in _FULL
        raise Unavailable(
            "disk is full" if full else "input or output failed",
            sqlstate=DISK_FULL if full else IO_ERROR,
            detail=error.strerror,
            path=path,
        ) from error


def check_file(path: Path) -> None:
    """InvalidInput for a sorted file that is not there."""
    if not path.is_file():
        raise InvalidInput("sorted file does not exist", sqlstate="58P01", path=path)


def check_target(path: Path) -> None:
    """InvalidInput when a checkpoint or sorted file would write over something."""
    if path.exists():
        raise InvalidInput("target exists already", sqlstate="58P02", path=path)


def replace_file(path: Path, content: bytes) -> None:
    """Write `content` as the file `path`, atomically, and durable when it returns."""
    draft = path.with_name(path.name + ".draft")
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make new, renamed and removed names in `directory` survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
