"""Row values outside of comparisons: `count(DISTINCT (a, b))`, `to_json(t)`, `(record).name`.

Only functions return records. Where a row that is written or a whole row of a table is taken as
JSON, or only counted, the binder spells it out as a call over its items; everywhere else it is
refused by name.
"""

from __future__ import annotations

import functools
import operator
from typing import NamedTuple

from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.core.function import Function
from belvedere.plan.functions.nested.json_records import RECORD, ROW_KEY
from belvedere.plan.transform import walk_plan
from belvedere.sql.bind.binder import Env
from belvedere.sql.bind.expressions.coerce import EXPLICIT, coerce, default_to_text, make_call
from belvedere.sql.parse import tree as t
from belvedere.sql.parse.lexical.render import quote
from belvedere.types import OID, REGCLASS, TEXT, Kind, SqlType

JSON_TAKERS = frozenset(
    {"to_json", "row_to_json", "json_agg", "json_build_array", "json_object_agg"}
)
_OUTER = (n.JoinKind.LEFT, n.JoinKind.RIGHT, n.JoinKind.FULL)


class RecordItem(NamedTuple):
    name: str
    value: e.Expression


def bind_record_items(env: Env, tree: t.Expr) -> list[RecordItem] | None:
    """The items of a row value or of a whole-row reference; None for anything else."""
    if isinstance(tree, t.RowItems):
        values = [
            default_to_text(env.binder, env.binder.rules.expression(env, one)) for one in tree.items
        ]
        return [RecordItem(f"f{i}", value) for i, value in enumerate(values, 1)]
    if not isinstance(tree, t.Name) or len(tree.parts) != 1:
        return None
    alias = tree.parts[0]
    if any(one.name == alias for one in env.scope.relation.visible):
        return None
    source = env.scope.find_source((alias,))
    if source is None:
        return None
    _refuse_outer_join(env, tree)
    names = [name for name in source.names if name]
    return [
        RecordItem(name, env.scope.resolve_column(t.Name((alias, name), tree.at))) for name in names
    ]


def bind_table_oid(env: Env, tree: t.Name) -> e.Expression | None:
    """`t.tableoid`, the OID of the table; None: there is a column of that name, or no table. In a
    row that an outer join fills with NULLs it is NULL."""
    relation = env.scope.relation
    if len(tree.parts) > 1:
        source = env.scope.find_source(tree.parts[:-1])
    else:
        source = relation.sources[0] if len(relation.sources) == 1 else None
    if source is None or source.relation is None or tree.parts[-1] in source.names:
        return None
    name = e.Literal(".".join(map(quote, source.relation)), TEXT)
    oid = coerce(env.binder, coerce(env.binder, name, REGCLASS, EXPLICIT), OID)
    present = e.Column(source.start, relation.fields[source.start].type, tree.parts[-1])
    return e.Case(
        ((make_call(env.binder, "is not null", (present,), tree.at), oid),),
        e.Literal(None, OID),
        OID,
    )


def _refuse_outer_join(env: Env, tree: t.Name) -> None:
    """Refuse rows below an outer join: a missing row is NULL itself, not a row of NULLs."""
    for node in walk_plan(env.scope.relation.node):
        if isinstance(node, n.Join) and node.kind in _OUTER:
            raise Unsupported(
                "whole-row reference beside an outer join",
                position=tree.at + 1,
                name=tree.parts[0],
            )


def bind_argument(env: Env, function: str, tree: t.Expr) -> e.Expression:
    """An argument of a function that takes records."""
    if function != "count" and function not in JSON_TAKERS:
        return env.binder.rules.expression(env, tree)
    items = bind_record_items(env, tree)
    if items is None:
        found = env.binder.rules.expression(env, tree)
        if found.type.kind is Kind.RECORD and function != "count":
            raise Unsupported("record as JSON", position=tree.at + 1, hint="name its fields")
        return found
    if function == "count":
        return make_call(env.binder, ROW_KEY, tuple(item.value for item in items), tree.at)
    return make_json_record(env, items, tree.at)


def make_json_record(env: Env, items: list[RecordItem], at: int) -> e.Expression:
    given: list[e.Expression] = []
    for item in items:
        given += [e.Literal(item.name, TEXT), item.value]
    return make_call(env.binder, RECORD, tuple(given), at)


def select_field(record: e.Expression, name: str, at: int) -> e.Expression:
    """`(record).name`."""
    if record.type.kind is not Kind.RECORD:
        raise InvalidInput(
            "column notation applied to a type that is not composite",
            sqlstate="42809",
            position=at + 1,
            column=name,
            type=record.type,
        )
    for place, (known, sql_type) in enumerate(record.type.items):
        if known == name:
            return e.Call(_make_selector(record.type, place), (record,), sql_type)
    raise InvalidInput("column does not exist", sqlstate="42703", position=at + 1, column=name)


@functools.cache
def _make_selector(record: SqlType, place: int) -> Function:
    name, sql_type = record.items[place]
    return Function(f"field {name}", (record,), sql_type, operator.itemgetter(place))
