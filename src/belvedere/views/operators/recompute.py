"""The delta operator of Recompute: it recomputes the touched partitions, before and after.

State: none. Cost of a change: the rows of the keys it touches, read at both states.
"""

from __future__ import annotations

from collections.abc import Iterator

from belvedere.catalog.catalog import Catalog
from belvedere.execution.python.compile import compile_plan
from belvedere.plan import nodes as n
from belvedere.plan.representation import UNKEYED
from belvedere.txn.contracts import Reader
from belvedere.types import Row
from belvedere.views.compile.auxiliary_views import needs_full_scan_for_keys
from belvedere.views.compile.required_indexes import match_plain_column_numbers
from belvedere.views.delta.delta_tree import Recompute, build_sort_by_all_columns
from belvedere.views.delta.linear_core import Expressions
from belvedere.views.delta.min_max import find_index_ordered_by, match_min_max_query
from belvedere.views.delta.sessionless_run import run_compiled_plan
from belvedere.views.operators.auxiliary_readers import AuxiliaryViews
from belvedere.views.operators.backfill_parts import BackfillPart, KeyList, build_parts_if_divisible
from belvedere.views.operators.first_rows import build_first_rows_reader
from belvedere.views.operators.from_auxiliary import build_limit_rows_reader, build_row_assembler
from belvedere.views.operators.min_max import MinMaxReader
from belvedere.views.operators.operator import (
    DeltaOperator,
    DeltaStep,
    KeyExtractor,
    KeyLookup,
    WeightedRows,
    build_full_scan_lookup,
    build_input_leaf,
)
from belvedere.views.operators.window_rows import CHANGED_ROWS_MAX, build_window_rows_reader

_INPUT = -3_000_000


class RecomputeOperator:
    """The delta is the operator's rows over the touched keys after the step, minus those before."""

    reads_state = True

    def __init__(
        self, catalog: Catalog, tree: Recompute, inputs: list[DeltaOperator], kept: AuxiliaryViews
    ) -> None:
        self._catalog = catalog
        self._tree = tree
        self._inputs = inputs
        self._keys = [KeyExtractor(catalog, one.keys) for one in tree.inputs]
        self._by_key = [
            kept.build_auxiliary_key_lookup(one.tree, one.keys) or source.build_key_lookup(one.keys)
            for source, one in zip(inputs, tree.inputs, strict=True)
        ]
        self._scans = any(
            needs_full_scan_for_keys(one.tree, one.keys)
            and kept.build_auxiliary_key_lookup(one.tree, one.keys) is None
            for one in tree.inputs
        )
        leaves = [build_input_leaf(_INPUT - i, one.tree.plan) for i, one in enumerate(tree.inputs)]
        self._rows = compile_plan(
            catalog, tree.rebuild(tuple(map(build_sort_by_all_columns, leaves)))
        )
        extrema = _build_min_max_reader(catalog, tree)
        self._assemble_rows = (
            build_row_assembler(tree, kept) if extrema is None else extrema.read_group_rows
        )
        self._read_limit_rows = build_limit_rows_reader(tree, kept)
        self._first_rows = build_first_rows_reader(catalog, tree)
        is_window = isinstance(tree.plan, n.Window)
        self._window_rows = build_window_rows_reader(catalog, tree) if is_window else None

    def compute_delta(self, step: DeltaStep) -> WeightedRows:
        changed = [[row for row, _ in source.compute_delta(step)] for source in self._inputs]
        window = self._window_rows
        if (
            window is not None
            and window.reads_rows_around_change
            and len(changed[0]) <= CHANGED_ROWS_MAX
        ):
            if changed[0]:
                run = lambda reader, rows: self._run_plan_on_inputs(reader, [rows])  # noqa: E731
                yield from window.compute_delta_around_changes(
                    changed[0], step.before, step.after, run
                )
            return
        touched = self._find_touched_keys(changed, step.before)
        if touched:
            yield from self._compute_distinct_key_delta(touched, step.before, step.after)

    def compute_key_delta(self, keys: list[Row], before: Reader, after: Reader) -> WeightedRows:
        """The delta of these keys between two states, each key once however often it is given."""
        canonical = self._keys[0].canonical
        yield from self._compute_distinct_key_delta(
            list({canonical(key): key for key in keys}.values()), before, after
        )

    def _compute_distinct_key_delta(
        self, keys: list[Row], before: Reader, after: Reader
    ) -> WeightedRows:
        for row in self._compute_rows_of_keys(before, keys):
            yield row, -1
        for row in self._compute_rows_of_keys(after, keys):
            yield row, 1

    def compute_all_rows(self, reader: Reader) -> Iterator[Row]:
        return self._run_plan_on_inputs(
            reader, [list(source.compute_all_rows(reader)) for source in self._inputs]
        )

    def build_backfill_parts(self) -> list[BackfillPart] | None:
        """Some partitions at a time; a single partition at once."""
        name = f"partitions by {len(self._tree.inputs[0].keys)}"
        if not self._tree.inputs[0].keys:
            return [
                BackfillPart(
                    None,
                    lambda reader, _: self._compute_rows_of_keys(reader, [()]),
                    name,
                    scans=True,
                )
            ]
        below = list(map(build_parts_if_divisible, self._inputs))
        feeders = [
            (part, keys.extract_distinct_keys)
            for parts, keys in zip(below, self._keys, strict=True)
            for part in parts or ()
        ]
        keyed = not any(field.type.kind in UNKEYED for field in self._keys[0].fields)
        if not keyed or None in below:
            return None
        listed = KeyList(self._keys[0].fields, tuple(feeders))
        of = lambda reader, keys: self._compute_rows_of_keys(reader, list(keys))  # noqa: E731
        return [BackfillPart(listed, of, name, scans=self._scans, costly_in_chunks=True)]

    def build_key_lookup(self, keys: Expressions) -> KeyLookup:
        """By the inputs' keys, where the wanted keys are exactly these."""
        columns, passed = match_plain_column_numbers(keys), self._tree.key_columns
        if not passed and not self._tree.inputs[0].keys:
            return self._build_single_partition_lookup(keys)
        if columns is None or not columns or set(columns) != set(passed):
            return self._build_partial_key_lookup(keys, columns)
        order = [columns.index(column) for column in passed]

        def look_up_rows(reader: Reader, wanted: list[Row]) -> list[Row]:
            mine = [tuple([key[at] for at in order]) for key in wanted]
            return list(self._compute_rows_of_keys(reader, mine))

        return look_up_rows

    def _build_single_partition_lookup(self, keys: Expressions) -> KeyLookup:
        """Among all rows, where the input is one partition."""
        known = KeyExtractor(self._catalog, keys)

        def look_up_rows(reader: Reader, wanted: list[Row]) -> Iterator[Row]:
            rows = self._compute_rows_of_keys(reader, [()])
            if not keys:
                return rows
            canonical, of_row = known.canonical, known.bind_key_function(reader)
            among = {canonical(key) for key in wanted}
            return (row for row in rows if canonical(of_row(row)) in among)

        return look_up_rows

    def _build_partial_key_lookup(self, keys: Expressions, columns: list[int] | None) -> KeyLookup:
        """By those of the keys that partition the input; otherwise by a full scan."""
        passed = self._tree.key_columns
        shared = [c for c in dict.fromkeys(columns or ()) if c in passed]
        if not shared:
            return build_full_scan_lookup(self._catalog, self, keys)
        at = [passed.index(column) for column in shared]
        below = [
            source.build_key_lookup(tuple(one.keys[i] for i in at))
            for source, one in zip(self._inputs, self._tree.inputs, strict=True)
        ]
        places = [(columns or []).index(column) for column in shared]
        known = KeyExtractor(self._catalog, keys)

        def look_up_rows(reader: Reader, wanted: list[Row]) -> list[Row]:
            canonical, of_row = known.canonical, known.bind_key_function(reader)
            among = {canonical(key) for key in wanted}
            some = {
                tuple([canonical(key)[p] for p in places]): tuple([key[p] for p in places])
                for key in wanted
            }
            found = self._run_plan_on_inputs(
                reader, [list(one(reader, list(some.values()))) for one in below]
            )
            return [row for row in found if canonical(of_row(row)) in among]

        return look_up_rows

    def _compute_rows_of_keys(self, reader: Reader, keys: list[Row]) -> Iterator[Row]:
        if self._assemble_rows is not None:
            return self._assemble_rows(reader, keys)
        if self._read_limit_rows is not None:
            return self._run_plan_on_inputs(reader, [self._read_limit_rows(reader)])
        if self._first_rows is not None:
            return self._run_plan_on_inputs(
                reader, [self._first_rows.read_first_rows(reader, keys)]
            )
        if self._window_rows is not None and not self._window_rows.reads_rows_around_change:
            return self._run_plan_on_inputs(
                reader, [self._window_rows.read_first_rows(reader, keys)]
            )
        return self._run_plan_on_inputs(reader, [list(one(reader, keys)) for one in self._by_key])

    def _run_plan_on_inputs(self, reader: Reader, inputs: list[list[Row]]) -> Iterator[Row]:
        return run_compiled_plan(
            self._rows, reader, {_INPUT - i: rows for i, rows in enumerate(inputs)}
        )

    def _find_touched_keys(self, changed: list[list[Row]], reader: Reader) -> list[Row]:
        found: dict[Row, Row] = {}
        for rows, keys in zip(changed, self._keys, strict=True):
            for key in keys.extract_distinct_keys(rows, reader):
                found.setdefault(keys.canonical(key), key)
        return list(found.values())


def _build_min_max_reader(catalog: Catalog, tree: Recompute) -> MinMaxReader | None:
    """The reader of MIN and MAX from indexes, where these exist."""
    wanted = match_min_max_query(tree)
    if wanted is None:
        return None
    found = [
        find_index_ordered_by(catalog, wanted.relation, slots)
        for slots in wanted.required_index_columns
    ]
    indexes = [index for index in found if index is not None]
    return MinMaxReader(catalog, wanted, indexes) if len(indexes) == len(found) else None
