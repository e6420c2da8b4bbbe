"""Foreign tables on a real HBase: tables that others made, read under a declared schema."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from typing import Any

import pytest

import belvedere
from belvedere.execution.foreign.foreign_rows import build_server_url
from belvedere.kv.hbase.exchange import Exchange
from belvedere.kv.hbase.requests import GatewayCall
from belvedere.kv.hbase.table_scan import open_shared_exchange
from belvedere.kv.hbase.tables import drop_tables
from belvedere.kv.hbase.thrift_types import load_types
from belvedere.kv.hbase.url import parse_url
from tools.hbase.single import SingleHBase

SITES = ("a", "ab", "b", "c|", "z")


class OtherUser:
    """Another user of the same HBase, with tables in a namespace of its own."""

    def __init__(self, url: str) -> None:
        self.url = parse_url(url)
        self.exchange = Exchange(self.url)
        self.gateways = ",".join(map(str, self.url.gateways))
        types = load_types()
        self._call("createNamespace", namespaceDesc=types.TNamespaceDescriptor(self.namespace))

    @property
    def namespace(self) -> str:
        return self.url.namespace

    def make_table(self, name: str, *families: bytes) -> str:
        types = load_types()
        described = types.TTableDescriptor(
            tableName=types.TTableName(ns=self.namespace.encode(), qualifier=name.encode()),
            columns=[types.TColumnFamilyDescriptor(name=family) for family in families],
        )
        self._call("createTable", desc=described)
        return f"{self.namespace}:{name}"

    def put_rows(self, table: str, rows: dict[bytes, dict[str, bytes]]) -> None:
        types = load_types()
        puts = []
        for row, cells in rows.items():
            values = [
                types.TColumnValue(
                    family=name.partition(":")[0].encode(),
                    qualifier=name.partition(":")[2].encode(),
                    value=value,
                )
                for name, value in cells.items()
            ]
            puts.append(types.TPut(row=row, columnValues=values))
        self._call("putMultiple", table=table.encode(), tputs=puts)

    def _call(self, name: str, **arguments: Any) -> Any:
        return self.exchange.perform_call(GatewayCall(name, arguments, lambda answer: answer), 60)


@pytest.fixture(scope="module")
def other(hbase: SingleHBase) -> Iterator[OtherUser]:
    user = OtherUser(f"{hbase.url}/others")
    yield user
    drop_tables(user.exchange)
    user.exchange.close()


@pytest.fixture
def con(other: OtherUser) -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute(
            "CREATE SERVER hbase FOREIGN DATA WRAPPER hbase"
            f" OPTIONS (gateways '{other.gateways}', timeout_ms '20000')"
        )
        yield opened


def key_of(site: str, day: int, visitor: int) -> bytes:
    text = site.encode() + b"\x00"
    return text + struct.pack(">i", day) + struct.pack(">Q", visitor + 2**63)


@pytest.fixture(scope="module")
def clicks(other: OtherUser) -> tuple[str, list[tuple[Any, ...]]]:
    """A table of clicks, and the rows that a reader should find in it."""
    chance = random.Random(3)
    table = other.make_table("clicks", b"d", b"e")
    rows: dict[bytes, dict[str, bytes]] = {}
    expected = []
    for number in range(400):
        site, day = chance.choice(SITES), chance.randint(-20, 20)
        visitor = chance.choice((-(2**40), -1, 0, 7, number))
        hits = chance.choice((None, chance.randint(-50, 50)))
        url = chance.choice((None, "", "it's", "/x"))
        cells = {"e:other": b"?"}
        if hits is not None:
            cells["d:hits"] = struct.pack(">q", hits)
        if url is not None:
            cells["d:url"] = url.encode()
        key = key_of(site, day, visitor)
        if key not in rows:
            rows[key] = cells
            expected.append((site, day, visitor, hits, url))
    other.put_rows(table, rows)
    return table, expected


@pytest.fixture
def mapped(con: belvedere.Connection, clicks: tuple[str, Any]) -> belvedere.Connection:
    con.execute(
        "CREATE FOREIGN TABLE clicks (site text, day int, visitor bigint"
        " OPTIONS (encoding 'ordered'), hits bigint OPTIONS (column 'd:hits'),"
        " url text OPTIONS (column 'd:url')) SERVER hbase"
        f" OPTIONS (table '{clicks[0]}', key 'site, day, visitor', separator '\\x00')"
    )
    return con


def test_every_condition_finds_what_a_plain_table_finds(
    mapped: belvedere.Connection, clicks: tuple[str, list[tuple[Any, ...]]]
) -> None:
    mapped.execute("CREATE TABLE plain (site text, day int, visitor bigint, hits bigint, url text)")
    mapped.executemany("INSERT INTO plain VALUES (?, ?, ?, ?, ?)", clicks[1])
    parts = [
        *(f"site {sign} '{site}'" for sign in ("=", "<", ">=") for site in ("ab", "b", "c|")),
        *(f"day {sign} {n}" for sign in ("=", "<", "<=", ">", ">=") for n in (-3, 0, 5)),
        *(f"visitor {sign} {n}" for sign in ("=", "<", ">=") for n in (-1, 7)),
        *(f"hits {sign} {n}" for sign in ("=", "<>", "<", ">") for n in (-4, 9)),
        "site IN ('a', 'z')", "day IN (1, -2, 3)", "hits IS NOT NULL", "hits IS NULL",
        "url = ''", "url IS NOT NULL", "url > 'a'", "site LIKE 'a%'", "hits = 3 OR url = '/x'",
    ]  # fmt: skip
    chance = random.Random(5)
    conditions = parts + [" AND ".join(chance.sample(parts, 3)) for _ in range(20)]
    shown = ("*", "url", "site, hits", "count(*)")
    for number, condition in enumerate(["true"] * 4 + conditions):
        columns = shown[number % 4]
        found, wanted = (
            sorted(
                mapped.execute(f"SELECT {columns} FROM {name} WHERE {condition}").fetchall(),
                key=repr,
            )
            for name in ("clicks", "plain")
        )
        assert found == wanted, (condition, columns)


def test_hbase_leaves_out_what_the_condition_excludes(
    mapped: belvedere.Connection, other: OtherUser
) -> None:
    assert mapped.session is not None
    server = mapped.session.catalog.foreign_servers["hbase"]
    pool = open_shared_exchange(build_server_url(server)).pool

    def count_received(statement: str) -> int:
        before = pool.count_bytes()[1]
        mapped.execute(statement).fetchall()
        return pool.count_bytes()[1] - before

    whole = count_received("SELECT * FROM clicks")
    assert count_received("SELECT * FROM clicks WHERE site = 'ab' AND day = 3") * 8 < whole
    assert count_received("SELECT site FROM clicks WHERE hits = 17") * 8 < whole
    assert count_received("SELECT count(*) FROM clicks") < whole
    assert count_received("SELECT * FROM clicks LIMIT 2") * 20 < whole


def test_several_schemas_map_one_table(con: belvedere.Connection, other: OtherUser) -> None:
    table = other.make_table("mixed", b"f")
    other.put_rows(
        table,
        {
            b"user:ann": {"f:age": b"42"},
            b"order:" + struct.pack(">i", 7): {"f:of": b"ann", "f:paid": b"\xff"},
            b"order:" + struct.pack(">i", 8): {"f:of": b"bob", "f:paid": b"\x00"},
        },
    )
    con.execute(
        "CREATE FOREIGN TABLE users (name text, age int OPTIONS (column 'f:age', encoding 'text'))"
        f" SERVER hbase OPTIONS (table '{table}', key 'name', prefix 'user:')"
    )
    con.execute(
        "CREATE FOREIGN TABLE orders (id int, of text OPTIONS (column 'f:of') NOT NULL,"
        " paid boolean OPTIONS (column 'f:paid')) SERVER hbase"
        f" OPTIONS (table '{table}', key 'id', prefix 'order:')"
    )
    joined = (
        "SELECT o.id, u.age, o.paid FROM orders o LEFT JOIN users u ON u.name = o.of ORDER BY 1"
    )
    assert con.execute(joined).fetchall() == [(7, 42, True), (8, None, False)]
    assert con.execute("SELECT of FROM orders WHERE id = 8").fetchall() == [("bob",)]


def test_a_view_over_a_foreign_table_is_computed_again_by_refresh(
    con: belvedere.Connection, other: OtherUser
) -> None:
    table = other.make_table("prices", b"f")
    other.put_rows(table, {b"apple": {"f:p": b"2"}, b"pear": {"f:p": b"3"}})
    con.execute(
        "CREATE FOREIGN TABLE prices (item text, price int OPTIONS (column 'f:p', encoding 'text'))"
        f" SERVER hbase OPTIONS (table '{table}', key 'item')"
    )
    con.execute("CREATE TABLE sold (item text, n int)")
    con.execute("INSERT INTO sold VALUES ('apple', 5)")
    query = "SELECT item, n * price AS due FROM sold JOIN prices USING (item)"
    with pytest.raises(belvedere.NotSupportedError, match="foreign table prices"):
        con.execute(f"CREATE MATERIALIZED VIEW due AS {query}")
    with pytest.raises(belvedere.NotSupportedError, match="refresh_every"):
        con.execute(
            "CREATE MATERIALIZED VIEW due WITH (strict = false, maintenance = 'deferred',"
            f" refresh_every = '1 h') AS {query}"
        )
    con.execute(f"CREATE MATERIALIZED VIEW due WITH (strict = false) AS {query}")
    assert "foreign table prices" in con.notices[-1]
    explained = [line for (line,) in con.execute("EXPLAIN MATERIALIZED VIEW due").fetchall()]
    assert any(line.startswith("not incremental") and "prices" in line for line in explained)
    other.put_rows(table, {b"apple": {"f:p": b"4"}})
    assert con.execute("SELECT * FROM due").fetchall() == [("apple", 10)]
    con.execute("INSERT INTO sold VALUES ('pear', 1)")
    assert sorted(con.execute("SELECT * FROM due").fetchall()) == [("apple", 20), ("pear", 3)]
    other.put_rows(table, {b"pear": {"f:p": b"9"}})
    con.execute("REFRESH MATERIALIZED VIEW due")
    assert sorted(con.execute("SELECT * FROM due").fetchall()) == [("apple", 20), ("pear", 9)]
    assert con.execute("VERIFY MATERIALIZED VIEW due").fetchall()[0][-1] is True


def test_bad_rows_and_tables_are_named(con: belvedere.Connection, other: OtherUser) -> None:
    table = other.make_table("broken", b"f")
    other.put_rows(table, {b"one": {"f:n": b"\x00\x01"}, b"two": {"f:n": b"\x00\x00\x00\x05"}})
    con.execute(
        "CREATE FOREIGN TABLE broken (k text, n int OPTIONS (column 'f:n')) SERVER hbase"
        f" OPTIONS (table '{table}', key 'k')"
    )
    with pytest.raises(belvedere.DataError) as caught:
        con.execute("SELECT n FROM broken").fetchall()
    assert caught.value.sqlstate == "22P03"
    assert "row=one" in str(caught.value)
    assert "column=n" in str(caught.value)
    assert con.execute("SELECT k FROM broken").fetchall() == [("one",), ("two",)]
    con.execute(
        "CREATE FOREIGN TABLE numbers (k bigint, n int OPTIONS (column 'f:n')) SERVER hbase"
        f" OPTIONS (table '{table}', key 'k')"
    )
    with pytest.raises(belvedere.DataError, match="row=one, column=k"):
        con.execute("SELECT k FROM numbers").fetchall()
    for options, sqlstate in ((f"table '{other.namespace}:none', key 'k'", "HV00R"),):
        con.execute(f"CREATE FOREIGN TABLE gone (k text) SERVER hbase OPTIONS ({options})")
        with pytest.raises(belvedere.Error) as missing:
            con.execute("SELECT * FROM gone").fetchall()
        assert missing.value.sqlstate == sqlstate
    con.execute(
        "CREATE FOREIGN TABLE family (k text, n int OPTIONS (column 'no:n') NOT NULL)"
        f" SERVER hbase OPTIONS (table '{table}', key 'k')"
    )
    with pytest.raises(belvedere.Error) as wrong:
        con.execute("SELECT n FROM family").fetchall()
    assert wrong.value.sqlstate == "HV005"
