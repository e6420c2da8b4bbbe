"""Binds DDL: checks before the catalog is changed, and the queries of views and CREATE AS."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Table, View
from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan import nodes as n
from belvedere.plan.transform import columns_of, walk_plan
from belvedere.sql import definitions as d
from belvedere.sql.bind.binder import Binder
from belvedere.sql.bind.expressions.stored_expressions import (
    StoredExpressions,
    require_immutable,
    table_fields,
)
from belvedere.sql.bind.scope import suggest_names
from belvedere.sql.bind.statements.create_table_like import expand_likes
from belvedere.sql.parse.lexical.render import render_tokens
from belvedere.sql.parse.statement_forms import CreateAsForm
from belvedere.types import Kind
from belvedere.values.failures import name_column_in_errors

PUBLIC = "public"
QualifyName = Callable[[d.QualifiedName], d.QualifiedName]
"""A name with its schema."""


def bind_definition(
    catalog: Catalog, texts: StoredExpressions, schema: str, tree: d.Definition
) -> d.Definition:
    """The definition, its expressions checked, with what only binding can determine added."""
    tree = _qualify_definition(tree, schema)
    match tree:
        case d.CreateTable():
            return _check_create_table(catalog, texts, expand_likes(catalog, schema, tree))
        case d.CreateIndex():
            return _check_create_index(catalog, texts, schema, tree)
        case d.Alter() if tree.kind == "table":
            return _check_alter_table(catalog, texts, schema, tree)
        case _:
            return tree


def _qualify_definition(tree: d.Definition, schema: str) -> d.Definition:
    """The definition with its names in the current schema, where they say no other."""
    if schema == PUBLIC:
        return tree

    def qualify_name(name: d.QualifiedName) -> d.QualifiedName:
        return name if name.schema is not None else d.QualifiedName(schema, name.name)

    match tree:
        case d.Drop() | d.Alter() if tree.kind == "schema":
            return tree
        case d.CreateTable():
            constraints = tuple([_qualify_parent(one, qualify_name) for one in tree.constraints])
            return replace(tree, name=qualify_name(tree.name), constraints=constraints)
        case d.Alter():
            actions = tuple([_qualify_action(one, qualify_name) for one in tree.actions])
            return replace(tree, name=qualify_name(tree.name), actions=actions)
        case d.GrantPrivileges() if tree.kind in ("schema", "database") or tree.in_schemas:
            return tree
        case d.Drop() | d.Truncate() | d.GrantPrivileges():
            return replace(tree, names=tuple([qualify_name(one) for one in tree.names]))
        case d.CreateIndex():
            return replace(tree, table=qualify_name(tree.table))
        case d.CreateSequence() | d.AlterSequence() | d.MaintainView() | d.CreateForeignTable():
            return replace(tree, name=qualify_name(tree.name))
        case _:
            return tree


def _qualify_action(action: d.AlterAction, placed: QualifyName) -> d.AlterAction:
    match action:
        case d.AddColumn():
            made = tuple([_qualify_parent(one, placed) for one in action.constraints])
            return replace(action, constraints=made)
        case d.AddConstraint():
            return d.AddConstraint(_qualify_parent(action.constraint, placed))
        case _:
            return action


def _qualify_parent(constraint: d.Constraint, placed: QualifyName) -> d.Constraint:
    if isinstance(constraint, d.ForeignKeyClause):
        return replace(constraint, parent=placed(constraint.parent))
    return constraint


# -- CREATE TABLE ----------------------------------------------------------------------------------


def _check_create_table(
    catalog: Catalog, texts: StoredExpressions, tree: d.CreateTable
) -> d.CreateTable:
    names = [column.name for column in tree.columns]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InvalidInput("column specified more than once", sqlstate="42701", column=name)
    if sum(isinstance(one, d.PrimaryKeyClause) for one in tree.constraints) > 1:
        raise InvalidInput("multiple primary keys are not allowed", sqlstate="42P16")
    fields = tuple(n.Field(column.name, column.type) for column in tree.columns)
    for column in tree.columns:
        _check_column(catalog, texts, column, fields, tree.columns)
    constraints = tuple(
        [_check_constraint(catalog, texts, one, fields) for one in tree.constraints]
    )
    return replace(tree, constraints=constraints)


def _check_column(
    catalog: Catalog,
    texts: StoredExpressions,
    column: d.ColumnClause,
    fields: n.Fields,
    columns: Sequence[d.ColumnClause],
) -> None:
    if column.default is not None:
        with name_column_in_errors(column.name):
            texts.bind_expression(catalog, column.default, (), column.type)
    if column.identity is not None or column.serial:
        if column.type.kind not in (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT):
            raise InvalidInput(
                "identity column type must be smallint, integer, or bigint",
                sqlstate="22023",
                column=column.name,
            )
    if column.generated is None:
        return
    value = texts.bind_expression(catalog, column.generated, fields, column.type)
    require_immutable(value, "column generation expressions")
    generated = {one.name for one in columns if one.generated is not None}
    read = {fields[i].name for i in columns_of(value)}
    if read & generated:
        raise InvalidInput(
            "cannot use generated column in column generation expression",
            sqlstate="42P17",
            column=sorted(read & generated)[0],
        )


def _check_constraint(
    catalog: Catalog, texts: StoredExpressions, constraint: d.Constraint, fields: n.Fields
) -> d.Constraint:
    match constraint:
        case d.CheckClause():
            condition = texts.bind_condition(catalog, constraint.expression, fields)
            read = tuple(fields[i].name for i in sorted(columns_of(condition)))
            return replace(constraint, columns=read)
        case d.PrimaryKeyClause() | d.ForeignKeyClause():
            _require_columns(constraint.columns, fields)
        case d.UniqueClause():
            _require_columns(constraint.columns + constraint.include, fields)
    if len(set(constraint.columns)) < len(constraint.columns):
        raise InvalidInput("column appears twice in constraint", sqlstate="42701")
    return constraint


def _require_columns(names: Sequence[str], fields: n.Fields) -> None:
    known = [field.name for field in fields]
    for name in names:
        if name not in known:
            raise InvalidInput(
                "column named in key does not exist",
                sqlstate="42703",
                hint=suggest_names(name, known),
                column=name,
            )


# -- CREATE INDEX, ALTER TABLE ---------------------------------------------------------------------


def _find_table(catalog: Catalog, schema: str, name: d.QualifiedName) -> Table:
    return catalog.require_relation(Table, name.name, name.schema or schema)


def _check_create_index(
    catalog: Catalog, texts: StoredExpressions, schema: str, tree: d.CreateIndex
) -> d.CreateIndex:
    found = catalog.find_relation(tree.table.name, tree.table.schema or schema)
    if isinstance(found, View):
        fields = tuple(n.Field(column.name, column.type) for column in found.columns)
    else:
        fields = table_fields(_find_table(catalog, schema, tree.table))
    parts = []
    for part in tree.parts:
        if part.expression is None:
            _require_columns([part.column or ""], fields)
            parts.append(part)
            continue
        bound = texts.bind_expression(catalog, part.expression, fields)
        require_immutable(bound, "index expressions")
        parts.append(part._replace(type=bound.type))
    _require_columns(tree.include, fields)
    if tree.where is not None:
        require_immutable(texts.bind_condition(catalog, tree.where, fields), "index predicates")
    return replace(tree, parts=tuple(parts))


def _check_alter_table(
    catalog: Catalog, texts: StoredExpressions, schema: str, tree: d.Alter
) -> d.Alter:
    name = tree.name
    if tree.if_exists and catalog.find_relation(name.name, name.schema or schema) is None:
        return tree
    table = _find_table(catalog, schema, name)
    fields = list(table_fields(table))
    actions: list[d.AlterAction] = []
    for action in tree.actions:
        actions.append(_check_alter_action(catalog, texts, action, fields))
    return replace(tree, actions=tuple(actions))


def _check_alter_action(
    catalog: Catalog, texts: StoredExpressions, action: d.AlterAction, fields: list[n.Field]
) -> d.AlterAction:
    """Checks one action; columns it adds are seen by the actions after it."""
    match action:
        case d.AddColumn():
            column = action.column
            fields.append(n.Field(column.name, column.type))
            _check_column(catalog, texts, column, tuple(fields), (column,))
            checked = [
                _check_constraint(catalog, texts, x, tuple(fields)) for x in action.constraints
            ]
            return replace(action, constraints=tuple(checked))
        case d.AddConstraint():
            checked_one = _check_constraint(catalog, texts, action.constraint, tuple(fields))
            return d.AddConstraint(checked_one)
        case d.SetColumnDefault():
            _require_columns([action.name], tuple(fields))
            if action.default is not None:
                target = next(field.type for field in fields if field.name == action.name)
                with name_column_in_errors(action.name):
                    texts.bind_expression(catalog, action.default, (), target)
        case d.SetColumnType():
            _require_columns([action.name], tuple(fields))
            using = action.using or f'"{action.name.replace(chr(34), chr(34) * 2)}"'
            with name_column_in_errors(action.name):
                texts.bind_expression(catalog, using, tuple(fields), action.type)
        case d.SetColumnNotNull() | d.SetColumnIdentity() | d.DropColumnExpression():
            _require_columns([action.name], tuple(fields))
        case _:
            pass
    return action


# -- views and CREATE TABLE AS ---------------------------------------------------------------------


def bind_create_as(binder: Binder, tree: CreateAsForm) -> d.Definition:
    """The query bound, its columns named and typed, its text with every * spelled out."""
    if tree.name.schema is None and binder.schema != PUBLIC:
        tree = replace(tree, name=d.QualifiedName(binder.schema, tree.name.name))
    plan = binder.rules.query(binder, tree.query, None, {}, False)
    if binder.parameters:
        raise InvalidInput("there is no parameter in a definition", sqlstate="42P02")
    columns = _name_columns(plan, tree)
    if tree.kind == "table":
        made = tuple(d.ColumnClause(one.name, one.type) for one in columns)
        return d.CreateTableAs(
            tree.name, made, plan, tree.options, tree.if_not_exists, tree.with_data
        )
    text = render_tokens(tree.tokens, binder.stars)
    if tree.kind == "view":
        return d.CreateView(tree.name, columns, text, plan, tree.or_replace)
    return d.CreateMaterializedView(
        tree.name,
        columns,
        text,
        plan,
        collect_relations(plan),
        tree.options,
        tree.if_not_exists,
        tree.with_data,
        tree.or_replace,
        binder.catalog.version,
    )


def _name_columns(plan: n.Node, tree: CreateAsForm) -> tuple[d.ViewColumn, ...]:
    names = [field.name for field in plan.fields]
    if len(tree.columns) > len(names):
        raise InvalidInput("too many column names were specified", sqlstate="42601")
    names[: len(tree.columns)] = tree.columns
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InvalidInput("column specified more than once", sqlstate="42701", column=name)
        if plan.fields[i].type.kind is Kind.RECORD:
            raise Unsupported("column of records", hint="name its fields", column=name)
        if plan.fields[i].type.kind is Kind.ARRAY:
            raise Unsupported(
                "array column", hint="make it text, with array_to_string", column=name
            )
    return tuple(d.ViewColumn(name, field.type) for name, field in zip(names, plan.fields))


def collect_relations(plan: n.Node) -> tuple[int, ...]:
    """The stored relations a plan reads or writes, each once, smallest id first."""
    kinds = (n.Scan, n.State, n.Changes, n.Insert, n.Update, n.Delete)
    return tuple(sorted({node.relation for node in walk_plan(plan) if isinstance(node, kinds)}))
