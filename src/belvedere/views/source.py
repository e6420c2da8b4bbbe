"""Running a tree: the weighted rows by which it changed in one step.

A step is a set of changes with the state before and after them. Every source gives the rows that
came (positive weight) and went (negative weight); the same row may be given several times, and what
cancels is for the consumer to add up.
"""

from __future__ import annotations

import datetime
import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation import compiled_table
from belvedere.execution.direct.compile import compile_plan
from belvedere.execution.direct.context import Context, row_keys
from belvedere.execution.run import Interrupt, Rows, Run, Services
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.fields import Field
from belvedere.plan.functions.function import Environment
from belvedere.txn.border import ParticipantsFor, Reader, RowChange
from belvedere.txn.commit.batch import DerivedRows
from belvedere.txn.history.readers import OverlayReader
from belvedere.types import Row
from belvedere.views.core import Leaf
from belvedere.views.delta import (
    KEYS_LEAF,
    Term,
    changes_leaf,
    restricted_plan,
    terms_of,
    whole_plans,
)
from belvedere.views.tree import Core, Input, Map, Recompute, Tree, Union, sorted_by_all

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
ENVIRONMENT = Environment(_EPOCH, _EPOCH, lambda: _EPOCH, random.Random(0))

Weighted = Iterator[tuple[Row, int]]


class Step:
    """Changes, the state before them, and (made when asked for) the state after them."""

    def __init__(
        self, changes: Sequence[RowChange], before: Reader, indexes: ParticipantsFor
    ) -> None:
        self.changes = changes
        self.before = before
        self._indexes = indexes

    @cached_property
    def after(self) -> Reader:
        return state_after(self.before, self.changes, self._indexes)


def state_after(reader: Reader, changes: Sequence[RowChange], indexes: ParticipantsFor) -> Reader:
    """Tables and indexes once these changes are made to what `reader` shows."""
    overlay: dict[bytes, bytes | None] = {change.key: change.new for change in changes}
    writer = DerivedRows(reader)
    for participant in indexes(reader.catalog, frozenset(c.relation for c in changes)):
        participant.writes(changes, reader, writer)
    overlay.update(writer.writes())
    return OverlayReader(reader, overlay, reader.position, reader.catalog)


class Source(Protocol):
    @property
    def reads_state(self) -> bool:
        """Whether a delta needs more than the changed rows themselves."""

    def delta(self, step: Step) -> Weighted: ...

    def whole(self, reader: Reader) -> Iterator[Row]:
        """All rows at a state: what a backfill starts from."""


def source_of(catalog: Catalog, tree: Tree) -> Source:
    match tree:
        case Core():
            return CoreSource(catalog, tree)
        case Map():
            return MapSource(catalog, tree)
        case Union():
            return UnionSource(catalog, tree)
        case Recompute():
            return RecomputeSource(catalog, tree)


def run_plan(rows: Rows, reader: Reader, deltas: dict[int, list[Row]]) -> Iterator[Row]:
    run = Run(reader, (), ENVIRONMENT, NO_SERVICES, Interrupt())
    run.deltas = deltas
    return rows(run)


# -- linear ----------------------------------------------------------------------------------------


class CoreSource:
    """Runs the terms of a core's delta plan over old and new rows."""

    def __init__(self, catalog: Catalog, tree: Core) -> None:
        self._leaves = [
            [(leaf.relation, _projector(catalog, leaf)) for leaf in branch.leaves]
            for branch in tree.branches
        ]
        fields = tree.plan.fields
        terms, self.wishes = terms_of(tree.branches, fields, catalog)
        self._terms = [(term, compile_plan(catalog, term.plan)) for term in terms]
        self._whole = [
            compile_plan(catalog, plan) for plan in whole_plans(tree.branches, fields, catalog)
        ]

    @property
    def reads_state(self) -> bool:
        return any(len(leaves) > 1 for leaves in self._leaves)

    def delta(self, step: Step) -> Weighted:
        sides = [[_sides(step.changes, *leaf) for leaf in leaves] for leaves in self._leaves]
        for term, rows in self._terms:
            yield from _term_rows(term, rows, sides[term.branch], step.before)

    def whole(self, reader: Reader) -> Iterator[Row]:
        return itertools.chain.from_iterable(run_plan(rows, reader, {}) for rows in self._whole)


Sides = tuple[list[Row], list[Row]]
"""Old and new rows of a leaf."""


def _term_rows(term: Term, rows: Rows, sides: list[Sides], before: Reader) -> Weighted:
    """Every combination of old (weight -1) and new (weight +1) rows of the changed leaves."""
    for signs in itertools.product((-1, 1), repeat=len(term.changed)):
        deltas = {
            changes_leaf(number): sides[number][sign > 0]
            for number, sign in zip(term.changed, signs)
        }
        if all(deltas.values()):
            weight = math.prod(signs)
            for row in run_plan(rows, before, deltas):
                yield row, weight


def _projector(catalog: Catalog, leaf: Leaf) -> Callable[[bytes], Row]:
    return compiled_table(catalog, leaf.relation).layout.projector(leaf.slots)


def _sides(changes: Sequence[RowChange], relation: int, project: Callable[[bytes], Row]) -> Sides:
    """The rows of the changes as a leaf sees them, as far as it sees a difference."""
    removed: list[Row] = []
    added: list[Row] = []
    for change in changes:
        if change.relation == relation:
            old = None if change.old is None else project(change.old)
            new = None if change.new is None else project(change.new)
            if old != new:
                if old is not None:
                    removed.append(old)
                if new is not None:
                    added.append(new)
    return removed, added


class MapSource:
    """A selection or projection of another source's rows."""

    def __init__(self, catalog: Catalog, tree: Map) -> None:
        self._input = source_of(catalog, tree.input)
        leaf = n.Changes(KEYS_LEAF, "rows", (), tree.plan.input.fields)
        self._rows = compile_plan(catalog, replace(tree.plan, input=leaf))

    @property
    def reads_state(self) -> bool:
        return self._input.reads_state

    def delta(self, step: Step) -> Weighted:
        by_weight: dict[int, list[Row]] = {}
        for row, weight in self._input.delta(step):
            by_weight.setdefault(weight, []).append(row)
        for weight, rows in by_weight.items():
            for row in run_plan(self._rows, step.before, {KEYS_LEAF: rows}):
                yield row, weight

    def whole(self, reader: Reader) -> Iterator[Row]:
        rows = list(self._input.whole(reader))
        return run_plan(self._rows, reader, {KEYS_LEAF: rows})


class UnionSource:
    def __init__(self, catalog: Catalog, tree: Union) -> None:
        self._sides = (source_of(catalog, tree.left), source_of(catalog, tree.right))

    @property
    def reads_state(self) -> bool:
        return any(side.reads_state for side in self._sides)

    def delta(self, step: Step) -> Weighted:
        return itertools.chain.from_iterable(side.delta(step) for side in self._sides)

    def whole(self, reader: Reader) -> Iterator[Row]:
        return itertools.chain.from_iterable(side.whole(reader) for side in self._sides)


# -- by partition ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Side:
    source: Source
    key_of: Callable[[Run], Callable[[Row], Row]]


class RecomputeSource:
    """The operator's rows over the touched keys now, less the same before."""

    reads_state = True

    def __init__(self, catalog: Catalog, tree: Recompute) -> None:
        context = Context(catalog, lambda node: compile_plan(catalog, node))
        self._sides = [
            _Side(source_of(catalog, one.tree), context.tuple_of(one.keys)) for one in tree.inputs
        ]
        self._unkeyed = not tree.inputs[0].keys
        # Equal keys that look different (NaN, blanks, intervals) must count once: they are joined.
        self._canonical = row_keys(_keys_leaf(tree.inputs[0]).fields)
        by_look_up = [sorted_by_all(_restricted(catalog, one)) for one in tree.inputs]
        by_scan = [sorted_by_all(_filtered(one)) for one in tree.inputs]
        self._by_look_up = compile_plan(catalog, tree.rebuild(tuple(by_look_up)))
        self._by_scan = compile_plan(catalog, tree.rebuild(tuple(by_scan)))

    def delta(self, step: Step) -> Weighted:
        touched = self._touched(step)
        if not touched:
            return
        whole = [key for key in touched if None not in key]
        nulls = [key for key in touched if None in key]
        for keys, rows in ((whole, self._by_look_up), (nulls, self._by_scan)):
            if keys:
                for row in run_plan(rows, step.before, {KEYS_LEAF: keys}):
                    yield row, -1
                for row in run_plan(rows, step.after, {KEYS_LEAF: keys}):
                    yield row, 1

    def whole(self, reader: Reader) -> Iterator[Row]:
        if self._unkeyed:
            return run_plan(self._by_look_up, reader, {KEYS_LEAF: [()]})
        keys: dict[Row, Row] = {}
        for side in self._sides:
            key = side.key_of(_bare_run(reader))
            for row in side.source.whole(reader):
                value = key(row)
                keys.setdefault(self._canonical(value), value)
        return run_plan(self._by_scan, reader, {KEYS_LEAF: list(keys.values())})

    def _touched(self, step: Step) -> list[Row]:
        found: dict[Row, Row] = {}
        for side in self._sides:
            key = side.key_of(_bare_run(step.before))
            for row, _ in side.source.delta(step):
                value = key(row)
                found.setdefault(self._canonical(value), value)
        return list(found.values())


def _bare_run(reader: Reader) -> Run:
    return Run(reader, (), ENVIRONMENT, NO_SERVICES, Interrupt())


def _keys_leaf(one: Input) -> n.Changes:
    fields = tuple(Field(f"key {i}", key.type) for i, key in enumerate(one.keys))
    return n.Changes(KEYS_LEAF, "touched keys", (), fields)


def _restricted(catalog: Catalog, one: Input) -> n.Node:
    """The input's rows of the touched keys, found by look-ups where it is a core."""
    if not one.keys:
        return one.tree.plan
    if isinstance(one.tree, Core):
        return restricted_plan(one.tree.branches, one.tree.plan.fields, one.keys, catalog)
    return _filtered(one)


def _filtered(one: Input) -> n.Node:
    """The same by going through all rows: also right for keys with NULLs."""
    if not one.keys:
        return one.tree.plan
    leaf = _keys_leaf(one)
    keys = tuple(
        n.JoinKey(key, e.Column(i, key.type), null_safe=True) for i, key in enumerate(one.keys)
    )
    return n.Join(n.JoinKind.SEMI, one.tree.plan, leaf, keys, method=n.JoinMethod.HASH)


class _NoServices:
    """A view's definition asks nothing of a session; the compiler has seen to it."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"a view asked for {name}")


NO_SERVICES: Services = _NoServices()  # type: ignore[assignment]
