"""In which row of the store the row of a table or view is: by its key, or spread over regions.

    most relations     10 relation key       the row is the key itself
    spread tables      11 slot relation key  `WITH (partitions = n, keys = 'hashed')`
    their local views  11 slot relation key  `WITH (placement = 'local')`

The partition of a table's row is a hash of its key, the one by which local views find it. The key
of an entry of a local view begins with the partition of the rows that it comes from, so the two are
in one slot. Partitions are slots, evenly spread over the 256 there are; a store that has regions
has some that begin at slots from the beginning.

Only cells, and writes of cells, know rows. All above has keys: locks, changes, the bodies of
records, readers, which merge the slots of a range in the order of keys.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import merge

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Table, View
from belvedere.codec import keyspace
from belvedere.kv.cell import Cells
from belvedere.kv.packed_rows import PackedRows

SLOTS = 256
HEAD = bytes((keyspace.ROWS,))
SPREAD = keyspace.SPREAD_ROWS
SLOT_BYTES = 2
"""Family and slot, which stand before the relation."""

NUMBER_AT, NUMBER_END = keyspace.ROW_PREFIX_BYTES + 1, keyspace.ROW_PREFIX_BYTES + 9
"""Where a key has its first column, an integer, after the byte that says it is not NULL."""

PAGE_SPARE = 8

Page = tuple[Sequence[tuple[bytes, Cells]], bytes | None]
"""Rows, and the last key looked at; None at the end of the range."""


@dataclass(frozen=True, slots=True)
class Spread:
    """`slots`: of each partition; with more partitions than slots, some have the same.
    `in_keys`: keys begin with the number of their partition, those of a local view."""

    slots: tuple[int, ...]
    in_keys: bool = False

    def row_of(self, key: bytes) -> bytes:
        hashed = zlib.crc32(key) % len(self.slots)
        partition = _first_number(key) if self.in_keys else hashed
        return bytes((SPREAD, self.slots[partition])) + key[1:]

    def list_ranges(self, start: bytes, end: bytes) -> list[tuple[bytes, bytes]]:
        """Where the rows of a range of keys are, in each slot that may have some."""
        slots = sorted(set(self.slots))
        if self.in_keys and len(start) >= NUMBER_END and start[:NUMBER_END] == end[:NUMBER_END]:
            slots = [self.slots[_first_number(start)]]
        heads = [bytes((SPREAD, slot)) for slot in slots]
        return [(head + start[1:], head + end[1:]) for head in heads]


def find_spread(catalog: Catalog, key: bytes) -> Spread | None:
    """How the relation of a key, or of the first key of a range, is spread; kept per catalog."""
    if key[0] != keyspace.ROWS:
        return None
    relation = int.from_bytes(key[1 : keyspace.ROW_PREFIX_BYTES])
    memo_key = ("spread", relation)
    if memo_key not in catalog.derived_cache:
        item = catalog.get(relation)
        local = isinstance(item, View) and item.form.local and not item.reads
        table = catalog.get(item.inputs[0]) if local and isinstance(item, View) else item
        count = count_partitions(table) if isinstance(table, Table) else 1
        slots = tuple(partition * SLOTS // count for partition in range(count))
        catalog.derived_cache[memo_key] = Spread(slots, local) if count > 1 else None
    return catalog.derived_cache[memo_key]  # type: ignore[return-value]


def count_partitions(table: Table) -> int:
    """Into how many partitions the rows of a table are spread; 1: they are not."""
    return table.partitions if table.hashed else 1


def row_of(catalog: Catalog, key: bytes) -> bytes:
    spread = find_spread(catalog, key)
    return key if spread is None else spread.row_of(key)


def list_row_ranges(catalog: Catalog, start: bytes, end: bytes) -> list[tuple[bytes, bytes]]:
    """The ranges of rows in which a range of keys of one relation is."""
    spread = find_spread(catalog, start)
    return [(start, end)] if spread is None else spread.list_ranges(start, end)


def key_of(row: bytes) -> bytes:
    """The key of a row."""
    return HEAD + row[SLOT_BYTES:] if row[0] == SPREAD else row


def _first_number(key: bytes) -> int:
    return int.from_bytes(key[NUMBER_AT:NUMBER_END]) - (1 << 63)


def relation_of(row: bytes) -> int:
    """The relation of a row, or of a key."""
    at = SLOT_BYTES if row[0] == SPREAD else 1
    return int.from_bytes(row[at : at + 4])


def choose_page(rows: int, ranges: int) -> int:
    """How many rows to ask of each range for about so many in all: of a few, any range may have
    all."""
    return min(rows, rows // ranges + rows // (4 * ranges) + PAGE_SPARE)


def merge_pages(
    pages: Sequence[Sequence[tuple[bytes, Cells]]], asked: int, rows: int, *, reverse: bool
) -> Page:
    """One page, of keys in order, of the pages of all slots, each of which was asked for so many
    rows. Behind the last row of a full page there may be more: nothing behind it is taken."""
    full = [key_of(page[-1][0]) for page in pages if len(page) >= asked]
    bound = (max(full) if reverse else min(full)) if full else None
    filled = [page for page in pages if page]
    if filled and all(isinstance(page, PackedRows) for page in filled):
        return _merge_packed(filled, bound, rows, reverse)  # type: ignore[arg-type]
    keyed = ([(key_of(row), cells) for row, cells in page] for page in filled)
    found = list(merge(*keyed, key=_first, reverse=reverse))
    if bound is not None:
        found = [row for row in found if _is_within(row[0], bound, reverse)]
    if len(found) <= rows:
        return found, bound
    return found[:rows], found[rows - 1][0]


def _merge_packed(
    pages: Sequence[PackedRows], bound: bytes | None, rows: int, reverse: bool
) -> Page:
    joined = PackedRows.join_pages(pages, SLOT_BYTES, HEAD)
    keys = joined.list_keys()
    order = sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse)
    if bound is not None:
        order = [number for number in order if _is_within(keys[number], bound, reverse)]
    last = bound if len(order) <= rows else keys[order[rows - 1]]
    return joined.take_rows(order[:rows]), last


def _first(row: tuple[bytes, Cells]) -> bytes:
    return row[0]


def _is_within(key: bytes, bound: bytes, reverse: bool) -> bool:
    return key >= bound if reverse else key <= bound
