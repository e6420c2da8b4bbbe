"""Settings, prepared statements, EXPLAIN, COPY, system tables, timeouts and hostile text."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import belvedere
from belvedere.errors import Unavailable
from belvedere.session import session
from belvedere.sql.parse.normalize import normalize_statement
from belvedere.sql.parse.script import parse_script


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute("CREATE TABLE t (id int PRIMARY KEY, name text, v numeric(8,2))")
        opened.execute("INSERT INTO t VALUES (1, 'ann', 1.5), (2, NULL, NULL), (3, 'c,d', 0)")
        yield opened


def one(con: belvedere.Connection, text: str, *parameters: object) -> object:
    row = con.execute(text, parameters).fetchone()
    assert row is not None
    return row[0]


def sqlstate(con: belvedere.Connection, text: str, *parameters: object) -> str:
    with pytest.raises(belvedere.Error) as caught:
        con.execute(text, parameters)
    return caught.value.sqlstate


def test_set_show_and_reset(con: belvedere.Connection) -> None:
    con.execute("SET tier = duckdb")
    assert one(con, "SHOW tier") == "duckdb"
    con.execute("RESET tier")
    assert one(con, "SHOW tier") == "auto"
    assert ("tier", "auto") in [row[:2] for row in con.execute("SHOW ALL")]
    assert sqlstate(con, "SET nosuch = 1") == "42704"


def test_set_local_ends_with_the_transaction(con: belvedere.Connection) -> None:
    con.execute("BEGIN")
    con.execute("SET LOCAL tier = direct")
    assert one(con, "SHOW tier") == "direct"
    con.execute("COMMIT")
    assert one(con, "SHOW tier") == "auto"


def test_prepared_statements(con: belvedere.Connection) -> None:
    con.execute("PREPARE get (int) AS SELECT name FROM t WHERE id = $1")
    assert one(con, "EXECUTE get (1)") == "ann"
    assert sqlstate(con, "PREPARE get AS SELECT 1") == "42P05"
    assert sqlstate(con, "EXECUTE get (1, 2)") == "42601"
    con.execute("DEALLOCATE get")
    assert sqlstate(con, "EXECUTE get (1)") == "26000"


def test_parameters_without_a_context_have_the_type_of_their_value(
    con: belvedere.Connection,
) -> None:
    assert con.execute("SELECT ?, ?, ?", (5, "x", None)).fetchall() == [(5, "x", None)]
    assert con.execute("SELECT $2, $1", ("b", "a")).fetchall() == [("a", "b")]


@pytest.mark.parametrize("given", [(), (1, 2)])
def test_the_number_of_parameters_is_checked(
    con: belvedere.Connection, given: tuple[int, ...]
) -> None:
    assert sqlstate(con, "SELECT name FROM t WHERE id = ?", *given) == "08P01"


def test_explain_shows_access_tier_and_reason(con: belvedere.Connection) -> None:
    text = "\n".join(row[0] for row in con.execute("EXPLAIN SELECT * FROM t WHERE id = 1"))
    assert "Scan t" in text
    assert "key [1]" in text
    assert "tier: direct (about 1 rows of work)" in text
    con.execute("SET tier = duckdb")
    text = "\n".join(row[0] for row in con.execute("EXPLAIN SELECT count(*), avg(v) FROM t"))
    assert "tier: duckdb (set tier = duckdb)" in text
    assert "duckdb: SELECT" in text


def test_explain_of_a_write_names_locks_and_indexes(con: belvedere.Connection) -> None:
    con.execute("CREATE INDEX t_name ON t (name)")
    text = "\n".join(row[0] for row in con.execute("EXPLAIN UPDATE t SET name = 'x' WHERE id = 1"))
    assert "locks: root key of t" in text
    assert "index: t_name" in text
    assert one(con, "SELECT name FROM t WHERE id = 1") == "ann"


def test_explain_analyze_counts_rows_and_runs(con: belvedere.Connection) -> None:
    found = con.execute("EXPLAIN ANALYZE DELETE FROM t WHERE name IS NULL").fetchall()
    assert any("actual rows=1" in row[0] for row in found)
    assert one(con, "SELECT count(*) FROM t") == 2
    con.execute("EXPLAIN ANALYZE WITH gone AS (DELETE FROM t RETURNING id) SELECT 1")
    assert one(con, "SELECT count(*) FROM t") == 0


@pytest.mark.parametrize(
    ("name", "options"),
    [("t.csv", "csv, header true"), ("t.txt", "text"), ("t.parquet", "parquet")],
)
def test_copy_out_and_back(
    con: belvedere.Connection, tmp_path: Path, name: str, options: str
) -> None:
    path = tmp_path / name
    assert con.execute(f"COPY t TO '{path}' (format {options})").rowcount == 3
    before = con.execute("SELECT * FROM t").fetchall()
    con.execute("DELETE FROM t")
    assert con.execute(f"COPY t FROM '{path}' (format {options})").rowcount == 3
    assert con.execute("SELECT * FROM t").fetchall() == before


def test_a_bad_line_copies_nothing_and_says_where(
    con: belvedere.Connection, tmp_path: Path
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("7,x,1\n8,y,nonsense\n")
    with pytest.raises(belvedere.DataError) as caught:
        con.execute(f"COPY t FROM '{path}' (format csv)")
    assert caught.value.sqlstate == "22P02"
    assert caught.value.facts["line"] == 2
    assert one(con, "SELECT count(*) FROM t") == 3
    assert sqlstate(con, "COPY t FROM '/nosuch/file'") == "58P01"


def test_information_schema(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE c (id int PRIMARY KEY, t int NOT NULL REFERENCES t)")
    found = con.execute(
        "SELECT column_name, data_type, is_nullable FROM information_schema.columns "
        "WHERE table_name = 't' ORDER BY ordinal_position"
    ).fetchall()
    assert found == [
        ("id", "integer", "NO"),
        ("name", "text", "YES"),
        ("v", "numeric", "YES"),
    ]
    keys = con.execute(
        "SELECT constraint_name, constraint_type FROM information_schema.table_constraints "
        "WHERE table_name = 'c'"
    ).fetchall()
    assert sorted(keys) == [("c_pkey", "PRIMARY KEY"), ("c_t_fkey", "FOREIGN KEY")]


def test_statements_are_counted(con: belvedere.Connection) -> None:
    counted = "SELECT calls, rows, tier FROM belvedere.statements WHERE text = ?"
    text = "SELECT name FROM t WHERE id = ?"
    for number in (1, 2, 9):
        con.execute(text, (number,))
    shared = "select name from t where id = $1"
    assert con.execute(counted, (shared,)).fetchall() == [(3, 2, "direct")]
    con.execute("select name from t where id = 2")
    con.execute("SELECT name  FROM t WHERE id = 9 -- again")
    assert con.execute(counted, (shared,)).fetchall() == [(5, 3, "direct")]


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        (
            "SELECT A FROM t WHERE b = 'x' AND c > -5.2 ORDER BY 1, 2 DESC LIMIT 10",
            "select a from t where b = $1 and c > - $2 order by 1, 2 desc limit $3",
        ),
        (
            "INSERT INTO t VALUES (1, $2, DATE '2024-01-01'), (2, $1, NULL);",
            "insert into t values ($3, $2, $4::date), ($5, $1, null)",
        ),
        (
            'SELECT count(*) FROM "T" GROUP BY 1, a + 1 HAVING count(*) > 2',
            'select count(*) from "T" group by 1, a + $1 having count(*) > $2',
        ),
        ("SELECT interval '1 day' /* c */, ?", "select $2::interval, $1"),
    ],
)
def test_statements_share_what_is_no_constant(text: str, shared: str) -> None:
    assert normalize_statement(text) == shared
    assert parse_script(normalize_statement(text))


def test_a_cached_statement_is_bound_again_with_its_own_constants(
    con: belvedere.Connection,
) -> None:
    for number, name in ((1, "one"), (2, "two"), (1, "one")):
        con.execute("ALTER TABLE t ADD COLUMN IF NOT EXISTS extra int")
        assert con.execute(f"SELECT id FROM t WHERE id = {number}").fetchall() == [(number,)], name
        con.execute("ALTER TABLE t DROP COLUMN extra")


def test_a_plan_for_few_rows_is_made_anew_when_the_table_has_grown(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "REPLAN_AFTER_US", 0)  # how long it took must not matter here
    con.execute("CREATE TABLE n (id int PRIMARY KEY, v int)")
    text = "SELECT v % 7, count(*), sum(v) FROM n GROUP BY 1"
    shared = normalize_statement(text)
    tiers = "SELECT tier FROM belvedere.statements WHERE text = ?"
    con.execute(text)
    assert one(con, tiers, shared) == "direct"
    con.execute("INSERT INTO n SELECT g, g FROM generate_series(1, 20000) g")
    for _ in range(2):
        con.execute(text)
    assert one(con, tiers, shared) == "duckdb"


def test_plan_of_one_row_by_its_key_is_kept_however_long_its_commit_took(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "REPLAN_AFTER_US", 0)
    con.execute("CREATE TABLE n (id int PRIMARY KEY, v int)")
    for text in (
        "INSERT INTO n VALUES (1, 2)",
        "UPDATE n SET v = v + 1 WHERE id = 1",
        "DELETE FROM n WHERE id = 1",
    ):
        con.execute(text)
        assert con.session.shared.plans.get(text) is not None, text


def test_a_timeout_stops_a_statement_alone(con: belvedere.Connection) -> None:
    con.execute("SET statement_timeout = '50 ms'")
    endless = "SELECT count(*) FROM generate_series(1, 1000000000) a, generate_series(1, 10) b"
    assert sqlstate(con, endless) == "57014"
    con.execute("RESET statement_timeout")
    assert one(con, "SELECT count(*) FROM t") == 3


def test_a_timeout_longer_than_a_thread_can_wait_stops_nothing(con: belvedere.Connection) -> None:
    con.execute("SET statement_timeout = '1000 years'")
    assert one(con, "SELECT count(*) FROM t") == 3
    con.execute("RESET statement_timeout")


@pytest.mark.parametrize("tier", ["direct", "duckdb"])
def test_cancel_comes_from_another_thread(con: belvedere.Connection, tier: str) -> None:
    con.execute(f"SET tier = {tier}")
    done = threading.Event()

    def cancel() -> None:
        hooks = con.session.interrupt._hooks
        while not done.wait(0.02):
            if tier == "direct" or hooks:  # DuckDB has begun
                con.cancel()

    worker = threading.Thread(target=cancel)
    worker.start()
    try:
        endless = (
            "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n FROM r) SELECT max(n) FROM r"
        )
        assert sqlstate(con, endless) == "57014"
    finally:
        done.set()
        worker.join()
    assert one(con, "SELECT 1") == 1


def test_errors_have_a_position_and_the_nearest_names(con: belvedere.Connection) -> None:
    with pytest.raises(belvedere.ProgrammingError) as caught:
        con.execute("SELECT id,\n nam FROM t")
    assert caught.value.position == 13
    assert "name" in (caught.value.hint or "")
    with pytest.raises(belvedere.ProgrammingError) as caught:
        con.execute("SELECT * FROM tt")
    assert caught.value.sqlstate == "42P01"


def test_a_key_and_another_condition_must_both_hold(con: belvedere.Connection) -> None:
    text = "SELECT id FROM t WHERE id = ? AND name = ?"
    for _ in range(2):  # the second time from the plan cache
        assert con.execute(text, (1, "ann")).fetchall() == [(1,)]
        assert con.execute(text, (1, "bob")).fetchall() == []
        assert con.execute("DELETE FROM t WHERE id = ? AND name = ?", (1, "bob")).rowcount == 0


@pytest.mark.parametrize("count", [63, 64, 65, 319, 320, 321, 1_343, 1_344, 1_345, 3_000])
def test_ranges_of_every_length_are_read_once(con: belvedere.Connection, count: int) -> None:
    con.execute("CREATE TABLE n (id int PRIMARY KEY)")
    con.execute("INSERT INTO n SELECT * FROM generate_series(1, 3000)")
    con.execute("SET tier = direct")
    text = "SELECT id FROM n WHERE id BETWEEN 1 AND ? ORDER BY id"
    assert [row[0] for row in con.execute(text, (count,))] == list(range(1, count + 1))
    backwards = [row[0] for row in con.execute(text + " DESC", (count,))]
    assert backwards == list(range(count, 0, -1))
    limited = con.execute(text + " LIMIT ? OFFSET 3", (3_000, count)).fetchall()
    assert [row[0] for row in limited] == list(range(4, min(count + 3, 3_000) + 1))


def test_several_statements_in_one_text_give_the_last_result(con: belvedere.Connection) -> None:
    assert one(con, "INSERT INTO t VALUES (9, 'z', 1); SELECT count(*) FROM t") == 4


def test_hostile_texts_end_in_an_error(con: belvedere.Connection, rng: random.Random) -> None:
    before = con.execute("SELECT * FROM t").fetchall()
    texts = [
        "SELECT " + "(" * 5_000 + "1" + ")" * 5_000,
        "SELECT " + "-" * 3_001 + "1",
        "SELECT " + " + ".join(["1"] * 20_000) + " + nosuch",
        "SELECT 1" + " UNION SELECT 1" * 3_000 + " nosuch nosuch",
        "SELECT '" + "x" * 1_000_000,
        "SELECT \x00",
        'DROP TABLE "t""; DROP TABLE t"',
        "SELECT \ud800 FROM t",
        "CREATE TABLE x (" + ", ".join(f"c{i} int" for i in range(2_000)) + ")",
    ]
    words = "select insert into t values ( ) , ' \" ; from where = * null $1 delete update".split()
    texts += [" ".join(rng.choices(words, k=rng.randrange(1, 30))) for _ in range(200)]
    for text in texts:
        with contextlib.suppress(belvedere.Error):
            con.execute(text)
        assert con.session.transactions.open is None, text[:100]
    assert con.execute("SELECT * FROM t").fetchall() == before


def test_a_root_that_may_be_null_is_refused_in_create_and_alter_alike(
    con: belvedere.Connection,
) -> None:
    con.execute("CREATE TABLE up (id int PRIMARY KEY)")
    columns = "id int PRIMARY KEY, up int CONSTRAINT to_up REFERENCES up"
    assert sqlstate(con, f"CREATE TABLE low ({columns}) WITH (root = 'to_up')") == "42704"
    con.execute(f"CREATE TABLE low ({columns})")
    assert sqlstate(con, "ALTER TABLE low SET (root = 'to_up')") == "42704"
    con.execute("ALTER TABLE low ALTER COLUMN up SET NOT NULL")
    con.execute("ALTER TABLE low SET (root = 'to_up')")


def test_what_the_upkeep_of_a_store_failed_with_is_shown(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "SELECT error, sqlstate FROM belvedere.housekeeping"
    assert con.execute(rows).fetchall() == [(None, None)]
    failure = Unavailable("the disk is full", sqlstate="53100")
    host = type(con.session.host)
    monkeypatch.setattr(host, "housekeeping_failure", property(lambda _: failure))
    assert con.execute(rows).fetchall() == [("the disk is full", "53100")]


@pytest.mark.parametrize(
    ("text", "parameters", "shown"),
    [
        ("INSERT INTO v VALUES (1, 'abcd', 1, 1)", (), "text='abcd'"),
        ("INSERT INTO v VALUES (1, ?, 1, 1)", ("abcd",), "text='abcd'"),
        ("UPDATE v SET s = s || 'xyz'", (), "text='axyz'"),
        ("INSERT INTO v VALUES (1, 'a', 70000, 1)", (), "value=70000"),
        ("INSERT INTO v VALUES (1, 'a', ?, 1)", (70000,), "value=70000"),
        ("UPDATE v SET n = n + 40000", (), "value=40001"),
        ("INSERT INTO v VALUES (1, 'a', 1, 1234)", (), "value=1234"),
        ("INSERT INTO v VALUES (0, 'b') ON CONFLICT (id) DO UPDATE SET s = 'long'", (), "'long'"),
    ],
)
def test_value_that_has_no_place_in_its_column_is_shown(
    con: belvedere.Connection, text: str, parameters: tuple[object, ...], shown: str
) -> None:
    con.execute("CREATE TABLE v (id int PRIMARY KEY, s varchar(3), n smallint, d numeric(4, 2))")
    con.execute("INSERT INTO v VALUES (0, 'a', 1, 1)")
    with pytest.raises(belvedere.DataError) as raised:
        con.execute(text, parameters)
    assert shown in str(raised.value)


def test_untyped_values_of_an_ordered_select_take_the_columns_types(
    con: belvedere.Connection,
) -> None:
    copied = "INSERT INTO t SELECT ?, 'x', ? FROM t ORDER BY name DESC LIMIT 1"
    con.execute(copied, (7, "2.5"))
    assert [str(x) for x in con.execute("SELECT * FROM t WHERE id = 7").fetchone() or ()] == [
        "7",
        "x",
        "2.50",
    ]
