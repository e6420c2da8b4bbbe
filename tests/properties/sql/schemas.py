"""Random tables: a few columns of random types, keys, constraints, indexes, and rows with NULLs."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.properties.sql.values import COLUMN_TYPES, stored


@dataclass(frozen=True, slots=True)
class Table:
    """Every table has an integer primary key `id`; `ref` points to another table's."""

    name: str
    columns: tuple[tuple[str, str], ...]
    definition: str
    unique: tuple[str, ...]

    @property
    def free(self) -> tuple[tuple[str, str], ...]:
        """Columns that any value of their type may be put into."""
        return tuple(one for one in self.columns if one[0] not in ("id", "ref"))


def tables(rng: random.Random) -> list[Table]:
    found: list[Table] = []
    for name in ("t", "u", "v")[: rng.choice((2, 3, 3))]:
        found.append(_table(rng, name, found))
    return found


def _table(rng: random.Random, name: str, before: list[Table]) -> Table:
    columns = [("id", "integer")]
    clauses = ["id integer PRIMARY KEY"]
    for letter in "abcdefg"[: rng.randint(3, 6)]:
        kind = rng.choice(COLUMN_TYPES)
        rule = rng.choice(("",) * 8 + (" NOT NULL", f" DEFAULT {stored(rng, kind, 0)}"))
        columns.append((letter, kind))
        clauses.append(f"{letter} {kind}{rule}")
    if before and rng.random() < 0.6:
        parent = rng.choice(before).name
        action = rng.choice(("", " ON DELETE CASCADE", " ON DELETE SET NULL"))
        columns.append(("ref", "integer"))
        clauses.append(f"ref integer REFERENCES {parent}{action}")
    integers = [column for column, kind in columns[1:] if kind == "integer" and column != "ref"]
    if integers and rng.random() < 0.4:
        clauses.append(f"CHECK ({rng.choice(integers)} > -50)")
    unique: tuple[str, ...] = ()
    if len(integers) > 1 and len(columns) > 4 and rng.random() < 0.2:
        unique = (integers[0], integers[1])
        clauses.append(f"UNIQUE ({', '.join(unique)})")
    definition = f"CREATE TABLE {name} ({', '.join(clauses)})"
    return Table(name, tuple(columns), definition, unique)


def indexes(rng: random.Random, found: list[Table]) -> list[str]:
    made = []
    for table in found:
        for number in range(rng.randint(0, 2)):
            column = rng.choice(table.columns[1:])[0]
            second = rng.choice(table.columns)[0]
            more = f", {second} DESC" if second != column and rng.random() < 0.4 else ""
            where = f" WHERE {column} IS NOT NULL" if rng.random() < 0.2 else ""
            made.append(
                f"CREATE INDEX {table.name}_{number} ON {table.name} ({column}{more}){where}"
            )
    return made


def rows(rng: random.Random, table: Table, count: int) -> list[str]:
    """Single-row INSERTs; a few of them fail on a constraint, in every engine alike."""
    return [insertion(rng, table, number) for number in range(1, count + 1)]


def insertion(rng: random.Random, table: Table, id_: int) -> str:
    values = [str(id_)]
    for column, kind in table.columns[1:]:
        if column == "ref":
            values.append("NULL" if rng.random() < 0.3 else str(rng.randint(1, 8)))
        else:
            nulls = 0.0 if f"{column} {kind} NOT NULL" in table.definition else 0.2
            values.append(stored(rng, kind, nulls))
    return f"INSERT INTO {table.name} VALUES ({', '.join(values)})"
