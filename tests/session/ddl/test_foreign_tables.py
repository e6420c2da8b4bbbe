"""Foreign servers and tables in the catalog: what is refused, shown, dumped and dropped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import belvedere
from belvedere.interfaces.commands.dump import dump_store

SERVER = "CREATE SERVER hb FOREIGN DATA WRAPPER hbase OPTIONS (gateways 'h1:9090,h2')"
CLICKS = (
    "CREATE FOREIGN TABLE clicks (site text, day int, url text OPTIONS (column 'd:url') NOT NULL,"
    " hits bigint OPTIONS (column 'd:hits', encoding 'ordered')) SERVER hb"
    " OPTIONS (\"table\" 'web:clicks', key 'site, day', separator '|', prefix '\\x01')"
)


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute(SERVER)
        opened.execute(CLICKS)
        yield opened


def refusal(con: belvedere.Connection, statement: str) -> tuple[str | None, str]:
    with pytest.raises(belvedere.Error) as caught:
        con.execute(statement)
    return caught.value.sqlstate, str(caught.value)


@pytest.mark.parametrize(
    ("statement", "sqlstate", "said"),
    [
        ("INSERT INTO clicks VALUES ('a', 1, 'x', 1)", "0A000", "foreign table"),
        ("UPDATE clicks SET hits = 1", "0A000", "foreign table"),
        ("DELETE FROM clicks", "0A000", "foreign table"),
        ("COPY clicks FROM STDIN", "0A000", "foreign table"),
        ("TRUNCATE clicks", "0A000", "foreign table"),
        ("CREATE INDEX ON clicks (url)", "42809", "clicks"),
        ("ALTER FOREIGN TABLE clicks ADD COLUMN x int", "0A000", "ALTER FOREIGN TABLE"),
        ("ALTER TABLE clicks RENAME TO other", "42809", "clicks"),
        ("DROP TABLE clicks", "42809", "clicks"),
        ("DROP SERVER hb", "2BP01", "foreign table clicks"),
        ("DROP SERVER other", "42704", "other"),
        (SERVER, "42710", "hb"),
        (CLICKS, "42P07", "clicks"),
        ("CREATE SERVER s FOREIGN DATA WRAPPER postgres_fdw", "42704", "postgres_fdw"),
        ("CREATE SERVER s FOREIGN DATA WRAPPER hbase", "HV00J", "gateways"),
        ("CREATE SERVER s FOREIGN DATA WRAPPER hbase OPTIONS (host 'x')", "HV00D", "host"),
        ("CREATE SERVER s FOREIGN DATA WRAPPER hbase OPTIONS (gateways 'h:x')", "HV024", "port"),
        ("CREATE FOREIGN DATA WRAPPER w", "0A000", "WRAPPER"),
        ("CREATE USER MAPPING FOR me SERVER hb", "0A000", "USER MAPPING"),
        ("CREATE FOREIGN TABLE t (a int) SERVER no OPTIONS (table 't', key 'a')", "42704", "no"),
        ("CREATE FOREIGN TABLE t (a int) SERVER hb OPTIONS (table 't')", "HV00J", "key"),
        ("CREATE FOREIGN TABLE t (a int) SERVER hb OPTIONS (table 't', key 'b')", "42703", "b"),
        ("CREATE FOREIGN TABLE t (a int) SERVER hb OPTIONS (t 't', key 'a')", "HV00D", "t"),
        (
            "CREATE FOREIGN TABLE t (a text, b int) SERVER hb OPTIONS (table 't', key 'a, b')",
            "HV024",
            "separator",
        ),
        (
            "CREATE FOREIGN TABLE t (a int, b int) SERVER hb OPTIONS (table 't', key 'a')",
            "HV00J",
            "column=b",
        ),
        (
            "CREATE FOREIGN TABLE t (a text OPTIONS (encoding 'ordered')) SERVER hb"
            " OPTIONS (table 't', key 'a')",
            "HV024",
            "ordered",
        ),
        (
            "CREATE FOREIGN TABLE t (a int PRIMARY KEY) SERVER hb OPTIONS (table 't', key 'a')",
            "0A000",
            "primary",
        ),
        (
            "CREATE FOREIGN TABLE t (a int, a int) SERVER hb OPTIONS (table 't', key 'a')",
            "42701",
            "a",
        ),
    ],
)
def test_refusals(con: belvedere.Connection, statement: str, sqlstate: str, said: str) -> None:
    found, message = refusal(con, statement)
    assert (found, said in message) == (sqlstate, True), message


def test_if_exists_and_if_not_exists(con: belvedere.Connection) -> None:
    con.execute(SERVER.replace("SERVER", "SERVER IF NOT EXISTS"))
    con.execute(CLICKS.replace("TABLE", "TABLE IF NOT EXISTS"))
    con.execute("DROP FOREIGN TABLE IF EXISTS nothing")
    con.execute("DROP SERVER IF EXISTS nothing")


def test_the_catalogs_show_them(con: belvedere.Connection) -> None:
    def read(statement: str) -> list[tuple[object, ...]]:
        return con.execute(statement).fetchall()

    assert read("SELECT relkind FROM pg_class WHERE relname = 'clicks'") == [("f",)]
    assert read("SELECT ftoptions FROM pg_foreign_table") == [
        (["table=web:clicks", "key=site, day", "separator=|", "prefix=\\x01"],)
    ]
    assert read("SELECT srvname, srvoptions FROM pg_foreign_server") == [
        ("hb", ["gateways=h1:9090,h2"])
    ]
    assert read(
        "SELECT attname, attfdwoptions FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid"
        " WHERE relname = 'clicks' AND attfdwoptions IS NOT NULL ORDER BY attnum"
    ) == [("url", ["column=d:url"]), ("hits", ["column=d:hits", "encoding=ordered"])]
    assert read(
        "SELECT table_type, is_insertable_into FROM information_schema.tables"
        " WHERE table_name = 'clicks'"
    ) == [("FOREIGN", "NO")]
    assert read(
        "SELECT column_name, is_nullable FROM information_schema.columns"
        " WHERE table_name = 'clicks' ORDER BY ordinal_position"
    ) == [("site", "YES"), ("day", "YES"), ("url", "NO"), ("hits", "YES")]
    assert read(
        "SELECT foreign_table_name, foreign_server_name FROM information_schema.foreign_tables"
    ) == [("clicks", "hb")]
    assert ("clicks", "url", "column", "d:url") in read(
        "SELECT table_name, column_name, option_name, option_value"
        " FROM information_schema.column_options"
    )


def test_explain_says_what_hbase_does(con: belvedere.Connection) -> None:
    def explain(condition: str) -> str:
        lines = con.execute(f"EXPLAIN SELECT url FROM clicks WHERE {condition}").fetchall()
        return next(line for (line,) in lines if line.startswith("foreign table"))

    assert explain("hits > 3 AND site = 'a'").endswith("a range of keys and a filter of cells")
    assert explain("site IN ('a', 'b')").endswith("2 ranges of keys")
    assert explain("length(url) = 3").endswith("hbase web:clicks, all rows")


def test_a_gateway_that_does_not_answer_is_an_error(con: belvedere.Connection) -> None:
    con.execute("CREATE SERVER here FOREIGN DATA WRAPPER hbase OPTIONS (gateways '127.0.0.1:1')")
    con.execute("CREATE FOREIGN TABLE t (a int) SERVER here OPTIONS (table 't', key 'a')")
    assert refusal(con, "SELECT * FROM t")[0] == "08001"


def test_drops_follow_dependents(con: belvedere.Connection) -> None:
    con.execute("CREATE VIEW shown AS SELECT url FROM clicks")
    assert refusal(con, "DROP FOREIGN TABLE clicks")[0] == "2BP01"
    con.execute("DROP SERVER hb CASCADE")
    assert refusal(con, "SELECT * FROM shown")[0] == "42P01"
    assert refusal(con, "SELECT * FROM clicks")[0] == "42P01"
    con.execute("CREATE SCHEMA web")
    con.execute(SERVER)
    con.execute(CLICKS.replace("clicks (", "web.clicks ("))
    con.execute("DROP SCHEMA web CASCADE")
    assert con.execute("SELECT count(*) FROM pg_foreign_table").fetchall() == [(0,)]


def test_a_dump_makes_them_again(tmp_path: Path) -> None:
    first, second = tmp_path / "first.db", tmp_path / "second.db"
    with belvedere.connect(first, autocommit=True) as con:
        con.execute(SERVER)
        con.execute(CLICKS)
        con.execute("CREATE VIEW shown AS SELECT url FROM clicks")
    assert any("foreign table clicks" in line for line in dump_store(first))
    script = list(dump_store(first, sql=True))
    with belvedere.connect(second, autocommit=True) as con:
        con.execute("\n".join(script))
    assert list(dump_store(second, sql=True))[1:-1] == script[1:-1]


def test_only_superusers_make_them_and_grants_let_others_read(con: belvedere.Connection) -> None:
    con.execute("CREATE ROLE guest")
    con.execute("SET ROLE guest")
    for statement in (
        "CREATE SERVER s FOREIGN DATA WRAPPER hbase OPTIONS (gateways 'h')",
        CLICKS.replace("clicks (", "mine ("),
        "DROP SERVER hb",
        "SELECT * FROM clicks",
        "DROP FOREIGN TABLE clicks",
    ):
        assert refusal(con, statement)[0] == "42501", statement
    con.execute("RESET ROLE")
    con.execute("GRANT SELECT ON clicks TO guest")
    con.execute("SET ROLE guest")
    con.execute("EXPLAIN SELECT * FROM clicks")


def test_they_are_there_after_a_restart(tmp_path: Path) -> None:
    with belvedere.connect(tmp_path / "a.db", autocommit=True) as con:
        con.execute(SERVER)
        con.execute(CLICKS)
    with belvedere.connect(tmp_path / "a.db", autocommit=True) as con:
        assert con.execute("SELECT srvname FROM pg_foreign_server").fetchall() == [("hb",)]
