"""The delta operators of a tree's linear nodes: core, map and union."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.run import Rows
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.representation import python_equal_may_differ
from belvedere.txn.contracts import Reader, RowChange
from belvedere.types import Row
from belvedere.views.delta.delta_plan import (
    JOINT_TERM_LEAVES_MAX,
    KEYS_LEAF,
    DeltaTerm,
    build_delta_terms,
    build_full_branch_plans,
    build_key_restricted_plan,
    changes_leaf_id,
)
from belvedere.views.delta.delta_tree import LinearCore, Map
from belvedere.views.delta.linear_core import CoreLeaf, Expressions
from belvedere.views.delta.sessionless_run import run_compiled_plan
from belvedere.views.operators.backfill_parts import BackfillPart, build_parts_if_divisible
from belvedere.views.operators.operator import (
    DeltaOperator,
    DeltaStep,
    KeyLookup,
    WeightedRows,
    build_input_leaf,
    chain_rows,
    group_rows_by_weight,
)


class LeafChanges(NamedTuple):
    """The changed rows of a leaf: old ones, new ones, and the new ones of updates."""

    removed: list[Row]
    added: list[Row]
    updated_rows: list[Row]


ExtractLeafChanges = Callable[[Sequence[RowChange]], LeafChanges]


_AffectedTerms = tuple[dict[int, ExtractLeafChanges], list[tuple[DeltaTerm, Rows]]]


@dataclass(frozen=True, slots=True)
class _BranchTerms:
    """A branch's leaves (relation, extractor of its changes) by number, and its terms."""

    leaves: dict[int, tuple[int, ExtractLeafChanges]]
    terms: list[DeltaTerm]

    @property
    def leaf_relations(self) -> frozenset[int]:
        return frozenset([relation for relation, _ in self.leaves.values()])


class LinearCoreOperator:
    """Runs the terms of a core's delta plan over old and new rows. Plans are compiled when they are
    first needed: a catalog change creates operators most of which see no change."""

    def __init__(self, catalog: Catalog, tree: LinearCore) -> None:
        self._catalog = catalog
        self._tree = tree
        self._by_relations: dict[frozenset[int], list[_AffectedTerms]] = {}

    @cached_property
    def _branch_terms(self) -> list[_BranchTerms]:
        tree, catalog = self._tree, self._catalog
        terms = build_delta_terms(tree.branches, tree.plan.fields, catalog)
        found = []
        for number, branch in enumerate(tree.branches):
            leaves = {
                at: (one.relation, _build_change_extractor(catalog, one))
                for at, one in enumerate(branch.leaves)
                if one.constant is None
            }
            found.append(_BranchTerms(leaves, [term for term in terms if term.branch == number]))
        return found

    @cached_property
    def _compiled_full_plans(self) -> list[Rows]:
        tree, catalog = self._tree, self._catalog
        plans = build_full_branch_plans(tree.branches, tree.plan.fields, catalog)
        return [compile_plan(catalog, plan) for plan in plans]

    @property
    def reads_state(self) -> bool:
        return any(
            len([one for one in branch.leaves if one.constant is None]) > 1
            for branch in self._tree.branches
        )

    def compute_delta(self, step: DeltaStep) -> WeightedRows:
        if len(step.relations) > 1 and self._needs_separate_steps(step.relations):
            for part in step.split_by_relation():
                yield from self.compute_delta(part)
            return
        for leaves, terms in self._compile_affected_terms(step.relations):
            sides = {at: of(step.changes) for at, of in leaves.items()}
            for term, rows in terms:
                given = sides
                if term.foreign_key_joins and step.prunes_foreign_keys:
                    given = {
                        at: _drop_inserts_by_foreign_key(term, at, side)
                        for at, side in sides.items()
                    }
                yield from _run_delta_term(term, rows, given, step.before)

    def _needs_separate_steps(self, relations: frozenset[int]) -> bool:
        """Whether several tables of a branch change that has no terms for that."""
        return any(
            len(branch.leaves) > JOINT_TERM_LEAVES_MAX
            and len(branch.leaf_relations & relations) > 1
            for branch in self._branch_terms
        )

    def _compile_affected_terms(self, relations: frozenset[int]) -> list[_AffectedTerms]:
        """Of each branch the leaves and terms that changes of these relations affect."""
        found = self._by_relations.get(relations)
        if found is None:
            found = []
            for branch in self._branch_terms:
                leaves = {at: of for at, (r, of) in branch.leaves.items() if r in relations}
                terms = [
                    (term, compile_plan(self._catalog, term.plan))
                    for term in branch.terms
                    if leaves.keys() >= set(term.changed)
                ]
                if terms:
                    found.append((leaves, terms))
            self._by_relations[relations] = found
        return found

    def compute_all_rows(self, reader: Reader) -> Iterator[Row]:
        return chain_rows(run_compiled_plan(rows, reader, {}) for rows in self._compiled_full_plans)

    def build_backfill_parts(self) -> list[BackfillPart]:
        return [
            self._build_branch_backfill_part(number) for number in range(len(self._branch_terms))
        ]

    def _build_branch_backfill_part(self, number: int) -> BackfillPart:
        """A branch, driven by the rows of the leaf from which its others are reached at least
        cost."""
        terms = [term for term in self._branch_terms[number].terms if len(term.changed) == 1]
        if not terms:
            constant = self._compiled_full_plans[number]
            return BackfillPart(
                None, lambda reader, _: run_compiled_plan(constant, reader, {}), "constant"
            )
        term = min(
            terms,
            key=lambda term: (term.scans, -_count_unique_key_lookups(term.plan), term.changed),
        )
        at = term.changed[0]
        one = self._tree.branches[number].leaves[at]
        project = compiled_table(self._catalog, one.relation).layout.projector(one.slots)
        rows = compile_plan(self._catalog, term.plan)

        def join_driving_rows(reader: Reader, values: Sequence[bytes]) -> Iterator[Row]:
            return run_compiled_plan(
                rows, reader, {changes_leaf_id(at): [project(value) for value in values]}
            )

        return BackfillPart(
            one.relation, join_driving_rows, f"leaf {at} of {one.relation}", scans=bool(term.scans)
        )

    def build_key_lookup(self, keys: Expressions) -> KeyLookup:
        """By look-ups that begin at the keys; keys with NULLs have plans of their own."""
        if not keys:
            return lambda reader, wanted: self.compute_all_rows(reader)
        branches, fields, catalog = self._tree.branches, self._tree.plan.fields, self._catalog
        plans: dict[frozenset[int], Rows] = {}

        def look_up_rows(reader: Reader, wanted: list[Row]) -> Iterator[Row]:
            by_nulls: dict[frozenset[int], list[Row]] = {}
            for key in wanted:
                nulls = frozenset([i for i, value in enumerate(key) if value is None])
                by_nulls.setdefault(nulls, []).append(key)
            for nulls, some in by_nulls.items():
                plan = plans.get(nulls)
                if plan is None:
                    made = build_key_restricted_plan(branches, fields, keys, catalog, nulls)
                    plan = plans[nulls] = compile_plan(catalog, made)
                yield from run_compiled_plan(plan, reader, {KEYS_LEAF: some})

        return look_up_rows


def _count_unique_key_lookups(plan: n.Node) -> int:
    """How many joins of a plan are look-ups by a complete unique key."""
    joins = [node for node in transform.walk_plan(plan) if isinstance(node, n.Join)]
    return sum(join.lookup is not None and join.lookup.access.full_key for join in joins)


def _drop_inserts_by_foreign_key(term: DeltaTerm, leaf: int, sides: LeafChanges) -> LeafChanges:
    return sides._replace(added=sides.updated_rows) if term.can_prune_inserts(leaf) else sides


def _run_delta_term(
    term: DeltaTerm, rows: Rows, sides: dict[int, LeafChanges], before: Reader
) -> WeightedRows:
    """Every combination of old (weight -1) and new (weight +1) rows of the changed leaves."""
    if len(term.changed) == 1:
        (number,) = term.changed
        for weight, given in zip((-1, 1), sides[number]):
            if given:
                for row in run_compiled_plan(rows, before, {changes_leaf_id(number): given}):
                    yield row, weight
        return
    for signs in itertools.product((-1, 1), repeat=len(term.changed)):
        deltas = {
            changes_leaf_id(number): sides[number][sign > 0]
            for number, sign in zip(term.changed, signs)
        }
        if all(deltas.values()):
            weight = math.prod(signs)
            for row in run_compiled_plan(rows, before, deltas):
                yield row, weight


def _build_change_extractor(catalog: Catalog, one: CoreLeaf) -> ExtractLeafChanges:
    """A function that projects changes to a leaf's columns and drops those that are equal there."""
    relation = one.relation
    project = compiled_table(catalog, relation).layout.projector(one.slots)
    varying = any(python_equal_may_differ(field.type) for field in one.fields)

    def extract_leaf_changes(changes: Sequence[RowChange]) -> LeafChanges:
        removed: list[Row] = []
        added: list[Row] = []
        moved: list[Row] = []
        for change in changes:
            if change.relation == relation:
                old = None if change.old is None else project(change.old)
                new = None if change.new is None else project(change.new)
                if old != new or (varying and repr(old) != repr(new)):
                    if old is not None:
                        removed.append(old)
                    if new is not None:
                        added.append(new)
                    if old is not None and new is not None:
                        moved.append(new)
        return LeafChanges(removed, added, moved)

    return extract_leaf_changes


class MapOperator:
    """A selection or projection of another operator's rows."""

    def __init__(self, catalog: Catalog, tree: Map, below: DeltaOperator) -> None:
        self._input = below
        self._plan = tree.plan
        node = replace(tree.plan, input=build_input_leaf(KEYS_LEAF, tree.plan.input))
        self._rows = compile_plan(catalog, node)

    @property
    def reads_state(self) -> bool:
        return self._input.reads_state

    def compute_delta(self, step: DeltaStep) -> WeightedRows:
        for weight, rows in group_rows_by_weight(self._input.compute_delta(step)).items():
            for row in run_compiled_plan(self._rows, step.before, {KEYS_LEAF: rows}):
                yield row, weight

    def compute_all_rows(self, reader: Reader) -> Iterator[Row]:
        rows = list(self._input.compute_all_rows(reader))
        return run_compiled_plan(self._rows, reader, {KEYS_LEAF: rows})

    def build_backfill_parts(self) -> list[BackfillPart] | None:
        below = build_parts_if_divisible(self._input)

        def run_map_plan(reader: Reader, rows: list[Row]) -> Iterator[Row]:
            return run_compiled_plan(self._rows, reader, {KEYS_LEAF: rows})

        return (
            None
            if below is None
            else [part.with_mapped_rows("map", run_map_plan) for part in below]
        )

    def build_key_lookup(self, keys: Expressions) -> KeyLookup:
        plan = self._plan
        if isinstance(plan, n.Project):
            columns = plan.expressions
            keys = tuple(transform.substitute_columns(key, columns) for key in keys)
        below = self._input.build_key_lookup(keys)

        def look_up_rows(reader: Reader, wanted: list[Row]) -> Iterator[Row]:
            return run_compiled_plan(self._rows, reader, {KEYS_LEAF: list(below(reader, wanted))})

        return look_up_rows


class UnionOperator:
    def __init__(self, left: DeltaOperator, right: DeltaOperator) -> None:
        self._sides = (left, right)

    @property
    def reads_state(self) -> bool:
        return any(side.reads_state for side in self._sides)

    def compute_delta(self, step: DeltaStep) -> WeightedRows:
        return itertools.chain.from_iterable(side.compute_delta(step) for side in self._sides)

    def compute_all_rows(self, reader: Reader) -> Iterator[Row]:
        return chain_rows(side.compute_all_rows(reader) for side in self._sides)

    def build_backfill_parts(self) -> list[BackfillPart] | None:
        left, right = map(build_parts_if_divisible, self._sides)
        return None if left is None or right is None else [*left, *right]

    def build_key_lookup(self, keys: Expressions) -> KeyLookup:
        sides = [side.build_key_lookup(keys) for side in self._sides]
        return lambda reader, wanted: (row for side in sides for row in side(reader, wanted))
