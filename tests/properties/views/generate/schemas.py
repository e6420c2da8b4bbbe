"""Random tables: keys of several shapes, columns of every type, a join column in each."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.properties.views.workloads.corpus import TYPES

COMMON = ("int", "numeric(12,2)", "double precision", "text", "timestamp", "boolean", "bigint")


@dataclass(frozen=True, slots=True)
class Column:
    """`kind` says how its value is compared: plain, or by exact recompute of a float sum."""

    name: str
    type: str
    kind: str = "plain"


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    def ddl(self, *, deferrable: bool) -> str:
        """`deferrable`: where keys would otherwise be checked row by row."""
        parts = [f"{column.name} {column.type}" for column in self.columns]
        if self.key:
            later = " DEFERRABLE INITIALLY IMMEDIATE" if deferrable else ""
            parts.append(f"PRIMARY KEY ({', '.join(self.key)}){later}")
        return f"CREATE TABLE {self.name} ({', '.join(parts)})"


def random_tables(rng: random.Random) -> tuple[Table, ...]:
    return tuple(_table(rng, f"t{number}") for number in range(rng.choice((1, 2, 2, 3, 4))))


def _table(rng: random.Random, name: str) -> Table:
    columns = [Column("id", "int"), Column("j", rng.choice(("int", "int", "bigint", "smallint")))]
    columns.append(Column("g", rng.choice(("text", "text", "varchar(8)", "char(4)"))))
    for number in range(rng.randrange(1, 5)):
        pool = COMMON if rng.random() < 0.7 else TYPES
        columns.append(Column(f"c{number}", rng.choice(pool)))
    key = rng.choice((("id",), ("id",), ("id",), ("g", "id"), ()))
    return Table(name, tuple(columns), key)
