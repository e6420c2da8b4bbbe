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

from belvedere.catalog.catalog import Catalog
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.fields import Field, Fields
from belvedere.sql.rules.equality import make_equality
from belvedere.views.delta.foreign_key_joins import ForeignKeyJoin, find_foreign_key_joins
from belvedere.views.delta.leaf_lookups import (
    BranchLookups,
    IndexRequirement,
    LeafLookup,
    match_key_equality,
)
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


JOINT_TERM_LEAVES_MAX = 3
"""Up to so many leaves, a branch has a term for every set of them that may change together."""

KEYS_LEAF = -1_000_000
"""The Changes leaf that holds touched keys."""


def changes_leaf_id(number: int) -> int:
    """The key of a leaf's rows in `Run.deltas`."""
    return -(number + 1)


def build_delta_terms(
    branches: tuple[CoreBranch, ...],
    fields: Fields,
    catalog: Catalog,
    *,
    leaves_max: int | None = None,
) -> tuple[DeltaTerm, ...]:
    """Every term of the delta; with `leaves_max` only those of so many changed leaves."""
    terms: list[DeltaTerm] = []
    for number, branch in enumerate(branches):
        prunes = find_foreign_key_joins(branch, catalog)
        lookups = BranchLookups(branch, catalog)
        for changed in _enumerate_changed_leaf_sets(branch):
            if leaves_max is not None and len(changed) > leaves_max:
                break
            builder = _TermBuilder(lookups, changed)
            plan = builder.build_plan(fields)
            pruned = [p for p in prunes if p.parent in changed and p.child not in changed]
            terms.append(DeltaTerm(number, changed, plan, builder.scans, tuple(pruned)))
    return tuple(terms)


def find_term_indexes(
    branches: tuple[CoreBranch, ...], catalog: Catalog
) -> Iterator[IndexRequirement]:
    """The indexes that would make the terms of the delta cheaper."""
    for branch in branches:
        lookups = BranchLookups(branch, catalog)
        for changed in _enumerate_changed_leaf_sets(branch):
            yield from lookups.list_required_indexes(changed)


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
    return [
        _TermBuilder(BranchLookups(branch, catalog), ()).build_plan(fields) for branch in branches
    ]


def build_key_restricted_plan(
    branches: tuple[CoreBranch, ...],
    fields: Fields,
    keys: tuple[e.Expression, ...],
    catalog: Catalog,
    nulls: frozenset[int] = frozenset(),
) -> n.Node:
    """The rows of a core whose `keys` (over its rows) are among those of the leaf KEYS_LEAF; the
    keys with the numbers `nulls` are NULL."""
    plans = []
    for branch in branches:
        lookups = BranchLookups(_add_keys_leaf(branch, keys, nulls), catalog)
        plans.append(_TermBuilder(lookups, (0,), KEYS_LEAF).build_plan(fields))
    node = plans[0]
    for other in plans[1:]:
        node = n.SetOperation(n.SetKind.UNION, True, node, other)
    return node


def find_key_restriction_indexes(
    branches: tuple[CoreBranch, ...], keys: tuple[e.Expression, ...], catalog: Catalog
) -> Iterator[IndexRequirement]:
    """The indexes that would make `build_key_restricted_plan` cheaper."""
    for branch in branches:
        lookups = BranchLookups(_add_keys_leaf(branch, keys, frozenset()), catalog)
        yield from lookups.list_required_indexes((0,))


def _add_keys_leaf(
    branch: CoreBranch, keys: tuple[e.Expression, ...], nulls: frozenset[int]
) -> CoreBranch:
    """The branch with one more leaf in front, the keys, and a condition for each of them."""
    width = len(keys)
    key_fields = tuple(Field(f"key {i}", key.type) for i, key in enumerate(keys))
    first = CoreLeaf(0, "touched keys", (), key_fields, 0)
    moved = [replace(leaf, offset=leaf.offset + width) for leaf in branch.leaves]
    on_row = [
        transform.shift_columns(transform.substitute_columns(key, branch.columns), width)
        for key in keys
    ]
    equal = tuple(
        e.Test(key, e.Truth.NULL)
        if i in nulls
        else make_equality(e.Column(i, key.type), key, null_safe=False)
        for i, key in enumerate(on_row)
    )
    conditions = transform.shift_all(branch.conditions, width)
    columns = transform.shift_all(branch.columns, width)
    return CoreBranch((first, *moved), equal + conditions, columns)


class _TermBuilder:
    """Builds the plan of one term: joins one leaf after the other, changed ones first."""

    def __init__(
        self, lookups: BranchLookups, changed: tuple[int, ...], keys_leaf: int | None = None
    ) -> None:
        """`keys_leaf`: the first leaf is not a table but this Changes leaf."""
        self._keys_leaf = keys_leaf
        self._lookups = lookups
        self._branch = lookups.branch
        self._changed = changed
        self._column_map: dict[
            int, int
        ] = {}  # column of the branch's row -> column of the plan's row
        self._pending_conditions = list(self._branch.conditions)
        self._node: n.Node | None = None
        self._width = 0
        self.scans = 0

    def build_plan(self, fields: Fields) -> n.Node:
        for number in self._changed:
            leaf = self._branch.leaves[number]
            id_ = changes_leaf_id(number) if self._keys_leaf is None else self._keys_leaf
            self._add_leaf_to_join(n.Changes(id_, leaf.name, leaf.slots, leaf.fields), number)
        for lookup in self._lookups.order_leaves_for_join(self._changed):
            self._add_looked_up_leaf(lookup)
        assert self._node is not None
        columns = transform.renumber_all(self._branch.columns, self._column_map)
        return n.Project(self._node, columns, fields)

    def _add_looked_up_leaf(self, lookup: LeafLookup) -> None:
        leaf = self._branch.leaves[lookup.number]
        if leaf.constant is not None:
            self._add_leaf_to_join(leaf.constant, lookup.number)
            return
        access = None
        if lookup.key is None:
            self.scans += 1
        elif self._node is not None:  # the first leaf is scanned
            access = self._build_lookup_access(lookup)
            # Encoded keys are equal exactly where SQL says that the values are equal.
            implied = {id(fact.condition) for fact in lookup.used}
            self._pending_conditions = [
                condition for condition in self._pending_conditions if id(condition) not in implied
            ]
        scan = n.Scan(leaf.relation, leaf.name, leaf.slots, leaf.fields)
        self._add_leaf_to_join(scan, lookup.number, access)

    def _build_lookup_access(self, lookup: LeafLookup) -> paths.Access:
        assert lookup.key is not None
        parts: list[paths.Part] = []
        for fact in lookup.used:
            if fact.value is None:
                parts.append(paths.IsNullPart())
            else:
                value = transform.renumber_columns(fact.value, self._column_map)
                parts.append(paths.EqualityPart(value))
        return paths.Access(
            lookup.key.index_id, lookup.key.name, tuple(parts), full_key=lookup.full_key
        )

    def _add_leaf_to_join(
        self, node: n.Node, number: int, access: paths.Access | None = None
    ) -> None:
        """Join a leaf to the plan so far, with every condition that can be evaluated then."""
        width = self._width
        self._width += len(node.fields)
        for at, column in enumerate(self._lookups.column_ranges[number]):
            self._column_map[column] = width + at
        ready, self._pending_conditions = self._lookups.split_evaluable_conditions(
            self._pending_conditions, self._column_map.keys()
        )
        condition = transform.conjunction(list(transform.renumber_all(ready, self._column_map)))
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
            keys = tuple(k for c in ready for k in self._list_hash_join_keys(c, number, width))
            method = n.JoinMethod.HASH if keys else n.JoinMethod.LOOP
            self._node = n.Join(
                n.JoinKind.INNER, self._node, node, keys, residual=condition, method=method
            )

    def _list_hash_join_keys(
        self, condition: e.Expression, number: int, width: int
    ) -> Iterator[n.JoinKey]:
        """The condition as a key of a hash join; it stays in the residual, where it costs
        little."""
        own = self._lookups.column_ranges[number]
        for mine, other in match_key_equality(condition):
            inside = transform.columns_of(mine)
            outside = {self._column_map[column] for column in transform.columns_of(other)}
            if inside and inside <= set(own) and outside and max(outside) < width:
                yield n.JoinKey(
                    transform.renumber_columns(other, self._column_map),
                    transform.shift_columns(mine, -own.start),
                )
