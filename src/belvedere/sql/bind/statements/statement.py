"""Binds any parsed statement to what the session executes."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from belvedere.catalog.catalog import Catalog
from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.core.function import Volatility
from belvedere.plan.transform import (
    own_expressions,
    rebuild_expressions,
    rebuild_inputs,
    rebuild_operands,
    walk_plan,
    with_subplan,
)
from belvedere.sql import definitions as d
from belvedere.sql import statements as s
from belvedere.sql.bind.binder import (
    Binder,
    BinderRules,
    Env,
    LiteralSource,
    VirtualTables,
    no_virtual_tables,
)
from belvedere.sql.bind.column_origins import find_column_origins
from belvedere.sql.bind.expressions.expression import bind_expression_tree
from belvedere.sql.bind.expressions.stored_expressions import (
    StoredExpressions,
    find_volatility,
    live_columns,
)
from belvedere.sql.bind.queries.query import bind_query
from belvedere.sql.bind.required_rights import RequiredRights
from belvedere.sql.bind.scope import EMPTY_RELATION, CteName, NameScope
from belvedere.sql.bind.statements.ddl import (
    bind_create_as,
    bind_definition,
    collect_relations,
)
from belvedere.sql.bind.statements.dml import Change, bind_change, find_target_table
from belvedere.sql.parse import statement_forms
from belvedere.sql.parse import tree as t
from belvedere.types import UNKNOWN, SqlType


def _bind_data_change(
    binder: Binder, tree: Change, parent: NameScope | None, ctes: dict[str, CteName]
) -> n.Node:
    return bind_change(binder, STORED_EXPRESSIONS, tree, parent, ctes)


RULES = BinderRules(bind_query, _bind_data_change, bind_expression_tree)
STORED_EXPRESSIONS = StoredExpressions(RULES)


def bind_statement(
    tree: statement_forms.Tree,
    catalog: Catalog,
    *,
    schema: str = "public",
    virtual: VirtualTables = no_virtual_tables,
    parameter_types: Sequence[SqlType | None] = (),
    zone: datetime.tzinfo = datetime.UTC,
    rights: RequiredRights | None = None,
    literals: dict[int, LiteralSource] | None = None,
) -> s.Statement:
    """The bound statement. `parameter_types` are those that are known; the others are inferred.
    `zone` is the session's; `rights` gets what the statement needs rights on, `literals` where the
    literals of the plan come from, by the id of each."""
    binder = Binder(catalog, RULES, schema, virtual, zone=zone, rights=rights)
    binder.literals = {} if literals is None else literals
    binder.parameters = [UNKNOWN if one is None else one for one in parameter_types]
    match tree:
        case t.QueryTree() | t.InsertTree() | t.UpdateTree() | t.DeleteTree():
            return _bind_data(binder, tree)
        case statement_forms.CreateAsForm():
            return bind_create_as(binder, tree)
        case statement_forms.ExplainForm():
            inner = bind_statement(
                tree.statement,
                catalog,
                schema=schema,
                virtual=virtual,
                parameter_types=parameter_types,
                zone=zone,
                rights=rights,
            )
            return s.Explain(inner, tree.source, tree.options)
        case statement_forms.DeclareForm():
            return _bind_declare(binder, tree)
        case statement_forms.ExecuteForm():
            return _bind_execute(binder, tree)
        case statement_forms.CopyForm():
            return _bind_copy(binder, tree)
        case _ if isinstance(tree, d.Definition):
            return bind_definition(catalog, STORED_EXPRESSIONS, schema, tree)
        case _:
            return tree


_VERBS: dict[type[object], str] = {
    t.QueryTree: "select",
    t.InsertTree: "insert",
    t.UpdateTree: "update",
    t.DeleteTree: "delete",
}


def _bind_data(binder: Binder, tree: t.DataStatement) -> s.DataPlan:
    if isinstance(tree, t.QueryTree):
        plan = bind_query(binder, tree, None, {}, False)
    else:
        plan = _bind_data_change(binder, tree, None, {})
    return make_data_plan(binder, _VERBS[type(tree)], plan)


def make_data_plan(binder: Binder, verb: str, plan: n.Node) -> s.DataPlan:
    parameters = binder.resolve_parameter_types()
    origins = find_column_origins(binder.catalog, plan, binder.view_nodes)
    if binder.has_untyped_parameters:
        plan = _set_parameter_types(plan, parameters)
    nodes = list(walk_plan(plan))
    kinds = (n.Insert, n.Update, n.Delete)
    return s.DataPlan(
        verb,
        plan,
        parameters,
        changes=any(isinstance(node, kinds) for node in nodes),
        returns=bool(plan.fields) or verb == "select",
        relations=collect_relations(plan),
        volatile=any(_is_volatile(node) for node in nodes),
        zone=binder.zone,
        origins=origins,
    )


def _is_volatile(node: n.Node) -> bool:
    """Whether the node's own expressions depend on more than their rows."""
    return any(find_volatility(one) is not Volatility.IMMUTABLE for one in own_expressions(node))


def _set_parameter_types(plan: n.Node, types: tuple[SqlType, ...]) -> n.Node:
    """The plan with types for parameters that were bound before their type was known."""

    def on_expression(one: e.Expression) -> e.Expression:
        if isinstance(one, e.Parameter) and one.type == UNKNOWN:
            return e.Parameter(one.index, types[one.index - 1])
        return with_subplan(rebuild_operands(one, on_expression), on_plan)

    def on_plan(node: n.Node) -> n.Node:
        return rebuild_inputs(rebuild_expressions(node, on_expression), on_plan)

    return on_plan(plan)


# -- EXECUTE and COPY ------------------------------------------------------------------------------


def _bind_declare(binder: Binder, tree: statement_forms.DeclareForm) -> s.DeclareCursor:
    query = _bind_data(binder, tree.query)
    if query.verb != "select" or query.changes:
        raise Unsupported("cursor of a statement that changes data")
    if any(isinstance(node, n.Lock) for node in walk_plan(query.plan)):
        raise Unsupported("cursor for update", hint="lock the rows by a statement of its own")
    return s.DeclareCursor(tree.name, query, tree.source, tree.scroll, tree.hold)


def _bind_execute(binder: Binder, tree: statement_forms.ExecuteForm) -> s.Execute:
    env = Env(binder, NameScope(EMPTY_RELATION, None, {}), "execute")
    arguments = tuple([bind_expression_tree(env, one) for one in tree.arguments])
    return s.Execute(tree.name, arguments, tuple(binder.parameters))


_FORMATS = ("text", "csv", "binary", "parquet")


def _bind_copy(binder: Binder, tree: statement_forms.CopyForm) -> s.Copy:
    options = dict(tree.options)
    if len(options) < len(tree.options):
        raise InvalidInput(
            "conflicting or redundant options", sqlstate="42601", position=tree.at + 1
        )
    form = options.pop("format", "text").lower()
    if form not in _FORMATS:
        raise InvalidInput(
            "copy format not recognized", sqlstate="22023", position=tree.at + 1, format=form
        )
    rest = tuple(options.items())
    if tree.direction == "from":
        return _bind_copy_from(binder, tree, form, rest)
    if tree.query is not None:
        found = _bind_data(binder, tree.query)
        if not found.returns:
            raise InvalidInput("copy query must have a returning clause", sqlstate="0A000")
        return s.Copy("to", tree.path, found.fields, found.plan, form, rest, found)
    assert tree.table is not None
    targets = tuple(t.SelectItem(t.Name((name,), at), None) for name, at in tree.columns)
    source = t.TableRef(tree.table, None, (), tree.at)
    star = (t.SelectItem(t.Star((), tree.at, tree.at), None),)
    select = t.Select(targets or star, tree.at, sources=(source,))
    whole = _bind_data(binder, t.QueryTree(select, tree.at))
    return s.Copy("to", tree.path, whole.fields, whole.plan, form, rest, whole)


def _bind_copy_from(
    binder: Binder, tree: statement_forms.CopyForm, form: str, rest: d.Options
) -> s.Copy:
    assert tree.table is not None
    table = find_target_table(binder, tree.table, tree.at)
    columns = tree.columns
    if not columns:
        shown = [c for c in live_columns(table) if not c.hidden and c.generated is None]
        columns = tuple((column.name, tree.at) for column in shown)
    row = tuple(t.ParameterRef(i + 1, tree.at) for i in range(len(columns)))
    query = t.QueryTree(t.ValuesList((row,), tree.at), tree.at)
    insert = t.InsertTree(tree.table, None, columns, query, "system", None, (), tree.at)
    plan = _bind_data_change(binder, insert, None, {})
    types = binder.resolve_parameter_types()
    fields = tuple(n.Field(name, type_) for (name, _), type_ in zip(columns, types))
    return s.Copy("from", tree.path, fields, plan, form, rest)


# -- what the catalog keeps ------------------------------------------------------------------------


def bind_expression_text(
    catalog: Catalog, text: str, fields: n.Fields, target: SqlType | None = None
) -> e.Expression:
    """A kept expression over a row of `fields`, cast to `target` as an assignment would."""
    return STORED_EXPRESSIONS.bind_expression(catalog, text, fields, target)
