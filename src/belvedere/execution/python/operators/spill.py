"""External merge sort: sorted runs in temporary files, merged when read.

The files have no name, so nothing remains of them when the statement ends or the process dies.
Runs keep the order of the input among equal rows, as Python's own sort does.
"""

from __future__ import annotations

import heapq
import os
import pickle
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from belvedere.errors import Unavailable
from belvedere.types import Row

RUNS_MAX = 32
"""Number of files merged at a time."""

CHUNK_ROWS = 64
"""Rows of a run read at a time."""


class SpilledRuns:
    """Sorted rows, run by run; `key` is the order they are sorted by."""

    def __init__(self, key: Callable[[Row], Any]) -> None:
        self._key = key
        self._files: list[_RunFile] = []

    def __len__(self) -> int:
        return len(self._files)

    def add_run(self, rows: Iterable[Row]) -> None:
        each = iter(rows)
        try:
            file = _RunFile()
            self._files.append(file)
            while chunk := list(islice(each, CHUNK_ROWS)):
                pickle.dump(chunk, file.stream, protocol=5)
            file.stream.flush()
        except OSError as error:
            self.close()
            raise Unavailable(
                "no room on disk for a sort", sqlstate="53100", detail=str(error)
            ) from error
        if len(self._files) >= RUNS_MAX:
            whole = self.merge_runs()
            self._files = []
            self.add_run(whole)

    def merge_runs(self) -> Iterator[Row]:
        """All rows in order, once."""
        return _merge_files(self._files, self._key)

    def close(self) -> None:
        _close_files(self._files)


class _RunFile:
    """A file without a name, closed when the statement that created it ends, also by an error."""

    __slots__ = ("__weakref__", "close", "stream")

    def __init__(self) -> None:
        with tempfile.TemporaryFile(prefix="belvedere-sort-") as made:
            number = os.dup(made.fileno())
        self.close = weakref.finalize(self, os.close, number)
        self.stream = open(number, "w+b", closefd=False)  # noqa: SIM115

    def read_rows(self) -> Iterator[Row]:
        self.stream.seek(0)
        while True:
            try:
                yield from pickle.load(self.stream)
            except EOFError:
                return


def _merge_files(files: list[_RunFile], key: Callable[[Row], Any]) -> Iterator[Row]:
    try:
        yield from heapq.merge(*(file.read_rows() for file in files), key=key)
    finally:
        _close_files(files)


def _close_files(files: list[_RunFile]) -> None:
    for file in files:
        file.close()
