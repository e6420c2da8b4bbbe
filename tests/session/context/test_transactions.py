"""Transactions as a session lives them: failure, savepoints, races, DDL inside."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import belvedere
from belvedere.session.statement import bind


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:") as opened:
        opened.execute("CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL)")
        opened.execute("INSERT INTO t VALUES (1, 10), (2, 20)")
        opened.commit()
        yield opened
        opened.rollback()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[belvedere.Connection, belvedere.Connection]]:
    """Two connections to one store."""
    one = belvedere.connect(str(tmp_path / "store"), durability="off")
    two = belvedere.connect(str(tmp_path / "store"), durability="off")
    one.execute("CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL)")
    one.execute("INSERT INTO t VALUES (1, 10), (2, 20)")
    one.commit()
    yield one, two
    for connection in (one, two):
        connection.rollback()
        connection.close()


def rows(con: belvedere.Connection) -> list[tuple[int, int]]:
    return con.execute("SELECT * FROM t ORDER BY id").fetchall()


def sqlstate(con: belvedere.Connection, text: str, *parameters: object) -> str:
    with pytest.raises(belvedere.Error) as caught:
        con.execute(text, parameters)
    return caught.value.sqlstate


def test_a_failed_statement_leaves_no_trace_and_fails_the_transaction(
    con: belvedere.Connection,
) -> None:
    con.execute("INSERT INTO t VALUES (3, 30)")
    assert sqlstate(con, "INSERT INTO t VALUES (4, 40), (1, 1)") == "23505"
    assert sqlstate(con, "SELECT 1") == "25P02"
    assert sqlstate(con, "SELECT * FROM t WHERE id = ?", 1) == "25P02"
    con.rollback()
    assert rows(con) == [(1, 10), (2, 20)]


def test_a_statement_that_cannot_be_bound_fails_the_transaction_too(
    con: belvedere.Connection,
) -> None:
    con.execute("INSERT INTO t VALUES (3, 30)")
    assert sqlstate(con, "SELECT nosuch FROM t") == "42703"
    assert sqlstate(con, "SELECT 1") == "25P02"


def test_commit_of_a_failed_transaction_rolls_back(con: belvedere.Connection) -> None:
    con.execute("INSERT INTO t VALUES (3, 30)")
    sqlstate(con, "SELECT 1 / 0")
    con.commit()
    assert rows(con) == [(1, 10), (2, 20)]


def test_savepoints_recover_a_failed_transaction(con: belvedere.Connection) -> None:
    con.execute("INSERT INTO t VALUES (3, 30)")
    con.execute("SAVEPOINT a")
    con.execute("INSERT INTO t VALUES (4, 40)")
    sqlstate(con, "INSERT INTO t VALUES (1, 1)")
    con.execute("ROLLBACK TO a")
    con.execute("INSERT INTO t VALUES (5, 50)")
    con.commit()
    assert rows(con) == [(1, 10), (2, 20), (3, 30), (5, 50)]


def test_savepoints_nest_and_are_released(con: belvedere.Connection) -> None:
    con.execute("SAVEPOINT a")
    con.execute("UPDATE t SET v = 11 WHERE id = 1")
    con.execute("SAVEPOINT a")
    con.execute("UPDATE t SET v = 12 WHERE id = 1")
    con.execute("ROLLBACK TO a")
    assert rows(con)[0] == (1, 11)
    con.execute("RELEASE a")
    con.execute("ROLLBACK TO a")
    assert rows(con)[0] == (1, 10)
    assert sqlstate(con, "RELEASE nosuch") == "3B001"


def test_autocommit_keeps_every_statement(con: belvedere.Connection) -> None:
    con.autocommit = True
    con.execute("INSERT INTO t VALUES (3, 30)")
    assert sqlstate(con, "INSERT INTO t VALUES (3, 31)") == "23505"
    con.rollback()
    assert rows(con) == [(1, 10), (2, 20), (3, 30)]


def test_begin_ends_autocommit_until_commit(con: belvedere.Connection) -> None:
    con.autocommit = True
    con.execute("BEGIN")
    con.execute("DELETE FROM t")
    con.execute("ROLLBACK")
    assert len(rows(con)) == 2
    con.execute("BEGIN")
    with pytest.raises(belvedere.ProgrammingError):
        con.autocommit = False


def test_unique_values_and_foreign_keys_hold_at_the_end_of_each_statement(
    con: belvedere.Connection,
) -> None:
    con.execute("CREATE TABLE u (id int PRIMARY KEY, k text UNIQUE, t int REFERENCES t)")
    con.execute("INSERT INTO u VALUES (1, 'a', 1)")
    con.execute("SAVEPOINT s")
    for text, expected in (
        ("INSERT INTO u VALUES (2, 'a', 1)", "23505"),
        ("INSERT INTO u VALUES (2, 'b', 99)", "23503"),
        ("DELETE FROM t WHERE id = 1", "23503"),
        ("UPDATE u SET t = 98", "23503"),
    ):
        assert sqlstate(con, text) == expected
        con.execute("ROLLBACK TO s")


def test_deferred_foreign_keys_wait_for_the_commit(con: belvedere.Connection) -> None:
    con.execute(
        "CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES t DEFERRABLE INITIALLY DEFERRED)"
    )
    con.execute("INSERT INTO c VALUES (1, 7)")
    con.execute("INSERT INTO t VALUES (7, 7)")
    con.commit()
    con.execute("INSERT INTO c VALUES (2, 8)")
    with pytest.raises(belvedere.IntegrityError):
        con.commit()
    con.execute("INSERT INTO c VALUES (3, 9)")
    assert sqlstate(con, "SET CONSTRAINTS ALL IMMEDIATE") == "23503"


def test_foreign_key_actions(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE a (id int PRIMARY KEY, t int REFERENCES t ON DELETE CASCADE)")
    con.execute("CREATE TABLE b (id int PRIMARY KEY, t int REFERENCES t ON DELETE SET NULL)")
    con.execute("CREATE TABLE c (id int PRIMARY KEY, a int REFERENCES a ON DELETE CASCADE)")
    con.execute("INSERT INTO a VALUES (1, 1), (2, 2)")
    con.execute("INSERT INTO b VALUES (1, 1)")
    con.execute("INSERT INTO c VALUES (1, 1), (2, 2)")
    con.commit()
    con.execute("DELETE FROM t WHERE id = 1")
    con.commit()
    assert con.execute("SELECT id FROM a").fetchall() == [(2,)]
    assert con.execute("SELECT * FROM b").fetchall() == [(1, None)]
    assert con.execute("SELECT id FROM c").fetchall() == [(2,)]


def test_a_foreign_key_that_restricts_refuses_at_once(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE a (id int PRIMARY KEY, t int REFERENCES t ON DELETE RESTRICT)")
    con.execute("INSERT INTO a VALUES (1, 1)")
    assert sqlstate(con, "DELETE FROM t WHERE id = 1") == "23001"


def test_tables_made_in_a_transaction_are_seen_by_it_and_go_with_it(
    con: belvedere.Connection,
) -> None:
    con.execute("CREATE TABLE n (id int PRIMARY KEY)")
    con.execute("CREATE INDEX ON n (id)")
    con.execute("INSERT INTO n VALUES (1)")
    assert con.execute("SELECT * FROM n").fetchall() == [(1,)]
    con.rollback()
    assert sqlstate(con, "SELECT * FROM n") == "42P01"


def test_an_index_of_a_new_table_has_the_rows_of_the_transaction(
    con: belvedere.Connection,
) -> None:
    con.execute("CREATE TABLE n (id int PRIMARY KEY, k int)")
    con.execute("INSERT INTO n VALUES (1, 7), (2, 8)")
    con.execute("CREATE UNIQUE INDEX n_k ON n (k)")
    assert con.execute("SELECT id FROM n WHERE k = 8").fetchall() == [(2,)]
    con.execute("CREATE INDEX n_k2 ON n (k, id)")
    con.execute("DROP INDEX n_k")
    assert con.execute("SELECT id FROM n WHERE k = 8").fetchall() == [(2,)]
    con.execute("DROP INDEX n_k2")
    con.execute("CREATE UNIQUE INDEX n_k ON n (k)")
    con.commit()
    assert con.execute("SELECT id FROM n WHERE k = 8").fetchall() == [(2,)]
    assert sqlstate(con, "INSERT INTO n VALUES (3, 7)") == "23505"


def test_an_index_of_a_full_table_is_filled(
    con: belvedere.Connection,
) -> None:
    con.execute("CREATE INDEX t_v ON t (v)")
    assert con.execute("SELECT id FROM t WHERE v = 20").fetchall() == [(2,)]
    con.execute("UPDATE t SET v = 21 WHERE id = 2")
    if con._session.host.row_atomic:
        assert sqlstate(con, "CREATE INDEX t_v2 ON t (v, id)") == "0A000"
    else:
        con.execute("CREATE INDEX t_v2 ON t (v, id)")  # filled by the commit
        con.commit()
        assert con.execute("SELECT id FROM t WHERE v = 21").fetchall() == [(2,)]


def test_two_tables_made_in_one_transaction_are_two(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE n (id int PRIMARY KEY)")
    con.execute("CREATE TABLE m (id int PRIMARY KEY)")
    con.execute("INSERT INTO n VALUES (1)")
    con.commit()
    assert con.execute("SELECT * FROM m").fetchall() == []
    assert con.execute("SELECT * FROM n").fetchall() == [(1,)]


def test_rollback_to_takes_a_table_back(con: belvedere.Connection) -> None:
    con.execute("SAVEPOINT a")
    con.execute("CREATE TABLE n (id int PRIMARY KEY)")
    con.execute("ROLLBACK TO a")
    assert sqlstate(con, "SELECT * FROM n") == "42P01"


def test_read_only_transactions_refuse_changes(con: belvedere.Connection) -> None:
    con.execute("BEGIN READ ONLY")
    assert rows(con) == [(1, 10), (2, 20)]
    assert sqlstate(con, "DELETE FROM t") == "25006"
    con.rollback()
    con.execute("SET default_transaction_read_only = on")
    con.commit()
    con.autocommit = True
    assert sqlstate(con, "DELETE FROM t WHERE id = ?", 1) == "25006"
    assert sqlstate(con, "DELETE FROM t WHERE id = ?", 1) == "25006"


def test_a_snapshot_does_not_move(
    pair: tuple[belvedere.Connection, belvedere.Connection],
) -> None:
    one, two = pair
    one.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    assert len(rows(one)) == 2
    two.execute("INSERT INTO t VALUES (3, 30)")
    two.commit()
    assert len(rows(one)) == 2
    assert one.execute("SELECT * FROM t WHERE id = 3").fetchall() == []
    one.commit()
    assert len(rows(one)) == 3


def test_read_committed_moves_with_every_statement(
    pair: tuple[belvedere.Connection, belvedere.Connection],
) -> None:
    one, two = pair
    one.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
    assert len(rows(one)) == 2
    two.execute("INSERT INTO t VALUES (3, 30)")
    two.commit()
    assert len(rows(one)) == 3


def test_the_second_of_two_writers_of_a_row_must_retry(
    pair: tuple[belvedere.Connection, belvedere.Connection],
) -> None:
    one, two = pair
    one.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    assert len(rows(one)) == 2
    two.execute("UPDATE t SET v = 11 WHERE id = 1")
    two.commit()
    with pytest.raises(belvedere.OperationalError) as caught:
        one.execute("UPDATE t SET v = 12 WHERE id = 1")
    assert caught.value.sqlstate == "40001"


def test_autocommit_statements_retry_inside(tmp_path: Path) -> None:
    """Many threads add to one row; nobody sees a conflict and no addition is lost."""
    path, threads, times = str(tmp_path / "store"), 4, 50
    with belvedere.connect(path, durability="off", autocommit=True) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL)")
        con.execute("INSERT INTO t VALUES (1, 0)")
        failures: list[BaseException] = []

        def add(text: str) -> None:
            try:
                with belvedere.connect(path, durability="off", autocommit=True) as mine:
                    for _ in range(times):
                        mine.execute(text, (1,))
            except belvedere.Error as error:
                failures.append(error)

        texts = ("UPDATE t SET v = v + 1 WHERE id = ?", "UPDATE t SET v = v + ?")
        workers = [threading.Thread(target=add, args=(texts[i % 2],)) for i in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert not failures
        assert con.execute("SELECT v FROM t").fetchone() == (threads * times,)


def test_plans_follow_the_catalog(pair: tuple[belvedere.Connection, belvedere.Connection]) -> None:
    one, two = pair
    text = "SELECT * FROM t WHERE id = ?"
    for connection in pair:
        connection.autocommit = True if connection is two else connection.autocommit
        assert connection.execute(text, (1,)).fetchall() == [(1, 10)]
    one.commit()
    one.execute("ALTER TABLE t ADD COLUMN w int DEFAULT 5")
    one.commit()
    for connection in pair:
        assert connection.execute(text, (1,)).fetchall() == [(1, 10, 5)]


def test_a_token_is_a_floor_elsewhere(
    pair: tuple[belvedere.Connection, belvedere.Connection],
) -> None:
    one, two = pair
    one.execute("INSERT INTO t VALUES (3, 30)")
    one.commit()
    found = two.execute("SELECT count(*) FROM t", freshness=one.token).fetchone()
    assert found == (3,)
    with pytest.raises(belvedere.Error):
        two.execute("SELECT 1", freshness="x" * 54)


def test_a_freshness_of_its_own_does_not_plan_a_statement_again(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    con.autocommit = True
    con.execute("CREATE MATERIALIZED VIEW m WITH (maintenance = 'deferred') AS SELECT id FROM t")
    texts = ("SELECT v FROM t WHERE id = ?", "SELECT count(*) FROM m WHERE id >= ?")
    for text in texts:
        con.execute(text, (1,), freshness="latest")
    parsed: list[str] = []
    parse = bind.parse_statements
    monkeypatch.setattr(
        bind, "parse_statements", lambda text: (parsed.append(text), parse(text))[1]
    )
    for freshness in ("any", "session", "latest", "250 ms", con.token, None):
        found = [con.execute(text, (1,), freshness=freshness).fetchall() for text in texts]
        assert found == [[(10,)], [(2,)]]
    assert parsed == []
    con.execute("ALTER TABLE t ADD COLUMN w int")
    assert con.execute(texts[0], (2,), freshness="latest").fetchall() == [(20,)]
    assert len(parsed) == 2
    with pytest.raises(belvedere.Error) as caught:
        con.execute(texts[0], (1,), freshness="soon")
    assert caught.value.sqlstate == "22023"
    assert con._session.required_freshness.kind == "session"
