"""A directory in the making: marked as unfinished before its first file, until it is whole.

    PATH/LOCK       flocked by the process that makes it
    PATH/<marker>   what will be its identity file (BELVEDERE) or backup file (BACKUP)

The marker is durable before anything else is written. Its renaming is the last step, after all
contents are durable: what opens is whole, whenever the process or the machine died before. What a
dead process left is made again from the start by the next one; a directory with anything else in it
is refused and not touched.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Self

from belvedere.errors import InvalidInput
from belvedere.kv.files import make_private_directory, sync_directory, sync_tree
from belvedere.txn.batch_atomic import directory as files


class DraftDirectory:
    """The making of `path`. Unless `install` was reached, leaving the block removes what it made.

    `final` is the name of the marker once the directory is whole, `identity` its contents.
    """

    def __init__(self, path: Path, final: str, identity: bytes) -> None:
        self.path = path
        self._marker = path / files.MARKERS[final]
        self._final = path / final
        self._identity = identity
        self._ownership: files.Ownership | None = None
        self._existed = False

    def __enter__(self) -> Self:
        self._existed = self.path.is_dir() and not self._marker.exists()
        try:
            _require_new_or_marked(self.path, self._marker.name)
            make_private_directory(self.path)
            self.lock()
            _require_new_or_marked(self.path, self._marker.name)
        except OSError as error:
            raise files.directory_error(self.path, error) from error
        _remove_contents(self.path, self._marker.name)
        self._write_marker()
        return self

    def lock(self) -> None:
        """Keep other processes out, until `unlock` or the end of the block."""
        if self._ownership is None:
            self._ownership = files.Ownership(self.path)

    def unlock(self) -> None:
        """Let somebody open what is here so far: the marker still refuses all who do not know."""
        if self._ownership is not None:
            self._ownership.release()
            self._ownership = None

    def install(self) -> None:
        """Make the contents durable, then the directory what it was made to be."""
        self.lock()
        sync_tree(self.path)
        self._marker.rename(self._final)
        sync_directory(self.path)
        sync_directory(self.path.absolute().parent)

    def _write_marker(self) -> None:
        descriptor = os.open(self._marker, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(descriptor, self._identity)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync_directory(self.path)
        sync_directory(self.path.absolute().parent)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Without the lock it is not ours any more: another process has begun again.
        if self._ownership is not None and not self._final.exists():
            _remove_contents(self.path, self._marker.name)
            self._marker.unlink(missing_ok=True)
            if not self._existed:
                (self.path / files.LOCK_FILE).unlink(missing_ok=True)
                self.path.rmdir()
        self.unlock()


def _require_new_or_marked(path: Path, marker: str) -> None:
    """Refuse a directory that holds anything but the remains of an earlier attempt."""
    if not path.exists():
        return
    names = {entry.name for entry in path.iterdir()} if path.is_dir() else {"a file"}
    if marker not in names and not names <= {files.LOCK_FILE}:
        raise InvalidInput("destination exists already", sqlstate="58P02", path=str(path))


def _remove_contents(path: Path, marker: str) -> None:
    """Remove what is in the directory but its lock and, so that it stays marked, its marker."""
    for entry in path.iterdir():
        if entry.name in (marker, files.LOCK_FILE):
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
