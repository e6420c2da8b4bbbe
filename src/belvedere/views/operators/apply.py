"""The delta operator of Apply, which computes rows from each left row by itself: joins of trees,
outer, semi and anti joins, lateral joins, sub-queries.

The operator f is linear in its left input L, so with inputs R on the other side

    d f(L, R)  =  f(dL, R after)  +  f(L before, R after) - f(L before, R before)

and the difference on the right is zero except for the left rows whose keys were touched in R. For
plain joins it is less work still: the inserted and deleted rows of R are joined as they are, and
only keys that got their first match or lost their last one change what an outer, semi or anti join
gives for a left row by itself.

What fails in an input fails the operator only where a row needs it, as in the query itself: an
input is not asked while there is nothing to match it with, and a sub-query whose rows cannot be
computed is run as it is written, for the left rows that come to it.

State: none. Cost of a change: on the left, a look-up of its key on the right; on the right, the
left rows of its key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from belvedere.catalog.catalog import Catalog
from belvedere.errors import InvalidInput
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.run import Rows
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.txn.contracts import Reader
from belvedere.types import Row
from belvedere.views.compile.auxiliary_views import needs_full_scan_for_keys
from belvedere.views.compile.required_indexes import match_plain_column_numbers
from belvedere.views.delta.delta_tree import Apply, LookupInput, build_sort_by_all_columns
from belvedere.views.delta.linear_core import Expressions
from belvedere.views.delta.sessionless_run import run_compiled_plan
from belvedere.views.delta.tie_break import with_total_order
from belvedere.views.operators import backfill_parts
from belvedere.views.operators.auxiliary_readers import AuxiliaryViews
from belvedere.views.operators.exists import KeyExists, build_key_exists_check
from belvedere.views.operators.operator import (
    DeltaOperator,
    DeltaStep,
    KeyExtractor,
    KeyLookup,
    WeightedRows,
    build_full_scan_lookup,
    build_input_leaf,
    group_rows_by_weight,
)

KeyedRows = tuple[Row, list[Row]]
"""A key, and the rows that have it."""

_LEFT = -2_000_000
_RIGHT = -2_000_001


@dataclass(frozen=True, slots=True)
class _RightLookup:
    """A right input: how its rows are found by key, and the left rows by the same key."""

    right: LookupInput
    source: DeltaOperator
    keys: KeyExtractor
    left_keys: KeyExtractor
    by_key: KeyLookup
    left_by_key: KeyLookup
    exists: KeyExists | None
    scans: bool  # whether a key is found only by a full scan

    def drop_unmatchable_keys(self, keys: list[Row]) -> list[Row]:
        """The keys without those that can match nothing."""
        return keys if self.right.null_safe else [key for key in keys if None not in key]

    def extract_right_keys(self, rows: list[Row], reader: Reader) -> list[Row]:
        return self.drop_unmatchable_keys(self.keys.extract_distinct_keys(rows, reader))

    def find_right_matches(self, rows: list[Row], reader: Reader) -> list[Row]:
        """The rows that these left rows match."""
        keys = self.drop_unmatchable_keys(self.left_keys.extract_distinct_keys(rows, reader))
        return list(self.by_key(reader, keys)) if keys else []

    def filter_left_rows_by_match(
        self, rows: list[Row], reader: Reader, *, wanted: bool
    ) -> Iterator[Row]:
        """The left rows that have a match, or those that have none."""
        of_row, canonical = self.left_keys.bind_key_function(reader), self.left_keys.canonical
        known: dict[Row, bool] = {}
        for row in rows:
            key = of_row(row)
            found = known.get(canonical(key))
            if found is None:
                found = bool(self.drop_unmatchable_keys([key])) and self.has_right_match(
                    key, reader
                )
                known[canonical(key)] = found
            if found is wanted:
                yield row

    def build_left_row_matcher(
        self, found: list[Row], reader: Reader
    ) -> Callable[[Row], KeyedRows]:
        """A function of a left row: its key, and the rows that it matches among `found`."""
        of_right, canonical = self.keys.bind_key_function(reader), self.keys.canonical
        of_left = self.left_keys.bind_key_function(reader)
        by_key: dict[Row, list[Row]] = {}
        for row in found:
            by_key.setdefault(canonical(of_right(row)), []).append(row)

        def match_left_row(row: Row) -> KeyedRows:
            key = of_left(row)
            name = canonical(key)
            return name, by_key.get(name, []) if self.drop_unmatchable_keys([key]) else []

        return match_left_row

    def find_left_rows_by_key(self, keys: list[Row], reader: Reader) -> list[Row]:
        """The left rows with these keys."""
        return list(self.left_by_key(reader, keys)) if keys else []

    def has_right_match(self, key: Row, reader: Reader) -> bool:
        """Whether a key has any match; reads no more than the first."""
        if self.exists is not None:
            return self.exists(reader, key)
        return next(iter(self.by_key(reader, [key])), None) is not None


class ApplyOperator:
    reads_state = True

    def __init__(
        self,
        catalog: Catalog,
        tree: Apply,
        left: DeltaOperator,
        rights: list[DeltaOperator],
        kept: AuxiliaryViews,
    ) -> None:
        self._catalog = catalog
        self._tree = tree
        self._left = left
        self._sides = [
            _RightLookup(
                right,
                source,
                KeyExtractor(catalog, right.keys),
                KeyExtractor(catalog, right.left_keys),
                kept.build_auxiliary_key_lookup(right.tree, right.keys)
                or source.build_key_lookup(right.keys),
                kept.build_auxiliary_key_lookup(tree.left, right.left_keys)
                or left.build_key_lookup(right.left_keys),
                build_key_exists_check(catalog, right.tree, right.keys),
                needs_full_scan_for_keys(right.tree, right.keys)
                and kept.build_auxiliary_key_lookup(right.tree, right.keys) is None,
            )
            for right, source in zip(tree.rights, rights, strict=True)
        ]
        self._read = [side for side in self._sides if side.right.is_read]
        self._rows = self._compile_apply_plan(tree)
        join = tree.join
        self._plain = join is not None and join.residual is None
        self._wanted_match: bool | None = None  # plain semi join: True, plain anti join: False
        if self._plain and join is not None and join.kind in (n.JoinKind.SEMI, n.JoinKind.ANTI):
            self._wanted_match = join.kind is n.JoinKind.SEMI
        self._inner: Rows | None = None
        if join is not None and (self._plain or join.kind is n.JoinKind.INNER):
            leaves = (
                build_input_leaf(_LEFT, tree.left.plan),
                build_input_leaf(_RIGHT, tree.rights[0].tree.plan),
            )
            node = replace(join, kind=n.JoinKind.INNER, left=leaves[0], right=leaves[1])
            self._inner = compile_plan(catalog, node)

    def _compile_apply_plan(self, tree: Apply) -> Rows:
        read = [right for right in tree.rights if right.is_read]
        leaves: list[n.Node] = [
            build_input_leaf(_RIGHT - i, right.tree.plan) for i, right in enumerate(read)
        ]
        if tree.join is None:
            leaves = [build_sort_by_all_columns(one) for one in leaves]
        node = tree.rebuild(build_input_leaf(_LEFT, tree.left.plan), tuple(leaves))
        return compile_plan(self._catalog, with_total_order(node) if tree.join is None else node)

    # -- the operator -------------------------------------------------------------------------

    def compute_delta(self, step: DeltaStep) -> WeightedRows:
        try:
            return iter([*self._compute_left_delta(step), *self._compute_right_delta(step)])
        except InvalidInput:
            before, after = self._has_no_rows(step.before), self._has_no_rows(step.after)
            if not before and not after:
                raise
            return self._compute_delta_from_or_to_nothing(step, from_nothing=before)

    def compute_all_rows(self, reader: Reader) -> Iterator[Row]:
        try:
            rows = list(self._left.compute_all_rows(reader))
            rights = [list(s.source.compute_all_rows(reader)) for s in self._read if rows]
        except InvalidInput:
            if self._has_no_rows(reader):
                return iter(())
            if self._tree.join is not None:
                raise
            return self._run_plan_as_written(reader, rows)
        return self._run_plan_by_key(reader, rows, rights) if rows else iter(())

    def build_backfill_parts(self) -> list[backfill_parts.BackfillPart] | None:
        below = backfill_parts.build_parts_if_divisible(self._left)
        scans = any(side.scans or not side.right.keys for side in self._read)
        of = lambda reader, rows: self._compute_rows_for_left(rows, reader)  # noqa: E731
        if below is None:
            return None
        return [part.with_mapped_rows("apply", of, scans=scans, dear=True) for part in below]

    def build_key_lookup(self, keys: Expressions) -> KeyLookup:
        """By the left input, where the keys are columns of its rows."""
        columns, width = match_plain_column_numbers(keys), len(self._tree.left.plan.fields)
        plain = self._tree.join is not None or isinstance(self._tree.plan, n.Filter | n.Join)
        if not plain or columns is None or not columns or max(columns) >= width:
            return self._build_right_lookup(keys, columns)
        below = self._left.build_key_lookup(keys)
        return lambda reader, wanted: self._compute_rows_for_left(
            list(below(reader, wanted)), reader
        )

    # -- one side changes ---------------------------------------------------------------------

    def _compute_left_delta(self, step: DeltaStep) -> WeightedRows:
        for weight, rows in group_rows_by_weight(self._left.compute_delta(step)).items():
            for row in self._compute_rows_for_left(rows, step.after):
                yield row, weight

    def _compute_rows_for_left(self, rows: list[Row], reader: Reader) -> Iterator[Row]:
        """The operator's rows for these left rows at a state."""
        if not rows:
            return iter(())
        if self._wanted_match is not None:
            return self._sides[0].filter_left_rows_by_match(rows, reader, wanted=self._wanted_match)
        try:
            rights = [side.find_right_matches(rows, reader) for side in self._read]
        except InvalidInput:
            if self._tree.join is not None:
                raise
            return self._run_plan_as_written(reader, rows)
        return self._run_plan_by_key(reader, rows, rights)

    def _run_plan_by_key(
        self, reader: Reader, rows: list[Row], rights: list[list[Row]]
    ) -> Iterator[Row]:
        """A sub-query scans all right rows it is given for each left row, so it is given those of
        one key at a time."""
        if self._tree.join is not None or len(rows) < 2 or not self._read:
            yield from self._run_plan_once(reader, rows, rights)
            return
        parts = [
            side.build_left_row_matcher(found, reader)
            for side, found in zip(self._read, rights, strict=True)
        ]
        groups: dict[tuple[Row, ...], tuple[list[Row], list[list[Row]]]] = {}
        for row in rows:
            found = [part(row) for part in parts]
            name = tuple([key for key, _ in found])
            groups.setdefault(name, ([], [matched for _, matched in found]))[0].append(row)
        for some, matched in groups.values():
            yield from self._run_plan_once(reader, some, matched)

    def _run_plan_once(
        self, reader: Reader, rows: list[Row], rights: list[list[Row]]
    ) -> Iterator[Row]:
        deltas = {_RIGHT - i: right for i, right in enumerate(rights)}
        deltas[_LEFT] = rows
        return run_compiled_plan(self._rows, reader, deltas)

    def _run_plan_as_written(self, reader: Reader, rows: list[Row]) -> Iterator[Row]:
        """The operator's rows for these left rows, its sub-queries computed where one of them is
        needed."""
        return run_compiled_plan(self._rows_as_written, reader, {_LEFT: rows})

    @cached_property
    def _rows_as_written(self) -> Rows:
        plan = self._tree.plan
        left, others = build_input_leaf(_LEFT, self._tree.left.plan), transform.inputs(plan)[1:]
        node = transform.with_inputs(plan, (left, *others))
        return compile_plan(self._catalog, with_total_order(node))

    def _compute_right_delta(self, step: DeltaStep) -> WeightedRows:
        if self._inner is not None:
            yield from self._compute_right_join_delta(self._sides[0], self._inner, step)
            return
        affected = self._find_affected_left_rows(step)
        if affected:
            for row in self._compute_rows_for_left(affected, step.after):
                yield row, 1
            for row in self._compute_rows_for_left(affected, step.before):
                yield row, -1

    def _find_affected_left_rows(self, step: DeltaStep) -> list[Row]:
        """The old left rows that match other rows on the right now; each by its multiplicity, also
        when several right inputs affect it."""
        found: list[list[Row]] = []
        for side in self._sides:
            try:
                rows = [row for row, _ in side.source.compute_delta(step)]
            except InvalidInput:
                return list(self._left.compute_all_rows(step.before))
            keys = side.extract_right_keys(rows, step.before) if rows else []
            if keys:
                found.append(side.find_left_rows_by_key(keys, step.before))
        if len(found) < 2:
            return found[0] if found else []
        counts: dict[str, list[Row]] = {}
        for some in found:
            mine: dict[str, list[Row]] = {}
            for row in some:
                mine.setdefault(repr(row), []).append(row)
            counts.update(mine)
        return [row for rows in counts.values() for row in rows]

    # -- inputs without rows, beside others that fail -----------------------------------------

    def _has_no_rows(self, reader: Reader) -> bool:
        """Whether the operator has no rows because an input has none that it cannot do without."""
        inner = self._tree.join is not None and self._tree.join.kind is n.JoinKind.INNER
        needed = [self._left, self._sides[0].source] if inner else [self._left]
        return not all(_has_any_row(source, reader) for source in needed)

    def _compute_delta_from_or_to_nothing(
        self, step: DeltaStep, *, from_nothing: bool
    ) -> WeightedRows:
        if not from_nothing:
            for row in self.compute_all_rows(step.before):
                yield row, -1
        if not self._has_no_rows(step.after):
            for row in self.compute_all_rows(step.after):
                yield row, 1

    # -- plain joins --------------------------------------------------------------------------

    def _compute_right_join_delta(
        self, side: _RightLookup, inner: Rows, step: DeltaStep
    ) -> WeightedRows:
        """The right side's changes joined with the left rows of their keys; and the unmatched form
        of left rows, where a key got its first match or lost its last."""
        changed = group_rows_by_weight(side.source.compute_delta(step))
        rows = [row for some in changed.values() for row in some]
        keys = side.extract_right_keys(rows, step.before) if rows else []
        if not keys:
            return
        assert self._tree.join is not None
        kind = self._tree.join.kind
        if kind in (n.JoinKind.INNER, n.JoinKind.LEFT):
            left = side.find_left_rows_by_key(keys, step.before)
            for weight, some in changed.items():
                for row in run_compiled_plan(inner, step.before, {_LEFT: left, _RIGHT: some}):
                    yield row, weight
        if kind is not n.JoinKind.INNER:
            yield from self._compute_match_change_delta(side, kind, keys, step)

    def _compute_match_change_delta(
        self, side: _RightLookup, kind: n.JoinKind, keys: list[Row], step: DeltaStep
    ) -> WeightedRows:
        won: list[Row] = []
        lost: list[Row] = []
        for key in keys:
            before, after = (
                side.has_right_match(key, step.before),
                side.has_right_match(key, step.after),
            )
            if before != after:
                (won if after else lost).append(key)
        padding = () if kind is not n.JoinKind.LEFT else self._null_padding
        weight = 1 if kind is n.JoinKind.SEMI else -1
        for some, sign in ((won, weight), (lost, -weight)):
            for row in side.find_left_rows_by_key(some, step.before):
                yield row + padding, sign

    @property
    def _null_padding(self) -> Row:
        return (None,) * len(self._tree.rights[0].tree.plan.fields)

    def _build_right_lookup(self, keys: Expressions, columns: list[int] | None) -> KeyLookup:
        """An inner join's rows by columns of its right side; otherwise by a full scan."""
        join, width = self._tree.join, len(self._tree.left.plan.fields)
        inner = join is not None and join.kind is n.JoinKind.INNER
        if not inner or not columns or min(columns) < width:
            return build_full_scan_lookup(self._catalog, self, keys)
        side = self._sides[0]
        fields = self._tree.rights[0].tree.plan.fields
        moved = tuple(e.Column(c - width, fields[c - width].type) for c in columns)
        below = side.source.build_key_lookup(moved)

        def look_up_rows(reader: Reader, wanted: list[Row]) -> list[Row]:
            right = list(below(reader, wanted))
            left = side.find_left_rows_by_key(side.extract_right_keys(right, reader), reader)
            return list(self._run_plan_by_key(reader, left, [right]))

        return look_up_rows


def _has_any_row(source: DeltaOperator, reader: Reader) -> bool:
    """Whether an input has a row; one that fails is a row."""
    try:
        return next(iter(source.compute_all_rows(reader)), None) is not None
    except InvalidInput:
        return True
