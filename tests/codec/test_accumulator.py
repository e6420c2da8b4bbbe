from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from belvedere.codec import accumulator
from belvedere.errors import Corruption, InvalidInput
from tests.codec.values import examples

INTEGERS = st.integers() | st.sampled_from((2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 0, 2**1100))
AMOUNTS = st.lists(INTEGERS, max_size=5).map(tuple)
FINITE = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    (5e-324, -5e-324, 2.2250738585072014e-308, 1e308, -1e308, 1.7976931348623157e308, 0.1, -0.0)
)


@given(st.binary(), AMOUNTS)
def test_a_state_comes_back_as_it_was(payload: bytes, amounts: tuple[int, ...]) -> None:
    assert accumulator.decode(accumulator.encode(payload, amounts)) == (payload, amounts)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, ...]]:
    width = draw(st.integers(0, 3))
    rows = st.tuples(st.just(1), *[INTEGERS] * width)
    return draw(st.lists(rows, min_size=1, max_size=6))


@settings(max_examples=examples(100))
@given(histories(), st.randoms(use_true_random=False))
def test_adding_commutes_and_taking_back_leaves_nothing(
    rows: list[tuple[int, ...]], rng: object
) -> None:
    def total(order: list[tuple[int, ...]], state: bytes | None) -> bytes | None:
        for row in order:
            state = accumulator.add(state, b"payload", row)
        return state

    forward = total(rows, None)
    shuffled = list(rows)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert total(shuffled, None) == forward
    sums = tuple(map(sum, zip(*rows)))
    assert forward == accumulator.encode(b"payload", sums)
    assert accumulator.add(None, b"payload", sums) == forward
    negated = [tuple(-amount for amount in row) for row in shuffled]
    assert total(negated, forward) is None


def test_the_payload_is_set_once() -> None:
    state = accumulator.add(None, b"first", (1, 5))
    state = accumulator.add(state, b"second", (1, 5))
    assert state is not None
    assert accumulator.decode(state) == (b"first", (2, 10))


def test_fewer_than_zero_rows_are_corruption() -> None:
    with pytest.raises(Corruption, match="fewer than zero"):
        accumulator.add(None, b"", (-1, 0))
    with pytest.raises(Corruption, match="fewer than zero"):
        accumulator.add(accumulator.add(None, b"", (1, 5)), b"", (-2, -5))


def test_amounts_without_rows_are_corruption() -> None:
    with pytest.raises(Corruption, match="amounts left"):
        accumulator.add(accumulator.add(None, b"", (1, 5)), b"", (-1, -4))


def test_another_number_of_amounts_is_corruption() -> None:
    with pytest.raises(Corruption, match="another number"):
        accumulator.add(accumulator.encode(b"", (1, 2)), b"", (1,))


@given(st.binary(), AMOUNTS, st.data())
def test_a_cut_or_prolonged_state_is_corruption(
    payload: bytes, amounts: tuple[int, ...], data: st.DataObject
) -> None:
    state = accumulator.encode(payload, amounts)
    cut = data.draw(st.integers(0, len(state) - 1))
    for damaged in (state[:cut], state + b"\0", b"\x02" + state[1:]):
        with pytest.raises(Corruption):
            accumulator.decode(damaged)


def test_an_amount_that_is_no_integer_is_refused() -> None:
    with pytest.raises(InvalidInput):
        accumulator.encode(b"", (1.5,))  # type: ignore[arg-type]


@given(FINITE)
def test_a_float_survives_as_a_fixed_number(value: float) -> None:
    fixed = accumulator.float_to_fixed(value)
    assert Fraction(fixed, 2**1074) == Fraction(value)
    assert accumulator.fixed_to_float(fixed) == value


@given(st.lists(FINITE, max_size=8))
@example([1e308, 1e308, -1e308, -1e308, 5e-324])
@example([1.0, 2.0**-53, 2.0**-106])
def test_a_sum_is_rounded_once_and_in_any_order_the_same(found: list[float]) -> None:
    fixed = sum(map(accumulator.float_to_fixed, found))
    assert fixed == sum(map(accumulator.float_to_fixed, reversed(found)))
    exact = sum(map(Fraction, found), Fraction(0))
    try:
        expected = float(exact)
    except OverflowError:
        with pytest.raises(InvalidInput) as caught:
            accumulator.fixed_to_float(fixed)
        assert caught.value.sqlstate == "22003"
        return
    assert accumulator.fixed_to_float(fixed) == expected


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_has_no_fixed_number(value: float) -> None:
    with pytest.raises(InvalidInput):
        accumulator.float_to_fixed(value)
