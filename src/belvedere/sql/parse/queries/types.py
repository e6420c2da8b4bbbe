"""Parses type names, as PostgreSQL spells them."""

from __future__ import annotations

from belvedere.errors import InvalidInput, Unsupported
from belvedere.sql.parse.lexical.lexer import INTEGER, QUOTED, WORD
from belvedere.sql.parse.lexical.token_cursor import TokenCursor
from belvedere.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTERVAL,
    JSON,
    NUMERIC,
    OID,
    REAL,
    REGCLASS,
    REGNAMESPACE,
    REGPROC,
    REGTYPE,
    SECOND_DIGITS_MAX,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    VARCHAR,
    SqlType,
    array_of,
    char_type,
    numeric_type,
    varchar_type,
    with_second_digits,
)
from belvedere.types import (
    INTEGER as INTEGER_TYPE,
)

SIMPLE_TYPES: dict[str, SqlType] = {
    "bool": BOOLEAN,
    "boolean": BOOLEAN,
    "int2": SMALLINT,
    "smallint": SMALLINT,
    "int": INTEGER_TYPE,
    "int4": INTEGER_TYPE,
    "integer": INTEGER_TYPE,
    "int8": BIGINT,
    "bigint": BIGINT,
    "float4": REAL,
    "real": REAL,
    "float8": DOUBLE,
    "text": TEXT,
    "json": JSON,
    "bytea": BYTEA,
    "date": DATE,
    "uuid": UUID,
}
_NUMERIC = frozenset({"numeric", "decimal", "dec"})
_CHARACTER = frozenset({"char", "character", "nchar", "bpchar", "varchar", "national"})
_PARTS = frozenset({"double", "float", "time", "timestamp", "timestamptz", "interval", "bit"})
_MISSING = frozenset(
    """
    jsonb money xml inet cidr macaddr macaddr8 point line lseg box path polygon circle tsvector
    tsquery regproc timetz varbit int4range int8range numrange tsrange
    tstzrange daterange hstore
    """.split()
)
_CATALOG_TYPES = {
    "oid": OID,
    "regclass": REGCLASS,
    "regtype": REGTYPE,
    "regnamespace": REGNAMESPACE,
    "regproc": REGPROC,
    "name": TEXT,
}
"""Types of the system catalogs: expressions may have them, columns of tables may not."""
TYPE_WORDS = (
    frozenset(SIMPLE_TYPES) | frozenset(_CATALOG_TYPES) | _NUMERIC | _CHARACTER | _PARTS | _MISSING
)
SERIAL = {
    "serial": INTEGER_TYPE,
    "serial4": INTEGER_TYPE,
    "bigserial": BIGINT,
    "serial8": BIGINT,
    "smallserial": SMALLINT,
    "serial2": SMALLINT,
}
INTERVAL_FIELDS = ("year", "month", "day", "hour", "minute", "second")


def parse_column_type(c: TokenCursor) -> SqlType:
    """The type of a column of a table."""
    token = c.token
    if token.text in _CATALOG_TYPES:
        raise Unsupported("type", position=token.start + 1, type=token.text)
    return parse_type(c)


def parse_type(c: TokenCursor) -> SqlType:
    """A type name with its modifiers and array brackets."""
    if c.accept("setof"):
        raise Unsupported("setof type", position=c.token.start + 1)
    found = _parse_scalar(c)
    while True:
        if c.accept_sign("["):
            if c.token.kind == INTEGER:
                c.next_token()
            c.expect_sign("]")
        elif c.accept("array"):
            if c.accept_sign("["):
                c.parse_integer()
                c.expect_sign("]")
        else:
            return found
        if found.element is None:  # every number of dimensions is one array type
            found = array_of(found)


def _parse_scalar(c: TokenCursor) -> SqlType:
    token = c.token
    if token.kind not in (WORD, QUOTED):
        raise c.make_syntax_error()
    c.next_token()
    word = token.text
    if word == "pg_catalog" and c.accept_sign("."):
        token = c.next_token()
        word = token.text
    if token.kind == QUOTED and word == "char":
        return TEXT  # the catalogs' type of single letters
    simple = SIMPLE_TYPES.get(word) or _CATALOG_TYPES.get(word)
    if simple is not None:
        return simple
    if word in _NUMERIC:
        return _parse_numeric(c)
    if word in _CHARACTER:
        return _parse_character(c, word)
    if word in _PARTS:
        return _parse_compound(c, word)
    if word in _MISSING:
        raise Unsupported("type", position=token.start + 1, type=word)
    raise InvalidInput("type does not exist", sqlstate="42704", position=token.start + 1, type=word)


def _parse_numeric(c: TokenCursor) -> SqlType:
    modifiers = _parse_modifiers(c)
    if not modifiers:
        return NUMERIC
    precision = modifiers[0]
    scale = modifiers[1] if len(modifiers) > 1 else 0
    if len(modifiers) > 2 or not 1 <= precision <= 1000 or not -1000 <= scale <= 1000:
        raise InvalidInput("invalid numeric type modifier", sqlstate="22023")
    return numeric_type(precision, scale)


def _parse_character(c: TokenCursor, word: str) -> SqlType:
    if word == "national":
        word = c.expect_one_of("character", "char", "varchar")
    varying = word == "varchar" or c.accept("varying")
    modifiers = _parse_modifiers(c)
    if modifiers and (len(modifiers) > 1 or not 1 <= modifiers[0] <= 10_485_760):
        raise InvalidInput("invalid length of character type", sqlstate="22023")
    if varying:
        return varchar_type(modifiers[0]) if modifiers else VARCHAR
    if word == "bpchar" and not modifiers:
        return TEXT
    return char_type(modifiers[0] if modifiers else 1)


def _parse_compound(c: TokenCursor, word: str) -> SqlType:
    match word:
        case "double":
            c.expect("precision")
            return DOUBLE
        case "float":
            modifiers = _parse_modifiers(c)
            if modifiers and not 1 <= modifiers[0] <= 53:
                raise InvalidInput("invalid precision of type float", sqlstate="22023")
            return REAL if modifiers and modifiers[0] <= 24 else DOUBLE
        case "interval":
            return _parse_interval(c)
        case "time" | "timestamp":
            return _parse_time(c, word)
        case "timestamptz":
            modifiers = _parse_modifiers(c)
            if len(modifiers) > 1 or (modifiers and modifiers[0] < 0):
                raise InvalidInput("invalid type modifier", sqlstate="22023")
            return with_second_digits(TIMESTAMPTZ, *modifiers) if modifiers else TIMESTAMPTZ
        case _:
            raise Unsupported("type", type=word)


def _parse_interval(c: TokenCursor) -> SqlType:
    if c.is_any(INTERVAL_FIELDS):
        raise Unsupported("interval field restriction", position=c.token.start + 1)
    return with_second_digits(INTERVAL, parse_second_digits(c))


def _parse_time(c: TokenCursor, word: str) -> SqlType:
    digits = parse_second_digits(c)
    zoned = False
    if c.is_word("with", "time", "zone") or c.is_word("without", "time", "zone"):
        zoned = c.is_word("with")
        c.index += 3
    if word == "time":
        if zoned:
            raise Unsupported("type", type="time with time zone")
        return with_second_digits(TIME, digits)
    return with_second_digits(TIMESTAMPTZ if zoned else TIMESTAMP, digits)


def parse_second_digits(c: TokenCursor) -> int:
    """The precision of a type of time; more digits than there are count as all of them."""
    if not c.accept_sign("("):
        return SECOND_DIGITS_MAX
    if c.token.kind != INTEGER:
        raise c.make_syntax_error()
    digits = c.parse_integer()
    c.expect_sign(")")
    return digits


def _parse_modifiers(c: TokenCursor) -> tuple[int, ...]:
    if not c.is_sign("("):
        return ()
    c.next_token()
    found = c.parse_comma_list(c.parse_integer)
    c.expect_sign(")")
    return found
