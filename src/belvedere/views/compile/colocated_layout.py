"""The co-located layout of equijoins: rows of the joined tables under one key, joined on read.

Every table is re-keyed to the one attribute all of them are joined on, and their rows are stored in
one relation, under (key, number of the table). A write costs one entry, however many rows it joins
with; a read of one key is one range.

    orders o JOIN customers c ON o.customer = c.id

    7 | 0 | o: 1, 10 | c: -          7 | 1 | o: - | c: 'Vienna'
    7 | 0 | o: 2, 20 | c: -
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.fields import Field, Fields
from belvedere.sql.rules.equality import make_equality
from belvedere.types import INTEGER
from belvedere.views.delta.delta_tree import DeltaTree, LinearCore
from belvedere.views.delta.linear_core import CoreBranch, unsupported_construct_error

_TABLE_NUMBER = Field("table", INTEGER)


class ColocatedJoin(NamedTuple):
    """`tree` gives the stored rows: key, table, then the columns of every table. `branch` is the
    join; `keys` the column of each leaf that is the key."""

    tree: LinearCore
    stored: Fields
    branch: CoreBranch
    keys: tuple[int, ...]


def build_colocated_join(tree: DeltaTree) -> ColocatedJoin:
    """The re-keyed rows of a join; Unsupported where it is no equijoin on one attribute."""
    if not isinstance(tree, LinearCore) or len(tree.branches) != 1:
        raise unsupported_construct_error("join = 'colocated'", "it is for inner joins alone")
    (branch,) = tree.branches
    if len(branch.leaves) < 2 or any(leaf.constant is not None for leaf in branch.leaves):
        raise unsupported_construct_error("join = 'colocated'", "it takes two tables or more")
    keys = _find_shared_join_columns(branch)
    types = {_make_branch_column(branch, key).type for key in keys}
    if len(types) > 1:
        raise unsupported_construct_error("join = 'colocated'", "the keys are of different types")
    fields = tuple(field for leaf in branch.leaves for field in leaf.fields)
    stored = (Field("key", types.pop()), _TABLE_NUMBER, *fields)
    sides = [_build_rekeyed_branch(branch, number, key, fields) for number, key in enumerate(keys)]
    plan = _build_branch_plan(sides[0], stored)
    for side in sides[1:]:
        plan = n.SetOperation(n.SetKind.UNION, True, plan, _build_branch_plan(side, stored))
    return ColocatedJoin(LinearCore(tuple(sides), plan), stored, branch, keys)


def _find_shared_join_columns(branch: CoreBranch) -> tuple[int, ...]:
    """A column of each leaf, all of them set equal by conditions."""
    known: dict[int, set[int]] = {}
    for condition in branch.conditions:
        match condition:
            case e.Call(function, (e.Column() as one, e.Column() as other), _):
                if function.name == "=" and one.type == other.type:
                    merged = known.get(one.index, {one.index}) | known.get(
                        other.index, {other.index}
                    )
                    known.update(dict.fromkeys(merged, merged))
    for equal in known.values():
        found = [[c for c in leaf.column_range if c in equal] for leaf in branch.leaves]
        if all(found):
            return tuple(columns[0] for columns in found)
    raise unsupported_construct_error(
        "join = 'colocated'", "its tables are not all joined on one attribute"
    )


def _make_branch_column(branch: CoreBranch, index: int) -> e.Column:
    leaf = next(leaf for leaf in branch.leaves if index in leaf.column_range)
    field = leaf.fields[index - leaf.offset]
    return e.Column(index, field.type, field.name)


def _build_rekeyed_branch(branch: CoreBranch, number: int, key: int, fields: Fields) -> CoreBranch:
    """One table's rows: those that can join, with NULL for the columns of the other tables."""
    leaf = branch.leaves[number]
    alone = replace(leaf, offset=0)

    def to_leaf_column(column: e.Column) -> e.Column:
        return e.Column(column.index - leaf.offset, column.type, column.name)

    own = [c for c in branch.conditions if transform.columns_of(c) <= set(leaf.column_range)]
    conditions = [
        transform.map_columns(one, to_leaf_column) for one in own if transform.columns_of(one)
    ]
    mine = to_leaf_column(_make_branch_column(branch, key))
    conditions.append(e.Test(mine, e.Truth.NULL, negated=True))
    columns: list[e.Expression] = [mine, e.Literal(number, INTEGER)]
    for at, field in enumerate(fields):
        inside = at in leaf.column_range
        columns.append(
            e.Column(at - leaf.offset, field.type, field.name)
            if inside
            else e.Literal(None, field.type)
        )
    return CoreBranch((alone,), tuple(conditions), tuple(columns))


def _build_branch_plan(branch: CoreBranch, fields: Fields) -> n.Node:
    (leaf,) = branch.leaves
    scan = n.Scan(leaf.relation, leaf.name, leaf.slots, leaf.fields)
    condition = transform.conjunction(list(branch.conditions))
    assert condition is not None
    return n.Project(n.Filter(scan, condition), branch.columns, fields)


def build_colocated_read_plan(made: ColocatedJoin, state: n.Node, fields: Fields) -> n.Node:
    """A plan of the join's rows over the stored ones: `state` gives each by its multiplicity."""
    branch = made.branch
    node: n.Node | None = None
    for number, (leaf, key) in enumerate(zip(branch.leaves, made.keys, strict=True)):
        side = _build_table_rows_plan(state, number, leaf.offset, leaf.fields)
        if node is None:
            node = side
        else:
            left = _make_branch_column(branch, made.keys[0])
            right = e.Column(key - leaf.offset, left.type)
            node = n.Join(
                n.JoinKind.INNER, node, side, (n.JoinKey(left, right),), method=n.JoinMethod.HASH
            )
    assert node is not None
    condition = transform.conjunction(list(branch.conditions))
    if condition is not None:
        node = n.Filter(node, condition)
    return n.Project(node, branch.columns, fields)


_COMPARISONS = frozenset(("=", "<", "<=", ">", ">="))


def build_restricted_state_plan(
    made: ColocatedJoin, state: n.Node, condition: e.Expression
) -> n.Node:
    """The stored rows that the view's rows of this condition are computed from. Keys of joined rows
    are equal, so a comparison of one of them with a constant holds for all: a range of keys."""
    found = [_rewrite_condition_on_key(made, one) for one in transform.conjuncts(condition)]
    ranges = [one for one in found if one is not None]
    wanted = transform.conjunction(ranges)
    return state if wanted is None else n.Filter(state, wanted)


def _rewrite_condition_on_key(made: ColocatedJoin, condition: e.Expression) -> e.Expression | None:
    """A condition on a column of the view as one on the stored key; None where it is not on the
    key."""
    match condition:
        case e.Call(function, (one, other)) if function.name in _COMPARISONS:
            pair = (_match_stored_key_column(made, one), _match_stored_key_column(made, other))
            if pair[0] is not None and _is_constant(other):
                return replace(condition, arguments=(pair[0], other))
            if pair[1] is not None and _is_constant(one):
                return replace(condition, arguments=(one, pair[1]))
        case e.InList(operand=operand, negated=False):
            key = _match_stored_key_column(made, operand)
            if key is not None and all(map(_is_constant, condition.items)):
                return replace(condition, operand=key)
    return None


def _match_stored_key_column(made: ColocatedJoin, expression: e.Expression) -> e.Column | None:
    if not isinstance(expression, e.Column):
        return None
    shown = made.branch.columns[expression.index]
    is_key = isinstance(shown, e.Column) and shown.index in made.keys
    return e.Column(0, expression.type, "key") if is_key else None


def _is_constant(expression: e.Expression) -> bool:
    return isinstance(expression, e.Literal | e.Parameter)


def _build_table_rows_plan(state: n.Node, number: int, offset: int, fields: Fields) -> n.Node:
    mine = make_equality(e.Column(1, INTEGER), e.Literal(number, INTEGER), null_safe=False)
    columns = tuple(e.Column(2 + offset + i, f.type, f.name) for i, f in enumerate(fields))
    return n.Project(n.Filter(state, mine), columns, fields)
