"""Constructors of the errors that value functions raise, each with PostgreSQL's SQLSTATE."""

from __future__ import annotations

from belvedere.errors import InvalidInput


def bad_text(kind: str, text: str) -> InvalidInput:
    shown = text if len(text) <= 200 else text[:200] + "..."
    return InvalidInput("invalid input syntax", sqlstate="22P02", type=kind, text=repr(shown))


def out_of_range(kind: str) -> InvalidInput:
    return InvalidInput("value out of range", sqlstate="22003", type=kind)


def division_by_zero() -> InvalidInput:
    return InvalidInput("division by zero", sqlstate="22012")


def bad_datetime(kind: str, text: str) -> InvalidInput:
    return InvalidInput("invalid date or time syntax", sqlstate="22007", type=kind, text=repr(text))


def datetime_out_of_range(kind: str) -> InvalidInput:
    return InvalidInput("date or time field value out of range", sqlstate="22008", type=kind)


def bad_argument(message: str, sqlstate: str = "22023") -> InvalidInput:
    return InvalidInput(message, sqlstate=sqlstate)
