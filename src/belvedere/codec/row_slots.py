"""Generated source of one row slot: how each type is stored in a row.

| type | stored as |
|---|---|
| BOOLEAN 1, SMALLINT 2, INTEGER 4, BIGINT 8, REAL 4, DOUBLE 8 bytes | little-endian |
| DATE 4; TIME, TIMESTAMP, TIMESTAMPTZ 8 bytes | days; microseconds |
| INTERVAL 16 bytes | months i32, days i32, microseconds i64 |
| UUID 16 bytes | as written |
| NUMERIC(p <= 18, s) 8 bytes | value * 10^s |
| NUMERIC(p <= 38, s) 16 bytes | value * 10^s, as Arrow's decimal128 |
| NUMERIC without or with larger precision | variable: digits as text, display scale preserved |
| CHAR, VARCHAR, TEXT, JSON | variable: UTF-8, CHAR padded to its length |
| BYTEA | variable |

Scaled numbers reserve three integers that no digits reach: the smallest is NaN, the next -Infinity,
the largest Infinity.

In the source below `{v}` is a value that is not NULL, `{x}` what the row holds for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from belvedere.codec import scalars
from belvedere.errors import Unsupported
from belvedere.types import Kind, SqlType

PRECISION_64 = 18
PRECISION_128 = 38


@dataclass(frozen=True, slots=True)
class SlotCode:
    """`format` is the struct format of a fixed slot, None for a variable one. `prepare` are
    statements, `store` and `load` expressions; `constants` are what they need."""

    format: str | None
    store: str
    load: str
    prepare: tuple[str, ...] = ()
    constants: tuple[tuple[str, Any], ...] = ()

    @property
    def null_source(self) -> str:
        """The source text of what a NULL stores in the slot."""
        return 'b""' if self.format is None or self.format.endswith("s") else "0"


_INTEGER_CHECK = ("if {v}.__class__ is not int: {v} = integer({v})",)
_MOMENT = {
    Kind.DATE: ("i", "days", "date_of"),
    Kind.TIME: ("q", "time_microseconds", "time_of"),
    Kind.TIMESTAMP: ("q", "timestamp_microseconds", "timestamp_of"),
    Kind.TIMESTAMPTZ: ("q", "timestamptz_microseconds", "timestamptz_of"),
}
_FIXED = {
    Kind.BOOLEAN: SlotCode("?", "boolean({v})", "{x}"),
    Kind.SMALLINT: SlotCode("h", "{v}", "{x}", _INTEGER_CHECK),
    Kind.INTEGER: SlotCode("i", "{v}", "{x}", _INTEGER_CHECK),
    Kind.BIGINT: SlotCode("q", "{v}", "{x}", _INTEGER_CHECK),
    Kind.REAL: SlotCode("f", "real({v})", "{x}"),
    Kind.DOUBLE: SlotCode(
        "d", "{v}", "{x}", ("if {v}.__class__ is not float: {v} = check_float({v})",)
    ),
    Kind.INTERVAL: SlotCode("16s", "interval_bytes({v})", "interval_of({x})"),
    Kind.UUID: SlotCode("16s", "{v}.bytes", "uuid_of({x})"),
} | {
    kind: SlotCode(form, f"{to}({{v}})", f"{of}({{x}})") for kind, (form, to, of) in _MOMENT.items()
}


PLAIN_LOAD = "{x}"
TEXT_LOAD = "{x}.decode()"


def slot_code(sql_type: SqlType, index: int) -> SlotCode:
    """How the slot is read and written; `index` makes the names of its constants unique."""
    kind = sql_type.kind
    if kind in _FIXED:
        return _FIXED[kind]
    match kind:
        case Kind.NUMERIC:
            return _numeric_slot(sql_type, index)
        case Kind.CHAR | Kind.VARCHAR | Kind.TEXT | Kind.JSON:
            return _text_slot(sql_type)
        case Kind.BYTEA:
            return SlotCode(None, "{v}", "{x}", ("if {v}.__class__ is not bytes: raise TypeError",))
        case _:
            raise Unsupported("stored column of this type", type=str(sql_type))


def numeric_bits(sql_type: SqlType) -> int | None:
    """Width of a scaled NUMERIC slot: 64, 128, or None when it is stored as digits."""
    if sql_type.precision is None or sql_type.precision > PRECISION_128:
        return None
    return 64 if sql_type.precision <= PRECISION_64 else 128


def special_numbers(bits: int) -> dict[int, Decimal]:
    """The reserved integers of a scaled NUMERIC slot."""
    smallest = -(1 << bits - 1)
    return {
        smallest: Decimal("NaN"),
        smallest + 1: Decimal("-Infinity"),
        -smallest - 1: Decimal("Infinity"),
    }


def _text_slot(sql_type: SqlType) -> SlotCode:
    length = sql_type.length
    check: tuple[str, ...] = ()
    if length is not None:
        if sql_type.kind is Kind.CHAR:
            check = (f"if len({{v}}) != {length}: {{v}} = fit_char({{v}}, {length})",)
        else:
            check = (f"if len({{v}}) > {length}: raise ValueError",)
    return SlotCode(None, "{v}.encode()", TEXT_LOAD, check)


def _numeric_slot(sql_type: SqlType, index: int) -> SlotCode:
    bits = numeric_bits(sql_type)
    if bits is None:
        return _digits_slot(sql_type, index)
    precision, scale = sql_type.precision or 0, sql_type.scale or 0
    limit = 10**precision
    factor = Decimal((0, (1,), -scale)) if scale >= 0 else Decimal(10**-scale)
    constants = (
        (f"scaled_{index}", compile_scaling(precision, scale, bits)),
        (f"factor_{index}", factor),
        (f"special_{index}", special_numbers(bits)),
    )
    number = "{x}" if bits == 64 else 'int.from_bytes({x}, "little", signed=True)'
    load = f"(multiply(n, factor_{index}) if -{limit} < (n := {number}) < {limit}"
    load += f" else special_{index}[n])"
    # The name is bound in the condition, which Python evaluates first.
    store = f"scaled_{index}({{v}})"
    if bits == 128:
        store += '.to_bytes(16, "little", signed=True)'
    return SlotCode("q" if bits == 64 else "16s", store, load, (), constants)


def _digits_slot(sql_type: SqlType, index: int) -> SlotCode:
    store, load = "numeric_text({v}).encode()", "Decimal({x}.decode())"
    if sql_type.precision is None:
        return SlotCode(None, store, load)
    # Too many digits for an integer slot, but the same rules: nothing is rounded, the scale is s.
    fit = _compile_rescale(sql_type.precision, sql_type.scale or 0)
    store = f"numeric_text(rescaled_{index}({{v}})).encode()"
    return SlotCode(None, store, load, (), ((f"rescaled_{index}", fit),))


def _compile_rescale(precision: int, scale: int) -> Callable[[Any], Decimal]:
    check = compile_scaling(precision, scale, 128)
    unit = Decimal((0, (1,), -max(scale, 0)))

    def rescale_value(value: Any) -> Decimal:
        check(value)
        return scalars.EXACT.quantize(value, unit) if value.is_finite() else value

    return rescale_value


def compile_scaling(precision: int, scale: int, bits: int) -> Callable[[Any], int]:
    """A function from a Decimal to value * 10^scale; it refuses what would have to be rounded."""
    shift = Decimal(scale)
    digits_before_point = precision - scale
    scaleb = scalars.EXACT.scaleb
    special = {str(number): key for key, number in special_numbers(bits).items()}

    def scale_value(value: Any) -> int:
        if not isinstance(value, Decimal):
            raise TypeError
        if not value.is_finite():
            return special["NaN" if value.is_nan() else str(value)]
        if value.adjusted() >= digits_before_point:
            if value:
                raise OverflowError
            return 0
        moved = scaleb(value, shift)
        number = int(moved)
        if number != moved:
            raise OverflowError
        return number

    return scale_value


def fit_char(value: str, length: int) -> str:
    """Blank-padded to the length; only blanks may be cut off."""
    fitted = value.rstrip(" ").ljust(length)
    if len(fitted) > length:
        raise ValueError
    return fitted


CONSTANTS: dict[str, Any] = {
    name: getattr(scalars, name)
    for name in (
        *("boolean", "integer", "check_float", "real", "uuid_of", "numeric_text"),
        *("interval_bytes", "interval_of"),
        *(name for _, to, of in _MOMENT.values() for name in (to, of)),
    )
} | {
    "Decimal": Decimal,
    "multiply": scalars.EXACT.multiply,
    "fit_char": fit_char,
}
