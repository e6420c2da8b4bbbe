"""Texts that differ in their literals: by the plan of their shape, without it, and by PostgreSQL
they mean the same, down to the SQLSTATE, the position of an error and the names of columns."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import belvedere
from belvedere.session.session import Session
from belvedere.session.simple_query import run_simple_query
from belvedere.session.statement import literal_plans
from tests.oracle.postgres import Postgres

SCHEMA = [
    "CREATE TABLE t (id int PRIMARY KEY, s smallint, b bigint, n numeric(10,2), f float8, c text,"
    " v varchar(5), d date, ts timestamp, tz timestamptz, ok boolean, k int)",
    "CREATE INDEX t_k ON t (k)",
    "CREATE TABLE w (s smallint, b bigint, note text DEFAULT 'none', PRIMARY KEY (s, b))",
    'CREATE TABLE "Odd 1" ("Id 2" int PRIMARY KEY, "x\'y" text)',
    "CREATE TABLE p (a int PRIMARY KEY, note text)",
    "CREATE INDEX p_open ON p (a) WHERE note = 'open'",
    "CREATE SEQUENCE numbers",
    "CREATE VIEW small AS SELECT id, c FROM t WHERE id < 20 AND c <> 'none'",
    "INSERT INTO t SELECT i, i % 5, i * 3000000000, i / 4.0, i / 8.0, 'x' || i, 'v' || i % 9,"
    " DATE '2024-01-01' + i, TIMESTAMP '2024-01-01 12:00' + i * INTERVAL '1 hour',"
    " TIMESTAMPTZ '2024-01-01 12:00+02' + i * INTERVAL '1 hour', i % 2 = 0,"
    " i % 7 FROM generate_series(1, 60) AS i",
    "INSERT INTO w SELECT i % 5, i, 'w' || i FROM generate_series(1, 30) AS i",
    "INSERT INTO \"Odd 1\" VALUES (1, 'one'), (2, 'it''s')",
]

INTEGERS = ["0", "1", "3", "7", "12", "33", "59", "100", "40000", "-1", "-3", "- 2", "007"]
LARGE = [*INTEGERS, "2147483647", "2147483648", "-2147483648", "-2147483649", "9000000000"]
LARGE += ["9223372036854775807", "9223372036854775808", "99999999999999999999"]
NUMBERS = [*INTEGERS, "1.5", "0.25", "-2.75", "1e1", "0.00", "3.", ".5", "1_000", "0x1F"]
TEXTS = [
    "'x3'",
    "'x12'",
    "''",
    "'it''s'",
    "'open'",
    "'none'",
    "'5'",
    "' 7 '",
    "'abc'",
    "'é'",
    "NULL",
]
TEXTS += ["E'x3'", "$$x3$$", "U&'x3'", "'x3'::text", "'-- x'", "'/*'", "'\"'", "'a\\b'"]
DATES = ["'2024-01-05'", "'2024-02-20'", "'2024-13-01'", "'tomorrow?'", "'2024-01-31 10:00'", "'5'"]
STAMPS = ["'2024-01-02 03:00'", "'2024-01-03'", "'2024-01-02 03:00+05'", "'x'"]
LENGTHS = ["'1 day'", "'36 hours'", "'2 months'", "'x'", "'1'"]
COUNTS = ["0", "1", "2", "5", "-1", "'3'", "2.4", "NULL", "9999999999"]
PATTERNS = ["'x%'", "'x1_'", "'%3'", "'x\\%'", "'x5'", "''", "'x!%'"]

QUERIES = [
    ("SELECT c FROM t WHERE id = {}", LARGE),
    ("SELECT c FROM t WHERE id = {}", NUMBERS),
    ("SELECT c FROM t WHERE id = {}", TEXTS),
    ("SELECT id FROM t WHERE s = {}", LARGE),
    ("SELECT id FROM t WHERE {} = s AND id > {}", INTEGERS, INTEGERS),
    ("SELECT id FROM t WHERE b = {}", LARGE),
    ("SELECT id FROM t WHERE b > {} AND c = {}", LARGE, TEXTS),
    ("SELECT id FROM t WHERE n = {}", NUMBERS),
    ("SELECT id FROM t WHERE f < {}", NUMBERS),
    ("SELECT id FROM t WHERE c = {}", TEXTS),
    ("SELECT id FROM t WHERE v = {}", TEXTS),
    ("SELECT id FROM t WHERE d = {}", DATES),
    ("SELECT id FROM t WHERE d > DATE {}", DATES),
    ("SELECT id FROM t WHERE d > {}::date + {}", DATES, INTEGERS),
    ("SELECT id FROM t WHERE ts < TIMESTAMP {} + INTERVAL {}", STAMPS, LENGTHS),
    ("SELECT id FROM t WHERE tz >= {}", STAMPS),
    ("SELECT id FROM t WHERE ts - INTERVAL {} > {}", LENGTHS, STAMPS),
    ("SELECT id FROM t WHERE ts > TIMESTAMP '2024-01-02' + INTERVAL {} DAY", ["'1'", "'2'", "'x'"]),
    ("SELECT id FROM t WHERE ok = {}", ["'t'", "'f'", "'maybe'", "TRUE"]),
    ("SELECT id FROM t WHERE id IN ({}, {}, {})", INTEGERS, LARGE, TEXTS),
    ("SELECT id FROM t WHERE id NOT IN ({}, {})", INTEGERS, NUMBERS),
    ("SELECT id FROM t WHERE k = {} ORDER BY id LIMIT {}", INTEGERS, COUNTS),
    ("SELECT id FROM t ORDER BY id LIMIT {} OFFSET {}", COUNTS, COUNTS),
    ("SELECT id FROM t ORDER BY id FETCH FIRST {} ROWS ONLY", ["1", "2", "3"]),
    ("SELECT c, id FROM t WHERE id < {} ORDER BY {}", INTEGERS, ["1", "2", "3", "'1'", "1.5"]),
    ("SELECT id + {} AS x, id + {} AS x FROM t WHERE id < 5 ORDER BY x", INTEGERS, INTEGERS),
    ("SELECT DISTINCT ON (id % {}) id FROM t ORDER BY id % {}, id", ["2", "3"], ["2", "3"]),
    ("SELECT k + {}, count(*) FROM t GROUP BY k + {}", ["1", "2"], ["1", "2"]),
    ("SELECT k + {} AS g, count(*) FROM t GROUP BY g ORDER BY g", INTEGERS),
    ("SELECT k, count(*) FROM t GROUP BY {} ORDER BY {}", ["1", "2"], ["1", "2"]),
    (
        "SELECT k, sum(id + {}) FROM t GROUP BY k HAVING sum(id + {}) > {}",
        ["1", "2"],
        ["1", "2"],
        ["5", "300"],
    ),
    ("SELECT count(id + {}), count(id + {}) FROM t", INTEGERS, INTEGERS),
    ("SELECT DISTINCT k + {} FROM t ORDER BY k + {}", ["1", "2"], ["1", "2"]),
    ("SELECT id, rank() OVER (ORDER BY id % {}) FROM t WHERE id < {}", ["2", "3"], INTEGERS),
    ("SELECT id, lag(id, {}, {}) OVER (ORDER BY id) FROM t WHERE id < 9", ["1", "2"], INTEGERS),
    ("SELECT id FROM t WHERE c LIKE {}", PATTERNS),
    ("SELECT id FROM t WHERE c LIKE {} ESCAPE {}", PATTERNS, ["'!'", "'\\'", "''", "'xx'"]),
    ("SELECT id FROM t WHERE c ~ {}", ["'^x1'", "'2$'", "'('"]),
    ("SELECT id FROM t WHERE c SIMILAR TO {}", ["'x(1|2)'", "'x_'"]),
    ("SELECT {}", [*LARGE, *NUMBERS, *TEXTS]),
    ("SELECT {} + {}", LARGE, NUMBERS),
    ("SELECT {} || {}, {} AS y", TEXTS, TEXTS, NUMBERS),
    ("SELECT {} / {}", ["7", "-7", "7.0"], ["2", "0", "2.0", "'2'"]),
    (
        "SELECT CASE WHEN {} = {} THEN {} ELSE {} END",
        ["1", "2"],
        ["1", "2"],
        ["1", "1/0"],
        INTEGERS,
    ),
    ("SELECT coalesce(NULL, {}, {})", INTEGERS, NUMBERS),
    ("SELECT pg_typeof({}), pg_typeof({})", LARGE, NUMBERS),
    ("SELECT pg_typeof({})", TEXTS),
    ("SELECT {}::numeric(4,{})", NUMBERS, ["0", "1", "2", "5"]),
    ("SELECT CAST({} AS int), {}::varchar({})", NUMBERS, TEXTS, ["1", "2", "0"]),
    ("SELECT round(n, {}) FROM t WHERE id = {}", ["0", "1", "2"], INTEGERS),
    ("SELECT substr(c, {}, {}) FROM t WHERE id = {}", INTEGERS, ["1", "2", "-1"], INTEGERS),
    ("SELECT lpad(c, {}, {}) FROM t WHERE id = 7", ["1", "5", "9"], ["'ab'", "''"]),
    ("SELECT extract({} FROM d) FROM t WHERE id = {}", ["year", "'month'", "'x'"], INTEGERS),
    ("SELECT date_trunc({}, ts) FROM t WHERE id = {}", ["'day'", "'month'", "'x'"], INTEGERS),
    ("SELECT to_char(d, {}) FROM t WHERE id = {}", ["'YYYY'", "'MM-DD'"], INTEGERS),
    ("SELECT (ARRAY[id, {}])[{}] FROM t WHERE id = {}", INTEGERS, ["1", "2", "3", "0"], INTEGERS),
    ("SELECT id FROM t WHERE {} = ANY (ARRAY[id, k, 3])", INTEGERS),
    ("SELECT id FROM t WHERE ARRAY[id, id + 1] = {}", ["'{1,2}'", "'{5,6}'", "'x'"]),
    ("SELECT id FROM t WHERE id BETWEEN {} AND {}", INTEGERS, NUMBERS),
    ("SELECT id FROM t WHERE id BETWEEN SYMMETRIC {} AND {}", INTEGERS, INTEGERS),
    ("SELECT id FROM t WHERE (s, id) > ({}, {}) AND id < 12", INTEGERS, INTEGERS),
    ("SELECT id FROM t WHERE id = {} OR k = {}", INTEGERS, INTEGERS),
    ("SELECT id FROM t WHERE id = (SELECT max(id) FROM t WHERE k = {}) + {}", INTEGERS, ["0", "1"]),
    (
        "SELECT id FROM t WHERE EXISTS (SELECT {} FROM w WHERE w.b = t.id AND w.s = {})",
        INTEGERS,
        INTEGERS,
    ),
    (
        "SELECT t.id, w.note FROM t JOIN w ON w.b = t.id AND w.s = {} WHERE t.k = {}",
        INTEGERS,
        INTEGERS,
    ),
    ("SELECT note FROM w WHERE s = {} AND b = {}", INTEGERS, LARGE),
    ("SELECT a FROM p WHERE a > {} AND note = {}", INTEGERS, TEXTS),
    ("SELECT id FROM small WHERE id > {} AND c <> {}", INTEGERS, TEXTS),
    (
        "WITH q AS (SELECT id FROM t WHERE k = {}) SELECT id FROM q WHERE id > {}",
        INTEGERS,
        INTEGERS,
    ),
    ("SELECT id FROM t WHERE k = {} UNION SELECT {}", INTEGERS, NUMBERS),
    (
        "SELECT id FROM t WHERE k = {} UNION ALL SELECT {} ORDER BY {}",
        INTEGERS,
        INTEGERS,
        ["1", "2"],
    ),
    ("VALUES ({}, {}), ({}, {})", INTEGERS, TEXTS, NUMBERS, TEXTS),
    ('SELECT "x\'y" FROM "Odd 1" WHERE "Id 2" = {}', INTEGERS),
    ("SELECT id /* {} */ FROM t WHERE id = {} -- {}", ["1", "'2"], INTEGERS, ["3", "it's"]),
    ("SELECT id FROM t WHERE c = 'a'\n{}", ["'b'", "'c'"]),
    ('SELECT c COLLATE "C" FROM t WHERE c COLLATE "C" < {} AND id < 30', TEXTS),
    ("SELECT id FROM t WHERE c IS NOT DISTINCT FROM {}", TEXTS),
    ("SELECT id FROM t WHERE nullif(k, {}) IS NULL", INTEGERS),
    ("SELECT id FROM t WHERE id = {} AND {} = {}", INTEGERS, ["1", "2"], ["1", "2"]),
    ("SELECT nextval({}) > 0", ["'numbers'", "'nothing'"]),
    ("SELECT {}::regclass::text", ["'t'", "'w'", "'nothing'"]),
    ("SELECT count(*) FROM generate_series({}, {})", INTEGERS, ["3", "9"]),
    ("SELECT string_agg(c, {} ORDER BY id) FROM t WHERE id < {}", ["','", "'; '"], INTEGERS),
    ("SELECT x FROM t WHERE id = {}", INTEGERS),
    ("SELECT id FROM t WHERE c = {} +", INTEGERS),
    ("SELECT id FROM t WHERE c + {} = 1", INTEGERS),
]
CHANGES = [
    ("INSERT INTO w (s, b, note) VALUES ({}, {}, {})", INTEGERS, LARGE, TEXTS),
    ("INSERT INTO w (s, b) VALUES ({}, {}), ({}, {})", LARGE, LARGE, INTEGERS, LARGE),
    ("INSERT INTO w VALUES ({}, {}) RETURNING note, s + {}", INTEGERS, LARGE, INTEGERS),
    (
        "INSERT INTO w VALUES ({}, {}, {}) ON CONFLICT (s, b) DO UPDATE SET note = {}",
        INTEGERS,
        INTEGERS,
        TEXTS,
        TEXTS,
    ),
    (
        "INSERT INTO w SELECT {}, id + {}, c FROM t WHERE id = {}",
        ["1", "2"],
        ["500", "600"],
        INTEGERS,
    ),
    (
        "INSERT INTO t (id, v) VALUES ({}, {})",
        ["101", "102", "103"],
        ["'short'", "'too long'", "'é'"],
    ),
    (
        "INSERT INTO t (id, n, d) VALUES ({}, {}, {})",
        ["111", "112", "113", "114"],
        [*NUMBERS, "123456789"],
        DATES,
    ),
    ("UPDATE w SET note = {} WHERE s = {} AND b = {}", TEXTS, INTEGERS, LARGE),
    ("UPDATE t SET k = k + {}, c = {} WHERE id = {}", LARGE, TEXTS, INTEGERS),
    ("UPDATE t SET n = n * {} WHERE id BETWEEN {} AND {}", NUMBERS, ["1", "5"], ["7", "9"]),
    ("UPDATE t SET v = {} WHERE id = {}", TEXTS, INTEGERS),
    ("UPDATE t SET c = {} WHERE k = {} RETURNING id, c", TEXTS, INTEGERS),
    ("DELETE FROM w WHERE s = {} AND b = {}", INTEGERS, LARGE),
    ("DELETE FROM t WHERE id = {} AND c = {}", INTEGERS, TEXTS),
]


def make_statements(draw: random.Random) -> list[str]:
    """Each template several times, with literals drawn at random."""
    queries = [form.format(*map(draw.choice, lists)) for form, *lists in QUERIES for _ in range(7)]
    made = list(queries)
    for form, *lists in CHANGES:
        for _ in range(8):
            made.append(form.format(*map(draw.choice, lists)))
            made.append(draw.choice(queries))
    made += ["SELECT * FROM t ORDER BY id", "SELECT * FROM w ORDER BY s, b"]
    return made


def answer(con: belvedere.Connection, statement: str) -> tuple[Any, Any]:
    """The SQLSTATE or the rows; and what else there is to compare with another run of our own."""
    try:
        cursor = con.execute(statement)
    except belvedere.Error as error:
        return error.sqlstate, (error.position, str(error))
    if cursor.description is None:
        return [], cursor.rowcount
    return _show_rows(cursor.fetchall()), (cursor.description, cursor.rowcount)


def _show_rows(rows: Any) -> list[str]:
    return sorted(repr(tuple(row)) for row in rows)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were run by the plan of their shape."""
    texts: list[str] = []
    run = literal_plans.try_run_by_shape

    def run_and_note(session: Session, text: str, parameters: Sequence[Any] = ()) -> Any:
        found = run(session, text, parameters)
        if found is not None:
            texts.append(text)
        return found

    monkeypatch.setattr(literal_plans, "try_run_by_shape", run_and_note)
    monkeypatch.setattr(literal_plans, "SLOW_US", float("inf"))
    return texts


def test_literals_mean_the_same_with_and_without_shapes_and_in_postgresql(
    postgres: Postgres, served: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.run("DROP SCHEMA public CASCADE")
    postgres.run("CREATE SCHEMA public")
    statements = make_statements(random.Random(1))
    with belvedere.connect(":memory:", autocommit=True) as con:
        for statement in SCHEMA:
            con.execute(statement)
            assert postgres.run(statement).sqlstate is None
        con.execute("ANALYZE")
        by_shape = [answer(con, one) for one in statements]
    count = len(served)
    monkeypatch.setattr(literal_plans, "try_run_by_shape", lambda *_: None)
    with belvedere.connect(":memory:", autocommit=True) as con:
        for statement in [*SCHEMA, "ANALYZE"]:
            con.execute(statement)
        without = [answer(con, one) for one in statements]
    wrong = [
        f"{text}\n    by shape {a}\n    without  {b}"
        for text, a, b in zip(statements, by_shape, without)
        if a != b
    ]
    assert not wrong, "\n".join([f"{len(wrong)} of {len(statements)}", *wrong])
    for text, (found, _) in zip(statements, by_shape):
        outcome = postgres.run(text)
        theirs = outcome.sqlstate or _show_rows(outcome.rows)
        if found != theirs and found != "0A000":
            wrong.append(f"{text}\n    belvedere {found}\n    postgres  {theirs}")
    assert not wrong, "\n".join([f"{len(wrong)} of {len(statements)}", *wrong])
    assert count > 60, f"{count} of {len(statements)} by their shape"


SERVED = [
    "SELECT c FROM t WHERE id = {}",
    "select C from T where ID=-{};",
    'SELECT "c" FROM "t" WHERE "id" = {} AND c <> \'it\'\'s\'',
    "SELECT note FROM w WHERE s = {} AND b = {}",
    "SELECT c AS \"1\", {} AS y FROM t WHERE d = DATE '2024-01-01' + {}",
    "SELECT n::numeric(5,1) FROM t WHERE id = {} ORDER BY 1",
    "SELECT id FROM t WHERE k = {} ORDER BY id LIMIT {}",
    "SELECT sum(k) FROM t WHERE id BETWEEN {} AND 40",
    "SELECT id FROM t WHERE id IN ({}, 7, 9)",
    "UPDATE t SET k = k + {}, c = 'x' WHERE id = {}",
    "UPDATE w SET note = 'n{}' WHERE s = {} AND b = {}",
    "INSERT INTO w (s, b, note) VALUES ({}, 100{}, 'x{}')",
    "INSERT INTO w VALUES (1, 200{}), (2, 200{}) RETURNING b",
    "INSERT INTO w VALUES ({}, 7) ON CONFLICT (s, b) DO UPDATE SET note = '{}'",
    "DELETE FROM w WHERE s = {} AND b = 3",
]
NOT_SERVED = [
    "SELECT k + {0}, count(*) FROM t GROUP BY k + {0}",
    "SELECT a FROM p WHERE a > {} AND note = 'open'",
    "SELECT id /* it's {} */ FROM t WHERE c = 'x'",
    "SELECT id FROM t WHERE id = {} + $1",
    "SELECT E'x' || 'y{}'",
    "EXPLAIN SELECT id FROM t WHERE id = {}",
    "SELECT 1 AS a, {} AS a FROM t ORDER BY id",
]


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as made:
        for statement in SCHEMA:
            made.execute(statement)
        yield made


@pytest.mark.parametrize("form", SERVED)
def test_from_its_third_text_on_a_shape_has_a_plan(
    con: belvedere.Connection, served: list[str], form: str
) -> None:
    texts = [form.format(*[i] * form.count("{}")) for i in range(1, 6)]
    for text in texts:
        con.execute(text)
    assert served == texts[2:]


@pytest.mark.parametrize("form", NOT_SERVED)
def test_what_depends_on_its_literals_has_a_plan_for_each_text(
    con: belvedere.Connection, served: list[str], form: str
) -> None:
    for i in range(1, 5):
        answer(con, form.format(i))
    assert served == []


def test_a_plan_follows_the_catalog(con: belvedere.Connection, served: list[str]) -> None:
    def read(i: int) -> Any:
        return con.execute(f"SELECT * FROM w WHERE s = {i} AND b = {i}").fetchall()

    assert [read(i) for i in (1, 2, 3)] == [[(1, 1, "w1")], [(2, 2, "w2")], [(3, 3, "w3")]]
    con.execute("ALTER TABLE w ADD COLUMN more int DEFAULT 5")
    assert [read(i) for i in (1, 4, 2)] == [[(1, 1, "w1", 5)], [(4, 4, "w4", 5)], [(2, 2, "w2", 5)]]
    assert len(served) == 2
    con.execute("BEGIN")
    con.execute("ALTER TABLE w DROP COLUMN note")
    assert [read(i) for i in (3, 4)] == [[(3, 3, 5)], [(4, 4, 5)]]
    con.execute("ROLLBACK")
    assert read(3) == [(3, 3, "w3", 5)]
    con.execute("DROP TABLE w")
    with pytest.raises(belvedere.ProgrammingError) as refused:
        read(4)
    assert refused.value.sqlstate == "42P01"


def test_names_are_looked_up_in_the_search_path(con: belvedere.Connection) -> None:
    con.execute("CREATE SCHEMA other")
    con.execute("CREATE TABLE other.t (id int PRIMARY KEY, c text)")
    con.execute("INSERT INTO other.t VALUES (1, 'other 1'), (2, 'other 2'), (3, 'other 3')")

    def read(i: int) -> Any:
        return con.execute(f"SELECT c FROM t WHERE id = {i}").fetchone()

    assert [read(i) for i in (1, 2, 3, 1)] == [("x1",), ("x2",), ("x3",), ("x1",)]
    con.execute("SET search_path = other")
    assert [read(i) for i in (1, 2, 3)] == [("other 1",), ("other 2",), ("other 3",)]
    con.execute("RESET search_path")
    assert [read(i) for i in (1, 2, 3)] == [("x1",), ("x2",), ("x3",)]


def test_literals_are_read_in_the_time_zone_of_the_session(
    con: belvedere.Connection, served: list[str]
) -> None:
    def count(hour: int) -> Any:
        text = f"SELECT count(*) FROM t WHERE tz < '2024-01-02 {hour}:30'"
        return con.execute(text).fetchone()[0]

    utc = [count(hour) for hour in (10, 11, 12, 13)]
    con.execute("SET timezone = 'Asia/Tokyo'")
    assert [count(hour) for hour in (19, 20, 21, 22)] == utc
    assert served


def test_a_failed_transaction_refuses_a_text_of_a_known_shape(con: belvedere.Connection) -> None:
    for i in (1, 2, 3):
        con.execute(f"SELECT c FROM t WHERE id = {i}")
    con.execute("BEGIN")
    with pytest.raises(belvedere.Error):
        con.execute("SELECT 1 / 0")
    with pytest.raises(belvedere.Error) as refused:
        con.execute("SELECT c FROM t WHERE id = 4")
    assert refused.value.sqlstate == "25P02"
    con.execute("ROLLBACK")


def test_a_slow_statement_is_planned_for_its_literals(
    con: belvedere.Connection, served: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(literal_plans, "SLOW_US", -1)
    for i in range(6):
        con.execute(f"SELECT c FROM t WHERE k = {i}")
    assert len(served) == 1


def test_the_simple_protocol_uses_the_plans_of_shapes(
    con: belvedere.Connection, served: list[str]
) -> None:
    session = con._session
    for i in (1, 2, 3, 4):
        (result,) = run_simple_query(session, f"SELECT c FROM t WHERE id = {i};")
        assert result.rows == [(f"x{i}",)]
    assert len(served) == 2
    both = list(run_simple_query(session, "SELECT 1 WHERE 1 = 1; SELECT c FROM t WHERE id = 5"))
    assert [one.rows for one in both] == [[(1,)], [("x5",)]]


@pytest.mark.parametrize(
    ("form", "sqlstate"),
    [
        ("SELECT DISTINCT ON (id % {}) id FROM t ORDER BY id % {}, id", "42P10"),
        ("SELECT DISTINCT k + {} FROM t ORDER BY k + {}", "42P10"),
        ("SELECT k + {} FROM t GROUP BY k + {}", "42803"),
        ("SELECT k + {} AS x, k + {} AS x FROM t ORDER BY x", "42702"),
    ],
)
def test_literals_that_must_be_equal_are_compared_in_every_text(
    con: belvedere.Connection, form: str, sqlstate: str
) -> None:
    for i in (2, 3, 4):
        con.execute(form.format(i, i))
    assert answer(con, form.format(2, 3))[0] == sqlstate


def test_an_integer_too_large_for_the_column_equals_no_value_of_it(
    con: belvedere.Connection,
) -> None:
    for form in (
        "SELECT b FROM w WHERE s = {} AND b = 1",
        "SELECT b FROM w WHERE s IN ({}, 70000)",
    ):
        for i in (1, 2, 3):
            con.execute(form.format(i))
        assert con.execute(form.format(40000)).fetchall() == []
        assert con.execute(form.format(65537)).fetchall() == []
