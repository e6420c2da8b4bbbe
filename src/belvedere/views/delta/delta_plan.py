"""The delta plan of a linear core: how its rows change when rows of its tables change.

The core is a sum of products, so its delta is, over every non-empty set of changed leaves, the
product of their changes with the *old* rows of all other leaves:

    d(A x B) = dA x B  +  A x dB  +  dA x dB

Each summand is a term: an ordinary plan whose changed leaves are `Changes` and whose other leaves
are read through the reader of the old state, by key or index, starting from the changes; a full
scan is a last resort and is counted in `scans`. Changes are given as old rows (weight -1) and new
rows (weight +1); a term is run for every combination of sides, with the product of the weights.

A product of many tables would have as many terms as they have subsets: above
`JOINT_TERM_LEAVES_MAX` leaves there are only terms of one table's leaves, and a step that changes
several tables is taken table by table (`DeltaStep.split_by_relation`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Index, Maintenance, ObjectState
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.fields import Field, Fields
from belvedere.sql.rules.equality import make_equality
from belvedere.views.delta.foreign_key_joins import ForeignKeyJoin, find_foreign_key_joins
from belvedere.views.delta.linear_core import CoreBranch, CoreLeaf


@dataclass(frozen=True, slots=True)
class DeltaTerm:
    """A summand of the delta. `changed` are numbers of leaves; leaf k of the branch is the Changes
    leaf -(k + 1). `foreign_key_joins` says for which of them inserted rows can be left out
    (`views.delta.foreign_key_joins`)."""

    branch: int
    changed: tuple[int, ...]
    plan: n.Node
    scans: int
    foreign_key_joins: tuple[ForeignKeyJoin, ...] = ()

    def can_prune_inserts(self, leaf: int) -> bool:
        return any(one.parent == leaf for one in self.foreign_key_joins)


@dataclass(frozen=True, slots=True)
class IndexRequirement:
    """An index that would save a scan: equality on these slots of a relation; with `ordered`, on
    all but the last, by which the entries must be ordered."""

    relation: int
    slots: tuple[int, ...]
    ordered: bool = False


Equalities = dict[int, tuple[paths.EqualityPart | paths.IsNullPart, e.Expression]]
"""By slot of a relation: the value it must equal, and the condition that says so."""

JOINT_TERM_LEAVES_MAX = 3
"""Up to so many leaves, a branch has a term for every set of them that may change together."""

KEYS_LEAF = -1_000_000
"""The Changes leaf that holds touched keys."""


def changes_leaf_id(number: int) -> int:
    """The key of a leaf's rows in `Run.deltas`."""
    return -(number + 1)


def build_terms_and_requirements(
    branches: tuple[CoreBranch, ...], fields: Fields, catalog: Catalog
) -> tuple[tuple[DeltaTerm, ...], tuple[IndexRequirement, ...]]:
    """Every term of the delta, and the indexes that would make them cheaper."""
    terms: list[DeltaTerm] = []
    requirements: dict[IndexRequirement, None] = {}
    for number, branch in enumerate(branches):
        prunes = find_foreign_key_joins(branch, catalog)
        for changed in _enumerate_changed_leaf_sets(branch):
            builder = _TermBuilder(branch, changed, catalog)
            plan = builder.build_plan(fields)
            pruned = [p for p in prunes if p.parent in changed and p.child not in changed]
            terms.append(DeltaTerm(number, changed, plan, builder.scans, tuple(pruned)))
            requirements.update(dict.fromkeys(builder.required_indexes))
    return tuple(terms), tuple(requirements)


def _enumerate_changed_leaf_sets(branch: CoreBranch) -> Iterator[tuple[int, ...]]:
    """The sets of leaves that have a term, small ones first."""
    leaves = [i for i, leaf in enumerate(branch.leaves) if leaf.constant is None]
    if len(leaves) <= JOINT_TERM_LEAVES_MAX:
        groups = [leaves]
    else:
        tables: dict[int, list[int]] = {}
        for i in leaves:
            tables.setdefault(branch.leaves[i].relation, []).append(i)
        groups = list(tables.values())
    for size in range(1, len(leaves) + 1):
        for group in groups:
            yield from combinations(group, size)


def build_full_branch_plans(
    branches: tuple[CoreBranch, ...], fields: Fields, catalog: Catalog
) -> list[n.Node]:
    """A plan for all rows of each branch: those that a backfill adds."""
    return [_TermBuilder(branch, (), catalog).build_plan(fields) for branch in branches]


def build_key_restricted_plan(
    branches: tuple[CoreBranch, ...],
    fields: Fields,
    keys: tuple[e.Expression, ...],
    catalog: Catalog,
    nulls: frozenset[int] = frozenset(),
) -> n.Node:
    """The rows of a core whose `keys` (over its rows) are among those of the leaf KEYS_LEAF; the
    keys with the numbers `nulls` are NULL."""
    plans = [
        _make_key_restricted_builder(branch, keys, catalog, nulls).build_plan(fields)
        for branch in branches
    ]
    node = plans[0]
    for other in plans[1:]:
        node = n.SetOperation(n.SetKind.UNION, True, node, other)
    return node


def find_key_restriction_indexes(
    branches: tuple[CoreBranch, ...],
    fields: Fields,
    keys: tuple[e.Expression, ...],
    catalog: Catalog,
) -> Iterator[IndexRequirement]:
    """The indexes that would make `build_key_restricted_plan` cheaper."""
    for branch in branches:
        builder = _make_key_restricted_builder(branch, keys, catalog, frozenset())
        builder.build_plan(fields)
        yield from builder.required_indexes


def _make_key_restricted_builder(
    branch: CoreBranch, keys: tuple[e.Expression, ...], catalog: Catalog, nulls: frozenset[int]
) -> _TermBuilder:
    """The branch with one more leaf in front, the keys, and a condition for each of them."""
    width = len(keys)
    key_fields = tuple(Field(f"key {i}", key.type) for i, key in enumerate(keys))
    first = CoreLeaf(0, "touched keys", (), key_fields, 0)
    moved = [replace(leaf, offset=leaf.offset + width) for leaf in branch.leaves]
    on_row = [
        transform.shift_columns(
            transform.map_columns(key, lambda column: branch.columns[column.index]), width
        )
        for key in keys
    ]
    equal = tuple(
        e.Test(key, e.Truth.NULL)
        if i in nulls
        else make_equality(e.Column(i, key.type), key, null_safe=False)
        for i, key in enumerate(on_row)
    )
    conditions = tuple(transform.shift_columns(c, width) for c in branch.conditions)
    columns = tuple(transform.shift_columns(c, width) for c in branch.columns)
    whole = CoreBranch((first, *moved), equal + conditions, columns)
    return _TermBuilder(whole, (0,), catalog, KEYS_LEAF)


class _TermBuilder:
    """Builds the plan of one term: joins one leaf after the other, changed ones first."""

    def __init__(
        self,
        branch: CoreBranch,
        changed: tuple[int, ...],
        catalog: Catalog,
        keys_leaf: int | None = None,
    ) -> None:
        """`keys_leaf`: the first leaf is not a table but this Changes leaf."""
        self._keys_leaf = keys_leaf
        self._branch = branch
        self._changed = changed
        self._catalog = catalog
        self._column_map: dict[
            int, int
        ] = {}  # column of the branch's row -> column of the plan's row
        self._pending_conditions = list(branch.conditions)
        self._columns = {id(c): frozenset(transform.columns_of(c)) for c in branch.conditions}
        self._slot_equalities = _collect_slot_equalities(branch)
        self._leaves_by_column = _index_leaves_by_column(self._slot_equalities)
        self._ranks: dict[int, tuple[int, int, int]] = {}  # those that are still valid
        self._node: n.Node | None = None
        self._width = 0
        self.scans = 0
        self.required_indexes: list[IndexRequirement] = []

    def build_plan(self, fields: Fields) -> n.Node:
        for number in self._changed:
            leaf = self._branch.leaves[number]
            id_ = changes_leaf_id(number) if self._keys_leaf is None else self._keys_leaf
            self._join_leaf(n.Changes(id_, leaf.name, leaf.slots, leaf.fields), leaf)
        left = [k for k in range(len(self._branch.leaves)) if k not in self._changed]
        while left:
            number = max(left, key=self._rank_leaf)
            left.remove(number)
            self._join_leaf_by_best_access(number)
        assert self._node is not None
        columns = tuple(self._map_to_plan_columns(column) for column in self._branch.columns)
        return n.Project(self._node, columns, fields)

    # -- joining ------------------------------------------------------------------------------

    def _join_leaf(self, node: n.Node, leaf: CoreLeaf, access: paths.Access | None = None) -> None:
        """Join a leaf to the plan so far, with every condition that can be evaluated then."""
        width = self._width
        self._width += len(node.fields)
        for at, column in enumerate(leaf.column_range):
            self._column_map[column] = width + at
            for user in self._leaves_by_column.get(column, ()):
                self._ranks.pop(user, None)
        known = self._column_map.keys()
        ready = [c for c in self._pending_conditions if self._columns[id(c)] <= known]
        self._pending_conditions = [
            c for c in self._pending_conditions if not self._columns[id(c)] <= known
        ]
        condition = transform.conjunction([self._map_to_plan_columns(c) for c in ready])
        if self._node is None:
            self._node = node if condition is None else n.Filter(node, condition)
        elif access is not None:
            self._node = n.Join(
                n.JoinKind.INNER,
                self._node,
                node,
                residual=condition,
                method=n.JoinMethod.LOOKUP,
                lookup=n.Lookup(access, condition),
            )
        else:
            keys = tuple(k for c in ready for k in self._list_hash_join_keys(c, leaf, width))
            method = n.JoinMethod.HASH if keys else n.JoinMethod.LOOP
            self._node = n.Join(
                n.JoinKind.INNER, self._node, node, keys, residual=condition, method=method
            )

    def _list_hash_join_keys(
        self, condition: e.Expression, leaf: CoreLeaf, width: int
    ) -> Iterator[n.JoinKey]:
        """The condition as a key of a hash join; it stays in the residual, where it costs
        little."""
        for mine, other in _match_equality_both_ways(condition):
            inside = transform.columns_of(mine)
            outside = {self._column_map[column] for column in transform.columns_of(other)}
            if inside and inside <= set(leaf.column_range) and outside and max(outside) < width:
                here = transform.map_columns(
                    mine, lambda c: e.Column(c.index - leaf.offset, c.type, c.name)
                )
                yield n.JoinKey(self._map_to_plan_columns(other), here)

    def _join_leaf_by_best_access(self, number: int) -> None:
        leaf = self._branch.leaves[number]
        if leaf.constant is not None:
            self._join_leaf(leaf.constant, leaf)
            return
        scan = n.Scan(leaf.relation, leaf.name, leaf.slots, leaf.fields)
        equal = self._find_known_slot_equalities(number)
        access = find_best_access(self._catalog, leaf.relation, equal)
        if access is None:
            self.scans += 1
            if equal:
                self.required_indexes.append(IndexRequirement(leaf.relation, tuple(sorted(equal))))
        elif self._node is not None:  # the first leaf is scanned
            # Encoded keys are equal exactly where SQL says that the values are equal.
            used = {id(part) for part in access.parts}
            implied = {id(condition) for part, condition in equal.values() if id(part) in used}
            self._pending_conditions = [
                condition for condition in self._pending_conditions if id(condition) not in implied
            ]
        self._join_leaf(scan, leaf, access)

    def _rank_leaf(self, number: int) -> tuple[int, int, int]:
        """The preference for fetching this leaf next: by key, by index, connected, or neither."""
        leaf = self._branch.leaves[number]
        if leaf.constant is not None:
            return (0, 0, -number)
        known = self._ranks.get(number)
        if known is None:
            equal = self._find_known_slot_equalities(number)
            access = find_best_access(self._catalog, leaf.relation, equal) if equal else None
            by_key = access is not None and access.full_key
            known = (2 * by_key + (access is not None), len(equal), -number)
            self._ranks[number] = known
        return known

    def _find_known_slot_equalities(self, number: int) -> Equalities:
        """Slots of a leaf that some condition sets equal to a value of the plan's rows so far, or
        to NULL."""
        found: Equalities = {}
        known = self._column_map.keys()
        for fact in self._slot_equalities.get(number, ()):
            if fact.slot in found or not fact.columns <= known:
                continue
            if any(one is fact.condition for one in self._pending_conditions):
                part = (
                    paths.IsNullPart()
                    if fact.value is None
                    else self._make_equality_part(fact.value)
                )
                found[fact.slot] = (part, fact.condition)
        return found

    def _make_equality_part(self, value: e.Expression) -> paths.EqualityPart:
        return paths.EqualityPart(self._map_to_plan_columns(value))

    def _map_to_plan_columns(self, expression: e.Expression) -> e.Expression:
        return transform.map_columns(
            expression, lambda c: e.Column(self._column_map[c.index], c.type, c.name)
        )


class _SlotEquality(NamedTuple):
    """A condition sets a slot of a leaf equal to a value of other leaves' `columns`; None: NULL."""

    slot: int
    value: e.Expression | None
    columns: frozenset[int]
    condition: e.Expression


def _collect_slot_equalities(branch: CoreBranch) -> dict[int, list[_SlotEquality]]:
    """The equalities that conditions state for the slots of each leaf, by its number, in the order
    of the conditions."""
    leaf_of = {
        column: number for number, leaf in enumerate(branch.leaves) for column in leaf.column_range
    }
    found: dict[int, list[_SlotEquality]] = {}
    for condition in branch.conditions:
        for column, value in _match_column_equalities(condition):
            number = leaf_of[column.index]
            leaf = branch.leaves[number]
            columns = frozenset() if value is None else frozenset(transform.columns_of(value))
            slot = leaf.slots[column.index - leaf.offset] if leaf.slots else -1
            facts = found.setdefault(number, [])
            facts.append(_SlotEquality(slot, value, columns, condition))
    return found


def _index_leaves_by_column(facts: dict[int, list[_SlotEquality]]) -> dict[int, set[int]]:
    """By column: the numbers of the leaves that have an equality with it."""
    found: dict[int, set[int]] = {}
    for number, known in facts.items():
        for fact in known:
            for column in fact.columns:
                found.setdefault(column, set()).add(number)
    return found


def _match_column_equalities(
    condition: e.Expression,
) -> Iterator[tuple[e.Column, e.Expression | None]]:
    """Columns that a condition sets equal to a value, or to NULL."""
    match condition:
        case e.Test(operand=e.Column() as tested, truth=e.Truth.NULL, negated=False):
            yield tested, None
    for mine, other in _match_equality_both_ways(condition):
        if isinstance(mine, e.Column):
            yield mine, other


def _match_equality_both_ways(
    condition: e.Expression,
) -> Iterator[tuple[e.Expression, e.Expression]]:
    """An equality of values of one type, as (left, right) and as (right, left)."""
    match condition:
        case e.Call(function, (left, right), _) if function.name == "=" and left.type == right.type:
            yield left, right
            yield right, left


def find_best_access(catalog: Catalog, relation: int, equal: Equalities) -> paths.Access | None:
    """The primary key or index with the longest prefix of columns whose values are known; None
    without one."""
    table = catalog.table(relation)
    best = _build_prefix_access(None, "", table.primary_key, equal, unique=True)
    for index in catalog.table_indexes(relation):
        if _is_usable_index(index):
            slots = tuple(-1 if part.slot is None else part.slot for part in index.parts)
            found = _build_prefix_access(index.id, index.name, slots, equal, unique=index.unique)
            if found is not None and (best is None or _is_better_access(found, best)):
                best = found
    return best


def _is_usable_index(index: Index) -> bool:
    ready = index.state is ObjectState.READY and index.maintenance is Maintenance.IMMEDIATE
    return ready and index.where is None


def _build_prefix_access(
    index: int | None,
    name: str,
    slots: tuple[int, ...],
    equal: Equalities,
    *,
    unique: bool,
) -> paths.Access | None:
    parts: list[paths.Part] = []
    for slot in slots:
        if slot not in equal:
            break
        parts.append(equal[slot][0])
    if not parts:
        return None
    values = all(isinstance(part, paths.EqualityPart) for part in parts)
    whole = unique and values and len(parts) == len(slots)
    return paths.Access(index, name, tuple(parts), full_key=whole)


def _is_better_access(one: paths.Access, other: paths.Access) -> bool:
    return (one.full_key, len(one.parts)) > (other.full_key, len(other.parts))
