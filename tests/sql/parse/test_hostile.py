"""Malformed and hostile texts end in an error with a SQLSTATE: no hang, no crash, nothing else."""

from __future__ import annotations

import random

import pytest

from belvedere.errors import Error
from tests.sql.compiled import plan_text
from tests.sql.golden import DIRECTORY as GOLDEN
from tests.sql.golden import blocks

DEEP = 20_000


def compiled(text: str) -> str:
    """'ok', or the SQLSTATE."""
    try:
        plan_text(text)
    except Error as error:
        return error.sqlstate
    return "ok"


NESTED = {
    "parentheses": "select " + "(" * DEEP + "1" + ")" * DEEP,
    "open parentheses": "select " + "(" * DEEP,
    "not": "select " + "not " * DEEP + "true",
    "minus": "select " + "- " * DEEP + "id from customers",
    "case": "select " + "case when true then " * DEEP + "1" + " end" * DEEP,
    "calls": "select " + "abs(" * DEEP + "1" + ")" * DEEP,
    "sub-queries": "select " + "(select " * DEEP + "1" + ")" * DEEP,
    "from": "select * from " + "(select * from " * DEEP + "log" + ") x" * DEEP,
    "exists": "select " + "exists (select " * DEEP + "1" + ")" * DEEP,
    "arrays": "select " + "array[" * DEEP + "1" + "]" * DEEP,
    "joins in parentheses": "select * from " + "(" * DEEP + "log",
    "with": "with a as (" * DEEP,
    "sums": "select " + "+".join(["id"] * DEEP) + " from customers",
    "concatenation": "select " + "||".join(["'a'"] * DEEP),
    "casts": "select 1" + "::int8::int4" * DEEP,
    "subscripts": "select a" + "[1]" * DEEP + " from log",
    "is null": "select a" + " is null" * DEEP + " from log",
    "unions": " union all ".join(["select 1"] * DEEP),
    "joins": "select 1 from log l0" + "".join(f" join log l{i} on true" for i in range(1, 3_000)),
    "explains": "explain " * DEEP + "select 1",
    "rollups": "select 1 from log group by " + "rollup (" * 500 + "a" + ")" * 500,
    "cubes": "select 1 from log group by cube (" + ", ".join(["a"] * 40) + ")",
}


@pytest.mark.parametrize("name", NESTED)
def test_deep_nesting_ends_in_an_error(name: str) -> None:
    assert compiled(NESTED[name]) in ("54001", "42601", "42846", "42804", "54011", "54000", "0A000")


LARGE = {
    "and": "select 1 from customers where " + " and ".join(["id = 1"] * 5_000),
    "or": "select 1 from customers where " + " or ".join(f"id = {i}" for i in range(5_000)),
    "in": f"select 1 from customers where id in ({', '.join(map(str, range(20_000)))})",
    "literal": "select '" + "x" * 1_000_000 + "'",
    "comment": "select 1 /*" + "x" * 1_000_000 + "*/",
    "values": "insert into log values " + ", ".join(f"({i}, 'x')" for i in range(5_000)),
    "columns": "select " + ", ".join(["id"] * 5_000) + " from customers",
    "identifier": 'select 1 as "' + "y" * 100_000 + '"',
    "semicolons": ";" * 100_000,
    "digits": "select " + "9" * 20_000,
}


@pytest.mark.parametrize("name", LARGE)
def test_large_statements_are_compiled(name: str) -> None:
    assert compiled(LARGE[name]) == "ok"


STRANGE = [
    "select 1\0",
    "\ud800",
    "select '\ud800'",
    'select "\ud800"',
    "select 1e999999999",
    "select 1e-999999999",
    "select $99999999999999999999",
    "select $0",
    "select 'a' collate \"'; drop table customers; --\"",
    'select * from "customers""; drop table log; --"',
    "\u202e select 1",
    "select \U0001f600",
    "select 1;;;; select",
    "select '\\'; --'",
    "",
    " \n\t-- nothing",
]


@pytest.mark.parametrize("text", STRANGE)
def test_strange_characters_end_in_an_error_or_mean_themselves(text: str) -> None:
    state = compiled(text)
    assert state == "ok" or len(state) == 5


def _statements() -> list[str]:
    found = []
    for path in sorted(GOLDEN.glob("*/*.txt")):
        found += [statement for statement, _ in blocks(path)]
    return found


def test_mutilated_statements_end_in_an_error_or_are_statements(rng: random.Random) -> None:
    statements = _statements()
    words = sorted({word for text in statements for word in text.split()})
    for _ in range(3_000):
        parts = rng.choice(statements).split()
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(len(parts) + 1)
            match rng.randint(0, 3):
                case 0:
                    parts[place : place + 1] = []
                case 1:
                    parts.insert(place, rng.choice(words))
                case 2:
                    parts[place : place + 1] = [rng.choice(words)]
                case _:
                    parts = parts[: max(1, place)]
        text = " ".join(parts)
        state = compiled(text)
        assert state == "ok" or len(state) == 5, text
