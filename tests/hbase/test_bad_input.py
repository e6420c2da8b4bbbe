"""Databases that are not there, not ours, of another format, or altered: one clear error each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import belvedere
from belvedere.errors import Corruption, InvalidInput, Unsupported
from belvedere.kv.hbase import tables
from belvedere.kv.hbase.exchange import Exchange
from belvedere.kv.hbase.requests import FAMILY, GatewayCall
from belvedere.kv.hbase.store import HBaseCells
from belvedere.kv.hbase.tables import TableLayout
from belvedere.kv.hbase.thrift_types import VERSIONS_ALL, load_types
from belvedere.kv.hbase.url import parse_url

LAYOUT = TableLayout(rows_bytes=(0x10, 0x11))


@pytest.fixture
def exchange(url: str) -> Iterator[Exchange]:
    """Connections to a namespace that is there, and empty."""
    opened = Exchange(parse_url(url))
    make = load_types().TNamespaceDescriptor(name=opened.url.namespace)
    opened.perform_call(GatewayCall("createNamespace", {"namespaceDesc": make}, bool), 60)
    yield opened
    opened.close()


def make_table(exchange: Exchange, name: str, mark: bytes | None, /, **family: Any) -> None:
    """A table as somebody else might have made it."""
    types = load_types()
    settings = {"name": FAMILY, "maxVersions": VERSIONS_ALL, **family}
    described = types.TTableDescriptor(
        tableName=types.TTableName(ns=exchange.url.namespace.encode(), qualifier=name.encode()),
        columns=[types.TColumnFamilyDescriptor(**settings)],
        attributes={} if mark is None else {tables.MARK: mark},
    )
    exchange.perform_call(GatewayCall("createTable", {"desc": described}, bool), 60)


def open_store(url: str, *, create: bool = True) -> None:
    HBaseCells(parse_url(url), LAYOUT, create=create).close()


def test_a_database_that_is_not_there_is_not_made_unasked(url: str, exchange: Exchange) -> None:
    with pytest.raises(InvalidInput) as missing:
        open_store(url, create=False)
    assert missing.value.sqlstate == "3D000"
    assert tables.list_tables(exchange) == []


def test_a_namespace_of_others_is_left_alone(url: str, exchange: Exchange) -> None:
    make_table(exchange, "invoices", None)
    with pytest.raises(belvedere.ProgrammingError) as refused:
        belvedere.connect(url)
    assert refused.value.sqlstate == "42809"
    assert tables.list_tables(exchange) == ["invoices"]


def test_a_table_of_others_with_one_of_our_names_is_left_alone(
    url: str, exchange: Exchange
) -> None:
    make_table(exchange, tables.ROWS, None)
    with pytest.raises(InvalidInput, match="did not make"):
        open_store(url)
    assert tables.list_tables(exchange) == [tables.ROWS]


def test_another_format_is_refused(url: str, exchange: Exchange) -> None:
    make_table(exchange, tables.ROWS, str(tables.TABLES_FORMAT + 1).encode())
    with pytest.raises(Unsupported) as refused:
        open_store(url)
    assert refused.value.facts["found"] == str(tables.TABLES_FORMAT + 1)


@pytest.mark.parametrize("family", [{"maxVersions": 3}, {"timeToLive": 60}, {"name": b"d"}])
def test_an_altered_table_is_refused(url: str, exchange: Exchange, family: dict[str, Any]) -> None:
    make_table(exchange, tables.ROWS, str(tables.TABLES_FORMAT).encode(), **family)
    with pytest.raises(Corruption, match="was altered"):
        open_store(url)


@pytest.mark.parametrize("name", [tables.ROWS, tables.SYSTEM])
def test_a_table_that_is_gone_is_corruption_not_an_empty_database(
    url: str, exchange: Exchange, name: str
) -> None:
    with belvedere.connect(url, autocommit=True) as con:
        con.execute("CREATE TABLE t (a INT PRIMARY KEY)")
        table = load_types().TTableName(ns=exchange.url.namespace.encode(), qualifier=name.encode())
        for change in ("disableTable", "deleteTable"):
            exchange.perform_call(GatewayCall(change, {"tableName": table}, bool), 60)
        with pytest.raises(belvedere.InternalError) as gone:
            con.execute("SELECT * FROM t")
        assert gone.value.sqlstate == "XX001"
    with pytest.raises(belvedere.InternalError):
        belvedere.connect(url)
    assert name not in tables.list_tables(exchange)
