"""Binds any parsed statement to what the session executes."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from belvedere.catalog.catalog import Catalog
from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.function import Volatility
from belvedere.plan.transform import (
    own_expressions,
    rebuild,
    rebuild_expressions,
    rebuild_inputs,
    walk,
    with_subplan,
)
from belvedere.sql import definitions as d
from belvedere.sql import statements as s
from belvedere.sql.bind.binder import Binder, Env, Rules, VirtualTables, no_virtual_tables
from belvedere.sql.bind.ddl import bind_definition, bind_query_form, relations_of
from belvedere.sql.bind.dml import Change, bind_change, target_table
from belvedere.sql.bind.expressions import bind
from belvedere.sql.bind.query import bind_query
from belvedere.sql.bind.scope import NOTHING, CteName, Scope
from belvedere.sql.bind.texts import Texts, live_columns, volatility
from belvedere.sql.parse import forms
from belvedere.sql.parse import tree as t
from belvedere.types import UNKNOWN, SqlType


def _change(binder: Binder, tree: Change, parent: Scope | None, ctes: dict[str, CteName]) -> n.Node:
    return bind_change(binder, TEXTS, tree, parent, ctes)


RULES = Rules(bind_query, _change, bind)
TEXTS = Texts(RULES)


def bind_statement(
    tree: forms.Tree,
    catalog: Catalog,
    *,
    schema: str = "public",
    virtual: VirtualTables = no_virtual_tables,
    parameter_types: Sequence[SqlType | None] = (),
    zone: datetime.tzinfo = datetime.UTC,
) -> s.Statement:
    """The bound statement. `parameter_types` are those that are known; the others are inferred.
    `zone` is the session's."""
    binder = Binder(catalog, RULES, schema, virtual, zone=zone)
    binder.parameters = [UNKNOWN if one is None else one for one in parameter_types]
    match tree:
        case t.Query() | t.InsertTree() | t.UpdateTree() | t.DeleteTree():
            return _data(binder, tree)
        case forms.QueryForm():
            return bind_query_form(binder, tree)
        case forms.ExplainForm():
            inner = bind_statement(
                tree.statement,
                catalog,
                schema=schema,
                virtual=virtual,
                parameter_types=parameter_types,
                zone=zone,
            )
            return s.Explain(inner, tree.source, tree.options)
        case forms.ExecuteForm():
            return _execute(binder, tree)
        case forms.CopyForm():
            return _copy(binder, tree)
        case _ if isinstance(tree, d.Definition):
            return bind_definition(catalog, TEXTS, schema, tree)
        case _:
            return tree


_VERBS: dict[type[object], str] = {
    t.Query: "select",
    t.InsertTree: "insert",
    t.UpdateTree: "update",
    t.DeleteTree: "delete",
}


def _data(binder: Binder, tree: t.DataStatement) -> s.DataPlan:
    if isinstance(tree, t.Query):
        plan = bind_query(binder, tree, None, {}, False)
    else:
        plan = _change(binder, tree, None, {})
    return data_plan(binder, _VERBS[type(tree)], plan)


def data_plan(binder: Binder, verb: str, plan: n.Node) -> s.DataPlan:
    parameters = binder.settled_parameters()
    if binder.late:
        plan = _with_parameter_types(plan, parameters)
    nodes = list(walk(plan))
    kinds = (n.Insert, n.Update, n.Delete)
    return s.DataPlan(
        verb,
        plan,
        parameters,
        changes=any(isinstance(node, kinds) for node in nodes),
        returns=bool(plan.fields) or verb == "select",
        relations=relations_of(plan),
        volatile=any(_is_volatile(node) for node in nodes),
        zone=binder.zone,
    )


def _is_volatile(node: n.Node) -> bool:
    """Whether the node's own expressions depend on more than their rows."""
    return any(volatility(one) is not Volatility.IMMUTABLE for one in own_expressions(node))


def _with_parameter_types(plan: n.Node, types: tuple[SqlType, ...]) -> n.Node:
    """The plan with types for parameters that were bound before their type was known."""

    def on_expression(one: e.Expression) -> e.Expression:
        if isinstance(one, e.Parameter) and one.type == UNKNOWN:
            return e.Parameter(one.index, types[one.index - 1])
        return with_subplan(rebuild(one, on_expression), on_plan)

    def on_plan(node: n.Node) -> n.Node:
        return rebuild_inputs(rebuild_expressions(node, on_expression), on_plan)

    return on_plan(plan)


# -- EXECUTE and COPY ------------------------------------------------------------------------------


def _execute(binder: Binder, tree: forms.ExecuteForm) -> s.Execute:
    env = Env(binder, Scope(NOTHING, None, {}), "execute")
    arguments = tuple([bind(env, one) for one in tree.arguments])
    return s.Execute(tree.name, arguments, tuple(binder.parameters))


_FORMATS = ("text", "csv", "parquet")


def _copy(binder: Binder, tree: forms.CopyForm) -> s.Copy:
    options = dict(tree.options)
    form = options.pop("format", "text").lower()
    if form == "binary":
        raise Unsupported("copy format", position=tree.at + 1, format=form)
    if form not in _FORMATS:
        raise InvalidInput(
            "copy format not recognized", sqlstate="22023", position=tree.at + 1, format=form
        )
    rest = tuple(options.items())
    if tree.direction == "from":
        return _copy_from(binder, tree, form, rest)
    if tree.query is not None:
        found = _data(binder, tree.query)
        if not found.returns:
            raise InvalidInput("copy query must have a returning clause", sqlstate="0A000")
        return s.Copy("to", tree.path, found.fields, found.plan, form, rest)
    assert tree.table is not None
    targets = tuple(t.Target(t.Name((name,), at), None) for name, at in tree.columns)
    source = t.TableRef(tree.table, None, (), tree.at)
    star = (t.Target(t.Star((), tree.at, tree.at), None),)
    select = t.Select(targets or star, tree.at, sources=(source,))
    plan = bind_query(binder, t.Query(select, tree.at), None, {}, False)
    return s.Copy("to", tree.path, plan.fields, plan, form, rest)


def _copy_from(binder: Binder, tree: forms.CopyForm, form: str, rest: d.Options) -> s.Copy:
    assert tree.table is not None
    table = target_table(binder, tree.table, tree.at)
    columns = tree.columns
    if not columns:
        shown = [c for c in live_columns(table) if not c.hidden and c.generated is None]
        columns = tuple((column.name, tree.at) for column in shown)
    row = tuple(t.ParameterRef(i + 1, tree.at) for i in range(len(columns)))
    query = t.Query(t.ValuesList((row,), tree.at), tree.at)
    insert = t.InsertTree(tree.table, None, columns, query, "system", None, (), tree.at)
    plan = _change(binder, insert, None, {})
    types = binder.settled_parameters()
    fields = tuple(n.Field(name, type_) for (name, _), type_ in zip(columns, types))
    return s.Copy("from", tree.path, fields, plan, form, rest)


# -- what the catalog keeps ------------------------------------------------------------------------


def bind_expression(
    catalog: Catalog, text: str, fields: n.Fields, target: SqlType | None = None
) -> e.Expression:
    """A kept expression over a row of `fields`, cast to `target` as an assignment would."""
    return TEXTS.expression(catalog, text, fields, target)
