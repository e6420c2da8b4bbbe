"""How values of SQLAlchemy's types go to a statement and come from its rows.

A parameter is written with its type (`$1::INTEGER`), as SQLAlchemy does for drivers of PostgreSQL:
so a NULL has one, and the same statement has one plan whatever its values are. Values need no
conversion, because rows have Python's own types; only numbers are made what the column says.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from sqlalchemy import types
from sqlalchemy.dialects.postgresql import INTERVAL
from sqlalchemy.engine.interfaces import Dialect

Convert = Callable[[Any], Any]


class _Number:
    """NUMERIC comes as Decimal, floats as float, whatever the program calls the column."""

    render_bind_cast = True
    asdecimal: bool
    _effective_decimal_return_scale: int

    def bind_processor(self, dialect: Dialect) -> None:
        return None

    def result_processor(self, dialect: Dialect, coltype: Any) -> Convert:
        return self._convert_decimal if self.asdecimal else _convert_float

    def _convert_decimal(self, value: Any) -> Decimal | None:
        if isinstance(value, float):
            return Decimal(f"{value:.{self._effective_decimal_return_scale}f}")
        return value if value is None or isinstance(value, Decimal) else Decimal(value)


def _convert_float(value: Any) -> float | None:
    return None if value is None else float(value)


class _DecimalNumber(_Number, types.Numeric[Any]):
    pass


class _FloatNumber(_Number, types.Float[Any]):
    pass


def _with_cast(of: type[types.TypeEngine[Any]]) -> type[types.TypeEngine[Any]]:
    """A type whose parameters are written with it."""
    return type(f"Cast{of.__name__}", (of,), {"render_bind_cast": True})


class _TimeSpan(INTERVAL):
    render_bind_cast = True

    @classmethod
    def adapt_emulated_to_native(  # type: ignore[override]
        cls, interval: types.Interval, **kw: Any
    ) -> _TimeSpan:
        return _TimeSpan(precision=interval.second_precision)


_WITH_CAST: tuple[Any, ...] = (
    types.String,
    types.Integer,
    types.SmallInteger,
    types.BigInteger,
    types.Boolean,
    types.Date,
    types.Time,
    types.DateTime,
    types.LargeBinary,
    types.Uuid,
)

COLUMN_TYPES: dict[type[Any], type[Any]] = {
    **{one: _with_cast(one) for one in _WITH_CAST},
    types.Numeric: _DecimalNumber,
    types.Float: _FloatNumber,
    types.Interval: _TimeSpan,
    INTERVAL: _TimeSpan,
}
