"""COPY of a query gives the rows that the query gives."""

from __future__ import annotations

import belvedere


def copy_out(con: belvedere.Connection, sql: str) -> bytes:
    with con.cursor().copy(sql) as copy:
        return b"".join(copy)


def test_a_deferred_view_is_as_fresh_as_in_a_select() -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY, g int)")
        con.execute(
            "CREATE MATERIALIZED VIEW v WITH (maintenance = deferred)"
            " AS SELECT g, count(*) AS c FROM t GROUP BY g"
        )
        for freshness in ("session", "latest"):
            con.execute(f"SET freshness = '{freshness}'")
            for _ in range(20):
                (count,) = con.execute("SELECT count(*) FROM t").fetchone() or (0,)
                con.execute("INSERT INTO t VALUES (?, 1)", [count])
                assert copy_out(con, "COPY v TO STDOUT") == b"1\t%d\n" % (count + 1)
                assert copy_out(con, "COPY (SELECT c FROM v) TO STDOUT") == b"%d\n" % (count + 1)


def test_changes_with_rows_are_made() -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY, s text)")
        copied = copy_out(con, "COPY (INSERT INTO t VALUES (1, 'x') RETURNING *) TO STDOUT")
        assert copied == b"1\tx\n"
        copied = copy_out(con, "COPY (UPDATE t SET s = 'y' RETURNING s) TO STDOUT")
        assert copied == b"y\n"
        assert con.execute("SELECT * FROM t").fetchall() == [(1, "y")]
