"""The delta operators of a tree's linear nodes: core, map and union."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation import compiled_table
from belvedere.execution.direct.compile import compile_plan
from belvedere.execution.run import Rows
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.looks import python_equal_may_differ
from belvedere.txn.border import Reader, RowChange
from belvedere.types import Row
from belvedere.views.core import Expressions, Leaf
from belvedere.views.delta import (
    KEYS_LEAF,
    TOGETHER_MAX,
    Term,
    changes_leaf,
    restricted_plan,
    terms_of,
    whole_plans,
)
from belvedere.views.fill_parts import Part, parts_of
from belvedere.views.source import (
    Restricted,
    Source,
    Step,
    Weighted,
    by_weight,
    chained,
    leaf,
    run_plan,
)
from belvedere.views.tree import Core, Map


class Sides(NamedTuple):
    """The changed rows of a leaf: old ones, new ones, and the new ones of updates."""

    removed: list[Row]
    added: list[Row]
    moved: list[Row]


SidesOf = Callable[[Sequence[RowChange]], Sides]


_Relevant = tuple[dict[int, SidesOf], list[tuple[Term, Rows]]]


@dataclass(frozen=True, slots=True)
class _Branch:
    """A branch's leaves (relation, extractor of its changes) by number, and its terms."""

    leaves: dict[int, tuple[int, SidesOf]]
    terms: list[Term]

    @property
    def relations(self) -> frozenset[int]:
        return frozenset([relation for relation, _ in self.leaves.values()])


class CoreSource:
    """Runs the terms of a core's delta plan over old and new rows. Plans are compiled when they are
    first needed: a catalog change creates operators most of which see no change."""

    def __init__(self, catalog: Catalog, tree: Core) -> None:
        self._catalog = catalog
        self._tree = tree
        self._by_relations: dict[frozenset[int], list[_Relevant]] = {}

    @cached_property
    def _branches(self) -> list[_Branch]:
        tree, catalog = self._tree, self._catalog
        terms, _ = terms_of(tree.branches, tree.plan.fields, catalog)
        found = []
        for number, branch in enumerate(tree.branches):
            leaves = {
                at: (one.relation, _sides_of(catalog, one))
                for at, one in enumerate(branch.leaves)
                if one.constant is None
            }
            found.append(_Branch(leaves, [term for term in terms if term.branch == number]))
        return found

    @cached_property
    def _whole(self) -> list[Rows]:
        tree, catalog = self._tree, self._catalog
        plans = whole_plans(tree.branches, tree.plan.fields, catalog)
        return [compile_plan(catalog, plan) for plan in plans]

    @property
    def reads_state(self) -> bool:
        return any(
            len([one for one in branch.leaves if one.constant is None]) > 1
            for branch in self._tree.branches
        )

    def delta(self, step: Step) -> Weighted:
        if len(step.relations) > 1 and self._too_many(step.relations):
            for part in step.by_relation():
                yield from self.delta(part)
            return
        for leaves, terms in self._relevant(step.relations):
            sides = {at: of(step.changes) for at, of in leaves.items()}
            for term, rows in terms:
                given = sides
                if term.pruned and step.prunes:
                    given = {at: _pruned(term, at, side) for at, side in sides.items()}
                yield from _term_rows(term, rows, given, step.before)

    def _too_many(self, relations: frozenset[int]) -> bool:
        """Whether several tables of a branch change that has no terms for that."""
        return any(
            len(branch.leaves) > TOGETHER_MAX and len(branch.relations & relations) > 1
            for branch in self._branches
        )

    def _relevant(self, relations: frozenset[int]) -> list[_Relevant]:
        """Of each branch the leaves and terms that changes of these relations affect."""
        found = self._by_relations.get(relations)
        if found is None:
            found = []
            for branch in self._branches:
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

    def whole(self, reader: Reader) -> Iterator[Row]:
        return chained(run_plan(rows, reader, {}) for rows in self._whole)

    def parts(self) -> list[Part]:
        return [self._part(number) for number in range(len(self._branches))]

    def _part(self, number: int) -> Part:
        """A branch, driven by the rows of the leaf from which its others are reached at least
        cost."""
        terms = [term for term in self._branches[number].terms if len(term.changed) == 1]
        if not terms:
            constant = self._whole[number]
            return Part(None, lambda reader, _: run_plan(constant, reader, {}), "constant")
        term = min(terms, key=lambda term: (term.scans, -_whole_keys(term.plan), term.changed))
        at = term.changed[0]
        one = self._tree.branches[number].leaves[at]
        project = compiled_table(self._catalog, one.relation).layout.projector(one.slots)
        rows = compile_plan(self._catalog, term.plan)

        def of(reader: Reader, values: Sequence[bytes]) -> Iterator[Row]:
            return run_plan(rows, reader, {changes_leaf(at): [project(value) for value in values]})

        return Part(one.relation, of, f"leaf {at} of {one.relation}", scans=bool(term.scans))

    def restricted(self, keys: Expressions) -> Restricted:
        """By look-ups that begin at the keys; keys with NULLs have plans of their own."""
        if not keys:
            return lambda reader, wanted: self.whole(reader)
        branches, fields, catalog = self._tree.branches, self._tree.plan.fields, self._catalog
        plans: dict[frozenset[int], Rows] = {}

        def rows(reader: Reader, wanted: list[Row]) -> Iterator[Row]:
            by_nulls: dict[frozenset[int], list[Row]] = {}
            for key in wanted:
                nulls = frozenset([i for i, value in enumerate(key) if value is None])
                by_nulls.setdefault(nulls, []).append(key)
            for nulls, some in by_nulls.items():
                plan = plans.get(nulls)
                if plan is None:
                    made = restricted_plan(branches, fields, keys, catalog, nulls)
                    plan = plans[nulls] = compile_plan(catalog, made)
                yield from run_plan(plan, reader, {KEYS_LEAF: some})

        return rows


def _whole_keys(plan: n.Node) -> int:
    """How many joins of a plan are look-ups by a complete unique key."""
    joins = [node for node in transform.walk(plan) if isinstance(node, n.Join)]
    return sum(join.lookup is not None and join.lookup.access.whole for join in joins)


def _pruned(term: Term, leaf: int, sides: Sides) -> Sides:
    return sides._replace(added=sides.moved) if term.prunes(leaf) else sides


def _term_rows(term: Term, rows: Rows, sides: dict[int, Sides], before: Reader) -> Weighted:
    """Every combination of old (weight -1) and new (weight +1) rows of the changed leaves."""
    if len(term.changed) == 1:
        (number,) = term.changed
        for weight, given in zip((-1, 1), sides[number]):
            if given:
                for row in run_plan(rows, before, {changes_leaf(number): given}):
                    yield row, weight
        return
    for signs in itertools.product((-1, 1), repeat=len(term.changed)):
        deltas = {
            changes_leaf(number): sides[number][sign > 0]
            for number, sign in zip(term.changed, signs)
        }
        if all(deltas.values()):
            weight = math.prod(signs)
            for row in run_plan(rows, before, deltas):
                yield row, weight


def _sides_of(catalog: Catalog, one: Leaf) -> SidesOf:
    """A function that projects changes to a leaf's columns and drops those that are equal there."""
    relation = one.relation
    project = compiled_table(catalog, relation).layout.projector(one.slots)
    disguised = any(python_equal_may_differ(field.type) for field in one.fields)

    def sides(changes: Sequence[RowChange]) -> Sides:
        removed: list[Row] = []
        added: list[Row] = []
        moved: list[Row] = []
        for change in changes:
            if change.relation == relation:
                old = None if change.old is None else project(change.old)
                new = None if change.new is None else project(change.new)
                if old != new or (disguised and repr(old) != repr(new)):
                    if old is not None:
                        removed.append(old)
                    if new is not None:
                        added.append(new)
                    if old is not None and new is not None:
                        moved.append(new)
        return Sides(removed, added, moved)

    return sides


class MapSource:
    """A selection or projection of another operator's rows."""

    def __init__(self, catalog: Catalog, tree: Map, below: Source) -> None:
        self._input = below
        self._plan = tree.plan
        node = replace(tree.plan, input=leaf(KEYS_LEAF, tree.plan.input))
        self._rows = compile_plan(catalog, node)

    @property
    def reads_state(self) -> bool:
        return self._input.reads_state

    def delta(self, step: Step) -> Weighted:
        for weight, rows in by_weight(self._input.delta(step)).items():
            for row in run_plan(self._rows, step.before, {KEYS_LEAF: rows}):
                yield row, weight

    def whole(self, reader: Reader) -> Iterator[Row]:
        rows = list(self._input.whole(reader))
        return run_plan(self._rows, reader, {KEYS_LEAF: rows})

    def parts(self) -> list[Part] | None:
        below = parts_of(self._input)

        def of(reader: Reader, rows: list[Row]) -> Iterator[Row]:
            return run_plan(self._rows, reader, {KEYS_LEAF: rows})

        return None if below is None else [part.mapped("map", of) for part in below]

    def restricted(self, keys: Expressions) -> Restricted:
        plan = self._plan
        if isinstance(plan, n.Project):
            columns = plan.expressions
            keys = tuple(transform.map_columns(key, lambda c: columns[c.index]) for key in keys)
        below = self._input.restricted(keys)

        def rows(reader: Reader, wanted: list[Row]) -> Iterator[Row]:
            return run_plan(self._rows, reader, {KEYS_LEAF: list(below(reader, wanted))})

        return rows


class UnionSource:
    def __init__(self, left: Source, right: Source) -> None:
        self._sides = (left, right)

    @property
    def reads_state(self) -> bool:
        return any(side.reads_state for side in self._sides)

    def delta(self, step: Step) -> Weighted:
        return itertools.chain.from_iterable(side.delta(step) for side in self._sides)

    def whole(self, reader: Reader) -> Iterator[Row]:
        return chained(side.whole(reader) for side in self._sides)

    def parts(self) -> list[Part] | None:
        left, right = map(parts_of, self._sides)
        return None if left is None or right is None else [*left, *right]

    def restricted(self, keys: Expressions) -> Restricted:
        sides = [side.restricted(keys) for side in self._sides]
        return lambda reader, wanted: (row for side in sides for row in side(reader, wanted))


def only_columns(keys: Expressions) -> list[int] | None:
    """The index of each key's column; None unless all keys are columns."""
    found = [key.index for key in keys if isinstance(key, e.Column)]
    return found if len(found) == len(keys) else None
