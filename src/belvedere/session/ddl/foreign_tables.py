"""CREATE and DROP of foreign servers and foreign tables.

Options are checked when an object is made. Whether the HBase is there, and has such a table, is
seen when it is read.
"""

from __future__ import annotations

from belvedere.catalog import foreign_options
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.definition_rules import dependents_error, require_name
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import CatalogColumn, ForeignServer, ForeignTable, TypeName, View
from belvedere.errors import Error, InvalidInput
from belvedere.execution.foreign.foreign_rows import build_server_url
from belvedere.plan import nodes as n
from belvedere.plan.transform import walk_plan
from belvedere.sql import definitions as d
from belvedere.sql.bind.statements.statement import bind_statement
from belvedere.sql.parse.script import parse_script
from belvedere.sql.statements import DataPlan
from belvedere.types import UNSTORED_KINDS

PUBLIC = "public"


def create_server(edit: CatalogEdit, statement: d.CreateServer) -> None:
    require_name(statement.name)
    if statement.name in edit.catalog.foreign_servers:
        if statement.if_not_exists:
            return
        raise InvalidInput("server already exists", sqlstate="42710", name=statement.name)
    if statement.wrapper not in foreign_options.WRAPPERS:
        raise InvalidInput(
            "foreign-data wrapper does not exist",
            sqlstate="42704",
            hint=f"there is {', '.join(foreign_options.WRAPPERS)}",
            name=statement.wrapper,
        )
    options = _collect_unique_options(statement.options)
    foreign_options.require_known_options(options, foreign_options.SERVER_OPTIONS, "server")
    foreign_options.require_options(options, ("gateways",), "server")
    server = ForeignServer(
        id=edit.allocate_id(), name=statement.name, wrapper=statement.wrapper, options=options
    )
    try:
        build_server_url(server)
    except InvalidInput as error:
        raise InvalidInput(
            "invalid value of an option",
            sqlstate=foreign_options.BAD_VALUE,
            detail=error.detail,
            server=statement.name,
        ) from error
    edit.put(server)


def drop_servers(edit: CatalogEdit, statement: d.DropServer) -> None:
    for name in statement.names:
        server = edit.catalog.foreign_servers.get(name)
        if server is None:
            if statement.if_exists:
                continue
            raise InvalidInput("server does not exist", sqlstate="42704", name=name)
        tables = [
            item
            for item in edit.catalog.objects.values()
            if isinstance(item, ForeignTable) and item.server == server.id
        ]
        if tables and not statement.cascade:
            raise dependents_error(server, [f"foreign table {one.name}" for one in tables])
        for table in tables:
            drop_foreign_table(edit, table, cascade=True)
        edit.remove_object(server.id)


def create_foreign_table(edit: CatalogEdit, statement: d.CreateForeignTable) -> None:
    name, schema = statement.name.name, statement.name.schema or PUBLIC
    require_name(name)
    if edit.catalog.find_relation(name, schema) is not None:
        if statement.if_not_exists:
            return
        raise InvalidInput("relation already exists", sqlstate="42P07", name=name)
    server = edit.catalog.foreign_servers.get(statement.server)
    if server is None:
        raise InvalidInput("server does not exist", sqlstate="42704", name=statement.server)
    table = ForeignTable(
        id=edit.allocate_id(),
        name=name,
        schema=edit.catalog.schema_id(schema),
        columns=_make_foreign_columns(statement.columns),
        server=server.id,
        options=_collect_unique_options(statement.options),
        column_options=tuple(_collect_unique_options(one.options) for one in statement.columns),
    )
    foreign_options.build_layout(table)
    edit.put(table)


def _make_foreign_columns(clauses: tuple[d.ForeignColumnClause, ...]) -> tuple[CatalogColumn, ...]:
    names: set[str] = set()
    for one in clauses:
        require_name(one.name)
        if one.name in names:
            raise InvalidInput("column is named twice", sqlstate="42701", name=one.name)
        names.add(one.name)
        if one.type.kind in UNSTORED_KINDS:
            raise InvalidInput(
                "a column cannot be of this type", sqlstate="42P16", type=str(one.type)
            )
    return tuple(
        CatalogColumn(one.name, TypeName.from_type(one.type), slot, not_null=one.not_null)
        for slot, one in enumerate(clauses)
    )


def _collect_unique_options(options: d.Options) -> dict[str, str]:
    found = dict(options)
    if len(found) < len(options):
        raise InvalidInput("an option is given twice", sqlstate="42710")
    return found


def drop_foreign_table(edit: CatalogEdit, table: ForeignTable, *, cascade: bool) -> None:
    """Remove it at once: it has no rows of its own. Plain views are looked at by the caller."""
    views = [
        view for view in edit.catalog.views if _reads_foreign_table(edit.catalog, view, table.id)
    ]
    if views and not cascade:
        raise dependents_error(table, [f"view {view.name}" for view in views])
    for view in views:
        if any(one.id == view.id for one in edit.catalog.views):  # not dropped with another
            edit.drop_view(view.id, cascade=True)
    edit.remove_object(table.id)


def _reads_foreign_table(catalog: Catalog, view: View, table: int) -> bool:
    """Whether the definition of a view names the foreign table, itself or by a plain view."""
    if view.options.strict:
        return False
    try:
        bound = bind_statement(parse_script(view.definition)[0].tree, catalog)
    except Error:
        return False
    assert isinstance(bound, DataPlan)
    nodes = walk_plan(bound.plan)
    return any(isinstance(node, n.ForeignScan) and node.relation == table for node in nodes)
