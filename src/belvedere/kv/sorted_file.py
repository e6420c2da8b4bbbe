"""The sorted file of the memory store: what it ingests, and what its checkpoints are made of.

    magic                    8 bytes
    per pair, ascending      u32 key length, u32 value length, key, value
    end mark                 u32 0xffffffff, u32 count of pairs, u32 crc32 of all before

A file is read completely or refused: a cut, a flipped bit or a missing end mark is Corruption.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from belvedere.errors import Corruption, InvalidInput
from belvedere.kv.batch import Pair, check_pair
from belvedere.kv.files import check_file, check_target, map_os_errors

_MAGIC = b"blvpairs"
_LENGTHS = struct.Struct(">II")
_END = struct.Struct(">III")
_END_MARK = 0xFFFFFFFF


class PairFileWriter:
    """Writes the file format above; `finish` is for `ingest`, `seal_file` also allows an empty
    file."""

    __slots__ = ("_count", "_crc", "_file", "_last", "_path")

    def __init__(self, path: Path) -> None:
        self._path = path
        check_target(path)
        with map_os_errors(path):
            self._file: BinaryIO = path.open("xb")
        self._count = 0
        self._crc = 0
        self._last: bytes | None = None
        self._append_bytes(_MAGIC)

    def put(self, key: bytes, value: bytes) -> None:
        check_pair(key, value)
        if self._last is not None and key <= self._last:
            raise InvalidInput("keys of a sorted file must ascend", key=key, last=self._last)
        self._last = key
        self._count += 1
        self._append_bytes(_LENGTHS.pack(len(key), len(value)) + key + value)

    def put_pairs(self, pairs: Iterable[Pair]) -> None:
        for key, value in pairs:
            self.put(key, value)

    def finish(self) -> Path | None:
        if self._count == 0:
            with map_os_errors(self._path):
                self._file.close()
                self._path.unlink()
            return None
        self.seal_file()
        return self._path

    def seal_file(self) -> None:
        """Write the end mark and close."""
        self._append_bytes(_END.pack(_END_MARK, self._count, self._crc))
        with map_os_errors(self._path):
            self._file.close()

    def _append_bytes(self, part: bytes) -> None:
        with map_os_errors(self._path):
            self._file.write(part)
        self._crc = zlib.crc32(part, self._crc)


def read_pair_file(path: Path) -> list[Pair]:
    """Every pair of a sorted file or checkpoint, or Corruption when it is incomplete."""
    check_file(path)
    with map_os_errors(path):
        content = path.read_bytes()
    body = len(content) - _END.size
    if body < len(_MAGIC) or content[: len(_MAGIC)] != _MAGIC:
        raise Corruption("not a sorted file", path=path)
    mark, count, crc = _END.unpack_from(content, body)
    if mark != _END_MARK or crc != zlib.crc32(content[:body]):
        raise Corruption("sorted file is damaged", path=path)
    pairs = list(_parse_pairs(content, body))
    if len(pairs) != count:
        raise Corruption("sorted file is damaged", path=path, pairs=len(pairs), promised=count)
    return pairs


def _parse_pairs(content: bytes, body: int) -> Iterator[Pair]:
    at = len(_MAGIC)
    while at < body:
        key_bytes, value_bytes = _LENGTHS.unpack_from(content, at)
        split = at + _LENGTHS.size + key_bytes
        at = split + value_bytes
        yield content[split - key_bytes : split], content[split:at]
