"""Random schemas with keys and foreign keys, their rows, and random changes of them.

Tables stand in a row: each may refer to tables before it, by columns that may be NULL or not. Every
table has the same other columns, with few values, so that joins, groups and conditions meet.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

COLUMNS = {
    "a": "int",
    "b": "int NOT NULL",
    "s": "text",
    "n": "numeric(6,2)",
    "d": "double precision",
    "u": "numeric",
}
"""Name to type; values of d are multiples of 1/4, whose sums are exact in any order."""


@dataclass(frozen=True)
class Reference:
    """A foreign key: a column of the table, and the table it refers to."""

    column: str
    parent: str
    not_null: bool


@dataclass(frozen=True)
class RandomTable:
    name: str
    references: tuple[Reference, ...]

    @property
    def columns(self) -> list[str]:
        return ["id", *(one.column for one in self.references), *COLUMNS]

    @property
    def ddl(self) -> str:
        parts = ["id int PRIMARY KEY"]
        parts += [
            f"{one.column} int {'NOT NULL ' if one.not_null else ''}REFERENCES {one.parent} (id)"
            for one in self.references
        ]
        parts += [f"{name} {type_}" for name, type_ in COLUMNS.items()]
        return f"CREATE TABLE {self.name} ({', '.join(parts)})"


def random_tables(rng: random.Random) -> list[RandomTable]:
    tables: list[RandomTable] = []
    for number in range(rng.randint(2, 4)):
        wanted = min(len(tables), rng.choice((1, 1, 2)))
        parents = rng.sample(tables, wanted)
        references = [
            Reference(f"r{i}", parent.name, rng.random() < 0.7) for i, parent in enumerate(parents)
        ]
        if references and rng.random() < 0.25:  # two ways to one table
            references.append(Reference("r9", references[0].parent, rng.random() < 0.7))
        tables.append(RandomTable(f"t{number}", tuple(references)))
    return tables


def random_value(rng: random.Random, column: str) -> str:
    if column != "b" and rng.random() < 0.15:
        return "NULL"
    match column:
        case "s":
            return rng.choice(("'x'", "'y'", "'z'", "''", "'X'"))
        case "n":
            return rng.choice(("1.50", "0.25", "-2.00", "7.00", "0"))
        case "d":
            return rng.choice(("0.25", "-1.5", "0", "2", "-0.0"))
        case "u":
            return rng.choice(("1.0", "1.00", "2", "-3.50", "2.000"))
        case _:
            return str(rng.randint(0, 5))


class RowSource:
    """Makes statements; ids of a table are 0 .. `ids`, some of which have rows."""

    def __init__(self, rng: random.Random, tables: list[RandomTable], ids: int) -> None:
        self._rng = rng
        self._tables = tables
        self._ids = ids

    def list_first_inserts(self) -> list[str]:
        return [self._insert(table, i) for table in self._tables for i in range(self._ids)]

    def _insert(self, table: RandomTable, id_: int) -> str:
        values = [str(id_), *(self._reference(one) for one in table.references)]
        values += [random_value(self._rng, column) for column in COLUMNS]
        return f"INSERT INTO {table.name} VALUES ({', '.join(values)})"

    def _reference(self, one: Reference) -> str:
        if not one.not_null and self._rng.random() < 0.2:
            return "NULL"
        return str(self._rng.randrange(self._ids))

    def random_change(self) -> str:
        rng = self._rng
        table = rng.choice(self._tables)
        id_ = rng.randrange(2 * self._ids)
        match rng.randrange(6):
            case 0 | 1:
                return self._insert(table, id_)
            case 2:
                return f"DELETE FROM {table.name} WHERE id = {id_}"
            case 3 if table.references:
                one = rng.choice(table.references)
                value = self._reference(one)
                return f"UPDATE {table.name} SET {one.column} = {value} WHERE id = {id_}"
            case _:
                column = rng.choice(list(COLUMNS))
                value = random_value(rng, column)
                where = rng.choice((f"id = {id_}", f"a = {rng.randint(0, 5)}"))
                return f"UPDATE {table.name} SET {column} = {value} WHERE {where}"
