"""Parts of dates and times: extract, date_part, date_trunc, age, isfinite.

EXTRACT gives NUMERIC: whole fields without fraction, seconds and epoch with six digits,
milliseconds with three. For a field known at planning `extract <field>` names a function of its
own, which has an SQL form; `extract(field, value)` looks the field up at run time.
"""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from belvedere.errors import InvalidInput
from belvedere.plan.functions.cast.conversions import (
    date_to_timestamp,
    numeric_to_float8,
    time_microseconds,
    timestamp_to_timestamptz,
)
from belvedere.plan.functions.core.function import (
    UDF,
    Environment,
    Function,
    Volatility,
    scalar,
    stable,
)
from belvedere.types import MICROSECONDS_PER_DAY, Interval, SqlType, numeric_type
from belvedere.values.datetimes import (
    MICROSECOND,
    UTC,
    add_microseconds,
    find_zone,
    microseconds_of,
    offset_of,
    session_local,
    session_zone,
    to_local,
    to_utc,
    unsupported_year,
)
from belvedere.values.decimals import EXACT, add, divide
from belvedere.values.failures import bad_argument
from belvedere.values.intervals import HOUR, MINUTE, SECOND

FieldFunction = Callable[[Any], int]

_NAMES: dict[str, str] = {}
for _field, _words in {
    "century": "c cent century centuries",
    "day": "d day days",
    "decade": "dec decs decade decades",
    "dow": "dow",
    "doy": "doy",
    "epoch": "epoch",
    "hour": "h hr hrs hour hours",
    "isodow": "isodow",
    "isoyear": "isoyear",
    "julian": "j jd julian",
    "microseconds": "us usec usecs usecond useconds microsecond microseconds microsecon",
    "millennium": "mil mils millennium millennia",
    "milliseconds": "ms msec msecs msecond mseconds millisecond milliseconds millisecon",
    "minute": "m min mins minute minutes",
    "month": "mon mons month months",
    "quarter": "qtr quarter",
    "second": "s sec secs second seconds",
    "timezone": "timezone",
    "timezone_hour": "timezone_h timezone_hour",
    "timezone_minute": "timezone_m timezone_minute",
    "week": "w week weeks",
    "year": "y yr yrs year years",
}.items():
    for _word in _words.split():
        _NAMES[_word] = _field


def find_field(text: str) -> str | None:
    """The field that a word such as `mins` or `qtr` means."""
    return _NAMES.get(text.strip().lower())


def _julian_day(value: datetime.date) -> int:
    return value.toordinal() + 1_721_425


_DATE_FIELDS: dict[str, FieldFunction] = {
    "century": lambda v: (v.year + 99) // 100,
    "day": lambda v: int(v.day),
    "decade": lambda v: v.year // 10,
    "dow": lambda v: v.isoweekday() % 7,
    "doy": lambda v: int(v.timetuple().tm_yday),
    "isodow": lambda v: int(v.isoweekday()),
    "isoyear": lambda v: int(v.isocalendar()[0]),
    "millennium": lambda v: (v.year + 999) // 1000,
    "month": lambda v: int(v.month),
    "quarter": lambda v: (v.month + 2) // 3,
    "week": lambda v: int(v.isocalendar()[1]),
    "year": lambda v: int(v.year),
}
_TIME_FIELDS: dict[str, FieldFunction] = {
    "hour": lambda v: int(v.hour),
    "minute": lambda v: int(v.minute),
}


def _split_years(value: Interval) -> tuple[int, int]:
    years = abs(value.months) // 12
    years = -years if value.months < 0 else years
    return years, value.months - years * 12


def _truncated_quotient(amount: int, size: int) -> int:
    return -(-amount // size) if amount < 0 else amount // size


def _truncated_remainder(amount: int, size: int) -> int:
    return amount - _truncated_quotient(amount, size) * size


_INTERVAL_FIELDS: dict[str, FieldFunction] = {
    "century": lambda v: _truncated_quotient(_split_years(v)[0], 100),
    "day": lambda v: int(v.days),
    "decade": lambda v: _truncated_quotient(_split_years(v)[0], 10),
    "hour": lambda v: _truncated_quotient(v.microseconds, HOUR),
    "millennium": lambda v: _truncated_quotient(_split_years(v)[0], 1000),
    "minute": lambda v: _truncated_quotient(_truncated_remainder(v.microseconds, HOUR), MINUTE),
    "month": lambda v: _split_years(v)[1],
    "quarter": lambda v: _truncated_quotient(_split_years(v)[1], 3) + (1 if v.months >= 0 else -1),
    "week": lambda v: _truncated_quotient(v.days, 7),
    "year": lambda v: _split_years(v)[0],
}


def _session_offset(value: datetime.datetime) -> int:
    return offset_of(value, session_zone())


_ZONE_FIELDS: dict[str, FieldFunction] = {
    "timezone": _session_offset,
    "timezone_hour": lambda v: _truncated_quotient(_session_offset(v), 3600),
    "timezone_minute": lambda v: _truncated_quotient(
        _truncated_remainder(_session_offset(v), 3600), 60
    ),
}


def _in_session_zone(name: str, form: Callable[[Any], Decimal]) -> Callable[[Any], Decimal]:
    """A field as clocks of the session's zone show it; an epoch is the same everywhere."""
    return form if name == "epoch" else lambda value: form(session_local(value))


def _scaled_decimal(micros: int, scale: int) -> Decimal:
    return Decimal(micros).scaleb(-scale, EXACT)


def _integer_field(field: FieldFunction) -> Callable[[Any], Decimal]:
    return lambda value: Decimal(field(value))


def _clock_forms(seconds: Callable[[Any], int]) -> dict[str, Callable[[Any], Decimal]]:
    """second, milliseconds and microseconds from the microseconds within a minute."""
    return {
        "second": lambda value: _scaled_decimal(seconds(value), 6),
        "milliseconds": lambda value: _scaled_decimal(seconds(value), 3),
        "microseconds": lambda value: Decimal(seconds(value)),
    }


def _second_of(value: Any) -> int:
    return int(value.second * SECOND + value.microsecond)


def _interval_epoch(value: Interval) -> Decimal:
    years, months = _split_years(value)
    quarters = years * 1461 + 4 * (months * 30 + value.days)  # of a day; a year has 365.25
    return _scaled_decimal(quarters * MICROSECONDS_PER_DAY // 4 + value.microseconds, 6)


def _timestamp_julian(value: datetime.datetime) -> Decimal:
    micros = time_microseconds(value.time())
    return add(Decimal(_julian_day(value)), divide(Decimal(micros), Decimal(MICROSECONDS_PER_DAY)))


def _build_forms() -> dict[str, dict[str, Callable[[Any], Decimal]]]:
    dated = {name: _integer_field(field) for name, field in _DATE_FIELDS.items()}
    timed = {name: _integer_field(field) for name, field in _TIME_FIELDS.items()} | _clock_forms(
        _second_of
    )
    timestamp = (
        dated
        | timed
        | {
            "epoch": lambda v: _scaled_decimal(microseconds_of(v), 6),
            "julian": _timestamp_julian,
        }
    )
    return {
        "date": dated
        | {
            "epoch": lambda v: Decimal((v.toordinal() - 719_163) * 86_400),
            "julian": lambda v: Decimal(_julian_day(v)),
        },
        "time": timed | {"epoch": lambda v: _scaled_decimal(time_microseconds(v), 6)},
        "timestamp": timestamp,
        "timestamptz": {name: _in_session_zone(name, form) for name, form in timestamp.items()}
        | {n: _integer_field(f) for n, f in _ZONE_FIELDS.items()},
        "interval": {name: _integer_field(field) for name, field in _INTERVAL_FIELDS.items()}
        | _clock_forms(lambda v: _truncated_remainder(v.microseconds, MINUTE))
        | {"epoch": _interval_epoch},
    }


FORMS = _build_forms()


def _find_form(type_name: str, text: str) -> Callable[[Any], Decimal]:
    field = find_field(text)
    if field is None:
        raise bad_argument("unit not recognized")
    form = FORMS[type_name].get(field)
    if form is None:
        raise InvalidInput(
            "unit not supported for this type", sqlstate="0A000", unit=field, type=type_name
        )
    return form


def _extract_form(type_name: str) -> Callable[[str, Any], Decimal]:
    return lambda field, value: _find_form(type_name, field)(value)


def _date_part(type_name: str) -> Callable[[str, Any], float]:
    # A date is converted to the timestamp of its midnight here, so that it has hours.
    if type_name == "date":
        return lambda field, value: numeric_to_float8(
            _find_form("timestamp", field)(date_to_timestamp(value))
        )
    return lambda field, value: numeric_to_float8(_find_form(type_name, field)(value))


_YEARS = {"millennium": 1000, "century": 100, "decade": 10}


# Fields of extract that are not units of time.
_NO_UNITS = {"dow", "doy", "epoch", "isodow", "isoyear", "julian"}


def _find_unit(text: str) -> str:
    name = find_field(text)
    if name is None or name in _NO_UNITS:
        raise bad_argument("unit not recognized")
    return name


def truncate_timestamp(field: str, value: datetime.datetime) -> datetime.datetime:
    name = _find_unit(field)
    if name in _YEARS:
        size = _YEARS[name]
        # Centuries and millennia begin with the year 1, decades with a round year.
        year = (
            value.year - value.year % size
            if name == "decade"
            else (value.year - 1) // size * size + 1
        )
        if year < 1:
            raise unsupported_year(year, "timestamp")
        return value.replace(year=year, month=1, day=1, hour=0, minute=0, second=0, microsecond=0)
    if name == "week":
        start = value - datetime.timedelta(days=value.weekday())
        return start.replace(hour=0, minute=0, second=0, microsecond=0)
    if name == "quarter":
        value = value.replace(month=(value.month - 1) // 3 * 3 + 1)
    order = ["year", "month", "day", "hour", "minute", "second", "milliseconds", "microseconds"]
    place = (
        order.index("month" if name == "quarter" else name) if name in (*order, "quarter") else -1
    )
    if place < 0:
        raise InvalidInput("unit not supported for this type", sqlstate="0A000", unit=name)
    if name == "microseconds":
        return value
    if name == "milliseconds":
        return value.replace(microsecond=value.microsecond // 1000 * 1000)
    zeros = {"month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0}
    cut = {part: zero for part, zero in zeros.items() if order.index(part) > place}
    return value.replace(microsecond=0, **cut)  # type: ignore[arg-type]


_WITHIN_DAY = {"hour", "minute", "second", "milliseconds", "microseconds"}


def truncate_in_zone(field: str, value: datetime.datetime, zone: str) -> datetime.datetime:
    return _truncate_local(field, value, find_zone(zone))


def _truncate_local(
    field: str, value: datetime.datetime, zone: datetime.tzinfo
) -> datetime.datetime:
    shown = to_local(value, zone)
    cut = truncate_timestamp(field, shown)
    if _find_unit(field) in _WITHIN_DAY:
        # Within a day the clock's offset is the one it has now, also in an hour that repeats.
        return add_microseconds(value, (cut - shown) // MICROSECOND)
    return to_utc(cut, zone)


def truncate_in_session_zone(field: str, value: datetime.datetime) -> datetime.datetime:
    """date_trunc of a TIMESTAMPTZ in the session's zone."""
    zone = session_zone()
    return truncate_timestamp(field, value) if zone is UTC else _truncate_local(field, value, zone)


def truncate_interval(field: str, value: Interval) -> Interval:
    name = _find_unit(field)
    months, days, micros = value
    sizes = {
        "millennium": 12000,
        "century": 1200,
        "decade": 120,
        "year": 12,
        "quarter": 3,
        "month": 1,
    }
    if name in sizes:
        return Interval(_truncated_quotient(months, sizes[name]) * sizes[name], 0, 0)
    if name == "day":
        return Interval(months, days, 0)
    clock = {
        "hour": HOUR,
        "minute": MINUTE,
        "second": SECOND,
        "milliseconds": 1000,
        "microseconds": 1,
    }
    if name not in clock:
        raise InvalidInput("unit not supported for this type", sqlstate="0A000", unit=name)
    return Interval(months, days, _truncated_quotient(micros, clock[name]) * clock[name])


def age(left: datetime.datetime, right: datetime.datetime) -> Interval:
    """The difference in years, months, days and time, borrowing days from the earlier month."""
    if left.tzinfo is not None:
        left, right = (session_local(one).replace(tzinfo=None) for one in (left, right))
    if left < right:
        late = age(right, left)
        return Interval(-late.months, -late.days, -late.microseconds)
    micros = time_microseconds(left.time()) - time_microseconds(right.time())
    days = left.day - right.day
    months = (left.year - right.year) * 12 + left.month - right.month
    if micros < 0:
        micros += MICROSECONDS_PER_DAY
        days -= 1
    if days < 0:
        days += calendar.monthrange(right.year, right.month)[1]
        months -= 1
    return Interval(months, days, micros)


def age_now(environment: Environment, value: datetime.datetime) -> Interval:
    return age(date_to_timestamp(session_local(environment.transaction_time).date()), value)


def age_now_zone(environment: Environment, value: datetime.datetime) -> Interval:
    return age(
        timestamp_to_timestamptz(
            date_to_timestamp(session_local(environment.transaction_time).date())
        ),
        value,
    )


def date_bin(
    stride: Interval, value: datetime.datetime, origin: datetime.datetime
) -> datetime.datetime:
    if stride.months:
        raise InvalidInput("timestamps cannot be binned into intervals of months", sqlstate="0A000")
    size = stride.days * MICROSECONDS_PER_DAY + stride.microseconds
    if size <= 0:
        raise InvalidInput("stride must be greater than zero", sqlstate="22008")
    distance = microseconds_of(value) - microseconds_of(origin)
    return add_microseconds(origin, distance // size * size)


def is_finite(value: Any) -> bool:
    return True


_BOUNDS = {
    "epoch": numeric_type(21, 6),
    "second": numeric_type(8, 6),
    "milliseconds": numeric_type(8, 3),
}
_DUCKDB_FIELDS = {
    "day",
    "dow",
    "doy",
    "hour",
    "isodow",
    "isoyear",
    "minute",
    "month",
    "quarter",
    "week",
    "year",
}


def _known_field(type_name: str, field: str, form: Callable[[Any], Decimal]) -> Function:
    bound = _BOUNDS.get(field, numeric_type(19, 0))
    sql = None
    if field in _DUCKDB_FIELDS and type_name != "interval":
        sql = f"CAST(date_part('{field}', _0) AS DECIMAL(19,0))"
    elif field == "epoch" and type_name in ("timestamp", "timestamptz"):
        micros = "CAST(epoch_us(_0) AS DECIMAL(19,0))"
        sql = f"CAST({micros} * CAST(0.000001 AS DECIMAL(6,6)) AS DECIMAL(21,6))"

    def bounds(types: tuple[SqlType, ...]) -> SqlType | None:
        return bound

    volatility = Volatility.STABLE if type_name == "timestamptz" else Volatility.IMMUTABLE
    return scalar(
        f"extract {field}({type_name}) numeric", form, sql, bounds=bounds, volatility=volatility
    )


def _extract_functions() -> list[Function]:
    functions = []
    for name, forms in FORMS.items():
        volatility = Volatility.STABLE if name == "timestamptz" else Volatility.IMMUTABLE
        functions.append(
            scalar(f"extract(text,{name}) numeric", _extract_form(name), volatility=volatility)
        )
        part = scalar(
            f"date_part(text,{name}) float8", _date_part(name), UDF, volatility=volatility
        )
        functions.append(part)
        functions += [_known_field(name, field, form) for field, form in forms.items()]
    return functions


FUNCTIONS: tuple[Function, ...] = (
    *_extract_functions(),
    scalar("date_trunc(text,timestamp) timestamp", truncate_timestamp, UDF),
    stable("date_trunc(text,timestamptz) timestamptz", truncate_in_session_zone, UDF),
    scalar("date_trunc(text,timestamptz,text) timestamptz", truncate_in_zone, UDF),
    scalar("date_trunc(text,interval) interval", truncate_interval, UDF),
    scalar("age(timestamp,timestamp) interval", age, UDF),
    scalar("age(timestamptz,timestamptz) interval", age, UDF),
    stable("age(timestamp) interval", age_now, environment=True),
    stable("age(timestamptz) interval", age_now_zone, environment=True),
    scalar("date_bin(interval,timestamp,timestamp) timestamp", date_bin, UDF),
    scalar("date_bin(interval,timestamptz,timestamptz) timestamptz", date_bin, UDF),
    *(
        scalar(f"isfinite({name}) bool", is_finite, UDF)
        for name in ("date", "timestamp", "timestamptz", "interval")
    ),
)
