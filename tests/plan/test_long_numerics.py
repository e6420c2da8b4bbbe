"""Exponentials, logarithms and powers of numerics with many digits, beside PostgreSQL.

How long they take is counted in the digits that reach the `decimal` module: its own exponential,
logarithm and power take seconds for thousands of them.
"""

from __future__ import annotations

import decimal
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from belvedere.errors import Error
from belvedere.plan.functions.numeric import decimal_math, decimals
from belvedere.values.decimals import format_numeric
from belvedere.values.exponentials import exp_to_digits, ln_to_digits
from tests.oracle.postgres import Postgres, Value

FUNCTIONS: dict[str, Callable[..., Decimal]] = {
    "exp": decimal_math.exp,
    "ln": decimal_math.ln,
    "log": decimal_math.log,
    "power": decimal_math.power,
    "sqrt": decimal_math.sqrt,
    "gcd": decimals.gcd,
    "lcm": decimals.lcm,
}
CALLS = 200
HARD = (
    ("exp", "5999.5"),
    ("exp", "-4000.25"),
    ("exp", "0." + "3" * 3000),
    ("ln", "1." + "0" * 900 + "7"),
    ("ln", "0." + "9" * 950),
    ("ln", "9" * 1200 + ".5"),
    ("log", "2", "1." + "0" * 600 + "1"),
    ("log", "1." + "0" * 300 + "1", "3"),
    ("power", "1." + "0" * 500 + "3", "9" * 501 + ".5"),
    ("power", "0." + "3" * 1500, "0.5"),
    ("power", "7.5", "2000." + "1" * 900),
    ("gcd", "9" * 3000 + ".25", "3" * 100 + ".125"),
    ("lcm", "9" * 300 + ".25", "3" * 100 + ".125"),
    ("lcm", "9" * 130000, "0." + "0" * 1500 + "1"),
)


def make_call(rng: random.Random) -> tuple[str, ...]:
    name = rng.choice(["exp", "ln", "log", "power", "power"])
    return (name, *(make_number(rng) for _ in range(2 if name in ("log", "power") else 1)))


def make_number(rng: random.Random) -> str:
    places = rng.choice([3, 30, 250, 310, 700])
    digits = "".join(rng.choices("0123456789", k=places))
    whole = rng.choice(["0", "1", "2", "17", "1234", "9" * 40])
    zeros = "0" * rng.choice([0, 0, 1, 5, 40, 200])
    return f"{whole}.{zeros}{digits}"


def answer(call: tuple[str, ...]) -> tuple[str | None, str | None]:
    try:
        found = FUNCTIONS[call[0]](*map(Decimal, call[1:]))
    except Error as error:
        return None, error.sqlstate
    return format_numeric(found), None


def test_functions_of_numerics_with_many_digits_are_postgresqls(
    postgres: Postgres, rng: random.Random
) -> None:
    calls = [*HARD, *(make_call(rng) for _ in range(CALLS))]
    expected = postgres.evaluate(
        [f"{name}({', '.join(f'{a}::numeric' for a in arguments)})" for name, *arguments in calls]
    )
    differences = [
        (call, value, found)
        for call, value in zip(calls, expected, strict=True)
        if not is_same(value, found := answer(call))
    ]
    assert differences == []


def is_same(value: Value, found: tuple[str | None, str | None]) -> bool:
    return (value.text, value.sqlstate) == found


@pytest.mark.parametrize("digits", [5, 299, 301, 1000])
def test_many_digits_are_those_of_the_decimal_module(digits: int, rng: random.Random) -> None:
    wide = decimal.Context(prec=digits + 400, Emax=999_999_999, Emin=-999_999_999, traps=[])
    for _ in range(5):
        value = Decimal(make_number(rng))
        small = wide.remainder(value, Decimal(1000))
        for found, expected in (
            (exp_to_digits(small, digits), wide.exp(small)),
            (ln_to_digits(value, digits), wide.ln(value)),
        ):
            error = wide.divide(wide.subtract(found, expected), expected) if expected else found
            assert error.copy_abs() < Decimal(f"1e-{digits}")


class CountingContext(decimal.Context):
    """Fails for what the `decimal` module would take long for."""

    def require_few_digits(self, *values: Any) -> None:
        assert self.prec < 400, f"{self.prec} digits"
        assert all(len(value.as_tuple().digits) < 400 for value in values)

    def exp(self, a: Any, /) -> Decimal:
        self.require_few_digits(a)
        return super().exp(a)

    def ln(self, a: Any, /) -> Decimal:
        self.require_few_digits(a)
        return super().ln(a)

    def power(self, a: Any, b: Any, modulo: Any = None) -> Decimal:
        if b != int(b) or abs(b) > 2**32:
            self.require_few_digits(a, b)
        return super().power(a, b)


@pytest.mark.parametrize(
    "call",
    [
        *HARD,
        ("exp", "0." + "3" * 16000),
        ("power", "0." + "3" * 16000, "0." + "3" * 16000),
        ("power", "0." + "3" * 16000, "0.5"),
        ("power", "1." + "0" * 16000 + "1", "9" * 16000 + ".5"),
        ("ln", "9" * 131000),
        ("log", "1." + "0" * 16000 + "1", "1." + "0" * 15000 + "1"),
    ],
    ids=lambda call: f"{call[0]} {len(call[1])}",
)
def test_no_long_number_reaches_the_decimal_module(
    call: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belvedere.plan.functions.numeric.decimal_math.Context", CountingContext)
    monkeypatch.setattr("belvedere.values.exponentials.Context", CountingContext)
    assert answer(call) != ("", None)
