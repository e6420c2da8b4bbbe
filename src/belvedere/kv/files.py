"""File operations of the stores: mapped OS errors, existence checks, durable replacement, and
directories that are their owner's alone.

Engines make files themselves, at any time and in any thread, readable to all unless the process
forbids it (umask), which is not a library's to change. So a private directory has mode 0700 and a
default access list, which gives what is made in it 0600 or 0700. A file system without access lists
leaves the files readable, in a directory that nobody else can enter.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from belvedere.errors import InvalidInput, Unavailable

DISK_FULL = "53100"
IO_ERROR = "58030"

_FULL = {errno.ENOSPC, errno.EDQUOT}

_DEFAULT_ACCESS_LIST = "system.posix_acl_default"
_NO_ACCESS_LISTS = {errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.EROFS}
_ENTRY = struct.Struct("<HHI")
_OWNER, _GROUP, _OTHER, _NOBODY = 0x01, 0x04, 0x20, 0xFFFFFFFF
_OWNER_ALONE = struct.pack("<I", 2) + b"".join(
    _ENTRY.pack(who, rights, _NOBODY) for who, rights in ((_OWNER, 7), (_GROUP, 0), (_OTHER, 0))
)
"""Linux's form of the access list `user::rwx, group::---, other::---`."""


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


def sync_tree(directory: Path) -> None:
    """Make everything below `directory` survive a power cut: contents and names."""
    for folder, _, names in os.walk(directory):
        for name in names:
            descriptor = os.open(Path(folder) / name, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        sync_directory(Path(folder))


def make_private_directory(directory: Path) -> None:
    """Make the directory if it is not there, and what is and will be in it its owner's alone."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    make_tree_private(directory)


def make_tree_private(directory: Path) -> None:
    """Take all rights of others away below `directory`, now and for what is made there later.
    What another user owns is left to them."""
    user = os.geteuid()
    for folder, _, names in os.walk(directory):
        if _restrict_mode(Path(folder), user):
            _set_default_access(Path(folder))
        for name in names:
            _restrict_mode(Path(folder) / name, user)


def _restrict_mode(path: Path, user: int) -> bool:
    """Take the rights of others away, if the file is the user's; whether it is."""
    try:
        found = path.lstat()
        if found.st_uid != user:
            return False
        if found.st_mode & 0o077 and not stat.S_ISLNK(found.st_mode):
            path.chmod(found.st_mode & 0o700)
    except FileNotFoundError:
        return False  # the engine deletes files when it likes
    return True


def _set_default_access(directory: Path) -> None:
    try:
        os.setxattr(directory, _DEFAULT_ACCESS_LIST, _OWNER_ALONE)
    except OSError as error:
        if error.errno not in _NO_ACCESS_LISTS:
            raise


@contextmanager
def replace_when_written(path: Path, mode: int = 0o666) -> Iterator[Path]:
    """A draft to write in place of the file `path`, which it becomes when the block ends well: a
    process that dies leaves the file as it was. What is no plain file (a pipe, a device) is written
    itself."""
    if path.exists() and not path.is_file():
        yield path
        return
    target = path.resolve()
    draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
    existing = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
    try:
        yield draft
        if existing is not None:
            draft.chmod(existing)
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_directory(target.parent)
