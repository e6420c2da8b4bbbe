"""Reads and writes files in the format of SQL Logic Test.

Records are separated by blank lines; `#` begins a comment line:

    statement ok                    statement error 22012
    CREATE TABLE t (a INTEGER)      SELECT 1 / 0

    query IT rowsort label          onlyif postgresql      (or skipif; for the next record)
    SELECT a, b FROM t              halt                   (the rest of the file is not run)
    ----
    1
    one

Letters: I is an integer, R a number with three digits, T text. Values stand one a line; the
project's own files put a row on a line, separated by tabs. `N values hashing to H` stands for
values whose lines have that md5. After `error` may stand an SQLSTATE; in files without it any
error will do.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ENGINE = "postgresql"
_HASHED = re.compile(r"(\d+) values hashing to ([0-9a-f]{32})")
_NUMBER = re.compile(r"\s*[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")

Values = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """A statement, or a query when `types` is set. `error`: any failure, or one SQLSTATE."""

    line: int
    sql: str
    types: str = ""
    sort: str = "nosort"
    expected: tuple[str, ...] = ()
    error: str | None = None

    @property
    def is_query(self) -> bool:
        return bool(self.types)


@dataclass(frozen=True, slots=True)
class Answer:
    """What an engine answered: rows of PostgreSQL's text, None for NULL; or an SQLSTATE."""

    rows: tuple[Values, ...] = ()
    types: tuple[str, ...] = ()
    sqlstate: str | None = None
    message: str = ""


def read(path: Path) -> Iterator[Record]:
    """The records of a file that apply to PostgreSQL."""
    return parse(path.read_text().split("\n"))


def parse(lines: Sequence[str], engine: str = ENGINE) -> Iterator[Record]:
    applies = True
    for line, block in _blocks(lines):
        while block and block[0].split()[0] in ("onlyif", "skipif"):
            word, name = block[0].split()[:2]
            applies = applies and (name == engine) is (word == "onlyif")
            block, line = block[1:], line + 1
        if not block:
            continue
        if applies and block[0].split()[0] == "halt":
            return
        if applies and block[0].split()[0] != "hash-threshold":
            yield _record(line, block)
        applies = True


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Runs of lines between blank ones. What follows `----` is taken as it is."""
    block: list[str] = []
    for number, line in enumerate([*lines, ""], 1):
        if line.strip():
            if not line.startswith("#") or "----" in block:
                block.append(line.rstrip("\r"))
        elif block:
            yield number - len(block), block
            block = []


def _record(line: int, block: list[str]) -> Record:
    head, rest = block[0].split(), block[1:]
    if head[0] == "statement" and head[1] in ("ok", "error"):
        error = None if head[1] == "ok" else " ".join(head[2:3])
        return Record(line, "\n".join(rest), error=error)
    if head[0] != "query":
        raise ValueError(f"line {line}: cannot read {block[0]!r}")
    at = rest.index("----") if "----" in rest else len(rest)
    expected = tuple(value for row in rest[at + 1 :] for value in row.split("\t"))
    sort = head[2] if len(head) > 2 else "nosort"
    return Record(line, "\n".join(rest[:at]), head[1], sort, expected)


def render(letter: str, value: str | None) -> str:
    """A value as the files write it."""
    if value is None:
        return "NULL"
    if letter == "T":
        shown = "".join(c if " " <= c != "\x7f" else "@" for c in value)
        return shown or "(empty)"
    number = _as_number(value)
    return f"{number:.3f}" if letter == "R" else str(int(number))


def _as_number(value: str) -> float | int:
    """Text is read as far as it is a number, as the harness of the corpus does."""
    if value in ("t", "f"):
        return int(value == "t")
    found = _NUMBER.match(value)
    if found is None:
        return 0
    digits = found[0].strip()
    return int(digits) if digits.lstrip("+-").isdigit() else float(digits)


def shown(record: Record, answer: Answer) -> list[str]:
    """The values of an answer in the order of the record's sort mode."""
    rows = [
        [render(letter, value) for letter, value in zip(record.types, row)] for row in answer.rows
    ]
    if record.sort == "rowsort":
        rows.sort()
    values = [value for row in rows for value in row]
    if record.sort == "valuesort":
        values.sort()
    return values


def summary(record: Record, answer: Answer) -> str:
    """An answer in one line: `ok`, `error S`, or `N values hashing to H`."""
    if answer.sqlstate is not None:
        return f"error {answer.sqlstate}"
    if not record.is_query:
        return "ok"
    return hashed(shown(record, answer))


def hashed(values: Sequence[str]) -> str:
    text = "".join(f"{value}\n" for value in values)
    digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    return f"{len(values)} values hashing to {digest}"


def expectation(record: Record) -> str:
    """The line that `summary` gives when the answer is the record's. `error ` fits any error."""
    if record.error is not None:
        return f"error {record.error}"
    if not record.is_query:
        return "ok"
    if len(record.expected) == 1 and _HASHED.fullmatch(record.expected[0]):
        return record.expected[0]
    return hashed(record.expected)


def fits(record: Record, answer: Answer) -> bool:
    """Whether the answer is the one the file expects, its number of columns included."""
    if answer.sqlstate is None and record.is_query and len(answer.types) != len(record.types):
        return False
    wanted, got = expectation(record), summary(record, answer)
    return got.startswith("error ") if wanted == "error " else got == wanted


def written(record: Record, answer: Answer) -> list[str]:
    """The lines of a record whose expectation is this answer; for the project's own files."""
    if answer.sqlstate is not None:
        return [f"statement error {answer.sqlstate}", record.sql]
    if not answer.types:
        return ["statement ok", record.sql]
    width = len(answer.types)
    types = record.types if len(record.types) == width else "T" * width
    sort = "" if record.sort == "nosort" else f" {record.sort}"
    rows = [
        "\t".join(render(letter, value) for letter, value in zip(types, row)) for row in answer.rows
    ]
    if record.sort == "rowsort":
        rows.sort()
    return [f"query {types}{sort}", record.sql, "----", *rows]
