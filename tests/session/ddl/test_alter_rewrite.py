"""ALTER TABLE that writes every row: nothing written beside it is lost, and it is there for good.

What the statements mean is in tests/slt/files/alter_table.slt.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import belvedere


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "store")
    with belvedere.connect(path, autocommit=True, durability="off") as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY, v int UNIQUE, w text)")
        con.execute("INSERT INTO t SELECT i, i * 10, 'w' || i FROM generate_series(1, 50) i")
    return path


RETYPE = "ALTER TABLE t ALTER COLUMN v TYPE text"
UNKEY = "ALTER TABLE t DROP CONSTRAINT t_pkey"
FILL = "ALTER TABLE t ADD COLUMN g int GENERATED ALWAYS AS (id + 1) STORED"
INSERT = "INSERT INTO t VALUES (51, 510, 'new')"


@pytest.mark.parametrize(
    ("statement", "other"),
    [
        (RETYPE, INSERT),
        (RETYPE, "UPDATE t SET w = 'changed' WHERE id = 7"),
        (RETYPE, "DELETE FROM t WHERE id = 8"),
        (UNKEY, INSERT),
        (FILL, INSERT),  # it holds the rows that are there, so only a new one can come
    ],
)
def test_a_row_written_beside_it_is_not_lost(path: str, statement: str, other: str) -> None:
    with (
        belvedere.connect(path, autocommit=True, durability="off") as one,
        belvedere.connect(path, autocommit=True, durability="off") as two,
    ):
        one.execute("BEGIN")
        one.execute(statement)
        two.execute(other)
        expected = two.execute("SELECT id, w FROM t ORDER BY id").fetchall()
        with pytest.raises(belvedere.OperationalError) as caught:
            one.commit()
        assert caught.value.sqlstate == "40001"
        one.execute(statement)
        assert one.execute("SELECT id, w FROM t ORDER BY id").fetchall() == expected


def test_a_writer_that_began_before_it_runs_again(path: str) -> None:
    with (
        belvedere.connect(path, autocommit=True, durability="off") as one,
        belvedere.connect(path, autocommit=True, durability="off") as two,
    ):
        two.execute("BEGIN")
        two.execute(INSERT)
        one.execute(RETYPE)
        with pytest.raises(belvedere.OperationalError) as caught:
            two.commit()
        assert caught.value.sqlstate == "40001"
        assert two.execute("SELECT count(*) FROM t").fetchall() == [(50,)]


def test_it_is_there_after_the_store_was_opened_again(path: str) -> None:
    with belvedere.connect(path, autocommit=True) as con:
        con.execute("ALTER TABLE t ALTER COLUMN v TYPE text USING 'v' || v")
        con.execute("ALTER TABLE t DROP CONSTRAINT t_pkey")
        con.execute("ALTER TABLE t ADD PRIMARY KEY (w)")
        con.execute("DELETE FROM t WHERE w > 'w2'")
    with belvedere.connect(path, autocommit=True) as con:
        found = con.execute("SELECT id, v FROM t WHERE w = 'w15'").fetchall()
        assert found == [(15, "v150")]
        assert con.execute("SELECT id FROM t WHERE v = 'v20'").fetchall() == [(2,)]
        with pytest.raises(belvedere.IntegrityError):
            con.execute("INSERT INTO t VALUES (1, 'v150', 'other')")
        with pytest.raises(belvedere.IntegrityError):
            con.execute("INSERT INTO t VALUES (1, 'x', 'w15')")


def test_a_failing_value_leaves_everything_as_it_was(path: str) -> None:
    with belvedere.connect(path, autocommit=True, durability="off") as con:
        for statement, sqlstate in (
            ("ALTER TABLE t ALTER COLUMN v TYPE int USING 1 / (id - 20)", "22012"),
            ("ALTER TABLE t ALTER COLUMN v TYPE int USING 1", "23505"),
            ("ALTER TABLE t DROP CONSTRAINT t_pkey, ADD COLUMN n int NOT NULL", "23502"),
        ):
            with pytest.raises(belvedere.Error) as caught:
                con.execute(statement)
            assert caught.value.sqlstate == sqlstate
        assert con.execute("SELECT sum(v), count(DISTINCT id) FROM t").fetchall() == [(12750, 50)]
        with pytest.raises(belvedere.IntegrityError):
            con.execute("INSERT INTO t VALUES (1, 1, 'x')")


def test_a_column_that_views_read_is_left_alone(path: str) -> None:
    with belvedere.connect(path, autocommit=True, durability="off") as con:
        con.execute("CREATE MATERIALIZED VIEW m AS SELECT sum(v) AS s FROM t")
        with pytest.raises(belvedere.NotSupportedError):
            con.execute("ALTER TABLE t ALTER COLUMN v TYPE bigint")
        con.execute("ALTER TABLE t ALTER COLUMN w TYPE varchar(2) USING left(w, 2)")
        con.execute("ALTER TABLE t ADD COLUMN g int GENERATED ALWAYS AS (id * 2) STORED")
        con.execute("UPDATE t SET v = v + 1 WHERE id = 1")
        assert con.execute("SELECT s FROM m").fetchall() == [(12751,)]
        assert con.execute("SELECT sum(g) FROM t").fetchall() == [(2550,)]
