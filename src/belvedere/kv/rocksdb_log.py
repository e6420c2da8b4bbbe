"""A check of RocksDB's write-ahead logs before RocksDB opens them.

RocksDB verifies the checksum of each log record. Two kinds of damage it does not survive (measured
with RocksDB 9.8.4, see docs/rocksdb.md), so they are detected here:
  - a record whose type byte says "recycled log" makes the open spin for ever, in every mode;
  - of several logs, an older one that was cut or deleted leaves a hole that is opened silently, in
    every mode. The records carry sequence numbers without gaps, so a hole shows.

Log file: blocks of 32 KiB; in them records, none across blocks, less than 7 bytes left unused:
    crc u32, length u16, type u8 (1 whole, 2 first, 3 middle, 4 last, 0 unused), payload
The first payload of a batch begins with its sequence number u64 and its count u32. Little-endian.

Ingested files take sequence numbers that no log shows: the file INGESTED remembers where, one line
for each of the last ingests: sequence before it, sequence after it (-1: not known yet), files.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from belvedere.errors import Corruption
from belvedere.kv.files import map_os_errors, replace_file

INGESTED_FILE = "INGESTED"
INGESTS_NOTED_MAX = 64

_BLOCK = 32 * 1024
_HEADER = struct.Struct("<IHB")
_BATCH = struct.Struct("<QI")
_UNUSED, _FULL, _FIRST, _LAST = 0, 1, 2, 4


@dataclass(frozen=True, slots=True)
class LogDamage:
    """The first damage in the logs that RocksDB must not read."""

    log: Path
    offset: int
    what: str


@dataclass(frozen=True, slots=True)
class Ingest:
    """Sequence numbers around one ingest of so many files; `after` -1: it may not have ended."""

    before: int
    after: int
    files: int

    def explains_gap(self, expected: int, found: int) -> bool:
        ends_in_time = self.after < 0 or found <= self.after + 1
        return self.before < expected and ends_in_time and found - expected <= self.files


def check_logs(directory: Path) -> None:
    """Corruption when the logs hold what RocksDB would loop over or silently jump."""
    trouble = find_damage(directory)
    if trouble is not None:
        raise Corruption(
            "store is damaged",
            detail=trouble.what,
            hint="open with data loss accepted to go on from before the damage",
            log=trouble.log.name,
            offset=trouble.offset,
            directory=directory,
        )


def cut_logs(directory: Path) -> None:
    """Set aside, as *.lost, what follows the first trouble; RocksDB opens what is before it."""
    trouble = find_damage(directory)
    if trouble is None:
        return
    with map_os_errors(trouble.log):
        for log in _list_logs(directory):
            if int(log.stem) > int(trouble.log.stem) or (log == trouble.log and not trouble.offset):
                log.rename(log.with_suffix(".log.lost"))
        if trouble.offset:
            content = trouble.log.read_bytes()
            replace_file(trouble.log.with_suffix(".log.lost"), content[trouble.offset :])
            replace_file(trouble.log, content[: trouble.offset])


def find_damage(directory: Path) -> LogDamage | None:
    ingests = read_ingests(directory)
    expected: int | None = None
    for log in _list_logs(directory):
        try:
            records = list(_scan_batches(log))
        except FileNotFoundError:
            # Another process has the store open and is done with this log; opening will say so.
            return None
        for number, (offset, sequence, count) in enumerate(records):
            if sequence < 0:
                return LogDamage(log, offset, "a log record is of an impossible kind")
            # A new log may begin earlier: the rest of the one before was given up by a recovery.
            backwards = number > 0 and expected is not None and sequence < expected
            gap = expected is not None and sequence > expected
            if backwards or (gap and not _is_gap_explained(ingests, expected or 0, sequence)):
                return LogDamage(log, offset, f"log jumps from {expected} to {sequence}")
            expected = sequence + count
    return None


def read_ingests(directory: Path) -> list[Ingest]:
    path = directory / INGESTED_FILE
    if not path.exists():
        return []
    with map_os_errors(path):
        lines = path.read_text("ascii", "replace").splitlines()
    try:
        return [Ingest(*map(int, line.split())) for line in lines]
    except (TypeError, ValueError) as error:
        raise Corruption("store is damaged", detail="ingest notes", path=path) from error


def write_ingests(directory: Path, ingests: Sequence[Ingest]) -> None:
    lines = [f"{one.before} {one.after} {one.files}\n" for one in ingests[-INGESTS_NOTED_MAX:]]
    with map_os_errors(directory):
        replace_file(directory / INGESTED_FILE, "".join(lines).encode())


def _is_gap_explained(ingests: Sequence[Ingest], expected: int, found: int) -> bool:
    return any(one.explains_gap(expected, found) for one in ingests)


def _list_logs(directory: Path) -> list[Path]:
    return sorted(directory.glob("[0-9]*.log"), key=lambda path: int(path.stem))


def _scan_batches(log: Path) -> Iterator[tuple[int, int, int]]:
    """Offset, sequence and count of each whole batch; sequence -1 for a record of no known type.

    Ends at a torn record, at unused space and at a fragment without a beginning: RocksDB judges
    those.
    """
    size = log.stat().st_size
    if size == 0:
        return
    with log.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        at = begun = 0
        head: bytes | None = None
        while at + _HEADER.size <= size:
            room = _BLOCK - at % _BLOCK
            if room < _HEADER.size:
                at += room
                continue
            _, length, kind = _HEADER.unpack_from(content, at)
            end = at + _HEADER.size + length
            if kind > _LAST:
                yield at, -1, 0
                return
            if kind in (_FULL, _FIRST):
                begun, head = at, b""
            if kind == _UNUSED or end > size or length > room - _HEADER.size or head is None:
                return
            if len(head) < _BATCH.size:
                # A first fragment may be empty: it fills the last 7 bytes of a block.
                head += content[at + _HEADER.size : min(end, at + _HEADER.size + _BATCH.size)]
            if kind in (_FULL, _LAST):
                if len(head) < _BATCH.size:
                    return
                yield begun, *_BATCH.unpack_from(head)
                head = None
            at = end
