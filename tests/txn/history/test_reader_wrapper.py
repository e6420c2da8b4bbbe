"""A wrapped reader shows what the one below does, but for what its hooks change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from belvedere.catalog.catalog import empty_catalog
from belvedere.kv.memory import MemoryStore
from belvedere.txn.history.readers import NewestReader, ReaderWrapper

T = TypeVar("T")
ROWS = [(bytes([n]), bytes([n, n])) for n in range(10)]


def newest() -> NewestReader:
    store = MemoryStore()
    store.write(list(ROWS))
    return NewestReader(store, 7, empty_catalog())


def test_without_hooks_everything_is_as_below() -> None:
    below = newest()
    above = ReaderWrapper(below)
    assert (above.position, above.catalog) == (7, below.catalog)
    keys = [b"\x03", b"\x63"]
    assert [above.get(key) for key in keys] == above.multi_get(keys) == [b"\x03\x03", None]
    for options in ({}, {"reverse": True}, {"limit": 3}, {"batch_rows": 2}):
        found = list(above.scan(b"\x02", b"\x08", **options))  # type: ignore[arg-type]
        assert found == list(below.scan(b"\x02", b"\x08", **options))  # type: ignore[arg-type]
    found_values = list(above.scan_values(b"\x02", b"\x08", batch_rows=2))
    assert found_values == list(below.scan_values(b"\x02", b"\x08", batch_rows=2))


class Hooked(ReaderWrapper):
    def _scanned_range(self, start: bytes, end: bytes) -> tuple[bytes, bytes]:
        return max(start, b"\x04"), end

    def _passed_on(self, batches: Iterator[list[T]]) -> Iterator[list[T]]:
        return (batch[:1] for batch in batches)


def test_the_hooks_hold_for_pairs_and_for_values() -> None:
    above = Hooked(newest())
    assert list(above.scan(b"\x00", b"\x08", batch_rows=100)) == [[ROWS[4]]]
    assert list(above.scan_values(b"\x00", b"\x08", batch_rows=100)) == [[ROWS[4][1]]]
