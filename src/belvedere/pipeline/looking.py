"""Task functions of a maintenance batch that read the store's state: look-ups and operators.

    LookupTask      joins rows with the rows of a table that have their key: by primary key or by
                    an index
    RecomputeTask   touched keys of an operator by partition: its rows after, minus its rows before
    ApplyTask       inserted and deleted rows on both sides of an outer, semi or anti join, a join
                    of trees or a sub-query: the delta of the operator

Arrow batches in and out, the last column a weight of 1 or -1. Spark does everything before and
after (`pipeline.delta_frames`). The operators are the engine's own (`views.partition`,
`views.apply`); they are given the deltas of their inputs instead of computing them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from belvedere.catalog.relation import compiled_table
from belvedere.codec.arrow import rows_to_arrow
from belvedere.errors import Error
from belvedere.execution.direct.compile import compile_plan
from belvedere.execution.spark.operators import Failed, Side, batches_of, side_rows
from belvedere.execution.spark.types import to_array, to_values
from belvedere.pipeline.held import Held
from belvedere.pipeline.inputs import Batches, carried_batch
from belvedere.pipeline.ready import Ready
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.fields import Field
from belvedere.txn.border import Reader
from belvedere.types import BIGINT, Row, SqlType
from belvedere.views.apply import ApplySource
from belvedere.views.core import Expressions
from belvedere.views.delta import KEYS_LEAF
from belvedere.views.partition import RecomputeSource
from belvedere.views.source import Restricted, Source, Step, Weighted, run_plan
from belvedere.views.tree import Apply, Tree, children

Types = tuple[SqlType, ...]
Place = tuple[int, ...]
"""Where a part of a view's tree is: which child, of which child, from the root on."""


def part_at(tree: Tree, place: Place) -> Tree:
    for number in place:
        tree = children(tree)[number]
    return tree


def opened(held: Held | None) -> Held:
    """The state to read. Task functions that are only explained, never run, have none."""
    assert held is not None, "a step that is run has been given where state is"
    return held


# -- look-ups --------------------------------------------------------------------------------------


class Partners(NamedTuple):
    """Columns of a table, and the parts of its key or of an index by which rows are looked up."""

    scan: n.Scan
    access: paths.Access


@dataclass(frozen=True, slots=True)
class LookUp:
    """In a task: joins rows with their partners. Input: `width` columns, the weight, and the values
    of the key. Output: the columns, the partner's columns, and the weight."""

    held: Held | None
    partners: Partners
    at_end: bool
    width: int
    key_types: Types
    names: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        scan = self.partners.scan
        try:
            with opened(self.held).table(scan.relation, at_end=self.at_end) as reader:
                find = self._finder(reader)
                for batch in batches:
                    if batch.num_rows:
                        yield self._beside(batch, find)
        except Error as error:
            raise Failed(error) from None

    def _beside(self, batch: pa.RecordBatch, find: Find) -> pa.RecordBatch:
        places, keys = _numbered(batch, self.width + 1, self.key_types)
        numbers, partners = find(keys)
        counts = np.bincount(numbers, minlength=len(keys))
        order = np.argsort(numbers, kind="stable")
        starts = np.concatenate(([0], np.cumsum(counts)))
        repeats = counts[places]
        left = np.repeat(np.arange(len(places)), repeats)
        firsts = np.repeat(starts[places], repeats)
        within = np.arange(len(left)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        right = order[firsts + within]
        rows = [batch.column(i).take(pa.array(left)) for i in range(self.width + 1)]
        found = [column.take(pa.array(right)) for column in partners]
        return pa.RecordBatch.from_arrays(
            [*rows[: self.width], *found, rows[self.width]], names=list(self.names)
        )

    def _finder(self, reader: Reader) -> Find:
        access = self.partners.access
        plain = all(type(part) is paths.OnePart for part in access.parts)
        if access.index is None and access.whole and plain:
            return self._by_key(reader)
        return self._by_plan(reader)

    def _by_key(self, reader: Reader) -> Find:
        """Find one row at most for each key, by the complete primary key."""
        scan = self.partners.scan
        table = compiled_table(reader.catalog, scan.relation)
        types = tuple(one.type for one in scan.fields)
        names = [f"c{i}" for i in range(len(types))]

        def find(keys: list[Row]) -> Partnered:
            whole = [(at, table.key.encode(key)) for at, key in enumerate(keys) if None not in key]
            values = reader.multi_get([key for _, key in whole]) if whole else []
            found = [(at, value) for (at, _), value in zip(whole, values) if value is not None]
            rows = rows_to_arrow(table.layout, [value for _, value in found], scan.slots, names)
            columns = carried_batch(rows, types, names).columns if names else []
            return np.array([at for at, _ in found], np.int64), columns

        return find

    def _by_plan(self, reader: Reader) -> Find:
        """Find any number of rows for each key, by the engine's own look-up join."""
        scan = self.partners.scan
        width = len(self.key_types)
        fields = tuple(Field(f"key {i}", one) for i, one in enumerate(self.key_types))
        keys_leaf = n.Changes(KEYS_LEAF, "keys", (), (*fields, Field("number", BIGINT)))
        joined = n.Join(
            n.JoinKind.INNER,
            keys_leaf,
            scan,
            method=n.JoinMethod.LOOKUP,
            lookup=n.Lookup(self.partners.access, None),
        )
        rows = compile_plan(reader.catalog, joined)

        def find(keys: list[Row]) -> Partnered:
            given = [(*key, at) for at, key in enumerate(keys)]
            found = list(run_plan(rows, reader, {KEYS_LEAF: given}))
            columns = list(zip(*(row[width + 1 :] for row in found)))
            types = [one.type for one in scan.fields]
            if not found:
                columns = [()] * len(types)
            arrays = [to_array(list(some), one) for some, one in zip(columns, types)]
            return np.array([row[width] for row in found], np.int64), arrays

        return find


Partnered = tuple[Any, Sequence[pa.Array]]
"""For each row found: the number of its key (an array), and the row's columns."""

Find = Callable[[list[Row]], Partnered]


def _numbered(batch: pa.RecordBatch, first: int, types: Types) -> tuple[Any, list[Row]]:
    """Number the distinct keys of a batch, whose key columns begin at `first`: the key's number
    for each row, and the keys."""
    columns = [batch.column(first + i) for i in range(len(types))]
    if not columns:
        return np.zeros(batch.num_rows, np.int64), [()]
    codes = np.zeros(batch.num_rows, np.int64)
    for column in columns:
        known = column.dictionary_encode(null_encoding="encode")
        codes = codes * max(len(known.dictionary), 1) + known.indices.to_numpy()
        codes = np.unique(codes, return_inverse=True)[1]
    _, firsts, places = np.unique(codes, return_index=True, return_inverse=True)
    some = pa.array(firsts)
    values = [to_values(column.take(some), one) for column, one in zip(columns, types)]
    return places, list(zip(*values))


# -- operators -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Redone:
    """In the task that owns these keys: recomputes an operator by partition for them."""

    held: Held | None
    view: int
    place: Place
    side: Side
    types: Types
    names: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        try:
            keys = [row for batch in batches for row in side_rows(batch, 0, self.side)]
            if keys:
                held = opened(self.held)
                known = held.known
                maintainer = known.maintainer(*known.views([self.view]))
                source = maintainer.source(part_at(maintainer.tree, self.place))
                assert isinstance(source, RecomputeSource)
                with held.ends() as (before, after):
                    found = source.of_touched(keys, before, after)
                    yield from _weighted(found, self.types, self.names)
        except Error as error:
            raise Failed(error) from None


@dataclass(frozen=True, slots=True)
class Applied:
    """In the task that owns these keys: computes the delta of an Apply operator for them."""

    held: Held | None
    view: int
    place: Place
    sides: tuple[Side, ...]
    types: Types
    names: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        given: list[list[Row]] = [[] for _ in self.sides]
        try:
            for batch in batches:
                for number, side in enumerate(self.sides):
                    given[number] += side_rows(batch, number, side)
            if any(given):
                held = opened(self.held)
                with held.ends() as (before, after):
                    step = Step((), before, held.known.indexes, after)
                    found = self._source(held.known, given).delta(step)
                    yield from _weighted(found, self.types, self.names)
        except Error as error:
            raise Failed(error) from None

    def _source(self, known: Ready, given: list[list[Row]]) -> ApplySource:
        maintainer = known.maintainer(*known.views([self.view]))
        tree = part_at(maintainer.tree, self.place)
        assert isinstance(tree, Apply)
        inputs = [Given(maintainer.source(one), rows) for one, rows in zip(children(tree), given)]
        return ApplySource(known.catalog, tree, inputs[0], [*inputs[1:]], maintainer.kept)


class Given:
    """A delta operator whose delta is given; state is read through the operator it wraps."""

    def __init__(self, source: Source, rows: list[Row]) -> None:
        """`rows` is the delta; the last value of each row is its weight."""
        self._source = source
        self._rows = rows
        self.reads_state = source.reads_state

    def delta(self, step: Step) -> Weighted:
        return ((row[:-1], row[-1]) for row in self._rows)

    def whole(self, reader: Reader) -> Iterator[Row]:
        return self._source.whole(reader)

    def restricted(self, keys: Expressions) -> Restricted:
        return self._source.restricted(keys)


def _weighted(found: Weighted, types: Types, names: tuple[str, ...]) -> Batches:
    """Encode rows with a weight of 1 or -1; a row of a larger weight is repeated."""
    rows = [(*row, 1 if weight > 0 else -1) for row, weight in found for _ in range(abs(weight))]
    return batches_of(rows, types, names)


def on_keys(access: paths.Access) -> tuple[Expressions, paths.Access]:
    """The key values of a look-up as expressions over the row, and the same look-up by the columns
    that will hold these values."""
    values: list[e.Expression] = []
    parts: list[paths.Part] = []
    for part in access.parts:
        if isinstance(part, paths.OnePart):
            parts.append(paths.OnePart(e.Column(len(values), part.value.type)))
            values.append(part.value)
        else:
            parts.append(part)
    made = paths.Access(access.index, access.index_name, tuple(parts), whole=access.whole)
    return tuple(values), made
