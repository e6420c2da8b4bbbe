"""Binds select lists and RETURNING: stars expanded, columns named as PostgreSQL names them."""

from __future__ import annotations

import msgspec

from belvedere.errors import InvalidInput
from belvedere.plan import expressions as e
from belvedere.plan.functions.core.function import type_name
from belvedere.sql.bind.binder import Env
from belvedere.sql.bind.expressions.coerce import default_to_text
from belvedere.sql.bind.scope import VisibleColumn, suggest_names
from belvedere.sql.parse import tree as t
from belvedere.sql.parse.lexical.render import quote
from belvedere.types import Kind, SqlType


class OutputColumn(msgspec.Struct, frozen=True):
    name: str
    expression: e.Expression


def expand_targets(
    env: Env, targets: tuple[t.SelectItem, ...], keep_unknown: bool = False
) -> list[OutputColumn]:
    found: list[OutputColumn] = []
    for target in targets:
        tree = target.expression
        if isinstance(tree, t.Star):
            found += [OutputColumn(one.name, one.expression) for one in _expand_star(env, tree)]
            continue
        expression = env.binder.rules.expression(env, tree)
        if not keep_unknown:
            expression = default_to_text(env.binder, expression)
        found.append(OutputColumn(target.alias or target_name(tree, env), expression))
    return found


def _expand_star(env: Env, tree: t.Star) -> list[VisibleColumn]:
    relation = env.scope.relation
    if not tree.qualifier:
        if not relation.sources:
            raise InvalidInput(
                "select * with no tables specified is not valid",
                sqlstate="42601",
                position=tree.at + 1,
            )
        found = list(relation.visible)
        text = ", ".join(_spell_column(env, one) for one in found)
    else:
        found = _list_source_columns(env, tree)
        alias = ".".join(map(quote, tree.qualifier))
        text = ", ".join(f"{alias}.{quote(one.name)}" for one in found)
    for one in found:
        if isinstance(one.expression, e.Column):
            env.scope.places.setdefault(one.expression.index, tree.at)
        if relation.notes_columns:
            relation.note_columns(one.expression)
    env.binder.stars[tree.at] = (tree.end, text)
    return found


def _list_source_columns(env: Env, tree: t.Star) -> list[VisibleColumn]:
    scope = env.scope
    source = scope.find_source(tree.qualifier)
    if source is None:
        raise InvalidInput(
            "missing from-clause entry for table",
            sqlstate="42P01",
            position=tree.at + 1,
            hint=suggest_names(tree.qualifier[-1], (one.alias for one in scope.relation.sources)),
            table=".".join(tree.qualifier),
        )
    fields = scope.relation.node.fields
    return [
        VisibleColumn(name, e.Column(source.start + i, fields[source.start + i].type, name))
        for i, name in enumerate(source.names)
        if name
    ]


def _spell_column(env: Env, one: VisibleColumn) -> str:
    """A column of `*` with its table, so that it stays the same when tables get more columns."""
    if isinstance(one.expression, e.Column):
        for source in env.scope.relation.sources:
            place = one.expression.index - source.start
            if source.alias and 0 <= place < len(source.names):
                return f"{quote(source.alias)}.{quote(source.names[place])}"
    return quote(one.name)


# -- names -----------------------------------------------------------------------------------------


def target_name(tree: t.Expr, env: Env) -> str:
    return _derive_name(tree) or "?column?"


def _derive_name(tree: t.Expr) -> str:
    match tree:
        case t.Name():
            return tree.parts[-1]
        case t.FunctionCall():
            return tree.name[-1]
        case t.CastExpr():
            return _derive_name(tree.operand) or _type_label(tree.type)
        case t.CaseExpr():
            return (_derive_name(tree.default) if tree.default is not None else "") or "case"
        case t.ArrayItems() | t.ArrayQuery():
            return "array"
        case t.ExistsQuery():
            return "exists"
        case t.RowItems():
            return "row"
        case t.FieldOf():
            return tree.name
        case t.Subscript() | t.Slice() | t.Collate():
            return _derive_name(tree.operand)
        case t.ScalarQuery():
            return _query_name(tree.query)
        case _:
            return ""


def _type_label(type_: SqlType) -> str:
    if type_.element is not None:
        return _type_label(type_.element)
    return type_name(SqlType(type_.kind)) if type_.kind is not Kind.UNKNOWN else ""


def _query_name(query: t.QueryTree) -> str:
    body = query.body
    while isinstance(body, t.QueryTree | t.SetOperationTree):
        body = body.body if isinstance(body, t.QueryTree) else body.left
    if isinstance(body, t.Select) and body.targets:
        first = body.targets[0]
        return first.alias or _derive_name(first.expression)
    return "column1"
