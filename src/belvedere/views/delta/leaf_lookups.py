"""Look-ups of a branch's leaves: in which order a term joins them, and by which key or index.

A term starts from the rows of its changed leaves. Each further leaf is fetched by the primary key
or index with the longest prefix of columns that conditions set equal to values known by then; those
found by their whole key come first. Where there is no such key, an index would save a scan: an
`IndexRequirement`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Index, Maintenance, ObjectState
from belvedere.plan import expressions as e
from belvedere.plan import transform
from belvedere.sql.rules.access.key_values import INTEGERS, fit_key_value
from belvedere.views.delta.linear_core import CoreBranch


@dataclass(frozen=True, slots=True)
class IndexRequirement:
    """An index that would save a scan: equality on these slots of a relation; with `ordered`, on
    all but the last, by which the entries must be ordered."""

    relation: int
    slots: tuple[int, ...]
    ordered: bool = False


class SlotEquality(NamedTuple):
    """A condition sets a slot of a leaf equal to a value of other leaves' `columns`; None: NULL."""

    slot: int
    value: e.Expression | None
    columns: frozenset[int]
    condition: e.Expression


class LookupKey(NamedTuple):
    """The primary key of a table (`index_id` is None), or an index; a part that is an expression
    has slot -1."""

    index_id: int | None
    name: str
    slots: tuple[int, ...]
    unique: bool


@dataclass(frozen=True, slots=True)
class LeafLookup:
    """How the rows of a leaf are found: by a prefix of a key, whose columns `used` sets; without a
    key all rows are scanned. `equalities` are all that is known of the leaf's slots."""

    number: int
    equalities: dict[int, SlotEquality]
    key: LookupKey | None = None
    used: tuple[SlotEquality, ...] = ()

    @property
    def full_key(self) -> bool:
        """Whether it finds at most one row."""
        key, used = self.key, self.used
        return (
            key is not None
            and key.unique
            and len(used) == len(key.slots)
            and all(fact.value is not None for fact in used)
        )

    @property
    def rank(self) -> tuple[int, int, int]:
        """The preference for this leaf as the next: by key, by index, connected, or neither."""
        return (
            2 * self.full_key + (self.key is not None),
            len(self.equalities),
            -self.number,
        )


class BranchLookups:
    """The equalities of a branch's conditions and the keys of its tables, for all of its terms."""

    def __init__(self, branch: CoreBranch, catalog: Catalog) -> None:
        self.branch = branch
        self.column_ranges = [leaf.column_range for leaf in branch.leaves]
        self._columns = {id(c): frozenset(transform.columns_of(c)) for c in branch.conditions}
        self._slot_equalities = _collect_slot_equalities(branch, self.column_ranges)
        self._leaves_by_column = _index_leaves_by_column(self._slot_equalities)
        self._keys = {
            relation: _list_primary_and_index_keys(catalog, relation)
            for relation in {branch.leaves[number].relation for number in self._slot_equalities}
            if relation
        }

    def split_evaluable_conditions(
        self, conditions: list[e.Expression], known: Collection[int]
    ) -> tuple[list[e.Expression], list[e.Expression]]:
        """Those that read known columns only, and the others."""
        ready = [c for c in conditions if self._columns[id(c)].issubset(known)]
        return ready, [c for c in conditions if not self._columns[id(c)].issubset(known)]

    def list_required_indexes(self, changed: tuple[int, ...]) -> list[IndexRequirement]:
        """The indexes that would save scans of the term of these changed leaves."""
        return [
            IndexRequirement(self.branch.leaves[one.number].relation, tuple(sorted(one.equalities)))
            for one in self.order_leaves_for_join(changed)
            if one.key is None and one.equalities
        ]

    def order_leaves_for_join(self, changed: tuple[int, ...]) -> list[LeafLookup]:
        """The other leaves in the order in which a term joins them, each with its look-up."""
        known: set[int] = set()
        for number in changed:
            known.update(self.column_ranges[number])
        found: dict[int, LeafLookup] = {}  # those that are still valid
        ordered: list[LeafLookup] = []
        left = [k for k in range(len(self.branch.leaves)) if k not in changed]
        while left:
            for number in left:
                if number not in found:
                    found[number] = self._find_best_lookup(number, known)
            number = max(left, key=lambda one: found[one].rank)
            left.remove(number)
            ordered.append(found[number])
            for column in self.column_ranges[number]:
                known.add(column)
                for user in self._leaves_by_column.get(column, ()):
                    found.pop(user, None)
        return ordered

    def _find_best_lookup(self, number: int, known: set[int]) -> LeafLookup:
        """By the primary key or index with the longest prefix of columns whose values are known."""
        equal: dict[int, SlotEquality] = {}
        if self.branch.leaves[number].constant is None:
            for fact in self._slot_equalities.get(number, ()):
                if fact.columns <= known:
                    equal.setdefault(fact.slot, fact)
        best = LeafLookup(number, equal)
        if not equal:
            return best
        for key in self._keys[self.branch.leaves[number].relation]:
            used: list[SlotEquality] = []
            for slot in key.slots:
                if slot not in equal:
                    break
                used.append(equal[slot])
            one = LeafLookup(number, equal, key, tuple(used))
            if used and (one.full_key, len(used)) > (best.full_key, len(best.used)):
                best = one
        return best


def _collect_slot_equalities(
    branch: CoreBranch, column_ranges: list[range]
) -> dict[int, list[SlotEquality]]:
    """The equalities that conditions state for the slots of each leaf, by its number, in the order
    of the conditions."""
    leaf_of = {column: number for number, own in enumerate(column_ranges) for column in own}
    found: dict[int, list[SlotEquality]] = {}
    for condition in branch.conditions:
        for column, value in _match_column_equalities(condition):
            number = leaf_of[column.index]
            leaf = branch.leaves[number]
            columns = frozenset() if value is None else frozenset(transform.columns_of(value))
            slot = leaf.slots[column.index - leaf.offset] if leaf.slots else -1
            facts = found.setdefault(number, [])
            facts.append(SlotEquality(slot, value, columns, condition))
    return found


def _index_leaves_by_column(facts: dict[int, list[SlotEquality]]) -> dict[int, set[int]]:
    """By column: the numbers of the leaves that have an equality with it."""
    found: dict[int, set[int]] = {}
    for number, known in facts.items():
        for fact in known:
            for column in fact.columns:
                found.setdefault(column, set()).add(number)
    return found


def _match_column_equalities(
    condition: e.Expression,
) -> list[tuple[e.Column, e.Expression | None]]:
    """Columns that a condition sets equal to a value, or to NULL."""
    match condition:
        case e.Test(operand=e.Column() as tested, truth=e.Truth.NULL, negated=False):
            return [(tested, None)]
    return [
        (mine, other if mine.type == other.type else fit_key_value(mine, other))
        for mine, other in match_key_equality(condition)
        if isinstance(mine, e.Column)
    ]


def match_key_equality(condition: e.Expression) -> list[tuple[e.Expression, e.Expression]]:
    """An equality of values of one type, or of integers, as (left, right) and as (right, left);
    nothing for other conditions."""
    match condition:
        case e.Call(function, (left, right), _) if function.name == "=":
            if left.type == right.type or {left.type.kind, right.type.kind} <= INTEGERS:
                return [(left, right), (right, left)]
    return []


def _list_primary_and_index_keys(catalog: Catalog, relation: int) -> list[LookupKey]:
    """The primary key of a table, and its indexes that can be read."""
    table = catalog.table(relation)
    found = [LookupKey(None, "", table.primary_key, unique=True)]
    for index in catalog.table_indexes(relation):
        if _is_usable_index(index):
            slots = tuple([-1 if part.slot is None else part.slot for part in index.parts])
            found.append(LookupKey(index.id, index.name, slots, index.unique))
    return found


def _is_usable_index(index: Index) -> bool:
    ready = index.state is ObjectState.READY and index.maintenance is Maintenance.IMMEDIATE
    return ready and index.where is None
