"""Additions to the stored state of views: recording, applying, and computing them by comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.catalog.relation_codecs import compiled_view
from belvedere.codec import accumulator
from belvedere.kv.batch import Write
from belvedere.txn.contracts import KeyRange, Reader
from belvedere.views.changefeed.entries import Addition


class AddOnlyWriter:
    """The part of a Writer that a view has no use for. `shared_results` is for all views that take
    in the same changes."""

    def __init__(self, shared: dict[object, object] | None = None) -> None:
        self.shared_results: dict[object, object] = {} if shared is None else shared

    def put(self, key: bytes, value: bytes) -> None:
        raise AssertionError("a view only adds")

    def delete(self, key: bytes) -> None:
        raise AssertionError("a view only adds")


class AdditionRecorder(AddOnlyWriter):
    """A Writer that remembers additions one by one, to be made later. `rows` are state rows that
    replace what is stored; `cleared`, ranges of which nothing but such rows stays."""

    def __init__(self, shared: dict[object, object] | None = None) -> None:
        super().__init__(shared)
        self.additions: list[Addition] = []
        self.rows: list[Write] = []
        self.cleared: list[KeyRange] = []

    def add(self, key: bytes, payload: bytes, amounts: tuple[int, ...]) -> None:
        self.additions.append((key, payload, amounts))


class EmptyReader:
    """A reader of an empty store: the state that a backfill adds to."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.position = 0

    def get(self, key: bytes) -> None:
        return None

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [None] * len(keys)

    def scan(self, start: bytes, end: bytes, **_: object) -> Iterator[list[tuple[bytes, bytes]]]:
        return iter(())

    def scan_values(self, start: bytes, end: bytes, **_: object) -> Iterator[list[bytes]]:
        return iter(())


def build_state_row_writes(reader: Reader, additions: Sequence[Addition]) -> list[Write]:
    """The state rows that result from applying these additions to what `reader` shows."""
    stored = reader.multi_get([key for key, _, _ in additions])
    rows: dict[bytes, bytes | None] = {}
    width, add = -1, accumulator.get_adder(1)
    for (key, payload, amounts), state in zip(additions, stored, strict=True):
        if len(amounts) != width:  # another view
            width = len(amounts)
            add = accumulator.get_adder(width)
        rows[key] = add(rows.get(key, state), payload, amounts)
    return list(rows.items())


def compute_correcting_additions(
    reader: Reader, view: View, wanted: dict[bytes, bytes | None]
) -> Iterator[Addition]:
    """The additions that turn the stored state of a view into the wanted one."""
    stored = compiled_view(reader.catalog, view.id)
    for batch in reader.scan(stored.start, stored.end):
        for key, value in batch:
            payload, there = accumulator.decode(value)
            state = wanted.pop(key, None)
            goal = (0,) * len(there) if state is None else accumulator.decode(state)[1]
            if goal != there:
                yield key, payload, tuple([new - old for new, old in zip(goal, there)])
    for key, state in wanted.items():
        if state is not None:
            yield key, *accumulator.decode(state)
