"""The HBase tables of a database, all in its namespace: made at the first opening, checked at each.

    ns:rows     every row of a relation, and nothing else
    ns:system   the rest: counter, locks, the log in its lanes, outcomes, heartbeats

All have the one column family `c`, every version kept: what may go is removed by the vacuum. Each
carries a mark with the format of the layout, so that a namespace that is not ours, or newer than
this program, is refused and never written to.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from belvedere.errors import Corruption, Error, InvalidInput, Unavailable, Unsupported
from belvedere.kv.cell import CellScan
from belvedere.kv.hbase.exchange import Exchange
from belvedere.kv.hbase.requests import FAMILY, GatewayCall, scan_call
from belvedere.kv.hbase.thrift_types import VERSIONS_ALL, load_types

TABLES_FORMAT = 4
MARK = b"belvedere.format"
REGIONS = b"belvedere.regions"
"""An attribute: how many regions begin at a key that was chosen when the table was made."""

ROWS, SYSTEM = "rows", "system"
ADMIN_SECONDS_MAX = 60.0
POLL_SECONDS = 0.1
_FOREVER = 2**31 - 1


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Which keys are rows of relations: those that begin with one of these bytes, from the first to
    the last. Where the tables are split into regions when they are made."""

    rows_bytes: tuple[int, int]
    rows_splits: tuple[bytes, ...] = ()
    system_splits: tuple[bytes, ...] = ()


class TableRouter:
    """Which table a key is in."""

    def __init__(self, namespace: str, layout: TableLayout) -> None:
        self._first, self._last = layout.rows_bytes
        self._rows = f"{namespace}:{ROWS}".encode()
        self._system = f"{namespace}:{SYSTEM}".encode()

    def table_of(self, row: bytes) -> bytes:
        return self._rows if row and self._first <= row[0] <= self._last else self._system

    def split_scan(self, scan: CellScan) -> Iterator[tuple[bytes, bytes, bytes | None]]:
        """The parts of a range as (table, start, end), in the order of the scan."""
        first, after = bytes((self._first,)), bytes((self._last + 1,))
        parts = [
            (self._system, b"", first),
            (self._rows, first, after),
            (self._system, after, None),
        ]
        for table, low, high in reversed(parts) if scan.reverse else parts:
            start = max(low, scan.start)
            ends = [end for end in (high, scan.end) if end is not None]
            end = min(ends) if ends else None
            if end is None or start < end:
                yield table, start, end


def open_tables(exchange: Exchange, layout: TableLayout, *, create: bool) -> None:
    """Make sure that the namespace holds the tables of a database, and nothing is wrong with
    them."""
    namespace = exchange.url.namespace
    if namespace not in _ask_gateway(exchange, "listNamespaces"):
        if not create:
            raise InvalidInput("there is no such database", sqlstate="3D000", namespace=namespace)
        _change_tables(exchange, "createNamespace", namespaceDesc=_namespace(namespace))
    found = set(list_tables(exchange))
    if found and not found & {ROWS, SYSTEM}:
        raise InvalidInput(
            "the namespace holds tables that belvedere did not make",
            sqlstate="42809",
            namespace=namespace,
            table=min(found),
            hint="choose another namespace",
        )
    if found < {ROWS, SYSTEM} and not create:
        raise InvalidInput("there is no such database", sqlstate="3D000", namespace=namespace)
    if SYSTEM in found and ROWS not in found:
        raise Corruption("a table of the store is gone", table=ROWS, namespace=namespace)
    for name, splits in ((ROWS, layout.rows_splits), (SYSTEM, layout.system_splits)):
        if name not in found:
            make_table(exchange, name, splits)
        _check_table(exchange, name)
        _wait_available(exchange, name)
        if name == ROWS and SYSTEM not in found:
            _require_empty(exchange, name)


def _require_empty(exchange: Exchange, name: str) -> None:
    """The system table is made last: without it there are no rows, or it was removed."""
    table = f"{exchange.url.namespace}:{name}".encode()
    if exchange.perform_call(scan_call(table, CellScan(b"", None), 1)):
        raise Corruption("a table of the store is gone", table=SYSTEM, beside=name)


def list_tables(exchange: Exchange) -> list[str]:
    """The names, without the namespace, of the tables in it."""
    found = _ask_gateway(exchange, "getTableNamesByNamespace", name=exchange.url.namespace)
    return [each.qualifier.decode() for each in found]


def list_regions(exchange: Exchange) -> list[tuple[str, bytes, bytes, str]]:
    """Table, first key, end and server of every region."""
    found = []
    for name in list_tables(exchange):
        table = f"{exchange.url.namespace}:{name}"
        for each in _ask_gateway(exchange, "getAllRegionLocations", table=table.encode()):
            region, server = each.regionInfo, each.serverName
            ends = (region.startKey or b"", region.endKey or b"")
            found.append((table, *ends, f"{server.hostName}:{server.port}"))
    return found


def make_table(exchange: Exchange, name: str, splits: tuple[bytes, ...]) -> None:
    types = load_types()
    family = types.TColumnFamilyDescriptor(
        name=FAMILY, maxVersions=VERSIONS_ALL, keepDeletedCells=0, timeToLive=_FOREVER
    )
    described = types.TTableDescriptor(
        tableName=_table_name(exchange, name),
        columns=[family],
        attributes={MARK: str(TABLES_FORMAT).encode(), REGIONS: str(len(splits)).encode()},
    )
    _change_tables(exchange, "createTable", desc=described, splitKeys=list(splits) or None)


def drop_tables(exchange: Exchange) -> None:
    """Remove the database, and its namespace."""
    for name in list_tables(exchange):
        table = _table_name(exchange, name)
        _change_tables(exchange, "disableTable", tableName=table)
        _change_tables(exchange, "deleteTable", tableName=table)
    _change_tables(exchange, "deleteNamespace", name=exchange.url.namespace)


def _change_tables(exchange: Exchange, name: str, /, **arguments: Any) -> None:
    """A change of tables. Another process may be making the same one: whether it is there is asked
    afterwards."""
    try:
        exchange.perform_call(GatewayCall(name, arguments, _as_it_is), ADMIN_SECONDS_MAX)
    except Unavailable as error:
        if "exists" not in str(error).lower():
            raise


def _ask_gateway(exchange: Exchange, name: str, /, **arguments: Any) -> Any:
    return exchange.perform_call(GatewayCall(name, arguments, _as_it_is, repeatable=True))


def _as_it_is(answer: Any) -> Any:
    return answer


def _check_table(exchange: Exchange, name: str) -> None:
    """Refuse what belvedere did not make, or what was altered since."""
    table = _ask_gateway(exchange, "getTableDescriptor", table=_table_name(exchange, name))
    facts: dict[str, Any] = {"namespace": exchange.url.namespace, "table": name}
    mark = (table.attributes or {}).get(MARK)
    if mark is None:
        raise InvalidInput(
            "the namespace holds tables that belvedere did not make",
            sqlstate="42809",
            hint="choose another namespace",
            **facts,
        )
    if mark != str(TABLES_FORMAT).encode():
        raise Unsupported(
            "tables are of another format than this program knows",
            hint="open them with another release of belvedere",
            found=mark.decode(errors="replace"),
            known=TABLES_FORMAT,
            **facts,
        )
    _check_regions(exchange, name, table.attributes, facts)
    families = {each.name: each for each in table.columns or ()}
    family = families.get(FAMILY)
    if family is None or len(families) > 1:
        raise _altered_table_error("its column families", facts)
    if family.maxVersions != VERSIONS_ALL or family.timeToLive not in (None, _FOREVER):
        raise _altered_table_error("how long cells are kept", facts)
    if family.keepDeletedCells:
        raise _altered_table_error("deleted cells are kept", facts)


def _check_regions(
    exchange: Exchange, name: str, attributes: dict[bytes, bytes], facts: dict[str, Any]
) -> None:
    """What the URL says of regions is for a new database; another number cannot be meant."""
    wanted, made = exchange.url.regions, attributes.get(REGIONS, b"").decode()
    if name == ROWS and wanted is not None and made != str(wanted):
        raise InvalidInput(
            "the database was made with another number of regions",
            sqlstate="22023",
            hint="leave out the option 'regions'",
            found=made,
            **facts,
        )


def _altered_table_error(what: str, facts: dict[str, Any]) -> Error:
    return Corruption("a table of the store was altered", detail=what, **facts)


def _wait_available(exchange: Exchange, name: str) -> None:
    """Another process may have made the table, and its regions not be open yet."""
    deadline = time.monotonic() + ADMIN_SECONDS_MAX
    while not _ask_gateway(exchange, "isTableAvailable", tableName=_table_name(exchange, name)):
        if time.monotonic() > deadline:
            raise Unavailable("a table does not become available", sqlstate="57P03", table=name)
        time.sleep(POLL_SECONDS)


def _table_name(exchange: Exchange, name: str) -> Any:
    types = load_types()
    return types.TTableName(ns=exchange.url.namespace.encode(), qualifier=name.encode())


def _namespace(name: str) -> Any:
    return load_types().TNamespaceDescriptor(name=name)
