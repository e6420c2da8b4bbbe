"""The registry: cheap to import, honest about what it lacks, clocks and dice from outside."""

from __future__ import annotations

import datetime
import random
import subprocess
import sys

import pytest

from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan.functions import Environment, Volatility, functions_by_name, resolve
from belvedere.plan.functions.nested.arrays import all_of, any_of
from belvedere.types import BIGINT, DATE, INTEGER, TEXT, TIMESTAMP, UNKNOWN, Interval
from belvedere.values.datetimes import UTC

NOW = datetime.datetime(2024, 2, 29, 23, 59, 59, 5, tzinfo=UTC)
LATER = NOW + datetime.timedelta(seconds=2)
ENVIRONMENT = Environment(NOW, NOW, lambda: LATER, random.Random(7))


def test_import_brings_no_heavy_library() -> None:
    program = "import sys, belvedere.plan.functions as f; f.functions_by_name();"
    program += "print([m for m in ('sqlglot', 'duckdb', 'pyarrow', 'numpy') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": "src"},
    )
    assert done.stdout.strip() == "[]"


def test_unknown_name_is_42883() -> None:
    with pytest.raises(InvalidInput) as raised:
        resolve("no_such_function", (INTEGER,))
    assert raised.value.sqlstate == "42883"


def test_function_that_only_postgres_has_is_unsupported_by_name() -> None:
    for name in ("xpath", "@-@", "setseed"):
        with pytest.raises(Unsupported) as raised:
            resolve(name, (TEXT,))
        assert raised.value.facts["function"] == name


def test_two_untyped_operands_of_plus_are_ambiguous() -> None:
    with pytest.raises(InvalidInput) as raised:
        resolve("+", (UNKNOWN, UNKNOWN))
    assert raised.value.sqlstate == "42725"


def test_mixed_integers_are_not_cast_but_have_their_own_operator() -> None:
    resolved = resolve("+", (INTEGER, BIGINT))
    assert resolved.argument_types == (INTEGER, BIGINT)
    assert resolved.result_type == BIGINT


def test_untyped_operand_takes_the_type_of_the_other() -> None:
    assert resolve("=", (DATE, UNKNOWN)).argument_types == (DATE, DATE)
    assert resolve("||", (UNKNOWN, UNKNOWN)).argument_types == (TEXT, TEXT)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("now", NOW),
        ("transaction_timestamp", NOW),
        ("current_timestamp", NOW),
        ("statement_timestamp", NOW),
        ("clock_timestamp", LATER),
        ("current_date", datetime.date(2024, 2, 29)),
        ("localtime", datetime.time(23, 59, 59, 5)),
        ("localtimestamp", NOW.replace(tzinfo=None)),
    ],
)
def test_clock_functions_read_the_environment(name: str, expected: object) -> None:
    resolved = resolve(name, ())
    assert resolved.function.environment
    assert resolved.function.volatility is not Volatility.IMMUTABLE
    assert callable(resolved.python)
    assert resolved.python(ENVIRONMENT) == expected


def test_age_of_one_argument_counts_from_today_at_midnight() -> None:
    form = resolve("age", (TIMESTAMP,)).python
    assert callable(form)
    assert form(ENVIRONMENT, datetime.datetime(2024, 1, 30)) == Interval(0, 30, 0)


def test_random_functions_draw_from_the_environment() -> None:
    for name in ("random", "gen_random_uuid"):
        form = resolve(name, ()).python
        assert callable(form)
        again = Environment(NOW, NOW, lambda: LATER, random.Random(7))
        fresh = Environment(NOW, NOW, lambda: LATER, random.Random(7))
        assert form(again) == form(fresh)
        assert resolve(name, ()).function.volatility is Volatility.VOLATILE
    form = resolve("gen_random_uuid", ()).python
    assert callable(form)
    assert form(ENVIRONMENT).version == 4


def test_every_function_that_is_not_immutable_is_declared_so() -> None:
    environment = [f for several in functions_by_name().values() for f in several if f.environment]
    assert environment
    assert all(f.volatility is not Volatility.IMMUTABLE and f.sql is None for f in environment)


def test_any_and_all_over_arrays_use_three_valued_logic() -> None:
    equal = resolve("=", (INTEGER, INTEGER)).python
    less = resolve("<", (INTEGER, INTEGER)).python
    assert callable(equal)
    assert callable(less)
    some, every = any_of(equal), all_of(less)
    assert some(1, [2, 1]) is True
    assert some(1, [2, None]) is None
    assert some(1, []) is False
    assert some(None, [1]) is None
    assert some(1, None) is None
    assert every(1, [2, 3]) is True
    assert every(1, [2, None]) is None
    assert every(1, [0, None]) is False
    assert every(1, []) is True
