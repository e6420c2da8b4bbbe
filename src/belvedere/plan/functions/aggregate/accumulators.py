"""The Python forms of aggregates: their initial states, step and finish functions.

States are small lists that `step` changes in place and returns, or plain values where that is
faster. Integer and NUMERIC sums are exact; float sums add in row order, as PostgreSQL's do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from belvedere.errors import Unsupported
from belvedere.plan.functions.core.function import Accumulator
from belvedere.types import Interval
from belvedere.values import decimals, interval_math
from belvedere.values.decimals import DIGITS_BEFORE_MAX, EXACT, NAN, WIDE, ZERO
from belvedere.values.failures import out_of_range
from belvedere.values.numbers import INT8_MAX, INT8_MIN, float4
from belvedere.values.value_size import ALWAYS_ALLOWED, require_value_size

_WORDS = 32  # a number, and its place in a list

Pair = list[Any]


def no_state() -> None:
    return None


def zero_count() -> int:
    return 0


def keep_state(state: Any) -> Any:
    return state


def count_step(state: int, *arguments: Any) -> int:
    return state + 1


def first_value_step(state: Any, value: Any) -> Any:
    """any_value: the first value."""
    return value if state is None else state


def fold_accumulator(
    combine: Callable[[Any, Any], Any], finish: Callable[[Any], Any] = keep_state
) -> Accumulator:
    """An aggregate that combines two values into one; NULL over no rows."""

    def step(state: Any, value: Any) -> Any:
        return value if state is None else combine(state, value)

    return Accumulator(no_state, step, finish)


def min_accumulator(less: Callable[[Any, Any], bool]) -> Accumulator:
    """min by an order; of equal values with different representations (0, -0) the last one."""

    def step(state: Any, value: Any) -> Any:
        return value if state is None or not less(state, value) else state

    return Accumulator(no_state, step, keep_state)


def first_min_accumulator(less: Callable[[Any, Any], bool]) -> Accumulator:
    """As `min_accumulator`, but of equal values the first one."""

    def step(state: Any, value: Any) -> Any:
        return value if state is None or less(value, state) else state

    return Accumulator(no_state, step, keep_state)


def add_integers(left: int, right: int) -> int:
    return left + right


def finish_bigint(total: int | None) -> int | None:
    if total is None or INT8_MIN <= total <= INT8_MAX:
        return total
    raise out_of_range("bigint")


def finish_integer_numeric(total: int | None) -> Decimal | None:
    return None if total is None else Decimal(total)


def add_float4(left: float, right: float) -> float:
    wide = left + right
    result = float4(wide)
    if math.isinf(result) and not (math.isinf(left) or math.isinf(right)):
        raise out_of_range("real")
    return result


def integer_pair() -> Pair:
    return [0, 0]


def integer_pair_step(state: Pair, value: Any) -> Pair:
    state[0] += value
    state[1] += 1
    return state


def average_integer(state: Pair) -> Decimal | None:
    return average_of(state[0], state[1])


def average_of(total: Any, count: int) -> Decimal | None:
    """The average from an exact total (integer or NUMERIC) and a row count."""
    return None if not count else decimals.divide(Decimal(total), Decimal(count))


def numeric_pair() -> Pair:
    return [ZERO, 0]


def numeric_pair_step(state: Pair, value: Decimal) -> Pair:
    state[0] = EXACT.add(state[0], value)
    state[1] += 1
    return state


def average_numeric(state: Pair) -> Decimal | None:
    return None if not state[1] else decimals.divide(state[0], Decimal(state[1]))


def interval_pair() -> Pair:
    return [Interval(0, 0, 0), 0]


def interval_pair_step(state: Pair, value: Interval) -> Pair:
    state[0] = interval_math.add(state[0], value)
    state[1] += 1
    return state


def average_interval(state: Pair) -> Interval | None:
    return None if not state[1] else interval_math.divide(state[0], float(state[1]))


def integer_moments() -> list[Any]:
    """count, sum, sum of squares."""
    return [0, 0, 0]


def integer_moments_step(state: list[Any], value: Any) -> list[Any]:
    state[0] += 1
    state[1] += value
    state[2] += value * value
    return state


def numeric_moments() -> list[Any]:
    return [0, ZERO, ZERO]


def numeric_moments_step(state: list[Any], value: Decimal) -> list[Any]:
    state[0] += 1
    state[1] = WIDE.add(state[1], value)
    state[2] = WIDE.add(state[2], WIDE.multiply(value, value))
    return state


def exact_spread(sample: bool, root: bool) -> Callable[[list[Any]], Decimal | None]:
    """Variance or standard deviation from exact moments, with PostgreSQL's digits."""

    def finish(state: list[Any]) -> Decimal | None:
        return compute_spread(state[0], Decimal(state[1]), Decimal(state[2]), sample, root)

    return finish


def compute_spread(
    count: int, total: Decimal, squares: Decimal, sample: bool, root: bool
) -> Decimal | None:
    if count <= (1 if sample else 0):
        return None
    if not (total.is_finite() and squares.is_finite()):
        return NAN
    unit = decimals.scale_unit(2 * decimals.scale_of(total))
    number = Decimal(count)
    numerator = WIDE.subtract(
        WIDE.quantize(WIDE.multiply(number, squares), unit),
        WIDE.quantize(WIDE.multiply(total, total), unit),
    )
    if numerator <= 0:
        return ZERO
    divisor = Decimal(count * (count - 1 if sample else count))
    if numerator.adjusted() - divisor.adjusted() >= DIGITS_BEFORE_MAX:
        raise out_of_range("numeric")
    scale = decimals.division_scale(numerator, divisor)
    variance = decimals.divide_to_scale(numerator, divisor, scale)
    if not root:
        return variance
    wide = EXACT.copy()
    wide.prec = 2 * abs(variance.adjusted()) + scale + 20
    return decimals.round_to_scale(wide.sqrt(variance), scale)


def float_moments() -> list[float]:
    """count, sum, sum of squared differences (Youngs and Cramer)."""
    return [0.0, 0.0, 0.0]


def float_moments_step(state: list[float], value: float) -> list[float]:
    before, total, squares = state
    count = before + 1.0
    new_total = total + value
    if before > 0:
        difference = value * count - new_total
        squares += difference * difference / (count * before)
        if math.isinf(new_total) or math.isinf(squares):
            if not math.isinf(total) and not math.isinf(value):
                raise out_of_range("double precision")
            squares = math.nan
    elif not math.isfinite(value):
        squares = math.nan
    state[0], state[1], state[2] = count, new_total, squares
    return state


def float_average(state: list[float]) -> float | None:
    return None if state[0] == 0 else state[1] / state[0]


def float_spread(sample: bool, root: bool) -> Callable[[list[float]], float | None]:
    def finish(state: list[float]) -> float | None:
        count, _, squares = state
        if count <= (1 if sample else 0):
            return None
        variance = squares / (count - 1 if sample else count)
        return math.sqrt(variance) if root else variance

    return finish


class HeldValues(list[Any]):
    """The values that an aggregate holds, with their size in bytes."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        super().__init__()
        self.size = 0

    def hold_value(self, value: Any) -> None:
        """Add a value; 53200 when all of them are larger than one value may be."""
        kind = type(value)
        self.size += len(value) if kind is str or kind is bytes else _WORDS
        if self.size > ALWAYS_ALLOWED:
            require_value_size(self.size)
        self.append(value)


def empty_list() -> HeldValues:
    return HeldValues()


def append_step(state: HeldValues, *arguments: Any) -> HeldValues:
    state.hold_value(arguments[0] if len(arguments) == 1 else arguments)
    return state


def refuse_arrays_step(state: Any, value: Any) -> Any:
    raise Unsupported("arrays of more than one dimension are not supported")


def array_or_null(state: list[Any]) -> list[Any] | None:
    # A copy: a window continues to step a state after it has returned its result.
    return list(state) if state else None


def join_step(state: HeldValues | None, value: Any, separator: Any) -> HeldValues | None:
    """string_agg: a row's separator is put before its value; NULL values are left out."""
    if value is None:
        return state
    if state is None:
        state = HeldValues()
    elif separator is not None:
        state.hold_value(separator)
    state.hold_value(value)
    return state


def join_text(state: list[str] | None) -> str | None:
    return None if state is None else "".join(state)


def join_bytes(state: list[bytes] | None) -> bytes | None:
    return None if state is None else b"".join(state)
