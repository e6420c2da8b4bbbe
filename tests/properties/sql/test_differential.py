"""Random statements answer as PostgreSQL answers them; so does everything that once did not.

`make long RUN=differential` runs twenty times as many.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.postgres import Postgres, postgres  # noqa: F401  a fixture
from tests.properties.sql.compare import alike, pair
from tests.properties.sql.hunt import hunt
from tests.slt.records import Answer

FOUND = sorted((Path(__file__).parent / "found").glob("*.sql"))
STATEMENTS = 1000


@pytest.mark.slow
def test_random_statements_answer_as_postgresql_does(
    postgres: Postgres,  # noqa: F811
    seed: int,
) -> None:
    finds = list(hunt(postgres, seed, STATEMENTS))
    assert not finds, "\n\n".join(str(find) for find in finds)


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_what_was_found_stays_fixed(postgres: Postgres, path: Path) -> None:  # noqa: F811
    lines = [line for line in path.read_text().splitlines() if not line.startswith("--")]
    statements = [text.strip() for text in "\n".join(lines).split(";\n") if text.strip()]
    with pair(postgres) as engines:
        differences = [engines.run(text.rstrip(";")) for text in statements]
    found = [str(one) for one in differences if one is not None]
    assert not found, "\n".join(found)


ROWS = Answer((("1", "a"), ("2", None)), ("integer", "text"))


@pytest.mark.parametrize(
    ("got", "ordered", "same"),
    [
        (ROWS, True, True),
        (Answer(ROWS.rows[::-1], ROWS.types), False, True),
        (Answer(ROWS.rows[::-1], ROWS.types), True, False),
        (Answer(ROWS.rows, ("bigint", "text")), False, False),
        (Answer((*ROWS.rows, ROWS.rows[0]), ROWS.types), False, False),
        (Answer((("1", "a"), ("2", "")), ROWS.types), False, False),
        (Answer(sqlstate="22012"), False, False),
    ],
)
def test_a_difference_is_noticed(got: Answer, ordered: bool, same: bool) -> None:
    assert alike("SELECT", ROWS, got, ordered) is same


def test_errors_are_equal_by_sqlstate() -> None:
    failed = Answer(sqlstate="22012", message="division by zero")
    assert alike("SELECT", failed, Answer(sqlstate="22012"), False)
    assert not alike("SELECT", failed, Answer(sqlstate="22003"), False)
    assert not alike("SELECT", failed, Answer(), False)


def test_equal_values_of_other_text_stand_for_each_other_only_where_one_of_them_is_kept() -> None:
    one, two = (Answer(((text,),), ("numeric",)) for text in ("1.0", "1.00"))
    assert alike("SELECT DISTINCT a FROM t", one, two, False)
    assert not alike("SELECT a FROM t", one, two, False)
    day, hours = (Answer(((text,),), ("interval",)) for text in ("1 day", "24:00:00"))
    assert alike("SELECT max(a) FROM t", day, hours, False)
    assert not alike("SELECT max(a) FROM t", day, Answer((("25:00:00",),), ("interval",)), False)
