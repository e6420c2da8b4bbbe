"""Auxiliary views: state that is stored only to maintain other views.

Where an operator needs rows that no key or index of a table leads to, or a group's aggregates
without its rows, these are stored as hidden views of their own: linear state, immediate, maintained
and backfilled like any view, reference-counted by the views that use them, shared where one has all
that another view needs (`views.containment`).

    `KeptRows`     rows of a tree in the order of some keys: a touched key is a range, the first k
                   rows are a scan of k, the least value of a group is one seek
    `KeptGroups`   groups of a tree with the amounts of linear aggregates: one get

    SELECT max(n) FROM (SELECT city, count(*) AS n FROM people GROUP BY city) q

    stores (city | rows, count) of people, and, ordered by it, the n of every city

The auxiliary views of a tree are a function of the tree alone (`auxiliaries_of`), in an order in
which each depends only on earlier ones, so the auxiliary views of a view have fixed numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from belvedere.catalog.catalog import empty
from belvedere.execution.direct.context import Context
from belvedere.execution.run import Rows
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.expression_printer import print_expression
from belvedere.plan.fields import Field, Fields
from belvedere.plan.looks import LOOKS, SQL_EQUAL_KINDS, UNKEYED, lacks_canonical_key
from belvedere.types import TEXT
from belvedere.views.core import Expressions, refused
from belvedere.views.extremum import extrema_of
from belvedere.views.grow import tree_of
from belvedere.views.linear import Group, linear
from belvedere.views.normal import columns_of
from belvedere.views.source import nothing_run
from belvedere.views.tree import Apply, Core, Input, Map, Recompute, Tree, Union, Whole, children


@dataclass(frozen=True, slots=True)
class KeptRows:
    """An auxiliary view of a tree's rows under `keys`. `ordered`: the operator needs their order,
    not only the rows of some keys."""

    tree: Tree
    keys: tuple[e.SortKey, ...]
    ordered: bool = False

    def same(self, other: Auxiliary) -> bool:
        return (
            isinstance(other, KeptRows)
            and self.keys == other.keys
            and self.tree.plan == other.tree.plan
        )


@dataclass(frozen=True, slots=True)
class KeptGroups:
    """An auxiliary view of groups with linear aggregates. `fields` are those of the groups."""

    tree: Tree
    groups: Expressions
    calls: tuple[e.AggregateCall, ...]
    fields: Fields

    def same(self, other: Auxiliary) -> bool:
        return (
            isinstance(other, KeptGroups)
            and (self.groups, self.calls) == (other.groups, other.calls)
            and self.tree.plan == other.tree.plan
        )

    @property
    def group(self) -> Group:
        keeps = [linear(call) for call in self.calls]
        return Group(self.groups, self.calls, tuple(keep for keep in keeps if keep is not None))


Auxiliary = KeptRows | KeptGroups


def auxiliaries_of(tree: Tree) -> tuple[Auxiliary, ...]:
    """The auxiliary views that the maintenance of a tree requires, each once, after those that it
    depends on."""
    found: list[Auxiliary] = []
    _collect(tree, found)
    return tuple(found)


def _collect(tree: Tree, found: list[Auxiliary]) -> None:
    """The tree of each auxiliary view is visited once: trees of views on views occur many times."""
    for one in _wanted(tree):
        at = next((i for i, known in enumerate(found) if one.same(known)), None)
        if at is None:
            _collect(one.tree, found)
            found.append(one)
        elif isinstance(one, KeptRows) and one.ordered:
            found[at] = one


def _wanted(tree: Tree) -> Iterator[Auxiliary]:
    match tree:
        case Core() | Whole():
            return
        case Map() | Union():
            for child in children(tree):
                yield from _wanted(child)
        case Apply():
            yield from _wanted(tree.left)
            for right in tree.rights:
                yield from _wanted(right.tree)
                yield from _found_by(right.tree, right.keys)
                yield from _found_by(tree.left, right.left_keys)
        case Recompute():
            for one in tree.inputs:
                yield from _wanted(one.tree)
            yield from _of_recompute(tree)


def _of_recompute(tree: Recompute) -> Iterator[Auxiliary]:
    top = ordered_rows(tree)
    if top is not None:
        yield top
    elif isinstance(tree.plan, n.SetOperation):
        yield from counts_of(tree)
    else:
        parts = parts_of(tree)
        if parts is None:
            yield from _found_by(tree.inputs[0].tree, tree.inputs[0].keys)
        else:
            yield from parts.wanted


def _found_by(tree: Tree, keys: Expressions) -> Iterator[Auxiliary]:
    if keys and blind(tree, keys):
        kept = rows_by(tree, keys)
        if kept is not None:
            yield kept


def rows_by(tree: Tree, keys: Expressions) -> KeptRows | None:
    """The rows of a tree by these keys; None where a value has no encoding in keys."""
    return _rows(tree, tuple(map(e.SortKey, keys)))


def _rows(tree: Tree, keys: tuple[e.SortKey, ...]) -> KeptRows | None:
    types = [field.type for field in tree.plan.fields] + [key.expression.type for key in keys]
    return None if any(type_.kind in UNKEYED for type_ in types) else KeptRows(tree, keys)


def blind(tree: Tree, keys: Expressions) -> bool:
    """Whether rows with these keys can only be found by a full scan."""
    if not any(map(transform.columns_of, keys)):
        return False  # all rows have the same key
    match tree:
        case Core():
            return not all(
                any(isinstance(_under(key, b.columns), e.Column) for key in keys)
                for b in tree.branches
            )
        case Whole():
            return True
        case Map(plan=n.Project(expressions=columns)):
            return blind(tree.input, tuple(_under(key, columns) for key in keys))
        case Map() | Union():
            return any(blind(child, keys) for child in children(tree))
        case Apply():
            return _blind_apply(tree, keys)
        case Recompute():
            shared = [k.index for k in keys if isinstance(k, e.Column) and k.index in tree.passed]
            whole = len([k for k in keys if isinstance(k, e.Column)]) == len(keys)
            return (
                not shared
                or not whole
                or any(
                    blind(one.tree, tuple(one.keys[tree.passed.index(c)] for c in shared))
                    for one in tree.inputs
                )
            )


def _under(key: e.Expression, columns: Expressions) -> e.Expression:
    return transform.map_columns(key, lambda column: columns[column.index])


def _blind_apply(tree: Apply, keys: Expressions) -> bool:
    """Rows of an Apply are found by its left input, an inner join's also by its right one."""
    columns = [key.index for key in keys if isinstance(key, e.Column)]
    width = len(tree.left.plan.fields)
    plain = tree.join is not None or isinstance(tree.plan, n.Filter | n.Join)
    if len(columns) < len(keys) or not plain:
        return True
    if max(columns) < width:
        return blind(tree.left, keys)
    inner = tree.join is not None and tree.join.kind is n.JoinKind.INNER
    if not inner or min(columns) < width:
        return True
    fields = tree.rights[0].tree.plan.fields
    moved = tuple(e.Column(c - width, fields[c - width].type) for c in columns)
    return blind(tree.rights[0].tree, moved)


# -- order by .. limit -----------------------------------------------------------------------------


def ordered_rows(tree: Recompute) -> KeptRows | None:
    """The input of a LIMIT in the LIMIT's order."""
    plan = tree.plan
    if isinstance(plan, n.TopN):
        keys = plan.keys
    elif isinstance(plan, n.Limit) and isinstance(plan.input, n.Sort):
        keys = plan.input.keys
    else:
        return None
    kept = _rows(tree.inputs[0].tree, keys) if rows_needed(plan) is not None else None
    return None if kept is None else replace(kept, ordered=True)


def rows_needed(plan: n.Node) -> int | None:
    """How many rows a LIMIT reads, ties not counted; None: it has no known bound."""
    assert isinstance(plan, n.Limit | n.TopN)
    if plan.count is None:
        return None
    count = _constant(plan.count)
    skipped = None if plan.offset is None else _constant(plan.offset)
    return None if count is None else count + (skipped or 0)


def _constant(expression: e.Expression) -> int | None:
    """The value of an expression without columns."""
    context = Context(empty(), _no_plan)
    value = context.value_of(expression)(nothing_run())(())
    return None if value is None else int(value)


def _no_plan(node: n.Node) -> Rows:
    raise refused("limit", "it is made by a sub-query")


# -- set operations --------------------------------------------------------------------------------


def counts_of(tree: Recompute) -> tuple[KeptGroups, ...]:
    """The multiplicity of each row on either side of an INTERSECT or EXCEPT."""
    assert isinstance(tree.plan, n.SetOperation)
    if any(map(lacks_canonical_key, tree.plan.fields)):
        return ()
    return tuple(
        KeptGroups(one.tree, columns_of(one.tree.plan), (), one.tree.plan.fields)
        for one in tree.inputs
        if not any(map(lacks_canonical_key, one.tree.plan.fields))
    )


# -- aggregates ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Parts:
    """The auxiliary views that an aggregate is read from. For each call: (auxiliary view, number of
    the call in it), or for MIN and MAX (ordered rows, None). `presence` holds the groups that
    exist."""

    presence: KeptGroups
    calls: tuple[tuple[Auxiliary, int | None], ...]

    @property
    def wanted(self) -> tuple[Auxiliary, ...]:
        return (self.presence, *(one for one, _ in self.calls))


def parts_of(tree: Recompute) -> Parts | None:
    """The auxiliary views that an aggregate is assembled from; None: it is computed from the rows
    of its groups."""
    plan = tree.plan
    if not isinstance(plan, n.Aggregate) or plan.grouping_sets is not None:
        return None
    fields = plan.fields[: len(plan.groups)]
    if any(map(lacks_canonical_key, fields)) or extrema_of(tree) is not None:
        return None
    below = tree.inputs[0].tree
    plain = tuple(call for call in plan.aggregates if linear(call) is not None)
    presence = KeptGroups(below, plan.groups, plain, fields)
    calls = [_part(below, presence, call) for call in plan.aggregates]
    if None in calls:
        return None
    return Parts(presence, tuple(one for one in calls if one is not None))


def _part(
    below: Tree, presence: KeptGroups, call: e.AggregateCall
) -> tuple[Auxiliary, int | None] | None:
    if linear(call) is not None:
        return presence, presence.calls.index(call)
    if call.order_by or len(call.arguments) != 1:
        return None
    if call.filter is not None:
        if transform.has_subplan(call.filter):
            return None
        below = tree_of(n.Filter(below.plan, call.filter))
    name, (value,) = call.function.name, call.arguments
    if name in ("min", "max") and value.type.kind not in SQL_EQUAL_KINDS:
        rows = rows_by(_cut(below, (*presence.groups, value)), _columns((*presence.groups, value)))
        return None if rows is None else (rows, None)
    once = replace(call, distinct=False, filter=None)
    if (
        call.distinct
        and linear(once) is not None
        and not lacks_canonical_key(Field("", value.type))
    ):
        return _of_distinct(below, presence, once)
    return None


def _of_distinct(
    below: Tree, presence: KeptGroups, call: e.AggregateCall
) -> tuple[Auxiliary, int | None]:
    """An aggregate over the distinct values of a group: over a DISTINCT of group and value."""
    keys = (*presence.groups, call.arguments[0])
    fields = (*presence.fields, Field("value", call.arguments[0].type))
    plan = n.Aggregate(below.plan, keys, (), fields)
    passed = tuple(range(len(keys)))
    once = Recompute((Input(below, keys),), lambda new: replace(plan, input=new[0]), plan, passed)
    columns = _columns(keys)
    kept = KeptGroups(once, columns[:-1], (replace(call, arguments=columns[-1:]),), presence.fields)
    return kept, 0


def _cut(tree: Tree, columns: Expressions) -> Tree:
    """The tree with only these columns."""
    fields = tuple(Field(_name(one), one.type) for one in columns)
    return projected(tree, columns, fields)


def _columns(expressions: Expressions) -> Expressions:
    return tuple(e.Column(i, one.type, _name(one)) for i, one in enumerate(expressions))


def _name(expression: e.Expression) -> str:
    return expression.name if isinstance(expression, e.Column) else print_expression(expression)


def projected(tree: Tree, columns: Expressions, fields: Fields) -> Tree:
    plan = n.Project(tree.plan, columns, fields)
    return tree_of(plan) if isinstance(tree, Core) else Map(tree, plan)


# -- as they are stored ----------------------------------------------------------------------------


def stored_rows(kept: KeptRows) -> tuple[Tree, Fields]:
    """The tree of the stored rows: keys, columns, and the row's representation where equal rows may
    differ in it."""
    columns = columns_of(kept.tree.plan)
    values: list[e.Expression] = [key.expression for key in kept.keys]
    fields = [Field(f"key {i}", value.type) for i, value in enumerate(values)]
    values += columns
    fields += kept.tree.plan.fields
    if any(map(lacks_canonical_key, kept.tree.plan.fields)):
        values.append(e.Call(LOOKS, columns, TEXT))
        fields.append(Field("looks", TEXT))
    return projected(kept.tree, tuple(values), tuple(fields)), tuple(fields)
