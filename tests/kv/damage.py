"""Stores as a kill leaves them, and ways to damage their files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

BATCHES = 400


def pairs(number: int) -> list[tuple[bytes, bytes]]:
    return [(b"a%05d" % number, b"left" * 20), (b"b%05d" % number, b"right" * 20)]


def logs(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


def edit(path: Path, change: Callable[[bytearray], bytearray]) -> None:
    path.write_bytes(change(bytearray(path.read_bytes())))


def record_of(log: bytes, number: int) -> int:
    """Where the log record of a batch begins: header, sequence, count, one tag, one length."""
    begin = bytes(log).index(b"a%05d" % number) - (7 + 12 + 1 + 1)
    assert log[begin + 6] == 1, "choose a batch that lies in one record"
    return begin
