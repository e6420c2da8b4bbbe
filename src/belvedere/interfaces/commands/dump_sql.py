"""`belvedere dump --sql PATH`: a script that recreates the tables, rows, indexes and views.

    roles
    schemas, sequences              defaults of columns may refer to them
    tables, each with its rows      without foreign keys, so that rows may be in any order
    indexes, foreign keys, roots    checked against the rows inserted before
    next numbers of sequences
    foreign servers and tables
    views, then indexes of views    each after its inputs; CREATE backfills them
    comments, owners, rights

`belvedere shell NEW.db -f SCRIPT` runs it. Positions, the log and tokens are not part of it: use
`belvedere backup` for those. Auxiliary views are created with the views that need them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, TypeVar

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import (
    SEQUENCE_RELATION,
    CatalogColumn,
    ForeignKey,
    ForeignServer,
    ForeignTable,
    Index,
    KeyPart,
    PlainView,
    ReferentialAction,
    Sequence,
    Table,
    View,
)
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.codec import keyspace
from belvedere.codec.keys import KeyCodec, KeyColumn
from belvedere.codec.rows import RowLayout, Slot
from belvedere.errors import InvalidInput, Unsupported
from belvedere.interfaces.commands.dump_comments import dump_comments
from belvedere.interfaces.commands.dump_rights import dump_rights, dump_roles
from belvedere.interfaces.commands.dump_source import DumpSource
from belvedere.interfaces.shell.statements import DUMP_FIRST, DUMP_LAST
from belvedere.plan.functions import text_formatter
from belvedere.session.materialized.table_index_views import KNOWN_OPTIONS
from belvedere.sql.bind.statements.statement import bind_statement
from belvedere.sql.parse.lexical.render import quote
from belvedere.sql.parse.script import parse_script
from belvedere.types import BIGINT, Kind, Row, SqlType
from belvedere.values.quoting import quote_literal

T = TypeVar("T", Sequence, PlainView, ForeignServer, ForeignTable)
Named = Table | Index | Sequence | PlainView | ForeignTable | View

ROWS_PER_INSERT = 200
PUBLIC = "public"
_SEQUENCE_KEY = KeyCodec((KeyColumn(BIGINT),), keyspace.row_prefix(SEQUENCE_RELATION))
_SEQUENCE_ROW = RowLayout((Slot(BIGINT, None),))
_BARE = frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT})


def dump_sql(db: DumpSource, limit: int | None = None) -> Iterator[str]:
    """The lines of the script; at most `limit` rows of each table."""
    catalog = db.catalog
    tables = sorted(catalog.tables, key=lambda one: one.id)
    yield f"{DUMP_FIRST} {db.position}, as SQL"
    yield from dump_roles(catalog)
    yield from _create_schemas(catalog)
    fed = {c.sequence for table in tables for c in table.columns if c.identity is not None}
    sequences = [one for one in _objects_of_type(catalog, Sequence) if one.id not in fed]
    for sequence in sequences:
        yield f"CREATE SEQUENCE {_qualified_name(catalog, sequence)} {_sequence_options(sequence)};"
    for table in tables:
        yield ""
        yield from _create_table(catalog, table)
        yield from _insert_rows(db, table, limit)
        yield from (_create_index(catalog, table, index) for index in _user_indexes(catalog, table))
    yield ""
    for table in tables:
        yield from _alter_references(catalog, table)
        yield from _alter_sequences(catalog, table)
    yield from _restart_sequences(db)
    yield from _create_foreign_objects(catalog)
    for view in _order_views(catalog):
        yield _create_view(catalog, view)
    yield from (
        _create_view_index(catalog, view)
        for view in list_user_views(catalog)
        if view.index is not None
    )
    yield from dump_comments(catalog)
    yield from dump_rights(catalog)
    yield DUMP_LAST


def _create_schemas(catalog: Catalog) -> Iterator[str]:
    for schema in sorted(catalog.schemas, key=lambda one: one.id):
        if schema.name != PUBLIC:
            yield f"CREATE SCHEMA {quote(schema.name)};"


# -- tables ----------------------------------------------------------------------------------------


def _create_table(catalog: Catalog, table: Table) -> Iterator[str]:
    parts = [_column_clause(catalog, column) for column in _live_columns(table)]
    if not any(table.columns[slot].hidden for slot in table.primary_key):
        name = quote(table.primary_key_name)
        parts.append(f"CONSTRAINT {name} PRIMARY KEY ({_column_list(table, table.primary_key)})")
    for index in sorted(catalog.table_indexes(table.id), key=lambda one: one.id):
        if index.constraint:
            nulls = "" if index.nulls_distinct else "NULLS NOT DISTINCT "
            slots = tuple(part.slot for part in index.parts if part.slot is not None)
            parts.append(
                f"CONSTRAINT {quote(index.name)} UNIQUE {nulls}({_column_list(table, slots)})"
            )
    parts += [f"CONSTRAINT {quote(one.name)} CHECK ({one.expression})" for one in table.checks]
    options = {"partitions": str(table.partitions)} if table.partitions != 1 else {}
    options |= {"keys": "hashed"} if table.hashed else {}
    listed = ",\n".join(f"  {part}" for part in parts)
    yield f"CREATE TABLE {_qualified_name(catalog, table)} (\n{listed}\n){_with_clause(options)};"


def _column_clause(catalog: Catalog, column: CatalogColumn) -> str:
    words = [quote(column.name), str(column.type)]
    sequence = None if column.sequence is None else catalog.get(column.sequence)
    if column.identity is not None and isinstance(sequence, Sequence):
        words.append(
            f"GENERATED {column.identity.upper()} AS IDENTITY ({_sequence_options(sequence)})"
        )
    elif isinstance(sequence, Sequence):
        words.append(f"DEFAULT nextval({quote_literal(_qualified_name(catalog, sequence))})")
    elif column.generated is not None:
        words.append(f"GENERATED ALWAYS AS ({column.generated}) STORED")
    elif column.default is not None:
        words.append(f"DEFAULT {column.default}")
    return " ".join(words + (["NOT NULL"] if column.not_null else []))


def _insert_rows(db: DumpSource, table: Table, limit: int | None) -> Iterator[str]:
    columns = [column for column in _live_columns(table) if column.generated is None]
    rows = islice(_scan_rows(db, table), limit)
    into = f"INSERT INTO {_qualified_name(db.catalog, table)}"
    if not columns:
        yield from (f"{into} DEFAULT VALUES;" for _ in rows)
        return
    always = " OVERRIDING SYSTEM VALUE" if any(c.identity == "always" for c in columns) else ""
    head = f"{into} ({', '.join(quote(column.name) for column in columns)}){always} VALUES"
    while some := list(islice(rows, ROWS_PER_INSERT)):
        yield head
        yield ",\n".join(f"  ({_values_list(columns, row)})" for row in some) + ";"


def _scan_rows(db: DumpSource, table: Table) -> Iterator[Row]:
    compiled = compiled_table(db.catalog, table.id)
    for batch in db.store.scan(*keyspace.relation_range(table.id)):
        yield from (compiled.decode(value) for _, value in batch)


def _values_list(columns: list[CatalogColumn], row: Row) -> str:
    return ", ".join(_sql_literal(row[column.slot], column.type) for column in columns)


def _sql_literal(value: Any, sql_type: SqlType) -> str:
    """A literal that parses to the same value: also NaN, and the sign of a zero."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    shown = str(text_formatter(sql_type)(value))
    return shown if sql_type.kind in _BARE else quote_literal(shown)


def _create_index(catalog: Catalog, table: Table, index: Index) -> str:
    unique = "UNIQUE " if index.unique else ""
    parts = ", ".join(_key_part(table, part) for part in index.parts)
    text = (
        f"CREATE {unique}INDEX {quote(index.name)} ON {_qualified_name(catalog, table)} ({parts})"
    )
    if index.include:
        text += f" INCLUDE ({_column_list(table, index.include)})"
    text += "" if index.nulls_distinct else " NULLS NOT DISTINCT"
    return text + (f" WHERE {index.where};" if index.where else ";")


def _user_indexes(catalog: Catalog, table: Table) -> Iterator[Index]:
    """The indexes made by CREATE INDEX, not by a constraint."""
    for index in sorted(catalog.table_indexes(table.id), key=lambda one: one.id):
        if not index.constraint and not index.hidden:
            yield index


def _key_part(table: Table, part: KeyPart) -> str:
    text = f"({part.expression})" if part.slot is None else _column_list(table, (part.slot,))
    text += " DESC" if part.descending else ""
    if part.nulls_first is None:
        return text
    return text + (" NULLS FIRST" if part.nulls_first else " NULLS LAST")


def _alter_references(catalog: Catalog, table: Table) -> Iterator[str]:
    name = _qualified_name(catalog, table)
    for key in table.foreign_keys:
        yield f"ALTER TABLE {name} ADD {_foreign_key(catalog, table, key)};"
    if table.root is not None:
        yield f"ALTER TABLE {name} SET (root = {quote_literal(table.root)});"


def _foreign_key(catalog: Catalog, table: Table, key: ForeignKey) -> str:
    parent = catalog.table(key.parent)
    text = f"CONSTRAINT {quote(key.name)} FOREIGN KEY ({_column_list(table, key.columns)})"
    parent_columns = _column_list(parent, key.parent_columns)
    text += f" REFERENCES {_qualified_name(catalog, parent)} ({parent_columns})"
    for event, action in (("DELETE", key.on_delete), ("UPDATE", key.on_update)):
        text += "" if action is ReferentialAction.NO_ACTION else f" ON {event} {action.upper()}"
    text += " DEFERRABLE" if key.deferrable else ""
    text += " INITIALLY DEFERRED" if key.initially_deferred else ""
    return text + ("" if key.enforced else " NOT ENFORCED")


# -- sequences -------------------------------------------------------------------------------------


def _alter_sequences(catalog: Catalog, table: Table) -> Iterator[str]:
    """Make the table own its sequences, and rename those of its identity columns."""
    fed = {
        column.sequence: column for column in _live_columns(table) if column.sequence is not None
    }
    for sequence in _objects_of_type(catalog, Sequence):
        column = fed.get(sequence.id)
        made = "" if column is None else f"{table.name}_{column.name}_seq"
        if column is not None and column.identity is not None:
            if sequence.name != made:
                old = _schema_prefix(catalog, table) + quote(made)
                yield f"ALTER SEQUENCE {old} RENAME TO {quote(sequence.name)};"
        elif sequence.owner == table.id:
            name = _qualified_name(catalog, sequence)
            used = [c for c in _live_columns(table) if quote_literal(name) in (c.default or "")]
            place = (column or [*used, *_live_columns(table)][0]).name
            owner = f"{_qualified_name(catalog, table)}.{quote(place)}"
            yield f"ALTER SEQUENCE {name} OWNED BY {owner};"


def _sequence_options(sequence: Sequence) -> str:
    return (
        f"START WITH {sequence.start} INCREMENT BY {sequence.increment}"
        f" MINVALUE {sequence.minimum} MAXVALUE {sequence.maximum}"
        + (" CYCLE" if sequence.cycle else "")
    )


def _restart_sequences(db: DumpSource) -> Iterator[str]:
    """Set the next number of sequences that have been used."""
    for sequence in sorted(
        _objects_of_type(db.catalog, Sequence), key=lambda one: (one.schema, one.name)
    ):
        found = db.store.get(_SEQUENCE_KEY.encode((sequence.id,)))
        if found is None:
            continue
        (last,) = _SEQUENCE_ROW.decode(found)
        following = last + sequence.increment
        name = _qualified_name(db.catalog, sequence)
        if sequence.minimum <= last <= sequence.maximum:
            yield f"SELECT setval({quote_literal(name)}, {last});"
        elif sequence.minimum <= following <= sequence.maximum:
            yield f"ALTER SEQUENCE {name} RESTART WITH {following};"


# -- foreign tables --------------------------------------------------------------------------------


def _create_foreign_objects(catalog: Catalog) -> Iterator[str]:
    for server in _objects_of_type(catalog, ForeignServer):
        yield (
            f"CREATE SERVER {quote(server.name)} FOREIGN DATA WRAPPER {quote(server.wrapper)}"
            f"{_options_clause(server.options)};"
        )
    for table in _objects_of_type(catalog, ForeignTable):
        columns = [
            f"  {quote(column.name)} {column.type}{_options_clause(options)}"
            + (" NOT NULL" if column.not_null else "")
            for column, options in zip(table.columns, table.column_options)
        ]
        listed = ",\n".join(columns)
        server_name = quote(catalog.objects[table.server].name)
        yield (
            f"CREATE FOREIGN TABLE {_qualified_name(catalog, table)} (\n{listed}\n)"
            f" SERVER {server_name}{_options_clause(table.options)};"
        )


def _options_clause(options: dict[str, str]) -> str:
    said = [f"{quote(name)} {quote_literal(value)}" for name, value in options.items()]
    return f" OPTIONS ({', '.join(said)})" if said else ""


# -- views -----------------------------------------------------------------------------------------


def _order_views(catalog: Catalog) -> Iterator[View | PlainView]:
    """Each view after those that it reads: next is one that binds without the rest."""
    waiting: list[View | PlainView] = [
        *_objects_of_type(catalog, PlainView),
        *(view for view in list_user_views(catalog) if view.index is None),
    ]
    waiting.sort(key=lambda one: one.id)
    known = {key: item for key, item in catalog.objects.items() if not _is_view(item)}
    while waiting:
        under = Catalog(known)
        chosen = next((view for view in waiting if _can_bind(view, under)), waiting[0])
        waiting.remove(chosen)
        known = {**known, chosen.id: chosen}
        yield chosen


def list_user_views(catalog: Catalog) -> list[View]:
    """Those that a user asked for, by their own names."""
    return [view for view in catalog.views if not view.part and view.replaces is None]


def _is_view(item: object) -> bool:
    return isinstance(item, View | PlainView)


def _can_bind(view: View | PlainView, catalog: Catalog) -> bool:
    try:
        bind_statement(parse_script(view.definition)[0].tree, catalog)
    except (InvalidInput, Unsupported):
        return False
    return True


def _create_view(catalog: Catalog, view: View | PlainView) -> str:
    columns = ", ".join(quote(column.name) for column in view.columns)
    kind = "VIEW" if isinstance(view, PlainView) else "MATERIALIZED VIEW"
    options = {} if isinstance(view, PlainView) else view.options.texts
    return (
        f"\nCREATE {kind} {_qualified_name(catalog, view)} ({columns}){_with_clause(options)} AS\n"
        f"  {view.definition};"
    )


def _create_view_index(catalog: Catalog, index: View) -> str:
    """CREATE INDEX for an index that is stored as a view, over a view or a table."""
    read = catalog.objects[(index.reads or index.inputs)[0]]
    assert isinstance(read, View | Table)
    names = [column.name for column in index.columns]
    assert index.index is not None
    keys = names[: index.index.key_count]
    unique = "UNIQUE " if index.is_unique else ""
    options = index.options.select_texts(KNOWN_OPTIONS)
    return (
        f"CREATE {unique}INDEX {quote(index.name)} ON {_qualified_name(catalog, read)}"
        f" ({', '.join(map(quote, keys))}){_with_clause(options)};"
    )


# -- parts of statements ---------------------------------------------------------------------------


def _objects_of_type(catalog: Catalog, kind: type[T]) -> list[T]:
    found = [item for item in catalog.objects.values() if isinstance(item, kind)]
    return sorted(found, key=lambda item: item.id)


def _qualified_name(catalog: Catalog, item: Named) -> str:
    return _schema_prefix(catalog, item) + quote(item.name)


def _schema_prefix(catalog: Catalog, item: Named) -> str:
    """The quoted schema with a dot; empty for `public`."""
    schema = next(one.name for one in catalog.schemas if one.id == item.schema)
    return "" if schema == PUBLIC else f"{quote(schema)}."


def _live_columns(table: Table) -> list[CatalogColumn]:
    return [column for column in table.columns if not column.dropped and not column.hidden]


def _column_list(table: Table, slots: tuple[int, ...]) -> str:
    return ", ".join(quote(table.columns[slot].name) for slot in slots)


def _with_clause(options: dict[str, str]) -> str:
    said = [f"{name} = {quote_literal(value)}" for name, value in options.items()]
    return f" WITH ({', '.join(said)})" if said else ""
