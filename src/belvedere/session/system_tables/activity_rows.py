"""pg_stat_activity, pg_locks and the counts of pg_stat_*: what happens now.

What is not counted is NULL, where PostgreSQL has a number: reads, changes and dead rows by table.
Who may not see another role's statements sees that it is there.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from belvedere.catalog.model import Table
from belvedere.catalog.rights.builtin_roles import MONITOR
from belvedere.codec.keyspace import ROW_PREFIX_BYTES
from belvedere.session.system_tables.pg_catalog import oids
from belvedere.session.system_tables.pg_catalog.columns import load_catalog_tables, make_row_builder
from belvedere.session.system_tables.pg_catalog.relations import find_relations
from belvedere.types import Row
from belvedere.values.type_oids import FIRST_OBJECT_OID

if TYPE_CHECKING:
    from belvedere.session.session import Session

_HIDDEN = "<insufficient privilege>"


def _list_activity(session: Session) -> Iterator[Row]:
    build, catalog = make_row_builder("pg_stat_activity"), session.catalog
    rights = session.identity.find_rights_unless_superuser(catalog)
    sees_all = rights is None or rights.has_role(MONITOR)
    for one in session.shared.sessions.list_sessions():
        known = one.activity
        role = one.identity.authorization
        head = {
            "datid": oids.DATABASE_OID,
            "datname": session.identity.database,
            "pid": one.notifications.process,
            "leader_pid": None,
            "usesysid": oids.find_role_oid(role),
            "usename": one.identity.name_role(catalog, role),
            "backend_xid": None,
            "backend_xmin": None,
            "query_id": None,
            "client_port": None,
        }
        if not sees_all and role != session.identity.authorization:
            yield build(**head, query=_HIDDEN)
            continue
        yield build(
            **{**head, "client_port": known.port if known.address else -1},
            application_name=one.settings.get_shown_text("application_name"),
            client_addr=known.address,
            backend_start=_make_instant(known.session_start),
            query_start=_make_instant(known.statement_start),
            state_change=_make_instant(known.statement_start),
            state=_describe_state(one),
            query=known.text,
            backend_type="client backend",
        )


def _describe_state(session: Session) -> str:
    state = session.transactions
    if session.is_running:
        return "active"
    if state.open is None:
        return "idle"
    return "idle in transaction (aborted)" if state.failed else "idle in transaction"


def _make_instant(seconds: float | None) -> datetime.datetime | None:
    return None if seconds is None else datetime.datetime.fromtimestamp(seconds, datetime.UTC)


def _list_locks(session: Session) -> Iterator[Row]:
    """A lock of the key of a row is one of a tuple, and keeps out all others."""
    build, catalog = make_row_builder("pg_locks"), session.catalog
    processes = {
        one.transactions.open.id: one.notifications.process
        for one in session.shared.sessions.list_sessions()
        if one.transactions.open is not None
    }
    for held in session.host.locks.list_locks():
        place = held.key[1:ROW_PREFIX_BYTES] if held.kind == "root" else held.key
        relation = int.from_bytes(place) if held.kind in ("root", "table") else None
        known = relation is not None and isinstance(catalog.objects.get(relation), Table)
        yield build(
            locktype={"root": "tuple", "table": "relation"}.get(held.kind, "object"),
            database=oids.DATABASE_OID,
            relation=FIRST_OBJECT_OID + relation if relation is not None and known else None,
            page=None,
            tuple=None,
            transactionid=None,
            classid=None,
            objid=None,
            objsubid=None,
            virtualtransaction=held.owner.hex(),
            pid=processes.get(held.owner),
            mode="ShareLock" if held.shared else "ExclusiveLock",
            granted=held.granted,
        )


def _list_databases(session: Session) -> Iterator[Row]:
    """Positions of the log are the commits that changed something."""
    known = {
        "datid": oids.DATABASE_OID,
        "datname": session.identity.database,
        "numbackends": len(session.shared.sessions.list_sessions()),
        "xact_commit": session.host.position,
    }
    yield _make_counted_row("pg_stat_database", known)


def _list_tables(session: Session, name: str) -> Iterator[Row]:
    relations = find_relations(session.catalog)
    for one in relations.every_relation:
        if one.kind in "rm" and one.item is not None:
            rows = session.shared.estimate_table_rows(one.item.id) if one.kind == "r" else None
            known = {
                "relid": one.oid,
                "schemaname": one.schema,
                "relname": one.name,
                "n_live_tup": None if rows is None else int(rows),
            }
            yield _make_counted_row(name, known)


def _list_indexes(session: Session, name: str) -> Iterator[Row]:
    relations = find_relations(session.catalog)
    for one in relations.every_relation:
        if one.shape is not None:
            table = relations.by_oid[one.shape.relation]
            known = {
                "relid": table.oid,
                "indexrelid": one.oid,
                "schemaname": one.schema,
                "relname": table.name,
                "indexrelname": one.name,
            }
            yield _make_counted_row(name, known)


def _make_counted_row(table: str, known: dict[str, object]) -> Row:
    """A row in which everything else is NULL: it is not counted."""
    return tuple([known.get(field.name) for field in load_catalog_tables()[table].fields])


ROWS: dict[str, Callable[[Session], Iterator[Row]]] = {
    "pg_locks": _list_locks,
    "pg_stat_activity": _list_activity,
    "pg_stat_all_indexes": lambda session: _list_indexes(session, "pg_stat_all_indexes"),
    "pg_stat_all_tables": lambda session: _list_tables(session, "pg_stat_all_tables"),
    "pg_stat_database": _list_databases,
    "pg_stat_sys_indexes": lambda session: iter(()),
    "pg_stat_sys_tables": lambda session: iter(()),
    "pg_stat_user_indexes": lambda session: _list_indexes(session, "pg_stat_user_indexes"),
    "pg_stat_user_tables": lambda session: _list_tables(session, "pg_stat_user_tables"),
}
