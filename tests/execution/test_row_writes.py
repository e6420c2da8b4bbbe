"""Actions of foreign keys of a table that refers to itself, beside PostgreSQL."""

from __future__ import annotations

import random

import pytest

import belvedere
from tests.oracle.postgres import Postgres
from tests.oracle.side_by_side import SideBySide

ACTIONS = ("NO ACTION", "CASCADE", "SET NULL", "RESTRICT")


def test_a_cascading_update_of_a_self_referencing_key(postgres: Postgres) -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        both = SideBySide(con, postgres)
        both.require_same(
            "CREATE TABLE s (a int PRIMARY KEY, b int REFERENCES s ON UPDATE CASCADE)"
        )
        both.require_same("INSERT INTO s VALUES (1, NULL), (2, 1), (3, 2), (4, 4)")
        both.require_same("UPDATE s SET a = a + 10")
        assert both.require_same("SELECT * FROM s") == [
            "(11, None)",
            "(12, 11)",
            "(13, 12)",
            "(14, 14)",
        ]


def test_each_reference_follows_its_row_once() -> None:
    """PostgreSQL's answer depends on where the rows lie; this one does not."""
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE s (a int PRIMARY KEY, b int REFERENCES s ON UPDATE CASCADE)")
        con.execute("INSERT INTO s VALUES (1, NULL), (2, 1), (11, 2), (12, 11)")
        con.execute("UPDATE s SET a = a + 10")
        found = con.execute("SELECT * FROM s ORDER BY a").fetchall()
        assert found == [(11, None), (12, 11), (21, 12), (22, 21)]


@pytest.mark.parametrize("part", range(4))
def test_actions_inside_one_table_are_those_of_postgresql(
    postgres: Postgres, seed: int, part: int
) -> None:
    for number in range(25):
        rng = random.Random(f"{seed}/{part}/{number}")
        with belvedere.connect(":memory:", autocommit=True) as con:
            both = SideBySide(con, postgres)
            for statement in _make_statements(rng):
                both.require_same(statement)


def _make_statements(rng: random.Random) -> list[str]:
    """A table with a few rows, and one statement that changes keys or removes rows. New keys are
    not among the old ones."""
    on_update, on_delete = rng.choice(ACTIONS), rng.choice(ACTIONS)
    keys = rng.sample(range(1, 30), rng.randint(2, 6))
    rows = [
        f"({key}, {rng.choice(['NULL', key, *keys[:i], *keys[:i]])}, {rng.randint(0, 3)})"
        for i, key in enumerate(keys)
    ]
    where = rng.choice(["", "", f"WHERE a > {rng.randint(0, 30)}", "WHERE b IS NOT NULL"])
    change = rng.choice(
        [
            "UPDATE s SET a = a + 100",
            "UPDATE s SET a = a + 100, b = b + 100",
            "UPDATE s SET a = a - 100, c = c + 1",
            "UPDATE s SET b = NULL",
            "DELETE FROM s",
        ]
    )
    return [
        "CREATE TABLE s (a int PRIMARY KEY, c int, b int)",
        f"ALTER TABLE s ADD FOREIGN KEY (b) REFERENCES s ON UPDATE {on_update} "
        f"ON DELETE {on_delete}",
        f"INSERT INTO s (a, b, c) VALUES {', '.join(rows)}",
        f"{change} {where}",
        "SELECT * FROM s",
    ]
