"""What a store must hold, worked out from its log alone, by code of its own.

The formats are written down here a second time, from their descriptions, for the few types that the
workload uses: a mistake in the engine's codec, commit or indexes then shows as a difference. The
state after position p is a dict from store key to value.

    rows        what the changes of the log say, one after the other; old images must fit
    entries     one entry a row and index, kept as simply as possible: out with the old, in with the
                new
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import xxhash

CATALOG = 1
SEQUENCES = 2

_HEADER = struct.Struct("<QIQQQq16sI")
_ENTRY = struct.Struct("<IB3xIII")
_FIXED = {"smallint": "h", "integer": "i", "bigint": "q", "boolean": "?"}
INSERT, UPDATE, DELETE = 1, 2, 3


class Mismatch(Exception):
    """The store is not what its log says."""


@dataclass(frozen=True, slots=True)
class Change:
    relation: int
    key: bytes
    old: bytes | None
    new: bytes | None

    @property
    def store_key(self) -> bytes:
        return b"\x10" + self.relation.to_bytes(4) + self.key


@dataclass(frozen=True, slots=True)
class Entry:
    """One record of the log."""

    position: int
    digest: int
    previous: int
    transaction: str
    changes: tuple[Change, ...]


def read_entry(data: bytes) -> Entry:
    digest, length, position, previous, _, _, transaction, count = _HEADER.unpack_from(data)
    if length != len(data) or digest != xxhash.xxh3_64_intdigest(data[8:]):
        raise Mismatch(f"record {position} is damaged")
    return Entry(position, digest, previous, transaction.hex(), tuple(_changes(data, count)))


def _changes(data: bytes, count: int) -> Iterator[Change]:
    tail = _HEADER.size + count * _ENTRY.size
    start = tail
    for number in range(count):
        relation, kind, *ends = _ENTRY.unpack_from(data, _HEADER.size + number * _ENTRY.size)
        key_end, old_end, new_end = (tail + end for end in ends)
        yield Change(
            relation,
            data[start:key_end],
            data[key_end:old_end] if kind != INSERT else None,
            data[old_end:new_end] if kind != DELETE else None,
        )
        start = new_end


def key_part(kind: str, value: Any) -> bytes:
    """One ascending key column."""
    if value is None:
        return b"\x02"
    if kind == "text":
        return b"\x01" + value.encode().replace(b"\0", b"\0\xff") + b"\0\0"
    return b"\x01" + (value + 2**63).to_bytes(8)


def encode_row(kinds: list[str], values: list[Any]) -> bytes:
    """A whole row: count, null bitmap, fixed slots, ends, tail."""
    nulls = sum(1 << slot for slot, value in enumerate(values) if value is None)
    data = len(values).to_bytes(2, "little") + nulls.to_bytes((len(values) + 7) // 8, "little")
    tail, ends = b"", b""
    for kind, value in zip(kinds, values, strict=True):
        if kind in _FIXED:
            data += struct.pack("<" + _FIXED[kind], value or 0)
        else:
            tail += (value or "").encode()
            ends += len(tail).to_bytes(4, "little")
    return data + ends + tail


def decode_row(kinds: list[str], data: bytes) -> list[Any]:
    """The values of a row; a slot it does not have yet is None."""
    count = int.from_bytes(data[:2], "little")
    width = (count + 7) // 8
    nulls = int.from_bytes(data[2 : 2 + width], "little")
    at, values, texts = 2 + width, [None] * len(kinds), []
    for slot in range(count):
        if kinds[slot] in _FIXED:
            form = struct.Struct("<" + _FIXED[kinds[slot]])
            values[slot] = form.unpack_from(data, at)[0]
            at += form.size
        else:
            texts.append(slot)
    start = tail = at + 4 * len(texts)
    for number, slot in enumerate(texts):
        end = tail + int.from_bytes(data[at + 4 * number :][:4], "little")
        values[slot] = data[start:end].decode()  # type: ignore[call-overload]
        start = end
    return [None if nulls >> slot & 1 else value for slot, value in enumerate(values)]


@dataclass(slots=True)
class Replay:
    """The state after a prefix of the log; `objects` are catalog objects as plain dicts."""

    position: int = 0
    digest: int = 0
    rows: dict[bytes, bytes] = field(default_factory=dict)
    entries: dict[bytes, bytes] = field(default_factory=dict)
    objects: dict[int, dict[str, Any]] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=dict)
    half_built: set[int] = field(default_factory=set)

    def apply(self, record: Entry) -> None:
        if record.position != self.position + 1:
            raise Mismatch(f"position {record.position} follows {self.position}")
        if record.previous != self.digest:
            raise Mismatch(f"record {record.position} does not name the hash of the one before")
        if record.transaction in self.positions:
            raise Mismatch(f"transaction {record.transaction} is in the log twice")
        self.positions[record.transaction] = record.position
        self.position, self.digest = record.position, record.digest
        for change in record.changes:
            self._row(record.position, change)
        self._index(record)

    def _row(self, position: int, change: Change) -> None:
        key = change.store_key
        if self.rows.get(key) != change.old:
            raise Mismatch(f"record {position} has an old image that is not the row it replaced")
        _put(self.rows, key, change.new)
        if change.relation == CATALOG:
            stored = change.new if change.new is not None else change.old
            self._catalog(msgspec.msgpack.decode(stored or b""), change.new is None)

    def _catalog(self, item: dict[str, Any], gone: bool) -> None:
        before = self.objects.get(item["id"], {}).get("state")
        if gone:
            self._forget(item["id"])
            return
        self.objects[item["id"]] = item
        if before == "building" and item.get("state") == "dropped":
            self.half_built.add(item["id"])
        elif before == "building" and item.get("state") is None:
            self.entries.update(self._recompute(item))

    def _forget(self, relation: int) -> None:
        """A dropped object is removed from the catalog together with the rows it left."""
        self.objects.pop(relation, None)
        prefix = b"\x10" + relation.to_bytes(4)
        for rows in (self.rows, self.entries):
            for key in [key for key in rows if key.startswith(prefix)]:
                del rows[key]

    def _index(self, record: Entry) -> None:
        """Everything old first: two rows may have exchanged a unique value."""
        fresh = []
        for change in record.changes:
            for index in self.indexes_of(change.relation):
                old, new = self.entry(index, change.old), self.entry(index, change.new)
                if old is not None:
                    self.entries.pop(old[0], None)
                fresh.append(new)
        self.entries.update(filter(None, fresh))

    # -- the catalog --------------------------------------------------------------------------

    def tables(self) -> dict[str, dict[str, Any]]:
        return {
            item["name"]: item
            for item in self.objects.values()
            if item["kind"] == "table" and item.get("state") != "dropped"
        }

    def indexes_of(self, table: int) -> list[dict[str, Any]]:
        return [
            item
            for item in self.objects.values()
            if item["kind"] == "index" and item["table"] == table and item.get("state") != "dropped"
        ]

    def kinds(self, table: int) -> list[str]:
        return [column["type_name"][0] for column in self.objects[table]["columns"]]

    def entry(self, index: dict[str, Any], row: bytes | None) -> tuple[bytes, bytes] | None:
        """The index entry of a stored row."""
        if row is None:
            return None
        kinds = self.kinds(index["table"])
        values = decode_row(kinds, row)
        parts = [part["slot"] for part in index["parts"]]
        slots = [*parts, *self.objects[index["table"]]["primary_key"]]
        stored = [*slots, *index.get("include", ())]
        whole = index.get("unique") and not any(values[slot] is None for slot in parts)
        key = b"\x10" + index["id"].to_bytes(4)
        for slot in parts if whole else slots:
            key += key_part(kinds[slot], values[slot])
        return key, encode_row([kinds[s] for s in stored], [values[s] for s in stored])

    # -- what clients see ---------------------------------------------------------------------

    def table_rows(self, name: str) -> list[list[Any]]:
        table = self.tables()[name]
        prefix = b"\x10" + table["id"].to_bytes(4)
        kinds = self.kinds(table["id"])
        return [decode_row(kinds, row) for key, row in self.rows.items() if key.startswith(prefix)]

    def effect(self, record: Entry) -> list[list[Any]]:
        """A record's changes of user tables in the client's words: [table, key, new row]."""
        effect = []
        for change in record.changes:
            item = self.objects.get(change.relation)
            if item is None or item["kind"] != "table":
                continue
            kinds = self.kinds(change.relation)
            old, new = (
                None if row is None else decode_row(kinds, row) for row in (change.old, change.new)
            )
            key = [(new or old or [])[slot] for slot in item["primary_key"]]
            if old != new:
                effect.append([item["name"], key, new])
        return effect

    def broken_rules(self) -> list[str]:
        """Entries that are not those of a recompute, duplicate values, children without parent."""
        problems = []
        for index in [i for i in self.objects.values() if i["kind"] == "index"]:
            if index.get("state") in ("dropped", "building"):
                continue
            table = self.objects[index["table"]]
            problems += self._index_problems(index, table)
        for table in self.tables().values():
            for key in table.get("foreign_keys", ()):
                problems += self._orphans(table, key)
        return problems

    def _index_problems(self, index: dict[str, Any], table: dict[str, Any]) -> list[str]:
        prefix = b"\x10" + table["id"].to_bytes(4)
        stored = [row for key, row in self.rows.items() if key.startswith(prefix)]
        wanted = self._recompute(index)
        own = b"\x10" + index["id"].to_bytes(4)
        have = {key: value for key, value in self.entries.items() if key.startswith(own)}
        if len(wanted) != len(stored):
            return [f"index {index['name']}: two rows share one entry"]
        return [] if have == wanted else [f"index {index['name']} is not that of its table"]

    def _recompute(self, index: dict[str, Any]) -> dict[bytes, bytes]:
        prefix = b"\x10" + index["table"].to_bytes(4)
        stored = [row for key, row in self.rows.items() if key.startswith(prefix)]
        return dict(filter(None, (self.entry(index, row) for row in stored)))

    def _orphans(self, table: dict[str, Any], key: dict[str, Any]) -> list[str]:
        parent = self.objects[key["parent"]]["name"]
        parents = {
            tuple(row[slot] for slot in key["parent_columns"]) for row in self.table_rows(parent)
        }
        return [
            f"{table['name']} {row} has no parent in {parent}"
            for row in self.table_rows(table["name"])
            if None not in (values := tuple(row[slot] for slot in key["columns"]))
            and values not in parents
        ]


def _put(rows: dict[bytes, bytes], key: bytes, value: bytes | None) -> None:
    if value is None:
        rows.pop(key, None)
    else:
        rows[key] = value
