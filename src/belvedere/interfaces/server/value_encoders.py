"""Values of result rows as the bytes of their text."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from belvedere.plan.functions import text_formatter
from belvedere.types import Kind, SqlType
from belvedere.values.binary.encoders import Encode
from belvedere.values.datetimes import in_zone


def make_text_encoder(sql_type: SqlType, zone: datetime.tzinfo = datetime.UTC) -> Encode:
    """Values of the type to the bytes of their text, instants in the zone."""
    kind = sql_type.kind
    if kind in (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT):
        return encode_integer
    if kind in (Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.UNKNOWN, Kind.JSON):
        return str.encode
    if kind is Kind.BOOLEAN:
        return lambda value: b"t" if value else b"f"
    form = text_formatter(sql_type)
    if (sql_type.element or sql_type).kind is Kind.TIMESTAMPTZ and zone is not datetime.UTC:
        return lambda value: _format_in_zone(form, value, zone)
    return lambda value: form(value).encode()


def encode_integer(value: int) -> bytes:
    return b"%d" % value


def _format_in_zone(form: Callable[[Any], str], value: Any, zone: datetime.tzinfo) -> bytes:
    with in_zone(zone):
        return form(value).encode()
