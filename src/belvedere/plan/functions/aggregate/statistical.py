"""Statistical aggregates: correlation and regression, percentiles, mode.

percentile_cont, percentile_disc and mode are ordered-set aggregates: `direct` of their arguments
are written before WITHIN GROUP and passed to `finish`; the others are passed to `moments_step`, in
the order of WITHIN GROUP.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from belvedere.plan.functions.aggregate import accumulators as acc
from belvedere.plan.functions.core.function import Accumulator, Function, aggregate
from belvedere.plan.functions.logic.comparison import element_key
from belvedere.types import Interval
from belvedere.values import interval_math
from belvedere.values.failures import bad_argument, out_of_range

Moments = list[float]


def empty_moments() -> Moments:
    """count, sum x, sum of squares x, sum y, sum of squares y, sum of products."""
    return [0.0] * 6


def moments_step(state: Moments, y: float, x: float) -> Moments:
    before, sx, sxx, sy, syy, sxy = state
    count = before + 1.0
    new_sx, new_sy = sx + x, sy + y
    if before > 0:
        dx, dy = x * count - new_sx, y * count - new_sy
        scale = 1.0 / (count * before)
        sxx += dx * dx * scale
        syy += dy * dy * scale
        sxy += dx * dy * scale
        if any(map(math.isinf, (new_sx, sxx, new_sy, syy, sxy))):
            _check_overflow(sx, x, new_sx, sxx)
            _check_overflow(sy, y, new_sy, syy)
            if math.isinf(sxy) and not any(map(math.isinf, (sx, x, sy, y))):
                raise out_of_range("double precision")
            sxx, syy, sxy = (math.nan if math.isinf(s) else s for s in (sxx, syy, sxy))
    else:
        if not math.isfinite(x):
            sxx = sxy = math.nan
        if not math.isfinite(y):
            syy = sxy = math.nan
    state[:] = count, new_sx, sxx, new_sy, syy, sxy
    return state


def _check_overflow(total: float, value: float, new_total: float, squares: float) -> None:
    if (math.isinf(new_total) or math.isinf(squares)) and not (
        math.isinf(total) or math.isinf(value)
    ):
        raise out_of_range("double precision")


def _at_least(
    rows: int, form: Callable[[Moments], float | None]
) -> Callable[[Moments], float | None]:
    return lambda state: None if state[0] < rows else form(state)


def _correlation(state: Moments) -> float | None:
    _, _, sxx, _, syy, sxy = state
    if sxx == 0 or syy == 0:
        return None
    result = sxy / math.sqrt(sxx * syy)
    return max(-1.0, min(1.0, result)) if result == result else result


def _slope(state: Moments) -> float | None:
    return None if state[2] == 0 else state[5] / state[2]


def _intercept(state: Moments) -> float | None:
    count, sx, sxx, sy, _, sxy = state
    return None if sxx == 0 else (sy - sx * sxy / sxx) / count


def _r_squared(state: Moments) -> float | None:
    _, _, sxx, _, syy, sxy = state
    if sxx == 0:
        return None
    return 1.0 if syy == 0 else (sxy * sxy) / (sxx * syy)


def _regression_functions() -> list[Function]:
    finishes: dict[str, Callable[[Moments], Any]] = {
        "corr": _at_least(1, _correlation),
        "covar_pop": _at_least(1, lambda s: s[5] / s[0]),
        "covar_samp": _at_least(2, lambda s: s[5] / (s[0] - 1)),
        "regr_avgx": _at_least(1, lambda s: s[1] / s[0]),
        "regr_avgy": _at_least(1, lambda s: s[3] / s[0]),
        "regr_intercept": _at_least(1, _intercept),
        "regr_r2": _at_least(1, _r_squared),
        "regr_slope": _at_least(1, _slope),
        "regr_sxx": _at_least(1, lambda s: s[2]),
        "regr_sxy": _at_least(1, lambda s: s[5]),
        "regr_syy": _at_least(1, lambda s: s[4]),
    }
    functions = [
        aggregate(f"{name}(float8,float8) float8", Accumulator(empty_moments, moments_step, finish))
        for name, finish in finishes.items()
    ]
    count = Accumulator(acc.zero_count, acc.count_step, acc.keep_state)
    functions.append(aggregate("regr_count(float8,float8) int8", count, "[[regr_count(_0, _1)]]"))
    return functions


def _check_fraction(fraction: float) -> None:
    if not 0 <= fraction <= 1:
        raise bad_argument("percentile value is not between 0 and 1", "22003")


def _interpolate_float(low: float, high: float, part: float) -> float:
    return low + part * (high - low)


def _interpolate_interval(low: Interval, high: Interval, part: float) -> Interval:
    return interval_math.add(low, interval_math.multiply(interval_math.subtract(high, low), part))


def _continuous_percentile(
    interpolate: Callable[[Any, Any, float], Any],
) -> Callable[[list[Any], float | None], Any]:
    def finish(state: list[Any], fraction: float | None) -> Any:
        if fraction is None:
            return None
        _check_fraction(fraction)
        if not state:
            return None
        place = fraction * (len(state) - 1)
        low, high = math.floor(place), math.ceil(place)
        if low == high:
            return state[low]
        return interpolate(state[low], state[high], place - low)

    return finish


def discrete_percentile(state: list[Any], fraction: float | None) -> Any:
    if fraction is None:
        return None
    _check_fraction(fraction)
    if not state:
        return None
    row = math.ceil(fraction * len(state))
    return state[max(row, 1) - 1]


def _percentile_array(
    finish: Callable[[list[Any], float | None], Any],
) -> Callable[[list[Any], list[Any] | None], Any]:
    """The form over an array of fractions; no rows give NULL."""

    def finish_fractions(state: list[Any], fractions: list[Any] | None) -> Any:
        if fractions is None or not state:
            return None
        return [finish(state, fraction) for fraction in fractions]

    return finish_fractions


def most_common(state: list[Any]) -> Any:
    """mode: the value seen most often, the first in order among equals."""
    best, best_count, i = None, 0, 0
    while i < len(state):
        j = i
        key = element_key(state[i])
        while j < len(state) and element_key(state[j]) == key:
            j += 1
        if j - i > best_count:
            best, best_count = state[i], j - i
        i = j
    return best


def _list_accumulator(finish: Callable[..., Any]) -> Accumulator:
    return Accumulator(acc.empty_list, acc.append_step, finish)


def _ordered_set_functions() -> list[Function]:
    float_finish, interval_finish = (
        _continuous_percentile(_interpolate_float),
        _continuous_percentile(_interpolate_interval),
    )
    forms: list[tuple[str, Callable[..., Any]]] = [
        ("percentile_cont(float8,float8) float8", float_finish),
        ("percentile_cont(float8,interval) interval", interval_finish),
        ("percentile_cont(float8[],float8) float8[]", _percentile_array(float_finish)),
        ("percentile_cont(float8[],interval) interval[]", _percentile_array(interval_finish)),
        ("percentile_disc(float8,anyelement) anyelement", discrete_percentile),
        ("percentile_disc(float8[],anyelement) anyarray", _percentile_array(discrete_percentile)),
    ]
    functions = [
        aggregate(signature, _list_accumulator(finish), direct=1) for signature, finish in forms
    ]
    functions.append(
        aggregate("mode(anyelement) anyelement", _list_accumulator(most_common), direct=0)
    )
    return functions


FUNCTIONS: tuple[Function, ...] = (*_regression_functions(), *_ordered_set_functions())
