"""Auxiliary views: state that is stored only to maintain other views.

Where an operator needs rows that no key or index of a table leads to, or a group's aggregates
without its rows, these are stored as hidden views of their own: linear state, immediate, maintained
and backfilled like any view, reference-counted by the views that use them, shared where one has all
that another view needs (`views.compile.auxiliary_containment`).

    `AuxiliaryRows`     rows of a tree in the order of some keys: a touched key is a range, the
                        first k rows are a scan of k, the least value of a group is one seek
    `AuxiliaryGroups`   groups of a tree with the amounts of linear aggregates: one get

    SELECT max(n) FROM (SELECT city, count(*) AS n FROM people GROUP BY city) q

    stores (city | rows, count) of people, and, ordered by it, the n of every city

The auxiliary views of a tree are a function of the tree alone (`find_required_auxiliaries`), in an
order in which each depends only on earlier ones, so the auxiliary views of a view have fixed
numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from belvedere.catalog.catalog import empty_catalog
from belvedere.execution.python.context import CompileContext
from belvedere.execution.run import Rows
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.expression_printer import print_expression
from belvedere.plan.fields import Field, Fields
from belvedere.plan.representation import (
    REPRESENTATION,
    SQL_EQUAL_KINDS,
    UNKEYED,
    lacks_canonical_key,
)
from belvedere.types import TEXT
from belvedere.views.delta.delta_tree import (
    Apply,
    DeltaTree,
    FullRecompute,
    LinearCore,
    Map,
    Recompute,
    RecomputeInput,
    Union,
    child_trees,
)
from belvedere.views.delta.linear_aggregates import AggregateGrouping, build_linear_aggregate
from belvedere.views.delta.linear_core import Expressions, unsupported_construct_error
from belvedere.views.delta.min_max import match_min_max_query
from belvedere.views.delta.normalize import output_columns
from belvedere.views.delta.plan_delta_tree import build_delta_tree
from belvedere.views.delta.sessionless_run import make_run_without_reader


@dataclass(frozen=True, slots=True)
class AuxiliaryRows:
    """An auxiliary view of a tree's rows under `keys`. `ordered`: the operator needs their order,
    not only the rows of some keys."""

    tree: DeltaTree
    keys: tuple[e.SortKey, ...]
    ordered: bool = False

    def has_same_definition(self, other: Auxiliary) -> bool:
        return (
            isinstance(other, AuxiliaryRows)
            and self.keys == other.keys
            and self.tree.plan == other.tree.plan
        )


@dataclass(frozen=True, slots=True)
class AuxiliaryGroups:
    """An auxiliary view of groups with linear aggregates. `fields` are those of the groups."""

    tree: DeltaTree
    groups: Expressions
    calls: tuple[e.AggregateCall, ...]
    fields: Fields

    def has_same_definition(self, other: Auxiliary) -> bool:
        return (
            isinstance(other, AuxiliaryGroups)
            and (self.groups, self.calls) == (other.groups, other.calls)
            and self.tree.plan == other.tree.plan
        )

    @property
    def aggregate_grouping(self) -> AggregateGrouping:
        keeps = [build_linear_aggregate(call) for call in self.calls]
        return AggregateGrouping(
            self.groups, self.calls, tuple(keep for keep in keeps if keep is not None)
        )


Auxiliary = AuxiliaryRows | AuxiliaryGroups


def find_required_auxiliaries(tree: DeltaTree) -> tuple[Auxiliary, ...]:
    """The auxiliary views that the maintenance of a tree requires, each once, after those that it
    depends on."""
    found: list[Auxiliary] = []
    _collect_auxiliaries(tree, found)
    return tuple(found)


def _collect_auxiliaries(tree: DeltaTree, found: list[Auxiliary]) -> None:
    """The tree of each auxiliary view is visited once: trees of views on views occur many times."""
    for one in _define_required_tree_auxiliaries(tree):
        at = next((i for i, known in enumerate(found) if one.has_same_definition(known)), None)
        if at is None:
            _collect_auxiliaries(one.tree, found)
            found.append(one)
        elif isinstance(one, AuxiliaryRows) and one.ordered:
            found[at] = one


def _define_required_tree_auxiliaries(tree: DeltaTree) -> Iterator[Auxiliary]:
    match tree:
        case LinearCore() | FullRecompute():
            return
        case Map() | Union():
            for child in child_trees(tree):
                yield from _define_required_tree_auxiliaries(child)
        case Apply():
            yield from _define_required_tree_auxiliaries(tree.left)
            for right in tree.rights:
                yield from _define_required_tree_auxiliaries(right.tree)
                yield from _define_required_lookup_auxiliary(right.tree, right.keys)
                yield from _define_required_lookup_auxiliary(tree.left, right.left_keys)
        case Recompute():
            for one in tree.inputs:
                yield from _define_required_tree_auxiliaries(one.tree)
            yield from _define_required_recompute_auxiliaries(tree)


def _define_required_recompute_auxiliaries(tree: Recompute) -> Iterator[Auxiliary]:
    top = define_limit_auxiliary(tree)
    if top is not None:
        yield top
    elif isinstance(tree.plan, n.SetOperation):
        yield from define_set_operation_auxiliaries(tree)
    else:
        parts = define_aggregate_auxiliaries(tree)
        if parts is None:
            yield from _define_required_lookup_auxiliary(tree.inputs[0].tree, tree.inputs[0].keys)
        else:
            yield from parts.all_auxiliaries


def _define_required_lookup_auxiliary(tree: DeltaTree, keys: Expressions) -> Iterator[Auxiliary]:
    if keys and needs_full_scan_for_keys(tree, keys):
        kept = define_auxiliary_rows_by_keys(tree, keys)
        if kept is not None:
            yield kept


def define_auxiliary_rows_by_keys(tree: DeltaTree, keys: Expressions) -> AuxiliaryRows | None:
    """The rows of a tree by these keys; None where a value has no encoding in keys."""
    return _define_auxiliary_rows(tree, tuple(map(e.SortKey, keys)))


def _define_auxiliary_rows(tree: DeltaTree, keys: tuple[e.SortKey, ...]) -> AuxiliaryRows | None:
    types = [field.type for field in tree.plan.fields] + [key.expression.type for key in keys]
    return None if any(type_.kind in UNKEYED for type_ in types) else AuxiliaryRows(tree, keys)


def needs_full_scan_for_keys(tree: DeltaTree, keys: Expressions) -> bool:
    """Whether rows with these keys can only be found by a full scan."""
    if not any(map(transform.columns_of, keys)):
        return False  # all rows have the same key
    match tree:
        case LinearCore():
            return not all(
                any(
                    isinstance(transform.substitute_columns(key, b.columns), e.Column)
                    for key in keys
                )
                for b in tree.branches
            )
        case FullRecompute():
            return True
        case Map(plan=n.Project(expressions=columns)):
            return needs_full_scan_for_keys(
                tree.input, tuple(transform.substitute_columns(key, columns) for key in keys)
            )
        case Map() | Union():
            return any(needs_full_scan_for_keys(child, keys) for child in child_trees(tree))
        case Apply():
            return _apply_needs_full_scan(tree, keys)
        case Recompute(plan=n.Aggregate(groups=(), grouping_sets=None)):
            return False  # it has one row
        case Recompute():
            shared = [
                k.index for k in keys if isinstance(k, e.Column) and k.index in tree.key_columns
            ]
            whole = len([k for k in keys if isinstance(k, e.Column)]) == len(keys)
            return (
                not shared
                or not whole
                or any(
                    needs_full_scan_for_keys(
                        one.tree, tuple(one.keys[tree.key_columns.index(c)] for c in shared)
                    )
                    for one in tree.inputs
                )
            )


def _apply_needs_full_scan(tree: Apply, keys: Expressions) -> bool:
    """Rows of an Apply are found by its left input, an inner join's also by its right one."""
    columns = [key.index for key in keys if isinstance(key, e.Column)]
    width = len(tree.left.plan.fields)
    plain = tree.join is not None or isinstance(tree.plan, n.Filter | n.Join)
    if len(columns) < len(keys) or not plain:
        return True
    if max(columns) < width:
        return needs_full_scan_for_keys(tree.left, keys)
    inner = tree.join is not None and tree.join.kind is n.JoinKind.INNER
    if not inner or min(columns) < width:
        return True
    fields = tree.rights[0].tree.plan.fields
    moved = tuple(e.Column(c - width, fields[c - width].type) for c in columns)
    return needs_full_scan_for_keys(tree.rights[0].tree, moved)


# -- order by .. limit -----------------------------------------------------------------------------


def define_limit_auxiliary(tree: Recompute) -> AuxiliaryRows | None:
    """The input of a LIMIT in the LIMIT's order."""
    plan = tree.plan
    if isinstance(plan, n.TopN):
        keys = plan.keys
    elif isinstance(plan, n.Limit) and isinstance(plan.input, n.Sort):
        keys = plan.input.keys
    else:
        return None
    kept = (
        _define_auxiliary_rows(tree.inputs[0].tree, keys)
        if compute_limit_row_count(plan) is not None
        else None
    )
    return None if kept is None else replace(kept, ordered=True)


def compute_limit_row_count(plan: n.Node) -> int | None:
    """How many rows a LIMIT reads, ties not counted; None: it has no known bound."""
    assert isinstance(plan, n.Limit | n.TopN)
    if plan.count is None:
        return None
    count = _evaluate_constant_integer(plan.count)
    skipped = None if plan.offset is None else _evaluate_constant_integer(plan.offset)
    return None if count is None else count + (skipped or 0)


def _evaluate_constant_integer(expression: e.Expression) -> int | None:
    """The value of an expression without columns."""
    context = CompileContext(empty_catalog(), _refuse_subquery)
    value = context.value_of(expression)(make_run_without_reader())(())
    return None if value is None else int(value)


def _refuse_subquery(node: n.Node) -> Rows:
    raise unsupported_construct_error("limit", "it is made by a sub-query")


# -- set operations --------------------------------------------------------------------------------


def define_set_operation_auxiliaries(tree: Recompute) -> tuple[AuxiliaryGroups, ...]:
    """The multiplicity of each row on either side of an INTERSECT or EXCEPT."""
    assert isinstance(tree.plan, n.SetOperation)
    if any(map(lacks_canonical_key, tree.plan.fields)):
        return ()
    return tuple(
        AuxiliaryGroups(one.tree, output_columns(one.tree.plan), (), one.tree.plan.fields)
        for one in tree.inputs
        if not any(map(lacks_canonical_key, one.tree.plan.fields))
    )


# -- aggregates ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AggregateAuxiliaries:
    """The auxiliary views that an aggregate is read from. For each call: (auxiliary view, number of
    the call in it), or for MIN and MAX (ordered rows, None). `presence` holds the groups that
    exist."""

    presence: AuxiliaryGroups
    calls: tuple[tuple[Auxiliary, int | None], ...]

    @property
    def all_auxiliaries(self) -> tuple[Auxiliary, ...]:
        return (self.presence, *(one for one, _ in self.calls))


def define_aggregate_auxiliaries(tree: Recompute) -> AggregateAuxiliaries | None:
    """The auxiliary views that an aggregate is assembled from; None: it is computed from the rows
    of its groups."""
    plan = tree.plan
    if not isinstance(plan, n.Aggregate) or plan.grouping_sets is not None:
        return None
    fields = plan.fields[: len(plan.groups)]
    if any(map(lacks_canonical_key, fields)) or match_min_max_query(tree) is not None:
        return None
    below = tree.inputs[0].tree
    plain = tuple(call for call in plan.aggregates if build_linear_aggregate(call) is not None)
    presence = AuxiliaryGroups(below, plan.groups, plain, fields)
    calls = [_define_call_auxiliary(below, presence, call) for call in plan.aggregates]
    if None in calls:
        return None
    return AggregateAuxiliaries(presence, tuple(one for one in calls if one is not None))


def _define_call_auxiliary(
    below: DeltaTree, presence: AuxiliaryGroups, call: e.AggregateCall
) -> tuple[Auxiliary, int | None] | None:
    if build_linear_aggregate(call) is not None:
        return presence, presence.calls.index(call)
    if call.order_by or len(call.arguments) != 1:
        return None
    if call.filter is not None:
        if transform.has_subplan(call.filter):
            return None
        below = build_delta_tree(n.Filter(below.plan, call.filter))
    name, (value,) = call.function.name, call.arguments
    if name in ("min", "max") and value.type.kind not in SQL_EQUAL_KINDS:
        rows = define_auxiliary_rows_by_keys(
            _project_to_columns(below, (*presence.groups, value)),
            _make_numbered_columns((*presence.groups, value)),
        )
        return None if rows is None else (rows, None)
    once = replace(call, distinct=False, filter=None)
    if (
        call.distinct
        and build_linear_aggregate(once) is not None
        and not lacks_canonical_key(Field("", value.type))
    ):
        return _define_distinct_auxiliary(below, presence, once)
    return None


def _define_distinct_auxiliary(
    below: DeltaTree, presence: AuxiliaryGroups, call: e.AggregateCall
) -> tuple[Auxiliary, int | None]:
    """An aggregate over the distinct values of a group: over a DISTINCT of group and value."""
    keys = (*presence.groups, call.arguments[0])
    fields = (*presence.fields, Field("value", call.arguments[0].type))
    plan = n.Aggregate(below.plan, keys, (), fields)
    passed = tuple(range(len(keys)))
    once = Recompute(
        (RecomputeInput(below, keys),), lambda new: replace(plan, input=new[0]), plan, passed
    )
    columns = _make_numbered_columns(keys)
    kept = AuxiliaryGroups(
        once, columns[:-1], (replace(call, arguments=columns[-1:]),), presence.fields
    )
    return kept, 0


def _project_to_columns(tree: DeltaTree, columns: Expressions) -> DeltaTree:
    """The tree with only these columns."""
    fields = tuple(Field(_make_expression_name(one), one.type) for one in columns)
    return build_projected_tree(tree, columns, fields)


def _make_numbered_columns(expressions: Expressions) -> Expressions:
    return tuple(
        e.Column(i, one.type, _make_expression_name(one)) for i, one in enumerate(expressions)
    )


def _make_expression_name(expression: e.Expression) -> str:
    return expression.name if isinstance(expression, e.Column) else print_expression(expression)


def build_projected_tree(tree: DeltaTree, columns: Expressions, fields: Fields) -> DeltaTree:
    plan = n.Project(tree.plan, columns, fields)
    return build_delta_tree(plan) if isinstance(tree, LinearCore) else Map(tree, plan)


# -- as they are stored ----------------------------------------------------------------------------


def build_auxiliary_rows_tree(kept: AuxiliaryRows) -> tuple[DeltaTree, Fields]:
    """The tree of the stored rows: keys, columns, and the row's representation where equal rows may
    differ in it."""
    columns = output_columns(kept.tree.plan)
    values: list[e.Expression] = [key.expression for key in kept.keys]
    fields = [Field(f"key {i}", value.type) for i, value in enumerate(values)]
    values += columns
    fields += kept.tree.plan.fields
    if any(map(lacks_canonical_key, kept.tree.plan.fields)):
        values.append(e.Call(REPRESENTATION, columns, TEXT))
        fields.append(Field("looks", TEXT))
    return build_projected_tree(kept.tree, tuple(values), tuple(fields)), tuple(fields)
