"""Types and constants of random statements, written as PostgreSQL reads them.

Values are small, so that plain arithmetic cannot overflow, and floats are multiples of 1/4, so that
no sum depends on its order. What can fail is made on purpose, where it fails in every engine.
"""

from __future__ import annotations

import random

INTEGERS = ("smallint", "integer", "bigint")
NUMERICS = ("numeric(8,2)", "numeric")
TEXTS = ("text", "varchar(6)", "char(3)")
COLUMN_TYPES = (
    *INTEGERS,
    "integer",
    "integer",
    *NUMERICS,
    "double precision",
    *TEXTS,
    "text",
    "boolean",
    "date",
    "timestamp",
    "real",
    "interval",
    "time",
)
PLAIN = {"numeric(8,2)": "numeric", "varchar(6)": "text", "char(3)": "char(3)"}
"""The type an expression has that is made of such a column."""

WORDS = ("", "a", "b", "ab", "Ab", "zz", "x y", " a", "a%", "_b", "A", "ba", "10", "-3")
_EXTENT = {"smallint": 20, "integer": 60, "bigint": 300}


def constant(rng: random.Random, kind: str, nulls: float = 0.1) -> str:
    """A constant of the type, cast where its text alone would not tell."""
    if rng.random() < nulls:
        return f"NULL::{kind}"
    if kind in _EXTENT:
        number = rng.randint(-3, 9) if rng.random() < 0.7 else rng.randint(-1, 1) * _EXTENT[kind]
        return f"({number})" if kind == "integer" else f"({number})::{kind}"
    match kind:
        case "numeric(8,2)" | "numeric":
            return (
                rng.choice(("0.00", "1.5", "2.25", "(-0.75)", "10.10", "3", "7.125")) + "::numeric"
            )
        case "double precision" | "real":
            return f"({rng.randint(-12, 40) / 4})::{kind}"
        case "time":
            return f"TIME '{rng.choice((0, 7, 12, 23)):02}:{rng.choice((0, 15, 59)):02}:00'"
        case "boolean":
            return rng.choice(("true", "false"))
        case "date":
            return f"DATE '2024-{rng.randint(1, 3):02}-{rng.choice((1, 2, 15, 28, 29)):02}'"
        case "timestamp":
            return (
                f"TIMESTAMP '2024-{rng.randint(1, 3):02}-{rng.choice((1, 29)):02} "
                f"{rng.choice((0, 7, 23)):02}:{rng.choice((0, 30)):02}:00'"
            )
        case "interval":
            return f"INTERVAL '{rng.randint(-3, 40)} {rng.choice(('days', 'hours', 'months'))}'"
        case "char(3)":
            return f"'{rng.choice(WORDS)[:3]}'::char(3)"
        case _:
            return f"'{rng.choice(WORDS)}'::{'text' if kind == 'text' else kind}"


def stored(rng: random.Random, kind: str, nulls: float = 0.2) -> str:
    """A constant that fits a column of the type."""
    text = constant(rng, kind, nulls)
    if kind == "numeric(8,2)" and "7.125" in text:
        return "7.13"
    return text


def large(rng: random.Random, kind: str) -> str:
    """A constant near the end of its type."""
    most = {"smallint": 2**15, "integer": 2**31, "bigint": 2**63}[kind] - 1
    number = rng.choice((most, most - 1, -most, most // 2 + 1))
    return f"({number})::{kind}"
