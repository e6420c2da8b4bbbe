"""The options of COPY, checked before a file is touched: each is honoured, or refused by name.

What an option may be, and with which format and direction it goes, is PostgreSQL's; so are the
SQLSTATEs. FREEZE is accepted, and changes nothing. DEFAULT, FORCE_NOT_NULL, FORCE_NULL, ON_ERROR
ignore, REJECT_LIMIT, LOG_VERBOSITY and encodings other than UTF8 are refused (0A000).
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

from belvedere.errors import InvalidInput, Unsupported

SUPPORTED = frozenset(
    {
        "delimiter",
        "null",
        "header",
        "quote",
        "escape",
        "encoding",
        "force_quote",
        "on_error",
        "freeze",
    }
)
REFUSED = frozenset({"default", "force_not_null", "force_null", "reject_limit", "log_verbosity"})
_OF_CSV = ("quote", "escape", "force_quote")
_NO_TEXT_DELIMITERS = "\\.abcdefghijklmnopqrstuvwxyz0123456789"
_OF_TEXT = ("delimiter", "null")
_BOOLEANS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


class Header(enum.Enum):
    """MATCH: the header is there, and has to name the columns in their order."""

    NONE = 0
    SKIP = 1
    MATCH = 2


class TextFormat(NamedTuple):
    csv: bool
    delimiter: str
    null: str
    header: Header = Header.NONE
    quote: str = '"'
    escape: str = '"'
    force_quote: frozenset[int] = frozenset()


def parse_copy_options(
    form: str, direction: str, options: dict[str, str], columns: Sequence[str]
) -> TextFormat:
    """The format of a text file; for Parquet it only checks that there are no options, for the
    binary format that there are none of a text's."""
    for name in options:
        if name not in SUPPORTED | REFUSED:
            raise InvalidInput("option of COPY not recognized", sqlstate="42601", option=name)
    _refuse_unsupported_options(form, direction, options)
    csv = form == "csv"
    for name in _OF_CSV:
        if name in options and not csv:
            raise Unsupported("this option of COPY needs CSV mode", option=name)
    quote = options.get("quote", '"')
    style = TextFormat(
        csv,
        options.get("delimiter", "," if csv else "\t"),
        options.get("null", "" if csv else "\\N"),
        _parse_header(options.get("header", "false"), direction),
        quote,
        options.get("escape", quote),
        _parse_force_quote(options.get("force_quote", ""), direction, columns),
    )
    _check_special_characters(style)
    return style


def _refuse_unsupported_options(form: str, direction: str, options: dict[str, str]) -> None:
    if form == "parquet" and options:
        raise Unsupported("option of COPY for Parquet files", option=next(iter(options)))
    for name, value in options.items():
        if name in REFUSED:
            raise Unsupported("option of COPY", option=name)
        if form == "binary" and name in _OF_TEXT:
            raise InvalidInput(
                "BINARY mode does not take this option", sqlstate="42601", option=name
            )
        if form == "binary" and name == "header":
            raise Unsupported("HEADER in BINARY mode")
        if name == "freeze" and direction == "to" and _BOOLEANS.get(value) is not False:
            raise Unsupported("FREEZE in COPY TO")
    if "on_error" in options:
        if options["on_error"] != "stop":
            raise Unsupported("option of COPY", option=f"on_error {options['on_error']}")
        if direction == "to":
            raise InvalidInput("COPY TO does not take ON_ERROR", sqlstate="22023")
    encoding = options.get("encoding", "utf8")
    if encoding.lower().replace("-", "").replace("_", "") not in ("utf8", "unicode"):
        raise Unsupported("encoding of COPY other than UTF8", encoding=encoding)


def _parse_header(value: str, direction: str) -> Header:
    if value.lower() == "match":
        if direction == "to":
            raise Unsupported("HEADER MATCH in COPY TO")
        return Header.MATCH
    found = _BOOLEANS.get(value.lower())
    if found is None:
        raise InvalidInput("HEADER requires a Boolean value or match", sqlstate="42601")
    return Header.SKIP if found else Header.NONE


def _parse_force_quote(value: str, direction: str, columns: Sequence[str]) -> frozenset[int]:
    if not value:
        return frozenset()
    if direction == "from":
        raise Unsupported("FORCE_QUOTE in COPY FROM")
    if value == "*":
        return frozenset(range(len(columns)))
    for name in value.split(","):
        if name not in columns:
            raise InvalidInput("column of FORCE_QUOTE not found", sqlstate="42703", column=name)
    return frozenset(map(columns.index, value.split(",")))


def _check_special_characters(style: TextFormat) -> None:
    """The checks of delimiter, NULL string, quote and escape, in PostgreSQL's order."""
    if len(style.delimiter) != 1 or not style.delimiter.isascii():
        raise Unsupported("COPY delimiter must be a single one-byte character")
    wrong = None
    if style.delimiter in "\r\n":
        wrong = "COPY delimiter cannot be newline or carriage return"
    elif "\n" in style.null or "\r" in style.null:
        wrong = "COPY null representation cannot use newline or carriage return"
    elif not style.csv and style.delimiter in _NO_TEXT_DELIMITERS:
        wrong = "COPY delimiter cannot be this character"
    if wrong is None and style.csv:
        for name, sign in (("quote", style.quote), ("escape", style.escape)):
            if len(sign) != 1 or not sign.isascii():
                raise Unsupported(f"COPY {name} must be a single one-byte character")
        if style.delimiter == style.quote:
            wrong = "COPY delimiter and quote must be different"
    if wrong is None and style.delimiter in style.null:
        wrong = "COPY delimiter character must not appear in the NULL specification"
    elif wrong is None and style.csv and style.quote in style.null:
        wrong = "CSV quote character must not appear in the NULL specification"
    if wrong is not None:
        raise InvalidInput(wrong, sqlstate="22023")
