"""One statement on both engines, and whether they answered alike.

Rows are compared as text with their types: as a list when the statement orders them wholly, else as
a bag. An error equals an error of the same SQLSTATE. Values that are equal but of different text
(1.0 and 1.00, 1 day and 24 hours) may stand for each other where an engine keeps one of several
equal values, or orders by them.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from belvedere.values.intervals import parse_interval
from tests.exact import EXACT
from tests.oracle.postgres import Postgres
from tests.slt.engines import Belvedere, PostgresEngine
from tests.slt.records import Answer, Values

TIERS = ("direct", "duckdb")
_MERGES = re.compile(
    r"\b(DISTINCT|GROUP BY|ORDER BY|UNION|INTERSECT|EXCEPT|min|max)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Difference:
    statement: str
    tier: str
    expected: Answer
    got: Answer

    def __str__(self) -> str:
        lines = [f"{self.statement};", f"-- PostgreSQL: {shown(self.expected)}"]
        return "\n".join([*lines, f"-- Belvedere, {self.tier}: {shown(self.got)}"])


def shown(answer: Answer) -> str:
    if answer.sqlstate is not None:
        return f"error {answer.sqlstate} " + " ".join(answer.message.split())[:300]
    rows = sorted(answer.rows, key=_row_key)
    return f"{len(rows)} rows {answer.types} {rows[:12]}"


class Pair:
    """Both engines, each with a database of its own."""

    def __init__(self, postgres: Postgres) -> None:
        self.theirs = PostgresEngine(postgres)
        self.ours = Belvedere("auto")

    def query(self, text: str, *, ordered: bool) -> Difference | None:
        """A query, in every tier."""
        expected = self.theirs.run(text)
        for tier in TIERS:
            self.ours.run(f"SET tier = {tier}")
            got = self.ours.run(text)
            if not alike(text, expected, got, ordered):
                return Difference(text, tier, expected, got)
        return None

    def change(self, text: str) -> Difference | None:
        """A statement that may change rows: once, in whatever tier."""
        self.ours.run("SET tier = auto")
        expected, got = self.theirs.run(text), self.ours.run(text)
        return (
            None if alike(text, expected, got, False) else Difference(text, "auto", expected, got)
        )

    def run(self, text: str) -> Difference | None:
        """A statement of a script."""
        word = text.split(None, 1)[0].upper()
        if word in ("SELECT", "WITH", "VALUES", "("):
            return self.query(text, ordered="ORDER BY" in text.rsplit(")", 1)[-1])
        return self.change(text)

    def close(self) -> None:
        self.theirs.close()
        self.ours.close()


@contextlib.contextmanager
def pair(postgres: Postgres) -> Iterator[Pair]:
    made = Pair(postgres)
    try:
        yield made
    finally:
        made.close()


def alike(text: str, expected: Answer, got: Answer, ordered: bool) -> bool:
    if expected.sqlstate is not None or got.sqlstate is not None:
        return expected.sqlstate == got.sqlstate
    if expected.types != got.types:
        return False
    if _same(expected.rows, got.rows, ordered):
        return True
    if not _MANY_FACED.keys() & set(expected.types) or not _MERGES.search(text):
        return False
    return _same(_one_face(expected), _one_face(got), ordered)


def _same(one: Sequence[Values], two: Sequence[Values], ordered: bool) -> bool:
    if ordered:
        return list(one) == list(two)
    return sorted(one, key=_row_key) == sorted(two, key=_row_key)


def _row_key(row: Values) -> tuple[tuple[bool, str], ...]:
    return tuple((value is None, value or "") for value in row)


_MANY_FACED: dict[str, Callable[[str], str]] = {
    "numeric": lambda text: str(Decimal(text).normalize(EXACT)),
    "interval": lambda text: str(parse_interval(text).span),
    "double precision": lambda text: "0" if text == "-0" else text,
    "real": lambda text: "0" if text == "-0" else text,
}
"""Types with equal values of different text, and a text that equal values share."""


def _one_face(answer: Answer) -> list[Values]:
    forms = [_MANY_FACED.get(kind) for kind in answer.types]
    return [
        tuple(
            value if form is None or value is None else form(value)
            for form, value in zip(forms, row)
        )
        for row in answer.rows
    ]
