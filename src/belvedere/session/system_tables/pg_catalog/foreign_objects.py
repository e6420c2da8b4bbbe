"""Foreign servers and foreign tables in information_schema and pg_catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.foreign_options import WRAPPERS
from belvedere.catalog.model import OWNER_ROLE, ForeignServer, ForeignTable
from belvedere.catalog.rights.builtin_roles import name_role
from belvedere.session.system_tables.pg_catalog import oids
from belvedere.session.system_tables.pg_catalog.columns import make_row_builder
from belvedere.session.system_tables.pg_catalog.relations import Relations
from belvedere.types import Row

if TYPE_CHECKING:
    from belvedere.session.session import Session

DATABASE = "belvedere"
WRAPPER_OID = 13_010


def format_foreign_options(options: dict[str, str]) -> list[str] | None:
    """As PostgreSQL's catalogs show them."""
    return [f"{name}={value}" for name, value in options.items()] or None


def _walk_foreign_tables(catalog: Catalog) -> Iterator[tuple[str, ForeignTable, ForeignServer]]:
    names = {schema.id: schema.name for schema in catalog.schemas}
    for item in catalog.objects.values():
        if isinstance(item, ForeignTable):
            server = catalog.objects[item.server]
            assert isinstance(server, ForeignServer)
            yield names[item.schema], item, server


# -- information_schema ----------------------------------------------------------------------------


def _list_wrappers(session: Session) -> Iterator[Row]:
    for name in WRAPPERS:
        yield DATABASE, name, name_role(session.catalog, OWNER_ROLE), None, "c"


def _list_servers(session: Session) -> Iterator[Row]:
    owner = name_role(session.catalog, OWNER_ROLE)
    for server in session.catalog.foreign_servers.values():
        yield DATABASE, server.name, DATABASE, server.wrapper, None, None, owner


def _list_server_options(session: Session) -> Iterator[Row]:
    for server in session.catalog.foreign_servers.values():
        for name, value in server.options.items():
            yield DATABASE, server.name, name, value


def _list_foreign_tables(session: Session) -> Iterator[Row]:
    for schema, table, server in _walk_foreign_tables(session.catalog):
        yield DATABASE, schema, table.name, DATABASE, server.name


def _list_table_options(session: Session) -> Iterator[Row]:
    for schema, table, _ in _walk_foreign_tables(session.catalog):
        for name, value in table.options.items():
            yield DATABASE, schema, table.name, name, value


def _list_column_options(session: Session) -> Iterator[Row]:
    for schema, table, _ in _walk_foreign_tables(session.catalog):
        for column, options in zip(table.columns, table.column_options):
            for name, value in options.items():
                yield DATABASE, schema, table.name, column.name, name, value


INFORMATION_TABLES: dict[str, tuple[str, Callable[[Session], Iterator[Row]]]] = {
    "foreign_data_wrappers": (
        "foreign_data_wrapper_catalog foreign_data_wrapper_name authorization_identifier "
        "library_name foreign_data_wrapper_language",
        _list_wrappers,
    ),
    "foreign_servers": (
        "foreign_server_catalog foreign_server_name foreign_data_wrapper_catalog "
        "foreign_data_wrapper_name foreign_server_type foreign_server_version "
        "authorization_identifier",
        _list_servers,
    ),
    "foreign_server_options": (
        "foreign_server_catalog foreign_server_name option_name option_value",
        _list_server_options,
    ),
    "foreign_tables": (
        "foreign_table_catalog foreign_table_schema foreign_table_name "
        "foreign_server_catalog foreign_server_name",
        _list_foreign_tables,
    ),
    "foreign_table_options": (
        "foreign_table_catalog foreign_table_schema foreign_table_name option_name option_value",
        _list_table_options,
    ),
    "column_options": (
        "table_catalog table_schema table_name column_name option_name option_value",
        _list_column_options,
    ),
}
"""Names of the columns, and what lists the rows."""


# -- pg_catalog ------------------------------------------------------------------------------------


def _list_pg_foreign_wrappers(relations: Relations) -> Iterator[Row]:
    build = make_row_builder("pg_foreign_data_wrapper")
    for number, name in enumerate(WRAPPERS):
        owner = oids.find_role_oid(OWNER_ROLE)
        yield build(oid=WRAPPER_OID + number, fdwname=name, fdwowner=owner)


def _list_pg_foreign_servers(relations: Relations) -> Iterator[Row]:
    build = make_row_builder("pg_foreign_server")
    for server in relations.catalog.foreign_servers.values():
        yield build(
            oid=oids.find_object_oid(server),
            srvname=server.name,
            srvowner=oids.find_role_oid(OWNER_ROLE),
            srvfdw=WRAPPER_OID + WRAPPERS.index(server.wrapper),
            srvoptions=format_foreign_options(server.options),
        )


def _list_pg_foreign_tables(relations: Relations) -> Iterator[Row]:
    build = make_row_builder("pg_foreign_table")
    for _, table, server in _walk_foreign_tables(relations.catalog):
        yield build(
            ftrelid=oids.find_object_oid(table),
            ftserver=oids.find_object_oid(server),
            ftoptions=format_foreign_options(table.options),
        )


CATALOG_ROWS: dict[str, Callable[[Relations], Iterator[Row]]] = {
    "pg_foreign_data_wrapper": _list_pg_foreign_wrappers,
    "pg_foreign_server": _list_pg_foreign_servers,
    "pg_foreign_table": _list_pg_foreign_tables,
}
