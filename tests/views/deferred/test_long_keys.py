"""A deferred view whose key grows too long for the store stays behind alone."""

from __future__ import annotations

import pytest

import belvedere

OPTIONS = "WITH (maintenance = 'deferred', refresh_every = '1 day')"


def test_one_key_that_is_too_long_does_not_stop_the_other_views_of_its_group() -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY, v numeric)")
        con.execute(
            f"CREATE MATERIALIZED VIEW long {OPTIONS} AS SELECT v, count(*) AS n FROM t GROUP BY v"
        )
        con.execute(f"CREATE MATERIALIZED VIEW short {OPTIONS} AS SELECT count(*) AS n FROM t")
        con.execute("INSERT INTO t VALUES (1, 1)")
        for view in ("long", "short", "long"):  # so that they move together
            con.execute(f"REFRESH MATERIALIZED VIEW {view}")
        con.execute("INSERT INTO t VALUES (2, ?::numeric)", ("1" * 131_072 + "." + "3" * 9_000,))
        con.execute("REFRESH MATERIALIZED VIEW short")
        assert con.execute("SELECT n FROM short", freshness="any").fetchall() == [(2,)]
        with pytest.raises(belvedere.ProgrammingError, match=r"key is too long \(view=long"):
            con.execute("REFRESH MATERIALIZED VIEW long")
        con.execute("UPDATE t SET v = 2 WHERE id = 2")
        con.execute("REFRESH MATERIALIZED VIEW long")
        rows = con.execute("SELECT v, n FROM long ORDER BY v", freshness="any").fetchall()
        assert rows == [(1, 1), (2, 1)]
