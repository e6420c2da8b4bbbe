"""CHAR, VARCHAR, BYTEA, UUID and JSON values: parsing, formatting, lengths."""

from __future__ import annotations

import json
import re
import uuid

from belvedere.errors import InvalidInput
from belvedere.values.failures import bad_text, show_text

_UUID = re.compile(r"\{?(?:[0-9a-fA-F]{4}-?){7}[0-9a-fA-F]{4}\}?")


def require_text(value: str) -> str:
    """Check a text from outside: a value has no NUL and only valid Unicode characters."""
    if "\0" in value or not (value.isascii() or _is_unicode(value)):
        raise InvalidInput("invalid byte sequence for encoding", sqlstate="22021")
    return value


def _is_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def too_long_error(kind: str, length: int, value: str) -> InvalidInput:
    return InvalidInput(
        "value too long", sqlstate="22001", type=f"{kind}({length})", text=show_text(value)
    )


def fit_varchar(value: str, length: int) -> str:
    """`value` for storing in VARCHAR(length): only blanks may be cut off."""
    if len(value) <= length:
        return value
    if value[length:].strip(" "):
        raise too_long_error("character varying", length, value)
    return value[:length]


def cut_varchar(value: str, length: int) -> str:
    """`value` cast to VARCHAR(length): cut silently, as SQL says for explicit casts."""
    return value[:length]


def fit_char(value: str, length: int) -> str:
    if len(value) > length and value[length:].strip(" "):
        raise too_long_error("character", length, value)
    return value[:length].ljust(length)


def cut_char(value: str, length: int) -> str:
    return value[:length].ljust(length)


def char_to_text(value: str) -> str:
    return value.rstrip(" ")


def parse_bytea(text: str) -> bytes:
    """Hex (\\x00ff) or escape (\\000, \\\\) notation."""
    if text.startswith("\\x"):
        digits = re.sub(
            r"(?<![0-9a-fA-F])[ \n\t\r]+|[ \n\t\r]+(?![0-9a-fA-F])|[ \n\t\r]+", "", text[2:]
        )
        if not re.fullmatch("[0-9a-fA-F]*", digits):
            raise InvalidInput("invalid hexadecimal digit", sqlstate="22023")
        if len(digits) % 2:
            raise InvalidInput("odd number of hexadecimal digits", sqlstate="22023")
        return bytes.fromhex(digits)
    if "\\" not in text:
        return text.encode()
    return unescape_bytes(text)


def unescape_bytes(text: str) -> bytes:
    """Escape notation: three octal digits after a backslash, or two backslashes."""
    out = bytearray()
    data = text.encode()
    position = 0
    while position < len(data):
        if data[position] != 92:
            out.append(data[position])
            position += 1
        elif re.match(rb"\\[0-3][0-7][0-7]", data[position : position + 4]):
            out.append(int(data[position + 1 : position + 4], 8))
            position += 4
        elif data[position : position + 2] == b"\\\\":
            out.append(92)
            position += 2
        else:
            raise bad_text("bytea", text)
    return bytes(out)


def format_bytea(value: bytes) -> str:
    return "\\x" + value.hex()


def parse_uuid(text: str) -> uuid.UUID:
    if not _UUID.fullmatch(text) or (text[0] == "{") != (text[-1] == "}"):
        raise bad_text("uuid", text)
    return uuid.UUID(text.strip("{}").replace("-", ""))


def format_uuid(value: uuid.UUID) -> str:
    return str(value)


def parse_json(text: str) -> str:
    """Check that `text` is JSON and return it unchanged."""
    load_json(text)
    return text


def load_json(text: str) -> object:
    """The parsed JSON; 22P02 when it is none. Numbers stay text-like through `JsonNumber`."""
    try:
        return _DECODER.decode(text)
    except (json.JSONDecodeError, _ConstantError):
        raise bad_text("json", text) from None
    except RecursionError:
        raise InvalidInput("json nested too deeply", sqlstate="54001") from None


class _ConstantError(ValueError):
    """NaN and Infinity are no JSON, although the standard library reads them."""


class JsonNumber(str):
    """A JSON number as it was written."""

    __slots__ = ()


def _refuse_constant(constant: str) -> object:
    raise _ConstantError(constant)


_DECODER = json.JSONDecoder(
    parse_float=JsonNumber, parse_int=JsonNumber, parse_constant=_refuse_constant, strict=True
)
