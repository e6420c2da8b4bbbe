"""Functions of bytes: cutting, digests, hexadecimal and base64 encodings; SQL quoting."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re

from belvedere.plan.functions.cast.casts import text_formatter
from belvedere.plan.functions.core.function import UDF, Function, Types, scalar, stable
from belvedere.values import quoting
from belvedere.values.failures import bad_argument
from belvedere.values.numbers import INT4_MAX
from belvedere.values.texts import unescape_bytes
from belvedere.values.value_size import require_value_size

_PLAIN_NAME = re.compile("[a-z_][a-z0-9_]*")
# PostgreSQL's keywords that a name must not be written as without quotes.
RESERVED = frozenset(
    """all analyse analyze and any array as asc asymmetric authorization between bigint binary bit
    boolean both case cast char character check coalesce collate collation column concurrently
    constraint create cross current_catalog current_date current_role current_schema current_time
    current_timestamp current_user dec decimal default deferrable desc distinct do else end except
    exists extract false fetch float for foreign freeze from full grant greatest group grouping
    having ilike in initially inner inout int integer intersect interval into is isnull join
    json json_array json_arrayagg json_exists json_object json_objectagg json_query json_scalar
    json_serialize json_table json_value lateral leading least left like limit localtime
    localtimestamp merge_action national natural nchar none normalize not notnull null nullif
    numeric offset on only or order out outer overlaps overlay placing position precision primary
    real references returning right row select session_user setof similar smallint some substring
    symmetric system_user table tablesample then time timestamp to trailing treat trim true union
    unique user using values varchar variadic verbose when where window with xmlattributes xmlconcat
    xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize
    xmltable""".split()
)


def concatenate(left: bytes, right: bytes) -> bytes:
    require_value_size(len(left) + len(right))
    return left + right


def length(value: bytes) -> int:
    return len(value)


def bit_length(value: bytes) -> int:
    return 8 * len(value)


def substring_from(value: bytes, start: int) -> bytes:
    return value[max(start - 1, 0) :]


def substring(value: bytes, start: int, count: int) -> bytes:
    if count < 0:
        raise bad_argument("negative substring length not allowed", "22011")
    return value[max(start - 1, 0) : max(start - 1 + count, 0)]


def position(value: bytes, part: bytes) -> int:
    return value.find(part) + 1


def trim(value: bytes, characters: bytes) -> bytes:
    return value.strip(characters) if characters else value


def left_trim(value: bytes, characters: bytes) -> bytes:
    return value.lstrip(characters) if characters else value


def right_trim(value: bytes, characters: bytes) -> bytes:
    return value.rstrip(characters) if characters else value


def overlay(value: bytes, new: bytes, start: int) -> bytes:
    return overlay_count(value, new, start, len(new))


def overlay_count(value: bytes, new: bytes, start: int, count: int) -> bytes:
    if start <= 0:
        raise bad_argument("negative substring length not allowed", "22011")
    if start + count > INT4_MAX:
        raise bad_argument("integer out of range", "22003")
    return value[: start - 1] + new + value[max(start + count - 1, 0) :]


def reverse(value: bytes) -> bytes:
    return value[::-1]


def get_byte(value: bytes, index: int) -> int:
    if not 0 <= index < len(value):
        raise bad_argument("index out of valid range", "2202E")
    return value[index]


def md5(value: str) -> str:
    return hashlib.md5(value.encode()).hexdigest()


def md5_bytes(value: bytes) -> str:
    return hashlib.md5(value).hexdigest()


def sha224(value: bytes) -> bytes:
    return hashlib.sha224(value).digest()


def sha256(value: bytes) -> bytes:
    return hashlib.sha256(value).digest()


def sha384(value: bytes) -> bytes:
    return hashlib.sha384(value).digest()


def sha512(value: bytes) -> bytes:
    return hashlib.sha512(value).digest()


def hexadecimal4(value: int) -> str:
    return format(value & 0xFFFFFFFF, "x")


def hexadecimal8(value: int) -> str:
    return format(value & 0xFFFFFFFFFFFFFFFF, "x")


def encode(value: bytes, form: str) -> str:
    require_value_size((4 if form == "escape" else 2) * len(value))
    name = form.lower()
    if name == "hex":
        return value.hex()
    if name == "base64":
        text = base64.b64encode(value).decode()
        return "\n".join(text[i : i + 76] for i in range(0, len(text), 76))
    if name == "escape":
        return "".join(_escape_byte(byte) for byte in value)
    raise bad_argument("unrecognized encoding")


def _escape_byte(byte: int) -> str:
    if byte == 92:
        return "\\\\"
    return f"\\{byte:03o}" if byte == 0 or byte > 127 else chr(byte)


def decode(value: str, form: str) -> bytes:
    name = form.lower()
    if name == "hex":
        digits = re.sub("[ \n\t\r]", "", value)
        if not re.fullmatch("[0-9a-fA-F]*", digits) or len(digits) % 2:
            raise bad_argument("invalid hexadecimal data")
        return bytes.fromhex(digits)
    if name == "base64":
        return _decode_base64(value)
    if name == "escape":
        return unescape_bytes(value)
    raise bad_argument("unrecognized encoding")


def _decode_base64(value: str) -> bytes:
    text = re.sub("[ \n\t\r]", "", value)
    if not re.fullmatch("[A-Za-z0-9+/]*={0,2}", text) or len(text) % 4:
        raise bad_argument("invalid base64 data")
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise bad_argument("invalid base64 data") from None


def convert_to(value: str, encoding: str) -> bytes:
    _require_utf8(encoding)
    return value.encode()


def convert_from(value: bytes, encoding: str) -> str:
    _require_utf8(encoding)
    try:
        text = value.decode()
    except UnicodeDecodeError:
        raise bad_argument("invalid byte sequence for encoding", "22021") from None
    if "\0" in text:
        raise bad_argument("invalid byte sequence for encoding", "22021")
    return text


def _require_utf8(encoding: str) -> None:
    if encoding.upper().replace("-", "").replace("_", "") not in ("UTF8", "UNICODE"):
        raise bad_argument("unsupported encoding name")


def quote_identifier(value: str) -> str:
    if _PLAIN_NAME.fullmatch(value) and value not in RESERVED:
        return value
    return quoting.quote_identifier(value)


def quote_literal(value: str) -> str:
    body = value.replace("'", "''")
    return "E'" + body.replace("\\", "\\\\") + "'" if "\\" in body else f"'{body}'"


def quote_nullable(value: str | None) -> str:
    return "NULL" if value is None else quote_literal(value)


def _quote_any(types: Types) -> object:
    show = text_formatter(types[0])
    return lambda value: quote_literal(show(value))


def _nullable_any(types: Types) -> object:
    show = text_formatter(types[0])
    return lambda value: "NULL" if value is None else quote_literal(show(value))


FUNCTIONS: tuple[Function, ...] = (
    scalar("||(bytea,bytea) bytea", concatenate, "_0 || _1"),
    scalar("length(bytea) int4", length, "CAST(octet_length(_0) AS INTEGER)"),
    scalar("octet_length(bytea) int4", length, "CAST(octet_length(_0) AS INTEGER)"),
    scalar("bit_length(bytea) int4", bit_length, "CAST(8 * octet_length(_0) AS INTEGER)"),
    scalar("substring(bytea,int4) bytea", substring_from, UDF),
    scalar("substring(bytea,int4,int4) bytea", substring, UDF),
    scalar("substr(bytea,int4) bytea", substring_from, UDF),
    scalar("substr(bytea,int4,int4) bytea", substring, UDF),
    scalar("position(bytea,bytea) int4", position, UDF),
    scalar("btrim(bytea,bytea) bytea", trim, UDF),
    scalar("ltrim(bytea,bytea) bytea", left_trim, UDF),
    scalar("rtrim(bytea,bytea) bytea", right_trim, UDF),
    scalar("overlay(bytea,bytea,int4) bytea", overlay, UDF),
    scalar("overlay(bytea,bytea,int4,int4) bytea", overlay_count, UDF),
    scalar("reverse(bytea) bytea", reverse, UDF),
    scalar("get_byte(bytea,int4) int4", get_byte, UDF),
    scalar("md5(text) text", md5, "md5(_0)"),
    scalar("md5(bytea) text", md5_bytes, UDF),
    scalar("sha224(bytea) bytea", sha224, UDF),
    scalar("sha256(bytea) bytea", sha256, UDF),
    scalar("sha384(bytea) bytea", sha384, UDF),
    scalar("sha512(bytea) bytea", sha512, UDF),
    scalar("to_hex(int4) text", hexadecimal4, UDF),
    scalar("to_hex(int8) text", hexadecimal8, UDF),
    scalar("encode(bytea,text) text", encode, UDF),
    scalar("decode(text,text) bytea", decode, UDF),
    stable("convert_to(text,text) bytea", convert_to, UDF),
    stable("convert_from(bytea,text) text", convert_from, UDF),
    scalar("quote_ident(text) text", quote_identifier, UDF),
    scalar("quote_literal(text) text", quote_literal, UDF),
    stable("quote_literal(anyelement) text", quote_literal, specialize=_quote_any),
    scalar("quote_nullable(text) text", quote_nullable, UDF, strict=False),
    stable(
        "quote_nullable(anyelement) text", quote_nullable, strict=False, specialize=_nullable_any
    ),
)
