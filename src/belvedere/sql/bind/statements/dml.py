"""Binds INSERT, UPDATE and DELETE to plans, together with the row rules of the table."""

from __future__ import annotations

from collections.abc import Callable

from belvedere.catalog.model import CatalogColumn, ForeignTable, PlainView, Table, View
from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.sql.bind.binder import Binder, Env
from belvedere.sql.bind.expressions.coerce import require_boolean
from belvedere.sql.bind.expressions.stored_expressions import (
    StoredExpressions,
    live_columns,
    table_fields,
)
from belvedere.sql.bind.queries.from_clause import (
    find_object,
    join_next_item,
    note_relation_use,
    split_name,
    unknown_table_error,
)
from belvedere.sql.bind.queries.query import coerce_columns
from belvedere.sql.bind.queries.select_list import expand_targets
from belvedere.sql.bind.queries.with_clause import bind_ctes, wrap_with_ctes
from belvedere.sql.bind.scope import CteName, FromRelation, NameScope, make_source_relation
from belvedere.sql.bind.statements.assignments import (
    bind_set_clauses,
    coerce_to_column,
    find_column_ordinal,
    note_default_sequences,
    note_updated_columns,
)
from belvedere.sql.bind.statements.on_conflict import bind_conflict
from belvedere.sql.parse import tree as t
from belvedere.types import Kind, SqlType

Change = t.InsertTree | t.UpdateTree | t.DeleteTree


def bind_change(
    binder: Binder,
    texts: StoredExpressions,
    tree: Change,
    parent: NameScope | None,
    ctes: dict[str, CteName],
) -> n.Node:
    bound, names = bind_ctes(binder, tree.ctes, tree.recursive, parent, ctes)
    node: n.Node
    match tree:
        case t.InsertTree():
            node = _InsertBinder(binder, texts, tree, parent, names).bind_insert()
        case t.UpdateTree():
            node = _bind_update(binder, texts, tree, parent, names)
        case t.DeleteTree():
            node = _bind_delete(binder, tree, parent, names)
    return wrap_with_ctes(bound, node)


def find_target_table(binder: Binder, name: tuple[str, ...], at: int) -> Table:
    schema, own = split_name(binder, name, at)
    if binder.virtual(schema, own) is not None:
        raise InvalidInput("cannot change a system table", sqlstate="42809", position=at + 1)
    found = find_object(binder, schema, own)
    if isinstance(found, Table):
        return found
    if isinstance(found, ForeignTable):
        raise Unsupported("change of a foreign table", position=at + 1, table=own)
    if isinstance(found, PlainView):
        raise Unsupported("change of a view", position=at + 1, hint="change its base table")
    if isinstance(found, View):
        raise InvalidInput(
            "cannot change materialized view", sqlstate="42809", position=at + 1, name=own
        )
    if found is None:
        raise unknown_table_error(binder.catalog, own, at)
    raise InvalidInput("not a table", sqlstate="42809", position=at + 1, name=own)


def make_target_relation(table: Table, alias: str | None, schema: str) -> FromRelation:
    """A scan of the table's full row, hidden columns included."""
    live = live_columns(table)
    fields = tuple([n.Field(column.name, column.type) for column in live])
    node = n.Scan(table.id, table.name, tuple([column.slot for column in live]), fields)
    names = tuple([field.name for field in table_fields(table)])
    return make_source_relation(node, alias or table.name, names, None if alias else schema, table)


# -- INSERT ----------------------------------------------------------------------------------------


class _InsertBinder:
    def __init__(
        self,
        binder: Binder,
        texts: StoredExpressions,
        tree: t.InsertTree,
        parent: NameScope | None,
        ctes: dict[str, CteName],
    ) -> None:
        self.binder = binder
        self.texts = texts
        self.tree = tree
        self.parent = parent
        self.ctes = ctes
        self.table = find_target_table(binder, tree.table, tree.at)
        self.live = live_columns(self.table)
        # What a row of the source must give: all but the row id and generated columns.
        self.ordinals = tuple(
            i for i, c in enumerate(self.live) if not c.hidden and c.generated is None
        )
        self.defaults: dict[int, e.Expression] = {}

    def bind_insert(self) -> n.Node:
        tree, table = self.tree, self.table
        relation = make_target_relation(table, tree.alias, self.binder.schema)
        relation = note_relation_use(self.binder, relation, table, "r", always=False)
        self.note_inserted_columns()
        source = self.bind_source()
        conflict = None
        if tree.conflict is not None:
            conflict = bind_conflict(
                self.binder, self.texts, table, relation, tree.conflict, self.ctes
            )
        rules = self.texts.bind_row_rules(self.binder.catalog, table, None)
        returning, fields = bind_returning(self.binder, relation, tree.returning, self.ctes)
        return n.Insert(
            table.id, table.name, source, self.ordinals, rules, conflict, returning, fields
        )

    def note_inserted_columns(self) -> None:
        """Those that the statement names; without a list, all that rows have values for."""
        if self.binder.rights is None:
            return
        use = self.binder.rights.add_relation(self.table, "a")
        named = {name for name, _ in self.tree.columns}
        for i, column in enumerate(self.live):
            if column.name in named or (not named and self.tree.query and i in self.ordinals):
                use.mark_column(i)

    def bind_source(self) -> n.Node:
        query = self.tree.query
        if query is None:
            return self.bind_values([()], ())
        body = query.body
        if isinstance(body, t.ValuesList) and not (query.ctes or query.order_by or query.limit):
            if query.offset is None:
                named = self.find_source_ordinals(len(body.rows[0]))
                return self.bind_values(list(body.rows), named)
        node = self.binder.rules.query(self.binder, query, self.parent, self.ctes, True)
        return self.project_query(node)

    def find_source_ordinals(self, width: int) -> tuple[int, ...]:
        """The ordinals that the source's columns are for."""
        columns = self.tree.columns
        if columns:
            found = tuple([self.find_ordinal(name, at) for name, at in columns])
            for i, (name, at) in enumerate(columns):
                if found[i] in found[:i]:
                    raise InvalidInput(
                        "column specified more than once",
                        sqlstate="42701",
                        position=at + 1,
                        column=name,
                    )
        else:
            found = tuple(i for i, column in enumerate(self.live) if not column.hidden)
        wrong = None
        if width > len(found):
            wrong = "insert has more expressions than target columns"
        elif columns and width < len(found):
            wrong = "insert has more target columns than expressions"
        if wrong is not None:
            raise InvalidInput(wrong, sqlstate="42601", position=self.tree.at + 1)
        return found[:width]

    def find_ordinal(self, name: str, at: int) -> int:
        return find_column_ordinal(self.table, self.live, name, at)

    def bind_values(self, rows: list[tuple[t.Expr, ...]], named: tuple[int, ...]) -> n.Values:
        env = Env(self.binder, NameScope(_make_empty_relation(), self.parent, self.ctes), "values")
        made = []
        for row in rows:
            if len(row) != len(named):
                raise InvalidInput(
                    "values lists must all be the same length",
                    sqlstate="42601",
                    position=self.tree.at + 1,
                )
            given = dict(zip(named, row))
            made.append(tuple([self.bind_value(env, i, given.get(i)) for i in self.ordinals]))
            for i in set(named) - set(self.ordinals):
                self.refuse_value(i, given[i])
        fields = tuple([n.Field(self.live[i].name, self.live[i].type) for i in self.ordinals])
        return n.Values(tuple(made), fields)

    def bind_value(self, env: Env, ordinal: int, tree: t.Expr | None) -> e.Expression:
        column = self.live[ordinal]
        if tree is None or isinstance(tree, t.Default):
            return self.bind_default(ordinal)
        if column.identity == "always" and self.tree.overriding != "system":
            if self.tree.overriding == "user":
                return self.bind_default(ordinal)
            raise _generated_always_error(column, tree.at)
        bound = self.binder.rules.expression(env, tree)
        return assign_to_column(self.binder, bound, column.type, column.name, tree.at)

    def refuse_value(self, ordinal: int, tree: t.Expr) -> None:
        if not isinstance(tree, t.Default):
            raise _generated_always_error(self.live[ordinal], tree.at)

    def bind_default(self, ordinal: int) -> e.Expression:
        if ordinal not in self.defaults:
            column = self.live[ordinal]
            self.defaults[ordinal] = self.texts.bind_default(self.binder.catalog, column)
            note_default_sequences(self.binder, column, self.defaults[ordinal])
        return self.defaults[ordinal]

    def project_query(self, node: n.Node) -> n.Node:
        """The rows of a query as rows of the table."""
        named = self.find_source_ordinals(len(node.fields))
        for i in named:
            column = self.live[i]
            if column.generated is not None:
                raise _generated_always_error(column, self.tree.at)
            if column.identity == "always" and self.tree.overriding != "system":
                if self.tree.overriding != "user":
                    raise _generated_always_error(column, self.tree.at)
        wanted = [
            SqlType(self.live[i].type.kind) if field.type.kind is Kind.UNKNOWN else field.type
            for i, field in zip(named, node.fields)
        ]
        node = coerce_columns(self.binder, node, wanted, self.tree.at)
        places = {ordinal: i for i, ordinal in enumerate(named)}
        made = []
        for ordinal in self.ordinals:
            column = self.live[ordinal]
            place = places.get(ordinal)
            if place is None or (column.identity == "always" and self.tree.overriding == "user"):
                made.append(self.bind_default(ordinal))
                continue
            field = node.fields[place]
            given = e.Column(place, field.type, field.name)
            made.append(
                assign_to_column(self.binder, given, column.type, column.name, self.tree.at)
            )
        fields = tuple([n.Field(self.live[i].name, self.live[i].type) for i in self.ordinals])
        return n.Project(node, tuple(made), fields)


def _generated_always_error(column: CatalogColumn, at: int) -> InvalidInput:
    what = "generated" if column.generated is not None else "identity"
    return InvalidInput(
        f"cannot insert a non-default value into {what} column",
        sqlstate="428C9",
        position=at + 1,
        hint=None if what == "generated" else "use overriding system value to override",
        column=column.name,
    )


def _make_empty_relation() -> FromRelation:
    return FromRelation(n.EMPTY_ROW)


def assign_to_column(
    binder: Binder, expression: e.Expression, target: SqlType, name: str, at: int
) -> e.Expression:
    """A value as a column stores it."""
    try:
        return coerce_to_column(binder, expression, target, name, at)
    except InvalidInput as error:
        if error.sqlstate != "42804":
            raise
        raise InvalidInput(
            "column is of another type than the expression",
            sqlstate="42804",
            position=at + 1,
            hint="you will need to rewrite or cast the expression",
            column=name,
            column_type=str(target),
            expression_type=str(expression.type),
        ) from None


def bind_returning(
    binder: Binder,
    relation: FromRelation,
    targets: tuple[t.SelectItem, ...],
    ctes: dict[str, CteName],
) -> tuple[tuple[e.Expression, ...], n.Fields]:
    if not targets:
        return (), ()
    env = Env(binder, NameScope(relation, None, ctes), "returning")
    try:
        found = expand_targets(env, targets)
    except InvalidInput as error:
        if error.sqlstate == "42P01" and error.facts.get("table") in ("old", "new"):
            raise Unsupported("returning old and new", position=error.position) from None
        raise
    fields = tuple([n.Field(one.name, one.expression.type) for one in found])
    return tuple([one.expression for one in found]), fields


# -- UPDATE and DELETE -----------------------------------------------------------------------------


def _bind_matching_rows(
    binder: Binder,
    relation: FromRelation,
    sources: tuple[t.FromItem, ...],
    where: t.Expr | None,
    parent: NameScope | None,
    ctes: dict[str, CteName],
) -> FromRelation:
    """The target joined with the other tables, filtered."""
    for item in sources:
        relation = join_next_item(binder, relation, item, parent, ctes)
    if where is None:
        return relation
    env = Env(binder, NameScope(relation, parent, ctes), "where")
    condition = require_boolean(binder, binder.rules.expression(env, where), "where", where.at)
    return FromRelation(n.Filter(relation.node, condition), relation.sources, relation.visible)


def _bind_update(
    binder: Binder,
    texts: StoredExpressions,
    tree: t.UpdateTree,
    parent: NameScope | None,
    ctes: dict[str, CteName],
) -> n.Node:
    table = find_target_table(binder, tree.table, tree.at)
    target = make_target_relation(table, tree.alias, binder.schema)
    target = note_relation_use(binder, target, table, "r", always=False)
    relation = _bind_matching_rows(binder, target, tree.sources, tree.where, parent, ctes)
    env = Env(binder, NameScope(relation, parent, ctes), "update")
    sets = bind_set_clauses(env, texts, table, tree.sets, make_assigner(binder, table))
    note_updated_columns(binder, table, sets)
    rules = texts.bind_row_rules(binder.catalog, table, {one.ordinal for one in sets})
    returning, fields = bind_returning(binder, relation, tree.returning, ctes)
    width = len(target.node.fields)
    return n.Update(table.id, table.name, relation.node, width, sets, rules, returning, fields)


def make_assigner(binder: Binder, table: Table) -> Callable[[e.Expression, int, int], e.Expression]:
    live = live_columns(table)

    def assign_value(value: e.Expression, ordinal: int, at: int) -> e.Expression:
        column = live[ordinal]
        return assign_to_column(binder, value, column.type, column.name, at)

    return assign_value


def _bind_delete(
    binder: Binder, tree: t.DeleteTree, parent: NameScope | None, ctes: dict[str, CteName]
) -> n.Node:
    table = find_target_table(binder, tree.table, tree.at)
    target = make_target_relation(table, tree.alias, binder.schema)
    if binder.rights is not None:
        binder.rights.add_relation(table, "d")
    target = note_relation_use(binder, target, table, "r", always=False)
    relation = _bind_matching_rows(binder, target, tree.sources, tree.where, parent, ctes)
    returning, fields = bind_returning(binder, relation, tree.returning, ctes)
    width = len(target.node.fields)
    return n.Delete(table.id, table.name, relation.node, width, returning, fields)
