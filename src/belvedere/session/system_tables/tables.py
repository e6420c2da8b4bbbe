"""System tables: information_schema, and Belvedere's own under the schema `belvedere`.

Each is a tuple of fields and a function that computes its rows when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import (
    ForeignTable,
    Index,
    PlainView,
    Sequence,
    Table,
)
from belvedere.catalog.rights.builtin_roles import name_role
from belvedere.errors import InvalidInput
from belvedere.plan.fields import Field, Fields
from belvedere.plan.functions import text_formatter
from belvedere.session.system_tables import activity_rows, information_rows, views_table
from belvedere.session.system_tables.pg_catalog import tables as pg_catalog
from belvedere.session.system_tables.pg_catalog.columns import load_catalog_tables
from belvedere.session.system_tables.pg_catalog.foreign_objects import INFORMATION_TABLES
from belvedere.session.system_tables.pg_catalog.functions import CatalogAnswers
from belvedere.session.system_tables.pg_catalog.privileges import can_see_relation
from belvedere.session.system_tables.pg_catalog.relations import has_hidden_row_id
from belvedere.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    TEXT,
    Row,
    SqlType,
)

if TYPE_CHECKING:
    from belvedere.session.session import Session

DATABASE = "belvedere"
INFORMATION = "information_schema"
LOG_ROWS_MAX = 10_000


class SystemTable(NamedTuple):
    fields: Fields
    rows: Callable[[Session], Iterable[Row]]


class SystemTables:
    """The system tables as one session sees them."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.ask_catalog = CatalogAnswers(session).ask_catalog

    def find_table_fields(self, schema: str, name: str) -> Fields | None:
        if schema == pg_catalog.SCHEMA:
            known = load_catalog_tables().get(name)
            return None if known is None else known.fields
        found = TABLES.get((schema, name))
        return None if found is None else found.fields

    def read_table_rows(self, schema: str, name: str) -> Iterable[Row]:
        if schema == pg_catalog.SCHEMA:
            live = activity_rows.ROWS.get(name)
            return (
                live(self._session) if live else pg_catalog.read_catalog_rows(self._session, name)
            )
        found = TABLES.get((schema, name))
        if found is None:
            raise InvalidInput("relation does not exist", sqlstate="42P01", name=f"{schema}.{name}")
        rows = found.rows(self._session)
        if schema != INFORMATION:
            return rows
        return _filter_rows_for_role(self._session, found.fields, rows)


def _filter_rows_for_role(session: Session, fields: Fields, rows: Iterable[Row]) -> Iterator[Row]:
    """Rows of information_schema: under the name of the session's database, and only what its role
    has a right on."""
    names = [field.name for field in fields]
    places = [i for i, name in enumerate(names) if name.endswith("_catalog")]
    places += [i for i, name in enumerate(names) if name == "catalog_name"]
    about = [names.index(one) for one in ("table_schema", "table_name") if one in names]
    for row in rows:
        named = [str(row[place]) for place in about]
        if len(named) == 2 and not can_see_relation(session, *named):
            continue
        shown = list(row)
        for place in places:
            if shown[place] is not None:
                shown[place] = session.identity.database
        yield tuple(shown)


def _make_fields(text: str, **others: SqlType) -> Fields:
    """Fields of these names, TEXT unless `others` has a type."""
    return tuple(Field(name, others.get(name, TEXT)) for name in text.split())


def _map_schema_ids_to_names(catalog: Catalog) -> dict[int, str]:
    return {schema.id: schema.name for schema in catalog.schemas}


# -- information_schema ----------------------------------------------------------------------------


def _list_schemata(session: Session) -> Iterator[Row]:
    ids = {schema.name: schema.id for schema in session.catalog.schemas}
    for name in [
        *_map_schema_ids_to_names(session.catalog).values(),
        "information_schema",
        DATABASE,
    ]:
        owner = session.catalog.find_owner(ids.get(name, -1))
        yield DATABASE, name, name_role(session.catalog, owner)


_KINDS = {Table: "BASE TABLE", ForeignTable: "FOREIGN", PlainView: "VIEW"}


def _list_tables_and_views(session: Session) -> Iterator[Row]:
    for schema, item in information_rows.list_shown_relations(session.catalog):
        kind = _KINDS.get(type(item), "MATERIALIZED VIEW")
        yield DATABASE, schema, item.name, kind, "YES" if isinstance(item, Table) else "NO"
    for schema, name in TABLES:
        yield DATABASE, schema, name, "VIEW", "NO"


def _list_table_constraints(session: Session) -> Iterator[Row]:
    names = _map_schema_ids_to_names(session.catalog)
    for table in session.catalog.tables:
        head = (DATABASE, names[table.schema])
        tail = (*head, table.name)
        if not has_hidden_row_id(table):
            yield *head, table.primary_key_name, *tail, "PRIMARY KEY", "NO", "NO", "YES"
        for index in session.catalog.table_indexes(table.id):
            if index.constraint:
                yield *head, index.name, *tail, "UNIQUE", "NO", "NO", "YES"
        for key in table.foreign_keys:
            later = "YES" if key.deferrable else "NO", "YES" if key.initially_deferred else "NO"
            yield *head, key.name, *tail, "FOREIGN KEY", *later, "YES" if key.enforced else "NO"
        for check in table.checks:
            yield *head, check.name, *tail, "CHECK", "NO", "NO", "YES"


def _list_key_column_usage(session: Session) -> Iterator[Row]:
    names = _map_schema_ids_to_names(session.catalog)
    for table in session.catalog.tables:
        schema = names[table.schema]
        keys: list[tuple[str, tuple[int | None, ...], bool]] = []
        if not has_hidden_row_id(table):
            keys.append((table.primary_key_name, table.primary_key, False))
        for index in session.catalog.table_indexes(table.id):
            if index.constraint:
                keys.append((index.name, tuple(part.slot for part in index.parts), False))
        keys += [(key.name, key.columns, True) for key in table.foreign_keys]
        for name, slots, refers in keys:
            for number, slot in enumerate(slots, 1):
                column = table.columns[slot].name if slot is not None else None
                place = number if refers else None
                yield DATABASE, schema, name, DATABASE, schema, table.name, column, number, place


def _list_referential_constraints(session: Session) -> Iterator[Row]:
    catalog, names = session.catalog, _map_schema_ids_to_names(session.catalog)
    for table in catalog.tables:
        for key in table.foreign_keys:
            parent = catalog.table(key.parent)
            unique = parent.primary_key_name
            if key.parent_index is not None:
                index = catalog.get(key.parent_index)
                unique = index.name if isinstance(index, Index) else unique
            own = (DATABASE, names[table.schema], key.name)
            other = (DATABASE, names[parent.schema], unique)
            rules = (key.on_update.value.upper(), key.on_delete.value.upper())
            yield *own, *other, "NONE", *rules


def _list_check_constraints(session: Session) -> Iterator[Row]:
    names = _map_schema_ids_to_names(session.catalog)
    for table in session.catalog.tables:
        for check in table.checks:
            yield DATABASE, names[table.schema], check.name, check.expression


def _list_plain_views(session: Session) -> Iterator[Row]:
    catalog, names = session.catalog, _map_schema_ids_to_names(session.catalog)
    for item in catalog.objects.values():
        if isinstance(item, PlainView):
            yield DATABASE, names[item.schema], item.name, item.definition, "NONE", "NO", "NO"


def _list_sequences(session: Session) -> Iterator[Row]:
    names = _map_schema_ids_to_names(session.catalog)
    for item in session.catalog.objects.values():
        if isinstance(item, Sequence):
            limits = (str(item.start), str(item.minimum), str(item.maximum), str(item.increment))
            cycle = "YES" if item.cycle else "NO"
            yield DATABASE, names[item.schema], item.name, "bigint", 64, 2, 0, *limits, cycle


# -- belvedere -------------------------------------------------------------------------------------


def _list_belvedere_tables(session: Session) -> Iterator[Row]:
    catalog, names = session.catalog, _map_schema_ids_to_names(session.catalog)
    for table in catalog.tables:
        indexes = len([i for i in catalog.table_indexes(table.id) if not i.hidden])
        rows = int(session.shared.estimate_table_rows(table.id))
        yield names[table.schema], table.name, table.id, rows, indexes, table.partitions


def _list_column_statistics(session: Session) -> Iterator[Row]:
    """The optimizer's column statistics, from its newest sample of each table."""
    catalog, names = session.catalog, _map_schema_ids_to_names(session.catalog)
    known = session.shared.table_statistics
    for table in catalog.tables:
        for column in table.columns:
            if column.dropped or column.hidden or table.id not in session.host.catalog.objects:
                continue
            found = known.column_summary(table.id, column.slot)
            if found is None:
                continue
            show = text_formatter(column.type)
            bounds = [show(value) for value in found.bounds[:: max(1, len(found.bounds) - 1)]]
            lowest, highest = bounds if len(bounds) == 2 else (None, None)
            common = sorted(found.common.items(), key=lambda pair: -pair[1])[:10]
            listed = ", ".join(f"{show(value)} {share:.4f}" for value, share in common)
            counts = (int(known.row_count(table.id)), round(found.distinct), round(found.nulls, 4))
            where = (names[table.schema], table.name, column.name)
            yield (*where, *counts, lowest, highest, listed)


def _list_statement_statistics(session: Session) -> Iterator[Row]:
    for one in session.shared.statistics.list_records():
        mean = one.total_us / one.calls / 1000 if one.calls else 0.0
        longest = one.max_us / 1000
        yield (
            one.text,
            one.calls,
            one.errors,
            one.rows,
            one.total_us / 1000,
            mean,
            longest,
            one.tier,
        )


def _list_locks(session: Session) -> Iterator[Row]:
    for held in session.host.locks.list_locks():
        mode = "share" if held.shared else "exclusive"
        yield held.kind, held.key.hex(), held.owner.hex(), mode, held.granted


def _list_nodes(session: Session) -> Iterator[Row]:
    for each in session.host.engine.list_nodes():
        yield tuple(each)


def _list_node_locks(session: Session) -> Iterator[Row]:
    for each in session.host.engine.list_node_locks():
        yield each.kind, each.key.hex(), each.node, each.attempt, each.side, each.position


def _list_regions(session: Session) -> Iterator[Row]:
    for each in session.host.engine.list_regions():
        yield each.table, each.start.hex(), each.end.hex(), each.server


def _list_housekeeping_failures(session: Session) -> Iterator[Row]:
    failure = session.host.housekeeping_failure
    task = "heartbeat and sweep" if session.host.row_atomic else "trimming"
    yield task, None if failure is None else str(failure), failure and failure.sqlstate


def _list_log_records(session: Session) -> Iterator[Row]:
    log = session.host.log
    start = max(log.first_position - 1, session.host.position - LOG_ROWS_MAX)
    for record in log.read(start):
        yield record.position, record.time, record.catalog_version, sum(1 for _ in record.changes())


def _list_settings(session: Session) -> Iterator[Row]:
    for name, setting in sorted(session.settings.settings_by_name().items()):
        yield name, session.show_setting(name), setting.description


TABLES: dict[tuple[str, str], SystemTable] = {
    ("information_schema", "schemata"): SystemTable(
        _make_fields("catalog_name schema_name schema_owner"), _list_schemata
    ),
    ("information_schema", "tables"): SystemTable(
        _make_fields("table_catalog table_schema table_name table_type is_insertable_into"),
        _list_tables_and_views,
    ),
    ("information_schema", "table_constraints"): SystemTable(
        _make_fields(
            "constraint_catalog constraint_schema constraint_name table_catalog table_schema "
            "table_name constraint_type is_deferrable initially_deferred enforced"
        ),
        _list_table_constraints,
    ),
    ("information_schema", "key_column_usage"): SystemTable(
        _make_fields(
            "constraint_catalog constraint_schema constraint_name table_catalog table_schema "
            "table_name column_name ordinal_position position_in_unique_constraint",
            ordinal_position=INTEGER,
            position_in_unique_constraint=INTEGER,
        ),
        _list_key_column_usage,
    ),
    ("information_schema", "referential_constraints"): SystemTable(
        _make_fields(
            "constraint_catalog constraint_schema constraint_name unique_constraint_catalog "
            "unique_constraint_schema unique_constraint_name match_option update_rule delete_rule"
        ),
        _list_referential_constraints,
    ),
    ("information_schema", "check_constraints"): SystemTable(
        _make_fields("constraint_catalog constraint_schema constraint_name check_clause"),
        _list_check_constraints,
    ),
    ("information_schema", "views"): SystemTable(
        _make_fields(
            "table_catalog table_schema table_name view_definition check_option is_updatable "
            "is_insertable_into"
        ),
        _list_plain_views,
    ),
    ("information_schema", "sequences"): SystemTable(
        _make_fields(
            "sequence_catalog sequence_schema sequence_name data_type numeric_precision "
            "numeric_precision_radix numeric_scale start_value minimum_value maximum_value "
            "increment cycle_option",
            numeric_precision=INTEGER,
            numeric_precision_radix=INTEGER,
            numeric_scale=INTEGER,
        ),
        _list_sequences,
    ),
    **{
        (INFORMATION, name): SystemTable(_make_fields(columns), rows)
        for name, (columns, rows) in INFORMATION_TABLES.items()
    },
    **{
        (INFORMATION, name): SystemTable(fields, rows)
        for name, (fields, rows) in information_rows.TABLES.items()
    },
    (DATABASE, "tables"): SystemTable(
        _make_fields(
            "schema name id rows_estimate indexes partitions",
            id=BIGINT,
            rows_estimate=BIGINT,
            indexes=INTEGER,
            partitions=INTEGER,
        ),
        _list_belvedere_tables,
    ),
    (DATABASE, "statistics"): SystemTable(
        _make_fields(
            "schema table_name column_name rows_estimate distinct_estimate null_share lowest "
            "highest common",
            rows_estimate=BIGINT,
            distinct_estimate=BIGINT,
            null_share=DOUBLE,
        ),
        _list_column_statistics,
    ),
    (DATABASE, "views"): SystemTable(views_table.FIELDS, views_table.list_view_status_rows),
    (DATABASE, "auxiliary_views"): SystemTable(
        views_table.FIELDS, views_table.list_auxiliary_status_rows
    ),
    (DATABASE, "statements"): SystemTable(
        _make_fields(
            "text calls errors rows total_ms mean_ms max_ms tier",
            calls=BIGINT,
            errors=BIGINT,
            rows=BIGINT,
            total_ms=DOUBLE,
            mean_ms=DOUBLE,
            max_ms=DOUBLE,
        ),
        _list_statement_statistics,
    ),
    (DATABASE, "locks"): SystemTable(
        _make_fields("kind key transaction mode granted", granted=BOOLEAN), _list_locks
    ),
    (DATABASE, "nodes"): SystemTable(
        _make_fields(
            "node beat here alive silent_seconds oldest_snapshot lease_seconds grace_seconds",
            node=BIGINT,
            beat=BIGINT,
            here=BOOLEAN,
            alive=BOOLEAN,
            silent_seconds=DOUBLE,
            oldest_snapshot=BIGINT,
            lease_seconds=DOUBLE,
            grace_seconds=DOUBLE,
        ),
        _list_nodes,
    ),
    (DATABASE, "node_locks"): SystemTable(
        _make_fields(
            "kind key node attempt side position",
            node=BIGINT,
            attempt=BIGINT,
            side=BIGINT,
            position=BIGINT,
        ),
        _list_node_locks,
    ),
    (DATABASE, "regions"): SystemTable(
        _make_fields("table_name start_key end_key server"), _list_regions
    ),
    (DATABASE, "housekeeping"): SystemTable(
        _make_fields("task error sqlstate"), _list_housekeeping_failures
    ),
    (DATABASE, "log"): SystemTable(
        _make_fields(
            "position committed_us catalog_version changes",
            position=BIGINT,
            committed_us=BIGINT,
            catalog_version=BIGINT,
            changes=BIGINT,
        ),
        _list_log_records,
    ),
    (DATABASE, "settings"): SystemTable(_make_fields("name setting description"), _list_settings),
}
