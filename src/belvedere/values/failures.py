"""Constructors of the errors that value functions raise, each with PostgreSQL's SQLSTATE."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from belvedere.errors import InvalidInput

TEMPLATE_LENGTH_MAX = 10_000


def bad_text(kind: str, text: str) -> InvalidInput:
    return InvalidInput("invalid input syntax", sqlstate="22P02", type=kind, text=show_text(text))


def show_text(text: str) -> str:
    """A text as an error shows it, its beginning if it is long."""
    return repr(text if len(text) <= 200 else text[:200] + "...")


def out_of_range(kind: str, value: object = None) -> InvalidInput:
    """`value`, where it is known, is what has no place in the type."""
    if value is None:
        return InvalidInput("value out of range", sqlstate="22003", type=kind)
    return InvalidInput("value out of range", sqlstate="22003", type=kind, value=show_number(value))


@contextmanager
def name_column_in_errors(column: str) -> Iterator[None]:
    """Errors inside say for which column a value is too long or out of range."""
    try:
        yield
    except InvalidInput as error:
        add_column_to_error(error, column)
        raise


def add_column_to_error(error: InvalidInput, column: str) -> None:
    """Say for which column a value is too long or out of range."""
    if error.sqlstate in ("22001", "22003") and "column" not in error.facts:
        error.facts = {"column": column, **error.facts}


def show_number(value: object) -> str:
    """A number as an error shows it, only its size if it is long."""
    if isinstance(value, int) and value.bit_length() > 400:
        return f"a number of {value.bit_length()} bits"
    shown = str(value)
    return shown if len(shown) <= 200 else shown[:200] + "..."


def division_by_zero() -> InvalidInput:
    return InvalidInput("division by zero", sqlstate="22012")


def bad_datetime(kind: str, text: str) -> InvalidInput:
    return InvalidInput(
        "invalid date or time syntax", sqlstate="22007", type=kind, text=show_text(text)
    )


def datetime_out_of_range(kind: str) -> InvalidInput:
    return InvalidInput("date or time field value out of range", sqlstate="22008", type=kind)


def require_template_length(template: str) -> None:
    """54000 for a template of to_char and its relatives that takes long to read."""
    if len(template) > TEMPLATE_LENGTH_MAX:
        raise InvalidInput(
            "format template is too long", sqlstate="54000", length_max=TEMPLATE_LENGTH_MAX
        )


def bad_argument(message: str, sqlstate: str = "22023") -> InvalidInput:
    return InvalidInput(message, sqlstate=sqlstate)
