"""ALTER TABLE .. ADD COLUMN with constraints, on a table that has rows, beside PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import belvedere
from tests.oracle.postgres import Postgres
from tests.oracle.side_by_side import SideBySide


@pytest.fixture
def both(postgres: Postgres) -> Iterator[SideBySide]:
    with belvedere.connect(":memory:", autocommit=True) as con:
        made = SideBySide(con, postgres)
        made.require_same("CREATE TABLE p (id int PRIMARY KEY, u int UNIQUE)")
        made.require_same("INSERT INTO p VALUES (1, 10), (2, 20)")
        made.require_same("CREATE TABLE c (id int PRIMARY KEY)")
        made.require_same("INSERT INTO c VALUES (1), (2)")
        yield made


@pytest.mark.parametrize(
    "actions",
    [
        "ADD COLUMN x int REFERENCES p",
        "ADD COLUMN x int DEFAULT 1 REFERENCES p ON DELETE CASCADE",
        "ADD COLUMN x int NOT NULL DEFAULT 2 REFERENCES p ON DELETE SET NULL",
        "ADD COLUMN x int DEFAULT 20 REFERENCES p(u)",
        "ADD COLUMN x int DEFAULT 7 REFERENCES p",
        "ADD COLUMN x int REFERENCES c",
        "ADD COLUMN x int DEFAULT 1 REFERENCES c",
        "ADD COLUMN x int DEFAULT 1, ADD FOREIGN KEY (x) REFERENCES p",
        "ADD COLUMN x int DEFAULT 7, ADD FOREIGN KEY (x) REFERENCES p",
        "ADD COLUMN x int, ALTER COLUMN x SET NOT NULL",
        "ADD COLUMN x int DEFAULT 1, ALTER COLUMN x SET NOT NULL",
        "ADD COLUMN x int DEFAULT 1 CHECK (x > 1)",
    ],
)
def test_an_added_column_may_refer_to_a_table(both: SideBySide, actions: str) -> None:
    both.require_same(f"ALTER TABLE c {actions}")
    both.require_same("SELECT * FROM c")
    both.require_same("INSERT INTO c VALUES (3, 99)")
    both.require_same("DELETE FROM p WHERE id = 2")
    both.require_same("DELETE FROM p")
    both.require_same("SELECT * FROM c")
    both.require_same("SELECT * FROM p")
