"""Messages of errors: psql and most clients show only the message, not the fields."""

from __future__ import annotations

from belvedere.errors import InvalidInput
from belvedere.interfaces.server.error_fields import build_error


def test_the_message_names_the_column_that_has_a_field_of_its_own() -> None:
    error = InvalidInput("column does not exist", sqlstate="42703", column="nope", table="t")
    fields = build_error(error)[5:].split(b"\0")
    assert b"Mcolumn does not exist (column=nope, table=t)" in fields
    assert {b"cnope", b"tt"} <= set(fields)
