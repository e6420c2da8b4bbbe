"""Table statistics for the optimizer: row counts and column summaries, from samples.

A process that has the store open samples when a statement first needs a table and again after a
number of commits: nothing is locked, writers do no extra work. Processes that share a store share
their samples (`shared_samples`), and take what others have before they sample. A sample has rows
from all over the table: every row of a small one, and of a large one short runs at evenly spaced
keys; ANALYZE reads the complete table and samples one of every n rows. The summary of a column is
computed from the sample when first needed.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from belvedere.catalog.model import Table, View
from belvedere.catalog.relation_codecs import (
    CompiledTable,
    CompiledView,
    compiled_relation,
    compiled_table,
)
from belvedere.session.context.shared_samples import (
    PlacedSample,
    SharedSample,
    decode_sample,
    encode_sample,
    merge_samples,
)
from belvedere.sql.rules.column_summary import ColumnSummary, summarize_column
from belvedere.txn.cluster import StoredSample
from belvedere.txn.contracts import PublishedState, Reader
from belvedere.txn.engine import SampleExchange

COUNTED_MAX = 6_000
"""Rows that are counted one by one; a larger table's count is extrapolated from its keys."""
SAMPLED_MAX = 3_000
ANALYZED_MAX = 30_000
RUN_COUNT = 48
RUN_ROWS = 64
SAMPLE_SEED = 1
"""The same rows give the same sample, and so the same plans."""

GAPS_MAX = 8
"""How often a gap without rows, in front of keys far from the others, is left out."""

GOLDEN_SHARE = 0.6180339887
"""Multiples of it, without their whole parts, are spread evenly between 0 and 1."""
POSITIONS_MAX = 1_000
UNKNOWN_ROWS = 1_000.0
TABLES_SAMPLED_MAX = 500


class StatisticsSource(Protocol):
    """The database, as far as statistics need it."""

    @property
    def visibility(self) -> PublishedState: ...


@dataclass(slots=True)
class TableSample:
    """`values` are stored rows, `in_runs`: such that lie side by side; after `valid_commit_count`
    more commits a new sample replaces this one."""

    position: int
    rows: float
    table: CompiledTable | None = None
    values: list[bytes] = field(default_factory=list)
    in_runs: bool = False
    complete: bool = False
    summaries: dict[int, ColumnSummary | None] = field(default_factory=dict)

    @property
    def valid_commit_count(self) -> float:
        return min(POSITIONS_MAX, max(50.0, self.rows / 10))

    def get_column_summary(self, slot: int) -> ColumnSummary | None:
        if slot not in self.summaries:
            self.summaries[slot] = self._compute_column_summary(slot)
        return self.summaries[slot]

    def _compute_column_summary(self, slot: int) -> ColumnSummary | None:
        if self.table is None or slot >= len(self.table.table.columns):
            return None
        get = self.table.layout.getter(slot)
        values = [get(value) for value in self.values]
        found = summarize_column(values, self.rows)
        if found is None or not self._is_sorted_in_runs(slot):
            return found
        # Equal values lie side by side: a run has all rows of most of its values.
        different = len(set(values))
        if different < 2 * RUN_COUNT:
            return found
        return replace(found, distinct=different / len(values) * self.rows)

    def _is_sorted_in_runs(self, slot: int) -> bool:
        assert self.table is not None
        table = self.table.table
        return self.in_runs and table.primary_key[0] == slot and not table.hashed


class TableStatistics:
    def __init__(
        self,
        source: StatisticsSource,
        reader: Callable[[], Reader],
        shared: SampleExchange | None = None,
    ) -> None:
        self._source = source
        self._reader = reader
        self._shared = shared
        self._forgotten: dict[int, int] = {}
        self._mutex = threading.Lock()
        self._samples: dict[int, TableSample] = {}

    # -- what the optimizer asks --------------------------------------------------------------

    def row_count(self, relation: int) -> float:
        return self._get_fresh_sample(relation).rows

    def count_rows_now(self, relation: int) -> float:
        """The row count by a new scan; at most COUNTED_MAX or slightly more for a view."""
        catalog = self._source.visibility.published_snapshot.catalog
        if not isinstance(catalog.get(relation), Table | View):
            return UNKNOWN_ROWS
        return _read_first_rows_and_estimate_count(
            self._reader(), compiled_relation(catalog, relation)
        )[0]

    def distinct_count(self, relation: int, slot: int) -> float | None:
        found = self.column_summary(relation, slot)
        return None if found is None else found.distinct

    def column_summary(self, relation: int, slot: int) -> ColumnSummary | None:
        return self._get_fresh_sample(relation).get_column_summary(slot)

    def value_range(self, relation: int, slot: int) -> tuple[Any, Any] | None:
        """The first and last value of the column a table is ordered by."""
        table = self._source.visibility.published_snapshot.catalog.get(relation)
        if not isinstance(table, Table) or table.primary_key[0] != slot or table.hashed:
            return None
        compiled = compiled_table(self._source.visibility.published_snapshot.catalog, relation)
        ends = _read_first_and_last_row(self._reader(), compiled)
        if ends is None:
            return None
        get = compiled.layout.getter(slot)
        return get(ends[0][1]), get(ends[1][1])

    # -- samples ------------------------------------------------------------------------------

    def forget_sample(self, relation: int) -> None:
        """Nor is one used that others have taken by now."""
        self._samples.pop(relation, None)
        self._forgotten[relation] = self._source.visibility.published_snapshot.position

    def sample_complete_table(self, relation: int) -> None:
        """Read the complete table: an exact count, and a sample of all of it."""
        _, position, catalog, _ = self._source.visibility.published_snapshot
        table = compiled_table(catalog, relation)
        rows, step, values = 0, 1, list[bytes]()
        chosen = random.Random(SAMPLE_SEED)
        for batch in self._reader().scan_values(table.start, table.end):
            values += _pick_one_of_every_step(batch, step, chosen)
            rows += len(batch)
            while len(values) > 2 * ANALYZED_MAX:
                values, step = _pick_one_of_every_step(values, 2, chosen), step * 2
        sample = TableSample(position, float(rows), table, values, complete=True)
        self._store_sample(relation, sample)
        if self._shared is not None:
            self._share_sample(relation, sample, self._shared.read_samples(relation))

    def _get_fresh_sample(self, relation: int) -> TableSample:
        known = self._samples.get(relation)
        now = self._source.visibility.published_snapshot.position
        if known is None or now - known.position >= known.valid_commit_count:
            known = self._store_sample(relation, self._find_or_take_sample(relation, now))
        return known

    def _find_or_take_sample(self, relation: int, now: int) -> TableSample:
        """What others have sampled and is still valid; otherwise a sample, which is shared."""
        item = self._source.visibility.published_snapshot.catalog.get(relation)
        if self._shared is None or not isinstance(item, Table | View):
            return self._take_sample(relation)
        stored = self._shared.read_samples(relation)
        known_from, usable, outdated = self._forgotten.get(relation, -1), [], []
        for each in stored:
            sample = decode_sample(each.data)
            if (
                sample is None
                or sample.version != item.version
                or each.position <= known_from
                or now - each.position >= TableSample(each.position, sample.rows).valid_commit_count
            ):
                outdated.append(each)
            else:
                usable.append(PlacedSample(each.position, sample))
        merged = merge_samples(usable)
        if merged is not None:
            return self._open_shared_sample(relation, merged)
        taken = self._take_sample(relation)
        self._share_sample(relation, taken, outdated)
        return taken

    def _open_shared_sample(self, relation: int, found: PlacedSample) -> TableSample:
        catalog, sample = self._source.visibility.published_snapshot.catalog, found.sample
        compiled = compiled_relation(catalog, relation)
        table = compiled if isinstance(compiled, CompiledTable) else None
        return TableSample(
            found.position,
            sample.rows,
            table,
            list(sample.values),
            in_runs=sample.in_runs,
            complete=sample.complete,
        )

    def _share_sample(
        self, relation: int, sample: TableSample, replaced: Sequence[StoredSample]
    ) -> None:
        item = self._source.visibility.published_snapshot.catalog.get(relation)
        if self._shared is None or item is None:
            return
        values = tuple(sample.values)
        shared = SharedSample(item.version, sample.rows, sample.complete, sample.in_runs, values)
        self._shared.write_sample(relation, sample.position, encode_sample(shared), replaced)

    def _store_sample(self, relation: int, sample: TableSample) -> TableSample:
        with self._mutex:
            self._samples[relation] = sample
            while len(self._samples) > TABLES_SAMPLED_MAX:
                self._samples.pop(next(iter(self._samples)))
        return sample

    def _take_sample(self, relation: int) -> TableSample:
        _, position, catalog, _ = self._source.visibility.published_snapshot
        item = catalog.get(relation)
        if not isinstance(item, Table | View):
            return TableSample(position, UNKNOWN_ROWS)
        compiled, reader = compiled_relation(catalog, relation), self._reader()
        if not isinstance(compiled, CompiledTable):
            return TableSample(position, _estimate_view_rows(reader, compiled))
        rows, values = _read_first_rows_and_estimate_count(reader, compiled)
        if len(values) >= COUNTED_MAX:
            values = list(_sample_rows_evenly_by_key(reader, compiled))
            return TableSample(position, rows, compiled, values, in_runs=True)
        step = len(values) // SAMPLED_MAX + 1
        picked = _pick_one_of_every_step(values, step, random.Random(SAMPLE_SEED))
        return TableSample(position, rows, compiled, picked)


def _pick_one_of_every_step(
    values: Sequence[bytes], step: int, chosen: random.Random
) -> list[bytes]:
    """One of every `step` values, any of them: every n-th one would miss what repeats with the same
    period, such as a column that is the key modulo a number."""
    if step == 1:
        return list(values)
    found = []
    for start in range(0, len(values), step):
        place = start + chosen.randrange(step)
        if place < len(values):
            found.append(values[place])
    return found


def _read_first_rows_and_estimate_count(
    reader: Reader, relation: CompiledTable | CompiledView
) -> tuple[float, list[bytes]]:
    """The estimated number of rows, and the first of them, or all."""
    values: list[bytes] = []
    for batch in reader.scan_values(relation.start, relation.end):
        values += batch
        if len(values) >= COUNTED_MAX:
            break
    rows = float(len(values))
    if len(values) >= COUNTED_MAX and isinstance(relation, CompiledTable):
        rows *= _estimate_extrapolation_factor(reader, relation, values[-1])
    return rows, values


def _estimate_view_rows(reader: Reader, view: CompiledView) -> float:
    """The estimated number of rows of a view's state, extrapolated as that of a table."""
    rows, reached = 0, b""
    for pairs in reader.scan(view.start, view.end):
        rows += len(pairs)
        if pairs:
            reached = pairs[-1][0]
        if rows >= COUNTED_MAX:
            return rows * _estimate_range_factor(reader, RowRange(view.start, view.end), reached)
    return float(rows)


def _estimate_extrapolation_factor(reader: Reader, table: CompiledTable, reached: bytes) -> float:
    """How many times larger the table is than the counted part, by the last counted key."""
    key = table.key_of(table.decode(reached))
    return _estimate_range_factor(reader, RowRange(table.start, table.end), key)


class RowRange(NamedTuple):
    """Keys from `start` up to, not including, `end`."""

    start: bytes
    end: bytes


def _estimate_range_factor(reader: Reader, keys: RowRange, reached: bytes) -> float:
    """How many times more rows the range has than up to the reached key. Keys that differ at once
    are taken as spread evenly. A key with few values in front (the number of a line, then of its
    order) is not: where the first value has not been passed, its rows are estimated by the rest of
    the key, and so many rows are expected of each value."""
    ends = _read_first_and_last_row(reader, keys)
    if ends is None:
        return 1.0
    first, last = ends[0][0], ends[1][0]
    place = _common_prefix_length(first, last)
    if place >= min(len(first), len(last)) or reached[place] != first[place]:
        low, high, here = _convert_keys_to_numbers(first, last, reached)
        return max(1.0, (high - low) / max(1, here - low))
    groups = _split_range_by_leading_value(reader, keys, first, last)
    inside = _estimate_range_factor(reader, groups[0], reached)
    return inside * max(1.0, len(groups) - 0.5)  # the last one is seldom full


def _split_range_by_leading_value(
    reader: Reader, keys: RowRange, first: bytes, last: bytes
) -> list[RowRange]:
    """The parts of a range that have one value each in the first byte that differs; without those
    of a few rows, unless all are: some keys far from the others say little about the table."""
    place = _common_prefix_length(first, last)
    large, small = list[RowRange](), list[RowRange]()
    start: bytes | None = first
    while start is not None:
        end = start[:place] + bytes([start[place] + 1]) if start[place] < 255 else keys.end
        part = RowRange(start, min(end, keys.end))
        read = _read_keys(reader, RowRange(start, keys.end), RUN_ROWS)
        inside = sum(key < part.end for key in read)
        (large if inside == RUN_ROWS else small).append(part)
        beyond = (
            read[inside:]
            if inside < RUN_ROWS
            else _read_keys(reader, RowRange(part.end, keys.end), 1)
        )
        start = beyond[0] if beyond else None
    return large or small


def _read_keys(reader: Reader, keys: RowRange, count: int) -> list[bytes]:
    found = reader.scan(keys.start, keys.end, limit=count)
    return [key for pairs in found for key, _ in pairs]


def _read_first_and_last_row(
    reader: Reader, keys: RowRange | CompiledTable
) -> list[tuple[bytes, bytes]] | None:
    """The first and the last row with their keys."""
    found = []
    for reverse in (False, True):
        pairs = next(reader.scan(keys.start, keys.end, reverse=reverse, limit=1), None)
        if not pairs:
            return None
        found.append(pairs[0])
    return found


def _sample_rows_evenly_by_key(reader: Reader, table: CompiledTable) -> Iterator[bytes]:
    """Short runs of rows, at starts that split the key range evenly; of a key with few values in
    front, the range of each of them. No row is there twice."""
    ends = _read_first_and_last_row(reader, table)
    if ends is None:
        return
    keys = RowRange(table.start, table.end)
    parts = _split_range_by_leading_value(reader, keys, ends[0][0], ends[1][0])
    seen: set[bytes] = set()
    for i in range(RUN_COUNT):
        number = i * len(parts) // RUN_COUNT
        for _ in range(GAPS_MAX):
            part = parts[number]
            start = _interpolate_key_in_range(reader, part, i * GOLDEN_SHARE % 1.0 if i else 0.0)
            run = [
                pair for pairs in reader.scan(start, table.end, limit=RUN_ROWS) for pair in pairs
            ]
            if not run or run[0][0] not in seen or start <= part.start:
                break
            parts[number] = RowRange(part.start, start)  # no rows from here on but known ones
        yield from (value for key, value in run if key not in seen)
        seen.update(key for key, _ in run)


def _interpolate_key_in_range(reader: Reader, keys: RowRange, share: float) -> bytes:
    """A key so far into a range, as keys are spread."""
    ends = _read_first_and_last_row(reader, keys)
    if ends is None:  # deleted meanwhile: every read is of what is published then
        return keys.start
    first, last = ends[0][0], ends[1][0]
    low, high, _ = _convert_keys_to_numbers(first, last, first)
    if not share or low == high:
        return first
    place = low + round((high - low) * share)
    return first[: _common_prefix_length(first, last)] + min(place, 2**64 - 1).to_bytes(8)


def _common_prefix_length(one: bytes, other: bytes) -> int:
    return next(
        (i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other))
    )


def _convert_keys_to_numbers(first: bytes, last: bytes, key: bytes) -> tuple[int, int, int]:
    """The keys as numbers: the eight bytes after the common prefix of the first and the last."""
    start = _common_prefix_length(first, last)

    def key_to_number(one: bytes) -> int:
        return int.from_bytes(one[start : start + 8].ljust(8, b"\0"))

    return key_to_number(first), key_to_number(last), key_to_number(key)
