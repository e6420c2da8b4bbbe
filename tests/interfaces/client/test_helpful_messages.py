"""What a mistake of the first day is told, here and through another process."""

from __future__ import annotations

from pathlib import Path

import pytest

import belvedere


@pytest.mark.parametrize(
    ("statement", "values", "told"),
    [
        ("SELECT :n", (1,), "values of :name come in a mapping"),
        ("SELECT ?", {"n": 1}, "a mapping was given for the values of ? or $1"),
        ("SELECT ?, :n", {"n": 1}, "statement mixes :name with other parameters"),
        ("SELECT 1 WHERE 1 IN ?", ([1, 2],), "= ANY (?), and give a list"),
        ("SELECT 1 WHERE 1 NOT IN $1", ([1, 2],), "= ANY (?), and give a list"),
        ("SELECT %s", (1,), "parameters are ? or $1"),
    ],
)
def test_parameters_of_another_kind(
    con: belvedere.Connection, statement: str, values: tuple[object, ...], told: str
) -> None:
    with pytest.raises(belvedere.ProgrammingError) as refused:
        con.execute(statement, values)
    assert told in str(refused.value)


def test_what_the_hint_for_a_list_says_works(con: belvedere.Connection) -> None:
    assert con.execute("SELECT 1 WHERE 1 = ANY (?)", ([1, 2],)).fetchall() == [(1,)]


def test_a_view_that_is_filled_later_says_by_what(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE t (id int PRIMARY KEY)")
    con.execute("CREATE MATERIALIZED VIEW v WITH (backfill = 'later') AS SELECT id FROM t")
    with pytest.raises(belvedere.OperationalError, match="belvedere pipeline backfill"):
        con.execute("SELECT * FROM v")


def test_a_subscription_to_nothing_names_both_kinds(con: belvedere.Connection) -> None:
    with pytest.raises(belvedere.ProgrammingError, match="table or materialized view does not"):
        con.subscribe("nosuch")


def test_a_lock_that_is_not_waited_for_says_no_timeout() -> None:
    name = ":memory:nowait"
    with belvedere.connect(name) as one, belvedere.connect(name) as other:
        one.execute("CREATE TABLE t (id int PRIMARY KEY)")
        one.execute("INSERT INTO t VALUES (1)")
        one.commit()
        one.execute("SELECT * FROM t FOR UPDATE")
        with pytest.raises(belvedere.OperationalError) as refused:
            other.execute("SELECT * FROM t FOR UPDATE NOWAIT")
        assert refused.value.hint == "try again, or leave out NOWAIT"


def test_a_directory_that_is_not_there_is_told_from_one_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    for name, told in (("none", "does not exist"), ("other", "name a directory that belvedere")):
        with pytest.raises(belvedere.ProgrammingError, match="not a belvedere store") as refused:
            belvedere.connect(str(tmp_path / name), create=False)
        assert told in str(refused.value.hint)


def test_a_value_that_is_too_large_is_told_the_limit() -> None:
    with belvedere.connect(":memory:", autocommit=True, memory_limit_mb=1) as con:
        with pytest.raises(belvedere.OperationalError) as refused:
            con.execute("SELECT repeat('x', 1000000)").fetchall()
        assert refused.value.facts == {"limit_bytes": 2**18}
