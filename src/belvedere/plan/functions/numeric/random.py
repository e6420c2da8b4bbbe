"""Random numbers and uuids, from the session's generator, so that a simulation can own it."""

from __future__ import annotations

import uuid
from decimal import Decimal

from belvedere.plan.functions.core.function import UDF, Environment, Function, scalar, volatile
from belvedere.plan.functions.datetime.arithmetic import add_interval
from belvedere.types import Interval
from belvedere.values.decimals import EXACT
from belvedere.values.failures import bad_argument


def random_uuid(environment: Environment) -> uuid.UUID:
    return uuid.UUID(int=environment.random.getrandbits(128), version=4)


def time_uuid(environment: Environment) -> uuid.UUID:
    """Version 7: milliseconds since 1970, then random bits."""
    millis = int(environment.clock().timestamp() * 1000)
    return _uuid_version_7(millis, environment)


def shifted_time_uuid(environment: Environment, shift: Interval) -> uuid.UUID:
    moved = add_interval(environment.clock(), shift)
    return _uuid_version_7(int(moved.timestamp() * 1000), environment)


def _uuid_version_7(millis: int, environment: Environment) -> uuid.UUID:
    bits = (millis & (1 << 48) - 1) << 80 | environment.random.getrandbits(80)
    bits = bits & ~(0xF << 76) | 7 << 76
    return uuid.UUID(int=bits & ~(0b11 << 62) | 0b10 << 62)


def uuid_version(value: uuid.UUID) -> int | None:
    return value.int >> 76 & 0xF if value.int >> 62 & 0b11 == 0b10 else None


def random_float(environment: Environment) -> float:
    return environment.random.random()


def random_integer(environment: Environment, low: int, high: int) -> int:
    _require_ordered_bounds(low, high)
    return environment.random.randint(low, high)


def random_numeric(environment: Environment, low: Decimal, high: Decimal) -> Decimal:
    """With as many digits behind the point as the longer of the bounds."""
    for bound in (low, high):
        if not bound.is_finite():
            raise bad_argument("bounds must be finite")
    _require_ordered_bounds(low, high)
    digits = max(-int(bound.as_tuple().exponent) for bound in (low, high))
    scale = max(digits, 0)
    first, last = (int(bound.scaleb(scale, EXACT)) for bound in (low, high))
    return Decimal(environment.random.randint(first, last)).scaleb(-scale, EXACT)


def _require_ordered_bounds(low: int | Decimal, high: int | Decimal) -> None:
    if low > high:
        raise bad_argument("lower bound must be less than or equal to upper bound")


FUNCTIONS: tuple[Function, ...] = (
    volatile("gen_random_uuid() uuid", random_uuid, environment=True),
    volatile("uuidv4() uuid", random_uuid, environment=True),
    volatile("uuidv7() uuid", time_uuid, environment=True),
    volatile("uuidv7(interval) uuid", shifted_time_uuid, environment=True),
    scalar("uuid_extract_version(uuid) int2", uuid_version, UDF),
    volatile("random() float8", random_float, environment=True),
    volatile("random(int4,int4) int4", random_integer, environment=True),
    volatile("random(int8,int8) int8", random_integer, environment=True),
    volatile("random(numeric,numeric) numeric", random_numeric, environment=True),
)
