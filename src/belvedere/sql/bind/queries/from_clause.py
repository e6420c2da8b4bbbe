"""Binds FROM: tables, views, sub-queries, functions and joins to one relation."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from msgspec.structs import replace

from belvedere.catalog.catalog import Catalog, is_dropped
from belvedere.catalog.model import AnyObject, ForeignTable, PlainView, Table, View
from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.transform import lift_plan
from belvedere.sql.bind.binder import Binder, Env
from belvedere.sql.bind.expressions.calls import (
    bind_call,
    bind_table_call,
    function_name,
    is_scalar_call,
)
from belvedere.sql.bind.expressions.coerce import (
    default_to_text,
    make_call,
    require_boolean,
    with_position,
)
from belvedere.sql.bind.queries.joins import join_names, merge_using
from belvedere.sql.bind.scope import (
    EMPTY_RELATION,
    CteName,
    FromRelation,
    NameScope,
    make_source_relation,
    rename_columns,
    rename_relation,
    suggest_names,
)
from belvedere.sql.parse import tree as t
from belvedere.sql.parse.lexical.render import quote
from belvedere.sql.parse.script import parse_script

PUBLIC = "public"
SYSTEM_SCHEMA = "pg_catalog"  # the first of every search path
INFORMATION_SCHEMA = frozenset(
    """
    administrable_role_authorizations applicable_roles attributes character_sets
    check_constraint_routine_usage collation_character_set_applicability collations
    column_column_usage column_domain_usage column_privileges column_udt_usage
    constraint_column_usage constraint_table_usage data_type_privileges domain_constraints
    domain_udt_usage domains element_types enabled_roles foreign_data_wrapper_options
    information_schema_catalog_name parameters role_column_grants
    role_routine_grants role_table_grants role_udt_grants role_usage_grants routine_column_usage
    routine_privileges routine_routine_usage routine_sequence_usage routine_table_usage routines
    sql_features sql_implementation_info sql_parts sql_sizing table_privileges transforms
    triggered_update_columns triggers udt_privileges usage_privileges user_defined_types
    user_mapping_options user_mappings view_column_usage view_routine_usage view_table_usage
    """.split()
)
"""Views of PostgreSQL's information_schema that Belvedere does not have."""

_KINDS = {
    "inner": n.JoinKind.INNER,
    "cross": n.JoinKind.INNER,
    "left": n.JoinKind.LEFT,
    "right": n.JoinKind.RIGHT,
    "full": n.JoinKind.FULL,
}


def bind_from_list(
    binder: Binder,
    sources: tuple[t.FromItem, ...],
    parent: NameScope | None,
    ctes: dict[str, CteName],
) -> FromRelation:
    """The items of a FROM list, joined from the left."""
    if not sources:
        return EMPTY_RELATION
    relation = bind_from_item(binder, sources[0], parent, ctes)
    for item in sources[1:]:
        relation = join_next_item(binder, relation, item, parent, ctes)
    return relation


def join_next_item(
    binder: Binder,
    left: FromRelation,
    item: t.FromItem,
    parent: NameScope | None,
    ctes: dict[str, CteName],
) -> FromRelation:
    """The join with one more item, which is bound a level deeper in case it is lateral."""
    scope = NameScope(left, parent, ctes, lateral_only=True)
    right = bind_from_item(binder, item, scope, ctes)
    return join_relations(
        n.JoinKind.INNER, left, _lift_if_not_lateral(right, scope), None, scope.used
    )


def _lift_if_not_lateral(right: FromRelation, scope: NameScope) -> FromRelation:
    """The right side of a join, moved out again when it did not use the left one."""
    if scope.used or scope.parent is None:
        return right
    return FromRelation(lift_plan(right.node, -1), right.sources, right.visible)


def join_relations(
    kind: n.JoinKind,
    left: FromRelation,
    right: FromRelation,
    on: e.Expression | None,
    lateral: bool,
) -> FromRelation:
    if lateral and kind in (n.JoinKind.RIGHT, n.JoinKind.FULL):
        raise InvalidInput("invalid reference to from-clause entry", sqlstate="42P10")
    sources, visible = join_names(left, right)
    node = n.Join(kind, left.node, right.node, (), on, lateral)
    return FromRelation(node, sources, visible)


def bind_from_item(
    binder: Binder, item: t.FromItem, parent: NameScope | None, ctes: dict[str, CteName]
) -> FromRelation:
    match item:
        case t.TableRef():
            return _bind_table(binder, item, ctes)
        case t.QueryRef():
            return _bind_subquery(binder, item, parent, ctes)
        case t.FunctionRef():
            return _bind_function(binder, item, parent, ctes)
        case t.JoinRef():
            return _bind_join(binder, item, parent, ctes)


# -- tables ----------------------------------------------------------------------------------------


def _bind_table(binder: Binder, item: t.TableRef, ctes: dict[str, CteName]) -> FromRelation:
    if len(item.name) == 1 and item.name[0] in ctes:
        cte = ctes[item.name[0]]
        if cte.refused is not None:
            raise with_position(cte.refused, item.at)
        node = n.CteScan(cte.number, cte.name, cte.fields)
        relation = make_source_relation(node, cte.name, tuple(f.name for f in cte.fields))
    else:
        relation = bind_named_relation(binder, item.name, item.at)
    if item.alias is None:
        return relation
    old = relation.sources[0]
    names = rename_columns(old.names, item.columns, item.alias)
    renamed = make_source_relation(relation.node, item.alias, names, None, old.table, old.relation)
    return renamed if old.use is None else renamed.with_use(old.use)


def bind_named_relation(binder: Binder, name: tuple[str, ...], at: int) -> FromRelation:
    schema, own = split_name(binder, name, at)
    fields = binder.virtual(schema, own)
    if fields is None and len(name) == 1 and own.startswith("pg_"):
        schema = SYSTEM_SCHEMA if binder.virtual(SYSTEM_SCHEMA, own) is not None else schema
        fields = binder.virtual(schema, own)
    if fields is not None:
        names = tuple(field.name for field in fields)
        if binder.rights is not None:
            binder.rights.system_tables.add((schema, own))
        node = n.VirtualScan(schema, own, fields)
        return make_source_relation(node, own, names, schema, named=(schema, own))
    found = find_object(binder, schema, own)
    if len(name) == 1 and schema != PUBLIC and found is not None:
        # A view keeps its text, which has to mean the same under every search path.
        binder.stars[at] = (at + 1, f"{quote(schema)}.{quote(own)}")
    match found:
        case Table() | View():
            relation = _make_stored_relation(found, own, schema)
            return note_relation_use(binder, relation, found, "r")
        case ForeignTable():
            relation = _make_foreign_relation(found, own, schema)
            return note_relation_use(binder, relation, found, "r")
        case PlainView():
            relation = _bind_plain_view(binder, found, schema)
            return note_relation_use(binder, relation, found, "r")
        case None if own.startswith("pg_") or schema in ("pg_catalog", "information_schema"):
            raise _system_catalog_error(schema, own, at)
        case None:
            raise unknown_table_error(binder.catalog, own, at)
        case _:
            raise InvalidInput("not a table or view", sqlstate="42809", position=at + 1, name=own)


def note_relation_use(
    binder: Binder,
    relation: FromRelation,
    item: Table | ForeignTable | View | PlainView,
    privilege: str,
    *,
    always: bool = True,
) -> FromRelation:
    """The relation, with its columns watched where the statement needs rights."""
    if binder.rights is None:
        return relation
    return relation.with_use(binder.rights.add_relation(item, privilege, always=always))


def _system_catalog_error(schema: str, name: str, at: int) -> InvalidInput | Unsupported:
    """PostgreSQL has many more tables about itself than are here."""
    if schema == "information_schema" and name not in INFORMATION_SCHEMA:
        return InvalidInput("relation does not exist", sqlstate="42P01", position=at + 1, name=name)
    hint = "information_schema and belvedere have what there is"
    return Unsupported("system catalog", position=at + 1, hint=hint, name=name)


def find_object(binder: Binder, schema: str, name: str) -> AnyObject | None:
    """The object of that name; nothing is in a schema that does not exist."""
    if all(one.name != schema for one in binder.catalog.schemas):
        return None
    return binder.catalog.find_relation(name, schema)


def split_name(binder: Binder, name: tuple[str, ...], at: int) -> tuple[str, str]:
    if len(name) > 2:
        raise InvalidInput(
            "cross-database references are not implemented", sqlstate="0A000", position=at + 1
        )
    return (name[0], name[1]) if len(name) == 2 else (binder.schema, name[0])


def unknown_table_error(catalog: Catalog, name: str, at: int) -> InvalidInput:
    kinds = (Table, ForeignTable, View, PlainView)
    live = [o for o in catalog.objects.values() if isinstance(o, kinds) and not is_dropped(o)]
    names = [o.name for o in live if not (isinstance(o, View) and o.part)]
    return InvalidInput(
        "relation does not exist",
        sqlstate="42P01",
        position=at + 1,
        hint=suggest_names(name, names),
        name=name,
    )


_STORED_MAX = 4096
_stored_relations: dict[tuple[int, str], tuple[Table | View, FromRelation]] = {}


def _make_stored_relation(found: Table | View, own: str, schema: str) -> FromRelation:
    """A base table or view; hidden columns are in the row but have no name.

    Cached per catalog object, since every statement on the table needs the same.
    """
    known = _stored_relations.get((id(found), schema))
    if known is not None and known[0] is found:
        return known[1]
    live = [column for column in found.columns if not column.dropped]
    fields = tuple([n.Field(column.name, column.type) for column in live])
    slots = tuple([column.slot for column in live])
    names = tuple(["" if column.hidden else column.name for column in live])
    node = n.Scan(found.id, own, slots, fields)
    relation = make_source_relation(node, own, names, schema, found, (schema, own))
    if len(_stored_relations) >= _STORED_MAX:
        _stored_relations.clear()
    _stored_relations[id(found), schema] = (found, relation)
    return relation


def _make_foreign_relation(found: ForeignTable, own: str, schema: str) -> FromRelation:
    fields = tuple([n.Field(column.name, column.type) for column in found.columns])
    names = tuple([column.name for column in found.columns])
    node = n.ForeignScan(found.id, own, tuple(range(len(fields))), fields)
    return make_source_relation(node, own, names, schema)


def _bind_plain_view(binder: Binder, view: PlainView, schema: str) -> FromRelation:
    """A plain view is its query, bound where no name of this statement can be seen."""
    if view.id in binder.views:
        raise InvalidInput("infinite recursion in view", sqlstate="42P17", name=view.name)
    tree = parse_script(view.definition)[0].tree
    assert isinstance(tree, t.QueryTree)
    before = binder.views, binder.stars, binder.schema
    binder.views, binder.stars, binder.schema = (*binder.views, view.id), {}, PUBLIC
    with _act_as_owner(binder, view):
        node = binder.rules.query(binder, tree, None, {}, False)
    binder.views, binder.stars, binder.schema = before
    names = tuple(column.name for column in view.columns) or tuple(f.name for f in node.fields)
    renamed = _rename_fields(node, names)
    binder.view_nodes[id(renamed)] = (renamed, view)
    return make_source_relation(renamed, view.name, names, schema)


@contextlib.contextmanager
def _act_as_owner(binder: Binder, view: PlainView) -> Iterator[None]:
    """Inside, rights are needed by the owner of the view."""
    if binder.rights is None:
        yield
        return
    before, binder.rights.role = binder.rights.role, binder.catalog.find_owner(view.id)
    yield
    binder.rights.role = before


def _rename_fields(node: n.Node, names: tuple[str, ...]) -> n.Node:
    fields = node.fields
    if tuple(field.name for field in fields) == names:
        return node
    columns = tuple(e.Column(i, field.type, field.name) for i, field in enumerate(fields))
    return n.Project(node, columns, tuple(n.Field(x, f.type) for x, f in zip(names, fields)))


# -- sub-queries and functions ---------------------------------------------------------------------


def _bind_subquery(
    binder: Binder, item: t.QueryRef, parent: NameScope | None, ctes: dict[str, CteName]
) -> FromRelation:
    outer = parent
    if item.lateral:
        outer = _make_lateral_scope(parent, ctes)
    node = binder.rules.query(binder, item.query, outer, ctes, False)
    if item.lateral and parent is not None:
        node = lift_plan(node, -1)
    alias = item.alias or ""
    names = tuple(field.name for field in node.fields)
    return rename_relation(make_source_relation(node, alias, names), alias, item.columns)


def _make_lateral_scope(parent: NameScope | None, ctes: dict[str, CteName]) -> NameScope | None:
    """A scope of no columns through which the left side of the join can be seen."""
    if parent is None:
        return None
    return NameScope(EMPTY_RELATION, parent, ctes, lateral_only=False, sees_lateral=True)


def _bind_function(
    binder: Binder, item: t.FunctionRef, parent: NameScope | None, ctes: dict[str, CteName]
) -> FromRelation:
    """Arguments see the left side of the join at depth 1, so their own scope is no level."""
    scope = NameScope(EMPTY_RELATION, parent, ctes, sees_lateral=True)
    env = Env(binder, scope, "functions in from")
    alias = item.alias or function_name(item.calls[0])
    if len(item.calls) == 1 and not item.ordinality and is_scalar_call(item.calls[0]):
        value = default_to_text(binder, bind_call(env, item.calls[0]))
        row = n.Project(EMPTY_RELATION.node, (value,), (n.Field(alias, value.type),))
        return rename_relation(make_source_relation(row, alias, (alias,)), alias, item.columns)
    calls = tuple([bind_table_call(env, one) for tree in item.calls for one in _split_unnest(tree)])
    fields = tuple(field for one in calls for field in one.fields)
    if len(calls) == 1 and item.alias and not item.columns and len(fields) == 1:
        fields = (n.Field(item.alias, fields[0].type),)
    if item.ordinality:
        fields = (*fields, n.ORDINALITY)
    node = n.TableFunction(calls, fields, item.ordinality)
    relation = make_source_relation(node, alias, tuple(field.name for field in fields))
    return rename_relation(relation, alias, item.columns)


def _split_unnest(tree: t.FunctionCall) -> list[t.FunctionCall]:
    """`unnest(a, b)` in FROM is `ROWS FROM (unnest(a), unnest(b))`."""
    if tree.name[-1] != "unnest" or len(tree.arguments) < 2:
        return [tree]
    return [replace(tree, arguments=(one,)) for one in tree.arguments]


# -- joins -----------------------------------------------------------------------------------------


def _bind_join(
    binder: Binder, item: t.JoinRef, parent: NameScope | None, ctes: dict[str, CteName]
) -> FromRelation:
    left = bind_from_item(binder, item.left, parent, ctes)
    scope = NameScope(left, parent, ctes, lateral_only=True)
    right = _lift_if_not_lateral(bind_from_item(binder, item.right, scope, ctes), scope)
    kind = _KINDS[item.kind]
    if scope.used and kind in (n.JoinKind.RIGHT, n.JoinKind.FULL):
        raise InvalidInput(
            "invalid reference to from-clause entry", sqlstate="42P10", position=item.at + 1
        )
    names = item.using
    if item.natural:
        names = _find_natural_columns(left, right)
    if names:
        return _bind_using(binder, item, kind, left, right, names, scope.used)
    relation = join_relations(kind, left, right, None, scope.used)
    if item.on is None:
        return relation
    inner = NameScope(relation, parent, ctes)
    env = Env(binder, inner, "join conditions")
    on = require_boolean(binder, binder.rules.expression(env, item.on), "join/on", item.on.at)
    return join_relations(kind, left, right, on, scope.used)


def _find_natural_columns(left: FromRelation, right: FromRelation) -> tuple[str, ...]:
    known = {one.name for one in right.visible}
    return tuple(dict.fromkeys(one.name for one in left.visible if one.name in known))


def _bind_using(
    binder: Binder,
    item: t.JoinRef,
    kind: n.JoinKind,
    left: FromRelation,
    right: FromRelation,
    names: tuple[str, ...],
    lateral: bool,
) -> FromRelation:
    relation = join_relations(kind, left, right, None, lateral)
    pairs, visible = merge_using(binder, kind, left, right, names, item.at)
    if relation.notes_columns:
        for pair in pairs:
            for one in pair:
                relation.note_columns(one)
    tests = tuple([make_call(binder, "=", pair, item.at) for pair in pairs])
    on: e.Expression = e.And(tests) if len(tests) > 1 else tests[0]
    node = n.Join(kind, left.node, right.node, (), on, lateral)
    sources = relation.sources
    if item.alias is not None:
        raise Unsupported("alias of a using clause", position=item.at + 1)
    return FromRelation(node, sources, visible)
