"""Values that break things, as SQL literals by type; always mixed into generated rows.

Plain values are few, so that keys meet; edge values are those of long bug histories: signed zeros,
NaN, infinities, 2**53 + 1, decimals of several scales, blanks, combining characters, both ends of
every range, months and days that are equal.
"""

from __future__ import annotations

import random

PLAIN = {
    "int": ("0", "1", "2", "3"),
    "bigint": ("0", "1", "2", "3"),
    "smallint": ("0", "1", "2"),
    "numeric(12,2)": ("0", "1.50", "1.5", "2.25", "3"),
    "numeric": ("0", "1.0", "1.00", "2.5", "100"),
    "double precision": ("0", "0.1", "0.2", "1.5", "-2.5", "1e16", "-1e16"),
    "real": ("0", "0.1", "1.5"),
    "text": ("'a'", "'b'", "'A'", "'ab'"),
    "varchar(8)": ("'a'", "'b'", "'x y'"),
    "char(4)": ("'a'", "'a  '", "'b'"),
    "date": ("'2020-01-01'", "'2020-01-02'", "'2024-02-29'"),
    "timestamp": ("'2020-01-01 00:00'", "'2020-01-01 12:30:00.5'"),
    "timestamptz": ("'2020-01-01 00:00+00'", "'2020-01-01 02:00+02'"),
    "interval": ("'1 day'", "'2 hours'"),
    "boolean": ("true", "false"),
    "bytea": (r"'\x61'", r"'\x62'"),
    "uuid": ("'00000000-0000-0000-0000-000000000001'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"),
    "time": ("'00:00'", "'12:30:00.000001'"),
}

EDGE = {
    "int": ("-1", "2147483647", "-2147483648"),
    "bigint": ("9223372036854775807", "-9223372036854775808", "9007199254740993"),
    "smallint": ("-32768", "32767"),
    "numeric(12,2)": ("0.10", "-0.00", "9999999999.99", "-9999999999.99", "'NaN'"),
    "numeric": ("0.1", "0.10", "1E+2", "12345678901234567890123456789012345678", "1e-30", "'NaN'"),
    "double precision": (
        "'-0'",
        "'NaN'",
        "'Infinity'",
        "'-Infinity'",
        "1e308",
        "-1e308",
        "5e-324",
        "9007199254740993",
    ),
    "real": ("'-0'", "'NaN'", "'Infinity'", "3e38", "1e-45"),
    "text": (
        "''",
        "' '",
        "'a '",
        "'it''s \\ \"quoted\"'",
        "'\u00e9'",
        "'e\u0301'",
        "'\u00df'",
        "'\u0131'",
        "'\U0001f600'",
        "'\u200f'",
        "repeat('long', 500)",
    ),
    "varchar(8)": ("''", "' '", "'a '", "'\u00e9\u00e9'"),
    "char(4)": ("''", "' '", "'ab c'"),
    "date": ("'0001-01-01'", "'9999-12-31'", "'1500-02-28'"),
    "timestamp": (
        "'2026-03-08 02:30'",
        "'2026-11-01 01:30'",
        "'0001-01-01 00:00'",
        "'9999-12-31 23:59:59.999999'",
    ),
    "timestamptz": ("'2026-10-25 02:30+02'", "'2026-10-25 02:30+01'"),
    "interval": ("'1 month'", "'30 days'", "'720 hours'", "'0'", "'-1 day'"),
    "boolean": ("true",),
    "bytea": (r"'\x'", r"'\x00'", r"'\x00ff'", r"'\xff'"),
    "uuid": ("'00000000-0000-0000-0000-000000000000'",),
    "time": ("'23:59:59.999999'",),
}

TYPES = tuple(PLAIN)
EDGE_SHARE = 0.2
NULL_SHARE = 0.15


def literal(rng: random.Random, type_: str, *, nullable: bool = True) -> str:
    drawn = rng.random()
    if nullable and drawn < NULL_SHARE:
        return "NULL"
    pool = EDGE[type_] if drawn < NULL_SHARE + EDGE_SHARE else PLAIN[type_]
    return rng.choice(pool)


def typed_literal(rng: random.Random, type_: str) -> str:
    """A literal that is not NULL and says its type."""
    return f"({literal(rng, type_, nullable=False)})::{type_}"
