"""Escapes in string constants: E'\\n\\x41\\u0041' and U&'\\0041\\+000041'.

Octal and hexadecimal escapes are bytes, which must make UTF-8 together with the text around them;
those of Unicode are code points, or two halves of a surrogate pair. No string holds a NUL.
"""

from __future__ import annotations

import re

from belvedere.errors import InvalidInput

_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_SIMPLE = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_NO_ESCAPE = re.compile(r"[0-9a-fA-F+'\"\s]")
_CODE_POINT_MAX = 0x10FFFF


def unescape_string(raw: str, at: int) -> str:
    """The text of E'..'; `at` is where the constant begins."""
    if "\\" not in raw:
        return raw
    parts: list[bytes] = []
    place, high = 0, 0
    for found in _ESCAPE.finditer(raw):
        between = raw[place : found.start()]
        place = found.end()
        octal, hexadecimal, short, long, other = found.groups()
        code = int(short or long, 16) if short or long else None
        if high and (between or code is None):
            raise _escape_error(at, "invalid unicode surrogate pair")
        parts.append(between.encode())
        if code is not None:
            text, high = _pair_surrogates(code, high, at)
            parts.append(text.encode())
        elif other is not None:
            if other in "uU":
                raise _escape_error(at, "invalid unicode escape", "22025")
            parts.append(_SIMPLE.get(other, other).encode())
        else:
            parts.append(bytes([int(octal, 8) & 0xFF if octal else int(hexadecimal, 16)]))
    if high:
        raise _escape_error(at, "invalid unicode surrogate pair")
    return _decode_utf8(b"".join([*parts, raw[place:].encode()]), at)


def _decode_utf8(data: bytes, at: int) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise _escape_error(at, "invalid byte sequence for encoding", "22021") from None
    if "\0" in text:
        raise _escape_error(at, "invalid byte sequence for encoding", "22021")
    return text


def is_valid_escape(character: str) -> bool:
    """Whether UESCAPE may name it."""
    return len(character) == 1 and _NO_ESCAPE.match(character) is None


def unescape_unicode(raw: str, escape: str, at: int) -> str:
    """The text of U&'..'; `at` is where the constant begins."""
    sign = re.escape(escape)
    pattern = re.compile(
        rf"{sign}(?:({sign})|([0-9a-fA-F]{{4}})|\+([0-9a-fA-F]{{6}})|())", re.DOTALL
    )
    parts: list[str] = []
    place, high = 0, 0
    for found in pattern.finditer(raw):
        between = raw[place : found.start()]
        place = found.end()
        doubled, short, long, _ = found.groups()
        if high and (between or doubled):
            raise _escape_error(at, "invalid unicode surrogate pair")
        parts.append(between)
        if doubled:
            parts.append(escape)
        elif short or long:
            text, high = _pair_surrogates(int(short or long, 16), high, at)
            parts.append(text)
        else:
            raise _escape_error(at, "invalid unicode escape")
    if high:
        raise _escape_error(at, "invalid unicode surrogate pair")
    return "".join([*parts, raw[place:]])


def _pair_surrogates(code: int, high: int, at: int) -> tuple[str, int]:
    """What a code point adds to the text, and the first half of a pair that waits for its other."""
    if code == 0 or code > _CODE_POINT_MAX:
        raise _escape_error(at, "invalid unicode escape value")
    first, second = 0xD800 <= code <= 0xDBFF, 0xDC00 <= code <= 0xDFFF
    if bool(high) is not second:
        raise _escape_error(at, "invalid unicode surrogate pair")
    if first:
        return "", code
    if second:
        return chr(0x10000 + (high - 0xD800 << 10) + code - 0xDC00), 0
    return chr(code), 0


def _escape_error(at: int, message: str, sqlstate: str = "42601") -> InvalidInput:
    return InvalidInput(message, sqlstate=sqlstate, position=at + 1)
