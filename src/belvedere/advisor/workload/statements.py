"""Workloads as text: statements with how often each runs, from a file, a CSV or system-table rows.

    -- name: Q4
    -- calls: 500
    SELECT * FROM item, author WHERE i_a_id = a_id AND i_subject = ? ORDER BY i_title LIMIT 50;

Both comments are optional, stand before their statement, and may share a line. A statement without
`calls` counts once. A CSV is recognized by its header: PostgreSQL's `pg_stat_statements` has the
columns query, calls and mean_exec_time or total_exec_time (or mean_time, total_time).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from belvedere.errors import Error, InvalidInput
from belvedere.sql.parse.lexical.lexer import END, SIGN, tokenize

_MARK = re.compile(r"\b(name|calls)\s*:\s*(\S+)")
_CSV_HEADER = re.compile(r'^"?\w+"?(,"?\w+"?)+\s*$')


@dataclass(frozen=True, slots=True)
class WorkloadStatement:
    """`calls` is how often it ran or runs, in any unit that all statements share; `mean_us` what
    one run took, None where nobody measured it."""

    name: str
    text: str
    calls: float = 1.0
    mean_us: float | None = None


def read_workload_text(text: str) -> list[WorkloadStatement]:
    """The statements of a workload file: SQL with comments, or a CSV of pg_stat_statements."""
    first = text.lstrip("\ufeff \t\r\n").split("\n", 1)[0]
    if _CSV_HEADER.match(first) and "query" in first.lower():
        return _read_statistics_csv(text.lstrip("\ufeff"))
    return [
        _make_statement(source, number) for number, source in enumerate(_split_statements(text), 1)
    ]


def read_statistics_rows(
    rows: Iterable[tuple[str, float, float | None]],
) -> list[WorkloadStatement]:
    """Text, calls and mean milliseconds of the rows of `belvedere.statements`."""
    return [
        WorkloadStatement(
            f"S{number}", text, float(calls), None if mean_ms is None else mean_ms * 1000
        )
        for number, (text, calls, mean_ms) in enumerate(rows, 1)
        if calls
    ]


def _read_statistics_csv(text: str) -> list[WorkloadStatement]:
    found = []
    rows = csv.DictReader(io.StringIO(text))
    names = [name.lower() for name in rows.fieldnames or ()]
    if "query" not in names or "calls" not in names:
        raise InvalidInput(
            "workload file has neither statements nor the columns query and calls",
            sqlstate="22023",
            columns=", ".join(names),
        )
    for number, given in enumerate(rows, 1):
        row = {key.lower(): value for key, value in given.items() if key is not None}
        calls = _parse_number(row["calls"], number)
        mean_us = _read_mean_us(row, calls, number)
        found.append(WorkloadStatement(f"S{number}", (row["query"] or "").strip(), calls, mean_us))
    return found


def _read_mean_us(row: Mapping[str, str], calls: float, number: int) -> float | None:
    for name in ("mean_exec_time", "mean_time"):
        if row.get(name):
            return _parse_number(row[name], number) * 1000
    for name in ("total_exec_time", "total_time"):
        if row.get(name) and calls:
            return _parse_number(row[name], number) * 1000 / calls
    return None


def _parse_number(text: str, line: int) -> float:
    try:
        number = float(text)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number < float("inf"):
        raise InvalidInput(
            "workload has a number that is none", sqlstate="22023", row=line, text=text
        )
    return number


def _split_statements(text: str) -> list[str]:
    """The texts between semicolons, each with the comments before it. A text that cannot be read
    to its end (an open quote) is one statement from there on."""
    cuts, start = [], 0
    try:
        for token in tokenize(text):
            if token.kind == END:
                break
            if token.kind == SIGN and token.text == ";":
                cuts.append(text[start : token.end])
                start = token.end
    except Error:
        return [one for one in _split_by_lines(text) if _has_statement(one)]
    return [one for one in (*cuts, text[start:]) if _has_statement(one)]


def _split_by_lines(text: str) -> list[str]:
    """The rougher cut, at semicolons that end a line: one statement that the lexer refuses costs
    none of the others."""
    return [part + ";" for part in re.split(r";[ \t]*(?:\n|$)", text)]


def _has_statement(text: str) -> bool:
    return bool(re.sub(r"--[^\n]*", "", text).strip("; \t\r\n"))


def _make_statement(source: str, number: int) -> WorkloadStatement:
    name, calls = f"S{number}", 1.0
    head = re.match(r"(\s*--[^\n]*(\n|$)|\s+)*", source)
    assert head is not None
    for key, value in _MARK.findall(head.group(0)):
        if key == "name":
            name = value.strip(",;")
        else:
            calls = _parse_number(value.strip(",;"), number)
    return WorkloadStatement(name, source[head.end() :].strip().rstrip(";").strip(), calls)
