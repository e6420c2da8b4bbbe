"""The changefeed of a view: stored entries of its changes, and how rows are computed from them.

A view with the option `keep_changes = n` stores, in the batch that changes its state, what was
added to it, under (view, position). No state is read for that, so concurrent writers of one group
still do not wait for each other. Rows are computed when a subscriber reads: the entries of the
touched keys are undone from the newest state back to the wanted position, then applied step by
step, and the view's reading plan turns each key's state before and after into rows.

- key (view, position, number): the additions, as [(state key, addition encoded like a state)]
- key (view, 0, 0): the position after which changes are retained

An entry of a deferred view holds all changes of a batch, at the position the batch reached. Entries
are dropped once they are n positions old.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from belvedere.catalog.model import View
from belvedere.codec import accumulator, keyspace
from belvedere.kv.batch import SCAN_BATCH_ROWS, Pair, Write
from belvedere.txn.contracts import LockRequest, Participant, Reader, RowChange, Writer
from belvedere.txn.history.merge_scan import merge_scan
from belvedere.txn.history.readers import ReaderWrapper, values_only
from belvedere.types import Row

DEFAULT_RETAINED_POSITIONS = 100_000
_POSITION = struct.Struct(">Q")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[bytes, bytes]]).decode

Addition = tuple[bytes, bytes, tuple[int, ...]]
"""Key of a view's state, its payload, what is added to its amounts."""


class ChangefeedEntry(NamedTuple):
    position: int
    additions: tuple[Addition, ...]


# -- writing ---------------------------------------------------------------------------------------


def build_entry_write(
    view: int, position: int, additions: Sequence[Addition], number: int = 0
) -> Write:
    listed = [(key, accumulator.encode(payload, amounts)) for key, payload, amounts in additions]
    return keyspace.stream_key(view, position, number), _encode(listed)


def build_changefeed_writes(
    reader: Reader, views: Iterable[View], position: int, additions: Sequence[Addition]
) -> Iterator[Write]:
    """The entries of a batch, for those of the views that have a changefeed."""
    for view in views:
        if view.options.keep_changes is not None:
            prefix = keyspace.row_prefix(view.id)
            mine = [addition for addition in additions if addition[0].startswith(prefix)]
            if mine:
                yield build_entry_write(
                    view.id, position, mine, _find_free_entry_number(reader, view.id, position)
                )


def _find_free_entry_number(reader: Reader, view: int, position: int) -> int:
    """The next free number at a position: a repair may add where an entry exists already."""
    number = 0
    while reader.get(keyspace.stream_key(view, position, number)) is not None:
        number += 1
    return number


class ChangefeedParticipant:
    """The participant of an immediate view with a changefeed: stores what is added to the view."""

    checks = False

    def __init__(self, view: int, inner: Participant) -> None:
        self._view = view
        self._view_participant = inner

    def locks(self, changes: Sequence[RowChange], reader: Reader) -> Iterable[LockRequest]:
        return self._view_participant.locks(changes, reader)

    def check(self, changes: Sequence[RowChange], reader: Reader) -> None:
        """A view refuses nothing."""

    def writes(self, changes: Sequence[RowChange], reader: Reader, writer: Writer) -> None:
        noted = RecordingWriter(writer)
        self._view_participant.writes(changes, reader, noted)
        if noted.additions:
            key, value = build_entry_write(self._view, reader.position + 1, noted.additions)
            assert value is not None
            writer.put(key, value)


class RecordingWriter:
    """A Writer that also records the additions."""

    def __init__(self, writer: Writer) -> None:
        self.put = writer.put
        self.delete = writer.delete
        self._add = writer.add
        self.shared_results = writer.shared_results
        self.additions: list[Addition] = []

    def add(self, key: bytes, payload: bytes, amounts: tuple[int, ...]) -> None:
        self.additions.append((key, payload, amounts))
        self._add(key, payload, amounts)


def start_changefeed(writer: Writer, view: int, position: int) -> None:
    """Begin to retain the view's changes, those after `position`."""
    writer.put(keyspace.stream_key(view, 0), _POSITION.pack(position))


def build_retention_start_write(view: int, position: int) -> Write:
    return keyspace.stream_key(view, 0), _POSITION.pack(position)


def delete_changefeed(reader: Reader, writer: Writer, view: int) -> None:
    for key in _scan_keys(reader, keyspace.stream_key(view, 0), keyspace.stream_range(view)[1]):
        writer.delete(key)


def build_trim_writes(reader: Reader, view: int, through: int, entries_max: int) -> list[Write]:
    """Writes that delete the oldest entries, up to `through`."""
    start = read_retention_start(reader, view)
    if start is None or start >= through:
        return []
    low, high = keyspace.stream_range(view, start, through)
    gone = list(_scan_keys(reader, low, high, limit=entries_max))
    reached = through
    if len(gone) == entries_max:
        last = keyspace.parse_key(gone[-1])
        assert isinstance(last, keyspace.StreamKey)
        reached = last.position
        gone += [
            key for key in _scan_keys(reader, *_position_key_range(view, reached)) if key > gone[-1]
        ]
    return [
        (keyspace.stream_key(view, 0), _POSITION.pack(reached)),
        *((key, None) for key in gone),
    ]


def _position_key_range(view: int, position: int) -> tuple[bytes, bytes]:
    return keyspace.stream_range(view, position - 1, position)


def _scan_keys(
    reader: Reader, start: bytes, end: bytes, limit: int | None = None
) -> Iterator[bytes]:
    for batch in reader.scan(start, end, limit=limit):
        for key, _ in batch:
            yield key


# -- reading ---------------------------------------------------------------------------------------


def read_retention_start(reader: Reader, view: int) -> int | None:
    """The position after which the view's changes are retained; None: they are not."""
    value = reader.get(keyspace.stream_key(view, 0))
    return None if value is None else int(_POSITION.unpack(value)[0])


def read_stored_entries(
    reader: Reader, view: int, after: int, limit: int | None = None
) -> list[ChangefeedEntry]:
    """The additions after a position, one entry for each position, in order. A limit on the stored
    entries never cuts the last position short."""
    found: dict[int, list[Addition]] = {}
    seen = 0
    start, end = keyspace.stream_range(view, after)
    for batch in reader.scan(start, end):
        for key, value in batch:
            parsed = keyspace.parse_key(key)
            assert isinstance(parsed, keyspace.StreamKey)
            if limit is not None and seen >= limit and parsed.position not in found:
                return _to_changefeed_entries(found)
            seen += 1
            there = found.setdefault(parsed.position, [])
            for state_key, addition in _decode(value):
                there.append((state_key, *accumulator.decode(addition)))
    return _to_changefeed_entries(found)


def _to_changefeed_entries(found: dict[int, list[Addition]]) -> list[ChangefeedEntry]:
    return [ChangefeedEntry(position, tuple(additions)) for position, additions in found.items()]


def compute_states_before(
    reader: Reader, all_entries: Sequence[ChangefeedEntry]
) -> dict[bytes, bytes | None]:
    """The state of the touched keys before these entries; `reader` shows the state after them."""
    sums: dict[bytes, tuple[bytes, list[int]]] = {}
    for entry in all_entries:
        for key, payload, amounts in entry.additions:
            known = sums.get(key)
            if known is None:
                sums[key] = (payload, [-amount for amount in amounts])
            else:
                known[1][:] = [s - amount for s, amount in zip(known[1], amounts, strict=True)]
    stored = reader.multi_get(list(sums))
    return {
        key: accumulator.add(state, payload, tuple(amounts)) if any(amounts) else state
        for state, (key, (payload, amounts)) in zip(stored, sums.items(), strict=True)
    }


def apply_entry_to_states(
    state: dict[bytes, bytes | None], entry: ChangefeedEntry
) -> tuple[dict[bytes, bytes | None], dict[bytes, bytes | None]]:
    """The states of the keys an entry touches, before and after it; applies it to `state`."""
    before: dict[bytes, bytes | None] = {}
    for key, payload, amounts in entry.additions:
        before.setdefault(key, state.get(key))
        state[key] = accumulator.add(state.get(key), payload, amounts)
    return before, {key: state[key] for key in before}


def compute_net_row_changes(before: Iterable[Row], after: Iterable[Row]) -> list[tuple[Row, int]]:
    """Deleted rows (negative) and inserted ones, with their weights; unchanged rows are left
    out."""
    counts: Counter[str] = Counter()
    shown: dict[str, Row] = {}  # by representation: all NaNs are one, 1.0 is not 1.00
    for rows, weight in ((before, -1), (after, 1)):
        for row in rows:
            counts[repr(row)] += weight
            shown[repr(row)] = row
    changed = [(shown[look], weight) for look, weight in counts.items() if weight]
    return sorted(changed, key=lambda pair: pair[1])


class KeySubsetReader(ReaderWrapper):
    """A Reader that shows only these keys of one relation, and all other relations unchanged."""

    def __init__(self, under: Reader, relation: int, rows: dict[bytes, bytes | None]) -> None:
        super().__init__(under)
        self._prefix = keyspace.row_prefix(relation)
        self._rows = rows

    def get(self, key: bytes) -> bytes | None:
        return self._rows.get(key) if key.startswith(self._prefix) else super().get(key)

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.get(key) for key in keys]

    def scan(
        self,
        start: bytes,
        end: bytes,
        *,
        reverse: bool = False,
        limit: int | None = None,
        batch_rows: int = SCAN_BATCH_ROWS,
    ) -> Iterator[list[Pair]]:
        if not start.startswith(self._prefix):
            return super().scan(start, end, reverse=reverse, limit=limit, batch_rows=batch_rows)
        mine = {key: value for key, value in self._rows.items() if start <= key < end}
        return merge_scan(iter(()), mine, reverse=reverse, limit=limit)

    def scan_values(
        self, start: bytes, end: bytes, *, batch_rows: int = SCAN_BATCH_ROWS
    ) -> Iterator[list[bytes]]:
        return values_only(self.scan(start, end, batch_rows=batch_rows))
