"""Names, types, rows and SQLSTATEs as a real PostgreSQL gives them, for statements that the golden
files bind and for random queries."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import belvedere
from tests.oracle.postgres import Postgres, postgres  # noqa: F401  a fixture
from tests.sql.golden import DIRECTORY
from tests.sql.random_queries import CHOSEN, SETUP, Generator, rows

QUERIES = 150


@pytest.fixture(scope="module")
def both(
    postgres: Postgres,  # noqa: F811
    request: pytest.FixtureRequest,
) -> Iterator[tuple[Any, Any]]:
    theirs = postgres.connect(autocommit=True)
    theirs.execute("create schema random_queries; set search_path to random_queries")
    ours = belvedere.connect(":memory:")
    ours.autocommit = True
    rng = random.Random(request.config.getoption("--seed") or 1)
    for statement in [*SETUP.split(";"), *rows(rng)]:
        theirs.execute(statement)
        ours.execute(statement)
    yield ours, theirs
    ours.close()
    theirs.execute("drop schema random_queries cascade")
    theirs.close()


def outcome(connection: Any, text: str) -> Any:
    try:
        cursor = connection.execute(text)
    except Exception as error:
        if not hasattr(error, "sqlstate"):
            raise
        return error.sqlstate
    names = [column[0] for column in cursor.description]
    return names, sorted(map(repr, cursor.fetchall()))


def test_random_queries_answer_as_postgresql_does(both: tuple[Any, Any], seed: int) -> None:
    ours, theirs = both
    generator = Generator(random.Random(seed))
    texts = [*CHOSEN, *(generator.query() for _ in range(QUERIES))]
    for number, text in enumerate(texts):
        assert outcome(ours, text) == outcome(theirs, text), (
            f"query {number} of seed {seed}\n{text}"
        )


WRONG_STATEMENTS = (DIRECTORY / "wrong.txt").read_text().splitlines()


@pytest.mark.parametrize("text", WRONG_STATEMENTS)
def test_wrong_statement_fails_with_the_sqlstate_of_postgresql(
    both: tuple[Any, Any], text: str
) -> None:
    ours, theirs = both
    got, wanted = outcome(ours, text), outcome(theirs, text)
    assert isinstance(wanted, str), "PostgreSQL accepts it"
    assert got == wanted
