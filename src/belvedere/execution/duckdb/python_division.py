"""NUMERIC division as a Python function that DuckDB calls where it divides few values.

    belvedere_quotient('10.50', 2, '3', 0, 20)      '3.5000000000000000'

DuckDB plans its call fast; the SQL form of `numeric_division` is faster for many rows but slow to
plan.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from belvedere.errors import Error
from belvedere.values.decimals import divide, round_to_scale, scale_of

QUOTIENT_FUNCTION = "belvedere_quotient"
_PARAMETERS = ["VARCHAR", "INTEGER", "VARCHAR", "INTEGER", "INTEGER"]


def register_quotient(connection: Any) -> None:
    """Registers the function on a connection, for all its cursors."""
    connection.create_function(
        QUOTIENT_FUNCTION,
        _divide_columns,
        _PARAMETERS,
        "VARCHAR",
        type="arrow",
        null_handling="special",
    )


def _divide_columns(
    dividends: Any, shown: Any, divisors: Any, others_shown: Any, places: Any
) -> Any:
    import pyarrow as pa  # heavy

    columns = [one.to_pylist() for one in (dividends, shown, divisors, others_shown, places)]
    return pa.array([_divide_values(*row) for row in zip(*columns)], pa.string())


def _divide_values(
    dividend: str | None, shown: int, divisor: str | None, other_shown: int, places: int
) -> str | None:
    """`shown`: how many digits after the point the operands have; the quotient may have `places`
    unless it is zero."""
    if dividend is None or divisor is None:
        return None
    try:
        found = divide(
            round_to_scale(Decimal(dividend), shown), round_to_scale(Decimal(divisor), other_shown)
        )
    except Error as error:  # DuckDB carries text only
        raise ValueError(f"[belvedere {error.sqlstate}] {error.message}") from None
    if found and scale_of(found) > places:
        raise ValueError("[belvedere 22003] more digits than are held")
    return f"{found:f}"
