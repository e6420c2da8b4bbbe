"""The tables of the benchmark, and each kind of statement with its parameters.

Every table has the columns `id` and `amount`. A statement is about the rows from a start on:
existing ones, from 0 to the number of rows loaded, or for inserts new ones above.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

SIZES = (1, 10, 1000)
COLUMNS = "id int PRIMARY KEY, ten int, thousand int, amount int, name text"
TABLES = (
    f"CREATE TABLE plain ({COLUMNS})",
    f"CREATE TABLE indexed ({COLUMNS})",
    "CREATE INDEX indexed_ten ON indexed (ten)",
    "CREATE INDEX indexed_thousand ON indexed (thousand)",
    "CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES plain (id), amount int)",
)
ROW_TABLES = ("plain", "indexed")

Values = tuple[Any, ...]


class StatementKind(NamedTuple):
    """`values` makes the parameters from the number of rows and the first of them."""

    name: str
    table: str
    text: Callable[[int], str]
    values: Callable[[int, int], Values]
    sizes: tuple[int, ...] = SIZES
    reads: bool = False
    inserts: bool = False
    deletes: bool = False
    goals: tuple[tuple[int, str], ...] = ()
    """The goal in a transaction, by the number of rows."""

    def goal_for(self, rows: int) -> str:
        return dict(self.goals).get(rows, "")


def make_row(number: int) -> Values:
    return (number, number // 10, number // 1000, number * 7 % 1000, f"name {number}")


def _range_values(rows: int, start: int) -> Values:
    return (start,) if rows == 1 else (start, start + rows)


def _where_range(rows: int) -> str:
    return "id = ?" if rows == 1 else "id >= ? AND id < ?"


def _where_index(rows: int) -> str:
    return {1: "id", 10: "ten", 1000: "thousand"}[rows] + " = ?"


def _flatten_rows(rows: int, start: int) -> Values:
    return tuple([value for number in range(start, start + rows) for value in make_row(number)])


def _flatten_children(rows: int, start: int) -> Values:
    return tuple([value for n in range(start, start + rows) for value in (n, n % 1000, n)])


def _marks(rows: int, columns: int) -> str:
    return ", ".join(["(" + ", ".join("?" * columns) + ")"] * rows)


def insert_text(table: str, rows: int) -> str:
    return f"INSERT INTO {table} VALUES {_marks(rows, 3 if table == 'child' else 5)}"


def insert_values(table: str, rows: int, start: int) -> Values:
    return (_flatten_children if table == "child" else _flatten_rows)(rows, start)


def delete_text(table: str, rows: int) -> str:
    return f"DELETE FROM {table} WHERE {_where_range(rows)}"


UPDATE_ONE = "UPDATE {} SET amount = amount + 1 WHERE id = ?"
"""What the statements before the 100th of a transaction are."""

READS = (
    StatementKind(
        "read",
        "plain",
        lambda rows: f"SELECT amount, name FROM plain WHERE {_where_range(rows)}",
        _range_values,
        reads=True,
        goals=((10, "<= 3 ratio"),),
    ),
    StatementKind(
        "sum",
        "plain",
        lambda rows: f"SELECT sum(amount) FROM plain WHERE {_where_range(rows)}",
        _range_values,
        reads=True,
        goals=((10, "<= 3 ratio"),),
    ),
    StatementKind(
        "first rows in order",
        "plain",
        lambda rows: f"SELECT id, amount FROM plain WHERE id >= ? ORDER BY id LIMIT {rows}",
        lambda rows, start: (start,),
        reads=True,
    ),
    StatementKind(
        "read by index",
        "indexed",
        lambda rows: f"SELECT id, amount FROM indexed WHERE {_where_index(rows)}",
        lambda rows, start: (start // rows,),
        (10, 1000),
        reads=True,
    ),
    StatementKind(
        "read by IN list",
        "plain",
        lambda rows: f"SELECT id, amount FROM plain WHERE id IN ({', '.join('?' * rows)})",
        lambda rows, start: tuple(range(start, start + 2 * rows, 2)),
        reads=True,
    ),
)
WRITES = (
    StatementKind(
        "update",
        "plain",
        lambda rows: f"UPDATE plain SET amount = amount + 1 WHERE {_where_range(rows)}",
        _range_values,
        goals=((1, "<= 3 ratio"), (10, "<= 6 ratio")),
    ),
    StatementKind(
        "insert",
        "plain",
        lambda rows: insert_text("plain", rows),
        _flatten_rows,
        inserts=True,
        goals=((1, "<= 3 ratio"),),
    ),
    StatementKind(
        "delete",
        "plain",
        lambda rows: delete_text("plain", rows),
        _range_values,
        deletes=True,
    ),
    StatementKind(
        "insert .. select",
        "child",
        lambda rows: (
            f"INSERT INTO child SELECT id + ?, id, 0 FROM plain WHERE {_where_range(rows)}"
        ),
        lambda rows, start: (start - start % 1000, *_range_values(rows, start % 1000)),
        inserts=True,
    ),
    StatementKind(
        "update, two indexes",
        "indexed",
        lambda rows: f"UPDATE indexed SET ten = ten + 1 WHERE {_where_range(rows)}",
        _range_values,
    ),
    StatementKind(
        "insert, two indexes",
        "indexed",
        lambda rows: insert_text("indexed", rows),
        _flatten_rows,
        inserts=True,
    ),
    StatementKind(
        "insert, foreign key",
        "child",
        lambda rows: insert_text("child", rows),
        _flatten_children,
        inserts=True,
    ),
)
KINDS = READS + WRITES
