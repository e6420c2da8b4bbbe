"""Binds SET clauses, of UPDATE and of ON CONFLICT DO UPDATE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from belvedere.catalog.model import CatalogColumn, Table
from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.transform import operands
from belvedere.sql.bind.binder import Binder, Env
from belvedere.sql.bind.expressions.coerce import ASSIGNMENT, coerce
from belvedere.sql.bind.expressions.stored_expressions import StoredExpressions, live_columns
from belvedere.sql.bind.expressions.subqueries import bind_subquery
from belvedere.sql.bind.scope import suggest_names
from belvedere.sql.parse import tree as t
from belvedere.types import SqlType
from belvedere.values.failures import add_column_to_error

Assign = Callable[[e.Expression, int, int], e.Expression]


def bind_set_clauses(
    env: Env, texts: StoredExpressions, table: Table, sets: tuple[t.SetClause, ...], assign: Assign
) -> tuple[n.Assignment, ...]:
    """The assignments of SET; values are cast by `assign(value, ordinal, at)`."""
    found: dict[int, n.Assignment] = {}
    live = live_columns(table)
    for clause in sets:
        ordinals = [find_column_ordinal(table, live, name, clause.at) for name in clause.columns]
        values = _bind_set_values(env, texts, table, clause, ordinals)
        for ordinal, value in zip(ordinals, values):
            if ordinal in found:
                raise InvalidInput(
                    "multiple assignments to same column",
                    sqlstate="42601",
                    position=clause.at + 1,
                    column=live[ordinal].name,
                )
            found[ordinal] = n.Assignment(ordinal, assign(value, ordinal, clause.value.at))
    return tuple(found.values())


def coerce_to_column(
    binder: Binder, value: e.Expression, target: SqlType, column: str, at: int
) -> e.Expression:
    """A value as a column stores it; the error of one that has no place there names the column."""
    try:
        assigned = coerce(binder, value, target, ASSIGNMENT, at)
    except InvalidInput as error:
        add_column_to_error(error, column)
        raise
    if not isinstance(assigned, e.Cast):
        return assigned
    cast = assigned.function.python
    assert callable(cast)

    def cast_for_column(value: Any) -> Any:
        try:
            return cast(value)
        except InvalidInput as error:
            add_column_to_error(error, column)
            raise

    return replace(assigned, function=replace(assigned.function, python=cast_for_column))


def note_updated_columns(
    binder: Binder, table: Table, assignments: tuple[n.Assignment, ...]
) -> None:
    """The statement needs the right to update these columns."""
    if binder.rights is not None:
        use = binder.rights.add_relation(table, "w")
        for one in assignments:
            use.mark_column(one.ordinal)


def note_default_sequences(binder: Binder, column: CatalogColumn, default: e.Expression) -> None:
    """A default that calls nextval needs the right to; an identity column does not."""
    if binder.rights is None or column.identity is not None:
        return
    if isinstance(default, e.SequenceCall):
        binder.rights.add_sequence(default.sequence, default.verb)
    for one in operands(default):
        note_default_sequences(binder, column, one)


def find_column_ordinal(table: Table, live: list[CatalogColumn], name: str, at: int) -> int:
    """The place of a column that a statement names, among those that are `live`."""
    for i, column in enumerate(live):
        if column.name == name and not column.hidden:
            return i
    raise InvalidInput(
        "column of relation does not exist",
        sqlstate="42703",
        position=at + 1,
        hint=suggest_names(name, (column.name for column in live if not column.hidden)),
        column=name,
        relation=table.name,
    )


def _bind_set_values(
    env: Env, texts: StoredExpressions, table: Table, clause: t.SetClause, ordinals: list[int]
) -> list[e.Expression]:
    value = clause.value
    if not clause.row:
        return [_bind_set_value(env, texts, table, ordinals[0], value)]
    if isinstance(value, t.ScalarQuery):
        return _bind_query_values(env, value, len(ordinals), clause.at)
    items = value.items if isinstance(value, t.RowItems) else (value,)
    if len(items) != len(ordinals):
        raise InvalidInput(
            "number of columns does not match number of values",
            sqlstate="42601",
            position=clause.at + 1,
        )
    return [_bind_set_value(env, texts, table, i, one) for i, one in zip(ordinals, items)]


def _bind_set_value(
    env: Env, texts: StoredExpressions, table: Table, ordinal: int, tree: t.Expr
) -> e.Expression:
    column = live_columns(table)[ordinal]
    if isinstance(tree, t.Default):
        if column.generated is not None:
            raise Unsupported("default of a generated column in set", position=tree.at + 1)
        default = texts.bind_default(env.binder.catalog, column)
        note_default_sequences(env.binder, column, default)
        return default
    if column.generated is not None or column.identity == "always":
        raise InvalidInput(
            "column can only be updated to default",
            sqlstate="428C9",
            position=tree.at + 1,
            column=column.name,
        )
    return env.binder.rules.expression(env, tree)


def _bind_query_values(env: Env, tree: t.ScalarQuery, count: int, at: int) -> list[e.Expression]:
    """`(a, b) = (SELECT ..)`: each column from the one row; NULLs when there is none."""
    plan = bind_subquery(env, tree.query)
    if len(plan.fields) != count:
        raise InvalidInput(
            "number of columns does not match number of values", sqlstate="42601", position=at + 1
        )
    found: list[e.Expression] = []
    for i, field in enumerate(plan.fields):
        one = n.Project(plan, (e.Column(i, field.type, field.name),), (field,))
        found.append(e.ScalarSubquery(one, field.type))
    return found
