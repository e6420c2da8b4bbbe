"""The delta operator of Recompute: it recomputes the touched partitions, before and after.

State: none. Cost of a change: the rows of the keys it touches, read at both states.
"""

from __future__ import annotations

from collections.abc import Iterator

from belvedere.catalog.catalog import Catalog
from belvedere.execution.direct.compile import compile_plan
from belvedere.plan.looks import UNKEYED
from belvedere.txn.border import Reader
from belvedere.types import Row
from belvedere.views.assemble import assembled, first_rows
from belvedere.views.auxiliary import blind
from belvedere.views.core import Expressions
from belvedere.views.extremum import ExtremaReader, extrema_of, serving_index
from belvedere.views.fill_parts import KeyList, Part, parts_of
from belvedere.views.kept import Kept
from belvedere.views.operators import only_columns
from belvedere.views.source import (
    Keys,
    Restricted,
    Source,
    Step,
    Weighted,
    filtered,
    leaf,
    run_plan,
)
from belvedere.views.tree import Recompute, sorted_by_all

_INPUT = -3_000_000


class RecomputeSource:
    """The delta is the operator's rows over the touched keys after the step, minus those before."""

    reads_state = True

    def __init__(self, catalog: Catalog, tree: Recompute, inputs: list[Source], kept: Kept) -> None:
        self._catalog = catalog
        self._tree = tree
        self._inputs = inputs
        self._keys = [Keys(catalog, one.keys) for one in tree.inputs]
        self._by_key = [
            kept.restricted(one.tree, one.keys) or source.restricted(one.keys)
            for source, one in zip(inputs, tree.inputs, strict=True)
        ]
        self._scans = any(
            blind(one.tree, one.keys) and kept.restricted(one.tree, one.keys) is None
            for one in tree.inputs
        )
        leaves = [leaf(_INPUT - i, one.tree.plan) for i, one in enumerate(tree.inputs)]
        self._rows = compile_plan(catalog, tree.rebuild(tuple(map(sorted_by_all, leaves))))
        extrema = _extrema_reader(catalog, tree)
        self._assembled = assembled(tree, kept) if extrema is None else extrema.rows
        self._head = first_rows(tree, kept)

    def delta(self, step: Step) -> Weighted:
        touched = self._touched(step)
        if touched:
            yield from self._redone(touched, step.before, step.after)

    def of_touched(self, keys: list[Row], before: Reader, after: Reader) -> Weighted:
        """The delta of these keys between two states, each key once however often it is given."""
        canonical = self._keys[0].canonical
        yield from self._redone(list({canonical(key): key for key in keys}.values()), before, after)

    def _redone(self, keys: list[Row], before: Reader, after: Reader) -> Weighted:
        for row in self._of_keys(before, keys):
            yield row, -1
        for row in self._of_keys(after, keys):
            yield row, 1

    def whole(self, reader: Reader) -> Iterator[Row]:
        return self._run(reader, [list(source.whole(reader)) for source in self._inputs])

    def parts(self) -> list[Part] | None:
        """Some partitions at a time; a single partition at once."""
        name = f"partitions by {len(self._tree.inputs[0].keys)}"
        if not self._tree.inputs[0].keys:
            return [Part(None, lambda reader, _: self._of_keys(reader, [()]), name, scans=True)]
        below = list(map(parts_of, self._inputs))
        feeders = [
            (part, keys.distinct)
            for parts, keys in zip(below, self._keys, strict=True)
            for part in parts or ()
        ]
        keyed = not any(field.type.kind in UNKEYED for field in self._keys[0].fields)
        if not keyed or None in below:
            return None
        listed = KeyList(self._keys[0].fields, tuple(feeders))
        of = lambda reader, keys: self._of_keys(reader, list(keys))  # noqa: E731
        return [Part(listed, of, name, scans=self._scans, dear=True)]

    def restricted(self, keys: Expressions) -> Restricted:
        """By the inputs' keys, where the wanted keys are exactly these."""
        columns, passed = only_columns(keys), self._tree.passed
        if not keys and not passed and not self._tree.inputs[0].keys:
            return lambda reader, wanted: self._of_keys(reader, [()])
        if columns is None or not columns or set(columns) != set(passed):
            return self._narrowed(keys, columns)
        order = [columns.index(column) for column in passed]

        def rows(reader: Reader, wanted: list[Row]) -> list[Row]:
            mine = [tuple([key[at] for at in order]) for key in wanted]
            return list(self._of_keys(reader, mine))

        return rows

    def _narrowed(self, keys: Expressions, columns: list[int] | None) -> Restricted:
        """By those of the keys that partition the input; otherwise by a full scan."""
        passed = self._tree.passed
        shared = [c for c in dict.fromkeys(columns or ()) if c in passed]
        if not shared:
            return filtered(self._catalog, self, keys)
        at = [passed.index(column) for column in shared]
        below = [
            source.restricted(tuple(one.keys[i] for i in at))
            for source, one in zip(self._inputs, self._tree.inputs, strict=True)
        ]
        places = [(columns or []).index(column) for column in shared]
        known = Keys(self._catalog, keys)

        def rows(reader: Reader, wanted: list[Row]) -> list[Row]:
            canonical, of_row = known.canonical, known.of_row(reader)
            among = {canonical(key) for key in wanted}
            some = {
                tuple([canonical(key)[p] for p in places]): tuple([key[p] for p in places])
                for key in wanted
            }
            found = self._run(reader, [list(one(reader, list(some.values()))) for one in below])
            return [row for row in found if canonical(of_row(row)) in among]

        return rows

    def _of_keys(self, reader: Reader, keys: list[Row]) -> Iterator[Row]:
        if self._assembled is not None:
            return self._assembled(reader, keys)
        if self._head is not None:
            return self._run(reader, [self._head(reader)])
        return self._run(reader, [list(one(reader, keys)) for one in self._by_key])

    def _run(self, reader: Reader, inputs: list[list[Row]]) -> Iterator[Row]:
        return run_plan(self._rows, reader, {_INPUT - i: rows for i, rows in enumerate(inputs)})

    def _touched(self, step: Step) -> list[Row]:
        found: dict[Row, Row] = {}
        for source, keys in zip(self._inputs, self._keys, strict=True):
            rows = [row for row, _ in source.delta(step)]
            for key in keys.distinct(rows, step.before):
                found.setdefault(keys.canonical(key), key)
        return list(found.values())


def _extrema_reader(catalog: Catalog, tree: Recompute) -> ExtremaReader | None:
    """The reader of MIN and MAX from indexes, where these exist."""
    wanted = extrema_of(tree)
    if wanted is None:
        return None
    found = [serving_index(catalog, wanted.relation, slots) for slots in wanted.indexes]
    indexes = [index for index in found if index is not None]
    return ExtremaReader(catalog, wanted, indexes) if len(indexes) == len(found) else None
