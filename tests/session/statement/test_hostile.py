"""A thousand malformed and hostile statements on an open database: each ends in an error with a
SQLSTATE, or does what it says; none hangs, crashes or leaves half of its changes behind."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

import belvedere

STATEMENTS = 1_000
SETUP = """
CREATE TABLE p (id int PRIMARY KEY, code varchar(4) UNIQUE, n smallint CHECK (n < 100));
CREATE TABLE c (id int PRIMARY KEY, p int NOT NULL REFERENCES p, v numeric(4, 2), d date);
CREATE INDEX c_v ON c (v);
CREATE MATERIALIZED VIEW m AS SELECT p, count(*) AS n, sum(v) AS s FROM c GROUP BY p;
INSERT INTO p SELECT i, 'k' || i, i FROM generate_series(1, 9) i;
INSERT INTO c SELECT i, i % 9 + 1, i / 4.0, DATE '2024-01-01' + i FROM generate_series(1, 30) i
"""
SOUND = [
    "INSERT INTO p VALUES (20, 'x', 1), (21, 'y', 2)",
    "INSERT INTO c (id, p, v) SELECT id + 100, p, v FROM c WHERE v < 3",
    "UPDATE c SET v = v + 1, d = d + 1 WHERE p IN (SELECT id FROM p WHERE n > 3)",
    "DELETE FROM c USING p WHERE c.p = p.id AND p.code LIKE 'k%' AND c.id > 25",
    "SELECT p.code, sum(c.v) OVER (PARTITION BY p.id ORDER BY c.id) FROM p JOIN c ON c.p = p.id",
    "WITH x AS (DELETE FROM c WHERE id < 3 RETURNING *) INSERT INTO p SELECT id, 'w', 1 FROM x",
    "INSERT INTO p VALUES (1, 'z', 9) ON CONFLICT (id) DO UPDATE SET n = p.n + 1 RETURNING *",
    "CREATE TABLE made (a int PRIMARY KEY, b text DEFAULT 'x' CHECK (b <> ''))",
    "ALTER TABLE c ADD COLUMN extra int DEFAULT 3",
    "SELECT n, s FROM m WHERE p = 3 ORDER BY n LIMIT 2",
]
LATE = [  # right until the last row
    "INSERT INTO p SELECT i, 'n' || i, i FROM generate_series(30, 130) i",
    "INSERT INTO p SELECT i, 'same', 1 FROM generate_series(30, 32) i",
    "INSERT INTO c SELECT 200 + i, 10 - i, 1 FROM generate_series(1, 12) i",
    "INSERT INTO c SELECT 200 + i, 1, 1 / (5 - i) FROM generate_series(1, 12) i",
    "INSERT INTO c SELECT 200 + i, 1, i * 30 FROM generate_series(1, 12) i",
    "UPDATE p SET n = n * 20",
    "UPDATE p SET code = left(code, 1)",
    "UPDATE c SET v = 10 / (id - 30)",
    "UPDATE c SET p = p + 1",
    "UPDATE c SET d = CASE WHEN id < 30 THEN d ELSE 'never'::text::date END",
    "DELETE FROM p WHERE id > 0",
    "ALTER TABLE p ALTER COLUMN n TYPE int USING 1 / (id - 9)",
    "ALTER TABLE c ADD CONSTRAINT few CHECK (id < 30)",
    "ALTER TABLE c ADD UNIQUE (p)",
    "CREATE UNIQUE INDEX one ON c (p)",
    "CREATE TABLE gone AS SELECT 1 / (id - 30) AS x FROM c",
    "TRUNCATE p",
    "WITH x AS (INSERT INTO p VALUES (70, 'q', 1) RETURNING id) INSERT INTO c SELECT 1, id FROM x",
]
NAMES = ['"', '""', "a;b", "'", "\\", "\x01", "\u202e", "x" * 300, "select", "\U0001f600", "é", " "]


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as made:
        for statement in SETUP.split(";"):
            made.execute(statement)
        yield made


def nested(rng: random.Random) -> str:
    depth = rng.choice((50, 500, 5_000))
    opening, closing = rng.choice(
        [("(", ")"), ("abs(", ")"), ("(SELECT ", ")"), ("NOT ", ""), ("- ", ""), ("ARRAY[", "]")]
    )
    close = closing * (depth - rng.choice((0, 0, 1)))
    return f"UPDATE c SET v = {opening * depth}1{close} WHERE id = {rng.choice(('1', 'nosuch'))}"


def large(rng: random.Random) -> str:
    size = rng.choice((70_000, 1_000_000))
    return rng.choice(
        [
            f"INSERT INTO p VALUES (40, '{'x' * size}', 1)",
            f"INSERT INTO p VALUES (40, 'x', {'9' * min(size, 70_000)})",
            f"SELECT * FROM {'t' * size}",
            f"DELETE FROM c WHERE id = 1 -- {'x' * size}\n AND nosuch",
            f"UPDATE p SET n = 1 WHERE code = '{'x' * size}",
        ]
    )


def named(rng: random.Random) -> str:
    name = rng.choice(NAMES)
    quoted = '"' + name.replace('"', rng.choice(('"', '""'))) + '"'
    return rng.choice(
        [
            f"CREATE TABLE {quoted} (a int, {quoted} int, a int)",
            f"SELECT {name} FROM p",
            f"INSERT INTO p ({quoted}) VALUES (1)",
            f"ALTER TABLE p RENAME COLUMN code TO {name}{name}",
            f"DROP TABLE {quoted}, nosuch",
            f"SAVEPOINT {name}",
        ]
    )


def raw(rng: random.Random) -> str:
    """Bytes that are no UTF-8, and characters that no text has."""
    tail = bytes(rng.randrange(256) for _ in range(12)).decode("utf-8", "surrogateescape")
    return rng.choice(SOUND) + " " + tail


def mutilated(rng: random.Random) -> str:
    parts = rng.choice(SOUND + LATE).split()
    words = [word for text in SOUND for word in text.split()]
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(parts))
        parts[place : place + rng.randint(0, 1)] = rng.choice(([], [rng.choice(words)]))
        parts = parts or ["SELECT"]
    return " ".join(parts)


def late(rng: random.Random) -> str:
    return rng.choice(LATE)


KINDS: list[Callable[[random.Random], str]] = [nested, large, named, raw]
KINDS += [mutilated] * 3 + [late] * 3


def state(con: belvedere.Connection) -> list[object]:
    """All rows, by table and by index and view, and what there is."""
    found: list[object] = [
        sorted(con.execute(f"SELECT {columns} FROM {table}").fetchall(), key=repr)
        for table, columns in (("p", "*"), ("c", "*"), ("m", "*"), ("c", "id, v"))
    ]
    found.append(
        sorted(
            con.execute(
                "SELECT table_name, column_name, data_type FROM information_schema.columns "
                "WHERE table_schema = 'public'"
            ).fetchall()
        )
    )
    found.append(sorted(con.execute("SELECT id FROM c WHERE v > 0").fetchall()))
    return found


@pytest.mark.slow
def test_a_thousand_hostile_statements(con: belvedere.Connection, rng: random.Random) -> None:
    before, failed = state(con), 0
    for number in range(STATEMENTS):
        text = rng.choice(KINDS)(rng)
        inside = rng.random() < 0.3
        if inside:
            con.execute("BEGIN")
            con.execute("INSERT INTO p VALUES (90, 'mine', 1)")
        try:
            con.execute(text)
            outcome = "ok"
        except belvedere.Error as error:
            outcome = error.sqlstate or ""
            failed += 1
        assert outcome == "ok" or len(outcome) == 5, text[:200]
        if inside and outcome != "ok":
            with pytest.raises(belvedere.Error) as caught:
                con.execute("SELECT 1")
            assert caught.value.sqlstate == "25P02", text[:200]
        if inside:
            con.execute("ROLLBACK")
        assert con._session.transactions.open is None, text[:200]
        if inside or outcome != "ok":
            assert state(con) == before, f"{number}: {outcome} {text[:200]!r}"
            continue
        con.close()
        con = belvedere.connect(":memory:", autocommit=True)
        for statement in SETUP.split(";"):
            con.execute(statement)
    con.close()
    assert failed > STATEMENTS // 2


@pytest.mark.parametrize("text", LATE)
def test_a_statement_that_fails_late_leaves_no_trace(con: belvedere.Connection, text: str) -> None:
    before = state(con)
    with pytest.raises(belvedere.Error) as caught:
        con.execute(text)
    assert caught.value.sqlstate not in ("0A000", "XX000") or "TRUNCATE" in text
    assert state(con) == before
