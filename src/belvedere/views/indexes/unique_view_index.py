"""Unique indexes of views: a change that would give a view two rows of one key is refused.

The index is an immediate view whose state is in the order of its columns, so the rows of one key
are one range. The commit's additions to the index are computed first; then every key that got a row
is checked at the state with these. NULL is equal to nothing, as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.catalog.relation_codecs import CompiledView, compiled_view
from belvedere.codec import accumulator
from belvedere.errors import InvalidInput
from belvedere.txn.contracts import LockRequest, Participant, Reader, RowChange, Writer
from belvedere.txn.history.derived_rows import DerivedRows
from belvedere.txn.history.readers import OverlayReader
from belvedere.types import Row
from belvedere.views.changefeed.entries import RecordingWriter


class UniqueViewIndexParticipant:
    """The participant of a unique index."""

    checks = False  # `writes` checks, where the additions are known

    def __init__(self, catalog: Catalog, view: View, inner: Participant) -> None:
        self.keys = UniqueKeyReader(compiled_view(catalog, view.id))
        self.inner = inner

    def locks(self, changes: Sequence[RowChange], reader: Reader) -> Iterable[LockRequest]:
        return self.inner.locks(changes, reader)

    def check(self, changes: Sequence[RowChange], reader: Reader) -> None:
        """Nothing: `writes` has checked uniqueness."""

    def writes(self, changes: Sequence[RowChange], reader: Reader, writer: Writer) -> None:
        noted = RecordingWriter(writer)
        self.inner.writes(changes, reader, noted)
        if not noted.additions:
            return
        added = DerivedRows(reader)
        for addition in noted.additions:
            added.add(*addition)
        states = dict(added.writes())
        after = OverlayReader(reader, states, reader.position + 1, reader.catalog)
        for state in states.values():
            if state is not None:
                self.keys.require_single_row_of_key(state, after)


def require_unique_index_rows(reader: Reader, view: View) -> None:
    """23505 when two rows of the index, at the state of `reader`, have one key."""
    stored = compiled_view(reader.catalog, view.id)
    keys = UniqueKeyReader(stored)
    before = b""
    for state in _scan_state_values(reader, stored.start, stored.end):
        key, count = keys.decode_key_and_row_count(state)
        if key is not None:
            start = stored.key.encode_prefix(key)
            if count > 1 or start == before:
                raise keys.duplicate_key_error(key)
            before = start


def _scan_state_values(reader: Reader, start: bytes, end: bytes) -> Iterator[bytes]:
    for batch in reader.scan(start, end):
        for _, state in batch:
            yield state


class UniqueKeyReader:
    """Reads the unique key, the first columns, from an index's rows."""

    def __init__(self, stored: CompiledView) -> None:
        self._stored = stored
        index = stored.view.index
        assert index is not None
        assert index.unique_count is not None
        self._width = index.unique_count

    def decode_key_and_row_count(self, state: bytes) -> tuple[Row | None, int]:
        """The key, None where a NULL is in it, and how many rows the state counts."""
        payload, amounts = accumulator.decode(state)
        key = self._stored.payload.decode(payload)[: self._width]
        return (None if None in key else key), amounts[0]

    def encode_claimed_key(self, payload: bytes) -> bytes | None:
        """The encoded key of a row, which a commit claims; None where a NULL is in it."""
        key = self._stored.payload.decode(payload)[: self._width]
        return None if None in key else self._stored.key.encode_prefix(key)

    def require_single_row_of_key(self, state: bytes, reader: Reader) -> None:
        key, count = self.decode_key_and_row_count(state)
        if key is None:
            return
        start, end = self._stored.key.prefix_range(key)
        assert end is not None
        found = sum(len(batch) for batch in reader.scan(start, end, limit=2))
        if count > 1 or found > 1:
            raise self.duplicate_key_error(key)

    def duplicate_key_error(self, key: Row) -> InvalidInput:
        view = self._stored.view
        names = [column.name for column in view.columns[: self._width]]
        return InvalidInput(
            "duplicate key value violates unique constraint",
            sqlstate="23505",
            detail=f"key ({', '.join(names)}) = ({', '.join(map(str, key))}) is not unique",
            constraint=view.name,
        )
