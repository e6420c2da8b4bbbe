"""Normalization of a view's plan: an equivalent plan of only those forms that
`views.delta.delta_tree` knows.

- a WITH query is inlined wherever it is read;
- GROUPING SETS, CUBE and ROLLUP are UNION ALL of one aggregate for each set;
- UNION is DISTINCT over UNION ALL; DISTINCT is GROUP BY all columns;
- a right join is a left join with its sides exchanged; a full join is a left join and the rows of
  the right side that have no match;
- `x NOT IN (..)` over values that may be NULL is anti joins: of the rows with an x those without a
  match, as long as no value is NULL; of those without an x all, as long as there are no values;
- equalities between the two sides of a join are its keys;
- sums of floats are exact;
- sub-queries stand in Filter and Project only: an Aggregate or Window gets them as columns of a
  projection below it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.fields import Field, Fields
from belvedere.sql.rules.access.key_values import INTEGERS
from belvedere.sql.rules.equality import make_equality
from belvedere.views.delta.linear_aggregates import to_exact_sum_function
from belvedere.views.delta.linear_core import Expressions, unsupported_construct_error


def normalize_plan(plan: n.Node) -> n.Node:
    if any(isinstance(node, n.With) for node in transform.walk_plan(plan)):
        plan = _inline_ctes(plan, {}, 0)
    return _normalize_operators(plan)


# -- WITH ------------------------------------------------------------------------------------------

Ctes = dict[int, tuple[n.Node, int]]
"""Plans of CTEs, and the nesting level at which each was defined."""


def _inline_ctes(node: n.Node, ctes: Ctes, level: int) -> n.Node:
    if isinstance(node, n.With):
        known = dict(ctes)
        for cte in node.ctes:
            known[cte.number] = (_inline_ctes(cte.plan, known, level), level)
        return _inline_ctes(node.body, known, level)
    if isinstance(node, n.CteScan) and node.cte in ctes:
        plan, defined = ctes[node.cte]
        return _project_to_renamed_fields(transform.lift_plan(plan, level - defined), node.fields)

    def rewrite_expression(one: e.Expression) -> e.Expression:
        new = transform.rebuild_operands(one, rewrite_expression)
        return transform.with_subplan(new, lambda inner: _inline_ctes(inner, ctes, level + 1))

    new = transform.rebuild_expressions(node, rewrite_expression)
    if isinstance(new, n.Join) and new.lateral:
        left, right = _inline_ctes(new.left, ctes, level), _inline_ctes(new.right, ctes, level + 1)
        return replace(new, left=left, right=right)
    return transform.rebuild_inputs(new, lambda inner: _inline_ctes(inner, ctes, level))


def _project_to_renamed_fields(plan: n.Node, fields: Fields) -> n.Node:
    return plan if plan.fields == fields else n.Project(plan, output_columns(plan), fields)


# -- operators -------------------------------------------------------------------------------------


def output_columns(node: n.Node) -> tuple[e.Column, ...]:
    return tuple(e.Column(i, f.type, f.name) for i, f in enumerate(node.fields))


_NORMALIZED = (n.Filter, n.Join, n.SetOperation, n.Distinct, n.Aggregate, n.Window)


def _normalize_operators(plan: n.Node) -> n.Node:
    return transform.rewrite_nodes(plan, _NORMALIZED, _normalize_node)


def _normalize_node(node: n.Node) -> n.Node:
    """A node whose inputs are normalized."""
    match node:
        case n.Filter():
            return _rewrite_not_in_as_anti_joins(node) or node
        case n.Join():
            return _normalize_join(node)
        case n.SetOperation(kind=n.SetKind.UNION, all=False):
            return _distinct_to_aggregate(replace(node, all=True))
        case n.Distinct(on=None):
            return _distinct_to_aggregate(node.input)
        case n.Aggregate(grouping_sets=sets) if sets is not None:
            return _normalize_operators(_expand_grouping_sets(node))
        case n.Aggregate():
            calls = tuple(map(_use_exact_sum, node.aggregates))
            return _project_subqueries_below(replace(node, aggregates=calls))
        case n.Window():
            return _project_subqueries_below(
                replace(node, calls=tuple(map(_use_exact_sum, node.calls)))
            )
        case n.Distinct():
            return _project_subqueries_below(node)
        case _:
            return node


Call = TypeVar("Call", e.AggregateCall, e.WindowCall)


def _use_exact_sum(call: Call) -> Call:
    argument = call.arguments[0].type if call.arguments else None
    return replace(call, function=to_exact_sum_function(call.function, argument))


def _distinct_to_aggregate(node: n.Node) -> n.Node:
    if isinstance(node, n.Sort):
        node = node.input
    return n.Aggregate(node, output_columns(node), (), node.fields)


def _rewrite_not_in_as_anti_joins(node: n.Filter) -> n.Node | None:
    """A filter by NOT IN of an uncorrelated sub-query, as anti joins."""
    parts = transform.conjuncts(node.condition)
    for one in parts:
        if isinstance(one, e.QuantifiedSubquery) and _is_uncorrelated_not_in(one):
            rest = transform.conjunction([other for other in parts if other is not one])
            left = node.input if rest is None else _normalize_node(n.Filter(node.input, rest))
            right = _normalize_operators(one.plan)
            return _build_null_aware_anti_join(left, one.operands[0], right)
    return None


def _is_uncorrelated_not_in(one: e.QuantifiedSubquery) -> bool:
    plain = one.quantifier is e.Quantifier.ALL and [f.name for f in one.operators] == ["<>"]
    if not plain or len(one.plan.fields) != 1 or transform.has_subplan(one.operands[0]):
        return False
    same = one.operands[0].type.kind is one.plan.fields[0].type.kind
    return same and not transform.outer_references(one.plan)


def _build_null_aware_anti_join(left: n.Node, value: e.Expression, right: n.Node) -> n.Node:
    while isinstance(right, n.Sort):
        right = right.input
    (there,) = output_columns(right)
    other = e.Column(len(left.fields), there.type, there.name)
    known = n.Filter(left, e.Test(value, e.Truth.NULL, negated=True))
    lonely = with_equalities_as_join_keys(
        n.Join(n.JoinKind.ANTI, known, right, residual=make_equality(value, other, False))
    )
    nulls = n.Filter(right, e.Test(there, e.Truth.NULL))
    found = n.JoinKey(e.Literal(None, there.type), there, null_safe=True)
    sure = n.Join(n.JoinKind.ANTI, lonely, nulls, (found,), method=n.JoinMethod.HASH)
    unknown = n.Filter(left, e.Test(value, e.Truth.NULL))
    alone = n.Join(n.JoinKind.ANTI, unknown, right)
    return n.SetOperation(n.SetKind.UNION, True, sure, alone)


def _expand_grouping_sets(node: n.Aggregate) -> n.Node:
    """UNION ALL of one aggregate for each grouping set."""
    assert node.grouping_sets is not None
    parts = [_build_grouping_set_aggregate(node, frozenset(one)) for one in node.grouping_sets]
    made = parts[0]
    for other in parts[1:]:
        made = n.SetOperation(n.SetKind.UNION, True, made, other)
    return made


def _build_grouping_set_aggregate(node: n.Aggregate, chosen: frozenset[int]) -> n.Node:
    """The rows of one grouping set, with the columns of the original aggregate."""
    groups, calls, width = sorted(chosen), len(node.aggregates), len(node.groups)
    fields = [node.fields[i] for i in groups] + list(node.fields[width : width + calls])
    keys = tuple(node.groups[i] for i in groups)
    part = n.Aggregate(node.input, keys, node.aggregates, tuple(fields))
    columns = output_columns(part)
    values: list[e.Expression] = [
        columns[groups.index(i)] if i in chosen else e.Literal(None, node.groups[i].type)
        for i in range(width)
    ]
    values += columns[len(groups) :]
    for arguments in node.groupings:
        bits = 0
        for argument in arguments:
            bits = bits * 2 + (argument not in chosen)
        values.append(e.Literal(bits, node.fields[len(values)].type))
    return n.Project(part, tuple(values), node.fields)


def _normalize_join(node: n.Join) -> n.Node:
    if node.lateral and not any(d == 1 for d, _ in transform.outer_references(node.right)):
        node = replace(node, right=transform.lift_plan(node.right, -1), lateral=False)
    if node.lateral:
        return node
    match node.kind:
        case n.JoinKind.RIGHT:
            return _right_to_left_join(node)
        case n.JoinKind.FULL:
            return _full_join_to_union(node)
        case n.JoinKind.INNER:
            return _move_subqueries_above_join(node)
        case _:
            return with_equalities_as_join_keys(node)


def _move_subqueries_above_join(node: n.Join) -> n.Node:
    """Sub-queries in ON are conditions on the joined row."""
    parts = transform.conjuncts(node.residual)
    later = [one for one in parts if transform.has_subplan(one)]
    rest = transform.conjunction([one for one in parts if one not in later])
    made = with_equalities_as_join_keys(replace(node, residual=rest))
    condition = transform.conjunction(later)
    return made if condition is None else n.Filter(made, condition)


def _right_to_left_join(node: n.Join) -> n.Node:
    """A right join as a left join, with its columns in the original order."""
    left, right = len(node.left.fields), len(node.right.fields)
    made = with_equalities_as_join_keys(_exchange_join_sides(node, n.JoinKind.LEFT))
    columns = output_columns(made)
    return n.Project(made, columns[right : right + left] + columns[:right], node.fields)


def _exchange_join_sides(node: n.Join, kind: n.JoinKind) -> n.Join:
    """The join with its sides exchanged."""
    left, right = len(node.left.fields), len(node.right.fields)

    def exchange_column(column: e.Column) -> e.Expression:
        at = column.index + right if column.index < left else column.index - left
        return e.Column(at, column.type, column.name)

    residual = (
        None if node.residual is None else transform.map_columns(node.residual, exchange_column)
    )
    keys = tuple(n.JoinKey(key.right, key.left, key.null_safe) for key in node.keys)
    return n.Join(kind, node.right, node.left, keys, residual)


def _full_join_to_union(node: n.Join) -> n.Node:
    lonely = with_equalities_as_join_keys(_exchange_join_sides(node, n.JoinKind.ANTI))
    padding = tuple(e.Literal(None, field.type) for field in node.left.fields)
    padded = n.Project(lonely, padding + output_columns(lonely), node.fields)
    return n.SetOperation(
        n.SetKind.UNION,
        True,
        with_equalities_as_join_keys(replace(node, kind=n.JoinKind.LEFT)),
        padded,
    )


def with_equalities_as_join_keys(node: n.Join) -> n.Join:
    """The join with the equalities of its residual as keys."""
    width = len(node.left.fields)
    inner = node.kind is n.JoinKind.INNER
    keys = [
        n.JoinKey(*make_comparable_keys(key.left, key.right, inner=inner), key.null_safe)
        for key in node.keys
    ]
    rest = []
    for condition in transform.conjuncts(node.residual):
        key = _match_join_key(condition, width)
        if key is None:
            rest.append(condition)
        else:
            keys.append(key)
    method = n.JoinMethod.HASH if keys else n.JoinMethod.LOOP
    return replace(node, keys=tuple(keys), residual=transform.conjunction(rest), method=method)


def _match_join_key(condition: e.Expression, width: int) -> n.JoinKey | None:
    for mine, other in match_equality_both_ways(condition):
        left, right = transform.columns_of(mine), transform.columns_of(other)
        if left and right and max(left) < width <= min(right):
            return n.JoinKey(
                mine, transform.map_columns(other, lambda c: _to_right_column(c, width))
            )
    return None


def _to_right_column(column: e.Column, width: int) -> e.Column:
    return e.Column(column.index - width, column.type, column.name)


def match_equality_both_ways(condition: e.Expression) -> list[tuple[e.Expression, e.Expression]]:
    """An equality of values of one kind, without sub-queries, as (left, right) and as (right,
    left); nothing for other conditions."""
    match condition:
        case e.Call(function, (left, right), _) if function.name == "=":
            plain = not transform.has_subplan(left) and not transform.has_subplan(right)
            if plain and left.type.kind is right.type.kind:
                left, right = make_comparable_keys(left, right)
                return [(left, right), (right, left)]
    return []


def make_comparable_keys(
    left: e.Expression, right: e.Expression, *, inner: bool = False
) -> tuple[e.Expression, e.Expression]:
    """The two sides of an equality as keys. A value of another scale or length may have no encoding
    in the keys of an index, so then neither side is a bare column that an index could serve. Of
    integers only `inner` joins may look up those of another width."""
    widths = inner and {left.type.kind, right.type.kind} <= INTEGERS
    if left.type == right.type or widths:
        return left, right
    return e.Coalesce((left,), left.type), e.Coalesce((right,), right.type)


# -- sub-queries -----------------------------------------------------------------------------------


def _project_subqueries_below(node: n.Aggregate | n.Window | n.Distinct) -> n.Node:
    """The node with its expressions that have sub-queries as columns of its input."""
    added: list[e.Expression] = []
    width = len(node.input.fields)

    def replace_by_column(expression: e.Expression) -> e.Expression:
        if not transform.has_subplan(expression):
            return expression
        if transform.has_outer_column(expression):
            raise unsupported_construct_error(
                "sub-query", "it depends on rows further out than the one around it"
            )
        added.append(expression)
        return e.Column(width + len(added) - 1, expression.type, "sub-query")

    if not any(map(transform.has_subplan, transform.own_expressions(node))):
        return node
    changed = transform.rebuild_expressions(node, replace_by_column)
    more = tuple(Field("sub-query", one.type) for one in added)
    columns: Expressions = (*output_columns(node.input), *added)
    made = transform.with_inputs(
        changed, (n.Project(node.input, columns, node.input.fields + more),)
    )
    if isinstance(node, n.Aggregate):
        return made
    kept = [c for c in output_columns(made) if not width <= c.index < width + len(added)]
    return n.Project(made, tuple(kept), node.fields)
