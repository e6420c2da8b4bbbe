"""Which types have equal values of different representation, by what equality and repr say."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from belvedere.plan.functions.registry import resolve
from belvedere.plan.representation import python_equal_may_differ, sql_equal_may_differ
from belvedere.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    REAL,
    TEXT,
    UUID,
    Interval,
    Kind,
    SqlType,
    numeric_type,
    varchar_type,
)

DAY = 86_400_000_000
PAIRS: list[tuple[SqlType, Any, Any]] = [
    (REAL, 0.0, -0.0),
    (DOUBLE, 0.0, -0.0),
    (SqlType(Kind.NUMERIC), Decimal("1.0"), Decimal("1.00")),
    (SqlType(Kind.CHAR), "a", "a "),
    (INTERVAL, Interval(0, 1, 0), Interval(0, 0, DAY)),
]


@pytest.mark.parametrize(("type_", "one", "other"), PAIRS, ids=lambda value: str(value))
def test_the_table_says_what_the_values_do(type_: SqlType, one: Any, other: Any) -> None:
    assert repr(one) != repr(other)
    equal: Any = resolve("=", (type_, type_)).function.python
    assert equal(one, other) is True
    assert sql_equal_may_differ(type_)
    assert python_equal_may_differ(type_) == (one == other)


@pytest.mark.parametrize(
    "type_",
    [INTEGER, BIGINT, BOOLEAN, TEXT, varchar_type(3), DATE, UUID, numeric_type(10, 2)],
    ids=str,
)
def test_other_types_have_one_representation(type_: SqlType) -> None:
    assert not sql_equal_may_differ(type_)
    assert not python_equal_may_differ(type_)
