"""Binds queries: WITH, set operations, VALUES, ORDER BY, LIMIT around the bodies."""

from __future__ import annotations

from dataclasses import replace

from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.core.overloads import common_type
from belvedere.plan.transform import walk_plan
from belvedere.sql.bind.binder import Binder, Env
from belvedere.sql.bind.expressions.calls import make_sort_key
from belvedere.sql.bind.expressions.coerce import ASSIGNMENT, IMPLICIT, coerce, unify_types
from belvedere.sql.bind.queries.select import bind_select
from belvedere.sql.bind.queries.with_clause import bind_ctes, wrap_with_ctes
from belvedere.sql.bind.scope import EMPTY_RELATION, CteName, NameScope, make_source_relation
from belvedere.sql.parse import tree as t
from belvedere.types import BIGINT, UNCOMPARED_KINDS, UNKNOWN, Kind, SqlType


def bind_query(
    binder: Binder,
    tree: t.QueryTree,
    parent: NameScope | None,
    ctes: dict[str, CteName],
    keep_unknown: bool,
) -> n.Node:
    """The plan of a query, its columns exactly those it shows.

    `keep_unknown` leaves untyped literals untyped, for INSERT and set operations to settle.
    """
    bound, names = bind_ctes(binder, tree.ctes, tree.recursive, parent, ctes)
    node, shown = _bind_ordered_body(binder, tree, parent, names, keep_unknown)
    made = _bind_limit(binder, node, tree, parent, names)
    if len(made.fields) > shown:
        fields = made.fields[:shown]
        columns = tuple(e.Column(i, field.type, field.name) for i, field in enumerate(fields))
        made = n.Project(made, columns, fields)
    return wrap_with_ctes(bound, made)


def _bind_ordered_body(
    binder: Binder,
    tree: t.QueryTree,
    parent: NameScope | None,
    ctes: dict[str, CteName],
    keep_unknown: bool,
) -> tuple[n.Node, int]:
    """The body in its order; columns after the first so many are for the order or locks only."""
    body = tree.body
    if isinstance(body, t.Select):
        return bind_select(binder, body, parent, ctes, tree.order_by, tree.locks, keep_unknown)
    if tree.locks:
        raise Unsupported("locking of this query", position=tree.locks[0].at + 1)
    node = bind_body(binder, body, parent, ctes, keep_unknown and not tree.order_by)
    if tree.order_by:
        node = n.Sort(node, _bind_output_keys(binder, node, tree.order_by, parent, ctes))
    return node, len(node.fields)


def bind_body(
    binder: Binder,
    body: t.QueryBody,
    parent: NameScope | None,
    ctes: dict[str, CteName],
    keep_unknown: bool,
) -> n.Node:
    match body:
        case t.Select():
            query = t.QueryTree(body, body.at)
            return bind_query(binder, query, parent, ctes, keep_unknown)
        case t.QueryTree():
            return bind_query(binder, body, parent, ctes, keep_unknown)
        case t.ValuesList():
            return bind_values(binder, body, parent, ctes, keep_unknown)
        case t.SetOperationTree():
            return _bind_set_operation(binder, body, parent, ctes, keep_unknown)


def _bind_output_keys(
    binder: Binder,
    node: n.Node,
    order_by: tuple[t.OrderItem, ...],
    parent: NameScope | None,
    ctes: dict[str, CteName],
) -> tuple[e.SortKey, ...]:
    """ORDER BY of a set operation or VALUES: output columns by name or number only."""
    names = tuple(field.name for field in node.fields)
    scope = NameScope(make_source_relation(node, "", names), None, ctes)
    found = []
    for item in order_by:
        tree = item.expression
        if isinstance(tree, t.Constant) and tree.kind == "integer":
            place = int(str(tree.value))
            if not 1 <= place <= len(names):
                raise InvalidInput(
                    "order by position is not in select list",
                    sqlstate="42P10",
                    position=tree.at + 1,
                )
            field = node.fields[place - 1]
            expression: e.Expression = e.Column(place - 1, field.type, field.name)
        elif isinstance(tree, t.Name):
            expression = scope.resolve_column(tree)
        else:
            raise Unsupported(
                "order by of a set operation with an expression",
                position=tree.at + 1,
                hint="order by an output column, or put the query into from",
            )
        found.append(make_sort_key(expression, item, tree.at))
    return tuple(found)


# -- LIMIT -----------------------------------------------------------------------------------------


def _bind_limit(
    binder: Binder,
    node: n.Node,
    tree: t.QueryTree,
    parent: NameScope | None,
    ctes: dict[str, CteName],
) -> n.Node:
    if tree.limit is None and tree.offset is None:
        return node
    known = {field.name for part in walk_plan(node) for field in part.fields}
    count = _bind_row_count(binder, tree.limit, "limit", parent, ctes, known)
    offset = _bind_row_count(binder, tree.offset, "offset", parent, ctes, known)
    if tree.with_ties and not isinstance(node, n.Sort):
        raise Unsupported("with ties of this query", position=tree.at + 1)
    return n.Limit(node, count, offset, tree.with_ties)


def _bind_row_count(
    binder: Binder,
    tree: t.Expr | None,
    what: str,
    parent: NameScope | None,
    ctes: dict[str, CteName],
    known: set[str],
) -> e.Expression | None:
    if tree is None or (isinstance(tree, t.Constant) and tree.kind == "null"):
        return None
    env = Env(binder, NameScope(EMPTY_RELATION, parent, ctes), what)
    try:
        bound = binder.rules.expression(env, tree)
    except InvalidInput as error:
        if error.sqlstate != "42703" or error.facts.get("column") not in known:
            raise
        raise InvalidInput(
            f"argument of {what} must not contain variables",
            sqlstate="42P10",
            position=error.position,
        ) from None
    return coerce(binder, bound, BIGINT, ASSIGNMENT, tree.at)


# -- VALUES ----------------------------------------------------------------------------------------


def bind_values(
    binder: Binder,
    tree: t.ValuesList,
    parent: NameScope | None,
    ctes: dict[str, CteName],
    keep_unknown: bool,
) -> n.Node:
    env = Env(binder, NameScope(EMPTY_RELATION, parent, ctes), "values")
    width = len(tree.rows[0])
    rows = []
    for row in tree.rows:
        if len(row) != width:
            raise InvalidInput(
                "values lists must all be the same length", sqlstate="42601", position=tree.at + 1
            )
        rows.append([binder.rules.expression(env, one) for one in row])
    columns = [_unify_values_column(binder, rows, i, tree.at, keep_unknown) for i in range(width)]
    fields = tuple(n.Field(f"column{i + 1}", type_) for i, (type_, _) in enumerate(columns))
    made = tuple(zip(*(values for _, values in columns)))
    return n.Values(made, fields)


def _unify_values_column(
    binder: Binder, rows: list[list[e.Expression]], i: int, at: int, keep_unknown: bool
) -> tuple[SqlType, tuple[e.Expression, ...]]:
    column = [row[i] for row in rows]
    if keep_unknown and all(one.type.kind is Kind.UNKNOWN for one in column):
        return UNKNOWN, tuple(column)
    return unify_types(binder, column, "values", at)


# -- set operations --------------------------------------------------------------------------------


def _bind_set_operation(
    binder: Binder,
    tree: t.SetOperationTree,
    parent: NameScope | None,
    ctes: dict[str, CteName],
    keep_unknown: bool,
) -> n.Node:
    """Chains lean to the left and may be long, so they are walked, not descended."""
    chain: list[t.SetOperationTree] = []
    first: t.QueryBody = tree
    while isinstance(first, t.SetOperationTree):
        chain.append(first)
        first = first.left
    node = bind_body(binder, first, parent, ctes, True)
    for one in reversed(chain):
        right = bind_body(binder, one.right, parent, ctes, True)
        outermost = one is tree
        node = _combine_operands(binder, one, node, right, keep_unknown or not outermost)
    return node


def _combine_operands(
    binder: Binder, tree: t.SetOperationTree, left: n.Node, right: n.Node, keep_unknown: bool
) -> n.Node:
    if len(left.fields) != len(right.fields):
        raise InvalidInput(
            f"each {tree.kind} query must have the same number of columns",
            sqlstate="42601",
            position=tree.at + 1,
        )
    types = []
    for one, other in zip(left.fields, right.fields):
        common = common_type((one.type, other.type))
        if common is None:
            raise InvalidInput(
                f"{tree.kind} types cannot be matched",
                sqlstate="42804",
                position=tree.at + 1,
                types=f"{one.type}, {other.type}",
            )
        types.append(common)
        if common.kind in UNCOMPARED_KINDS and not (tree.all and tree.kind == "union"):
            raise InvalidInput("could not identify an equality operator", sqlstate="42883")
    left = coerce_columns(binder, left, types, tree.at)
    right = coerce_columns(binder, right, types, tree.at)
    return n.SetOperation(n.SetKind(tree.kind), tree.all, left, right)


def _settle_passed_columns(
    binder: Binder, node: n.Project, types: list[SqlType], at: int | None
) -> n.Project:
    """The projection with types for untyped columns that it only passes on, as above a sort by a
    column that is not shown."""
    wanted = {
        one.index: to
        for one, to in zip(node.expressions, types)
        if isinstance(one, e.Column) and one.type.kind is Kind.UNKNOWN
    }
    if not wanted:
        return node
    below = [wanted.get(i, field.type) for i, field in enumerate(node.input.fields)]
    settled = coerce_columns(binder, node.input, below, at)
    expressions = tuple(
        replace(one, type=wanted.get(one.index, one.type)) if isinstance(one, e.Column) else one
        for one in node.expressions
    )
    return replace(node, input=settled, expressions=expressions)


def coerce_columns(binder: Binder, node: n.Node, types: list[SqlType], at: int | None) -> n.Node:
    """The node with columns of these types; literals below a Project are read in place."""
    fields = node.fields
    if all(field.type == wanted for field, wanted in zip(fields, types)):
        return node
    made = tuple(n.Field(field.name, wanted) for field, wanted in zip(fields, types))
    if isinstance(node, n.Project):
        node = _settle_passed_columns(binder, node, types, at)
        inner = [coerce(binder, one, to, IMPLICIT, at) for one, to in zip(node.expressions, types)]
        return replace(node, expressions=tuple(inner), fields=made)
    if isinstance(node, n.Values):
        rows = tuple(
            tuple([coerce(binder, one, to, IMPLICIT, at) for one, to in zip(row, types)])
            for row in node.rows
        )
        return n.Values(rows, made)
    if isinstance(node, n.Sort | n.Limit | n.Distinct | n.Lock) and _has_unknown(node):
        return replace(node, input=coerce_columns(binder, node.input, types, at))
    if isinstance(node, n.With):
        return n.With(node.ctes, coerce_columns(binder, node.body, types, at))
    columns = [e.Column(i, field.type, field.name) for i, field in enumerate(fields)]
    casts = [coerce(binder, one, to, IMPLICIT, at) for one, to in zip(columns, types)]
    return n.Project(node, tuple(casts), made)


def _has_unknown(node: n.Node) -> bool:
    return any(field.type.kind is Kind.UNKNOWN for field in node.fields)
