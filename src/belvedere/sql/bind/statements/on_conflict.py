"""Binds ON CONFLICT: which unique index arbitrates, and what happens to the existing row."""

from __future__ import annotations

from belvedere.catalog.model import Index, ObjectState, Table
from belvedere.errors import InvalidInput
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.transform import conjuncts
from belvedere.sql.bind.binder import Binder, Env
from belvedere.sql.bind.expressions.coerce import require_boolean
from belvedere.sql.bind.expressions.stored_expressions import StoredExpressions, live_columns
from belvedere.sql.bind.scope import CteName, FromRelation, FromSource, NameScope
from belvedere.sql.bind.statements.assignments import (
    bind_set_clauses,
    coerce_to_column,
    note_updated_columns,
)
from belvedere.sql.parse import tree as t

_UNREADY_HINT = "wait: an index serves on conflict when it is filled"


def bind_conflict(
    binder: Binder,
    texts: StoredExpressions,
    table: Table,
    relation: FromRelation,
    tree: t.ConflictTree,
    ctes: dict[str, CteName],
) -> n.OnConflict:
    target, primary = _find_arbiter(binder, texts, table, relation, tree, ctes)
    if tree.updates is None:
        return n.OnConflict(target, primary)
    if not primary and target is None:
        raise InvalidInput(
            "on conflict do update requires inference specification or constraint name",
            sqlstate="42601",
            position=tree.at + 1,
        )
    env = Env(binder, NameScope(_join_excluded_row(relation), None, ctes), "on conflict")
    live = live_columns(table)

    def assign_value(value: e.Expression, ordinal: int, at: int) -> e.Expression:
        column = live[ordinal]
        return coerce_to_column(binder, value, column.type, column.name, at)

    sets = bind_set_clauses(env, texts, table, tree.updates, assign_value)
    note_updated_columns(binder, table, sets)
    where = None
    if tree.where is not None:
        where = require_boolean(
            binder, binder.rules.expression(env, tree.where), "where", tree.where.at
        )
    return n.OnConflict(target, primary, sets, where)


def _join_excluded_row(relation: FromRelation) -> FromRelation:
    """The existing row, then the proposed row, which must be called `excluded`."""
    source = relation.sources[0]
    width = len(relation.node.fields)
    excluded = FromSource("excluded", None, source.names, width)
    node = n.Join(n.JoinKind.INNER, relation.node, relation.node)
    return FromRelation(node, (source, excluded), relation.visible)


def _find_arbiter(
    binder: Binder,
    texts: StoredExpressions,
    table: Table,
    relation: FromRelation,
    tree: t.ConflictTree,
    ctes: dict[str, CteName],
) -> tuple[int | None, bool]:
    """(index id, is primary key); (None, False) is any conflict at all."""
    if tree.constraint is not None:
        return _find_arbiter_by_name(binder, table, tree)
    if not tree.targets:
        return None, False
    env = Env(binder, NameScope(relation, None, ctes), "on conflict")
    wanted = {binder.rules.expression(env, one) for one in tree.targets}
    key = {
        e.Column(i, column.type, column.name)
        for i, column in enumerate(live_columns(table))
        if column.slot in table.primary_key
    }
    if wanted == key and table.primary_key_name:
        return None, True
    condition = None
    if tree.target_where is not None:
        condition = binder.rules.expression(env, tree.target_where)
    matching = [
        index
        for index in binder.catalog.table_indexes(table.id)
        if _matches_target(binder, texts, table, index, wanted, condition)
    ]
    for index in matching:
        if index.state is ObjectState.READY:
            return index.id, False
    raise _no_arbiter_error(tree, unready=bool(matching))


def _no_arbiter_error(tree: t.ConflictTree, *, unready: bool) -> InvalidInput:
    return InvalidInput(
        "there is no unique constraint matching the on conflict specification",
        sqlstate="42P10",
        position=tree.at + 1,
        hint=_UNREADY_HINT if unready else None,
    )


def _matches_target(
    binder: Binder,
    texts: StoredExpressions,
    table: Table,
    index: Index,
    wanted: set[e.Expression],
    condition: e.Expression | None,
) -> bool:
    if not index.unique or index.state is ObjectState.DROPPED:
        return False
    parts = {texts.bind_key_part(binder.catalog, table, part) for part in index.parts}
    if parts != wanted:
        return False
    predicate = texts.bind_predicate(binder.catalog, table, index)
    return set(conjuncts(predicate)) <= set(conjuncts(condition))


def _find_arbiter_by_name(
    binder: Binder, table: Table, tree: t.ConflictTree
) -> tuple[int | None, bool]:
    if tree.constraint == table.primary_key_name:
        return None, True
    for index in binder.catalog.table_indexes(table.id):
        if index.name == tree.constraint and index.unique:
            if index.state is not ObjectState.READY:
                raise _no_arbiter_error(tree, unready=True)
            return index.id, False
    raise InvalidInput(
        "constraint does not exist", sqlstate="42704", position=tree.at + 1, name=tree.constraint
    )
