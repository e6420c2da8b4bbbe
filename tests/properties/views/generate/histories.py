"""Random transactions as SQL text: inserts, key-changing updates, shifts of all keys, deletes and
reinserts, no-ops, truncates, savepoints, over several tables."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.properties.views.generate.schemas import Table
from tests.properties.views.workloads.corpus import literal

NO_OP_SHARE = 0.2
ROLLBACK_SHARE = 0.08
ACROSS_SHARE = 0.12


@dataclass(frozen=True, slots=True)
class Step:
    """One transaction; afterwards the deferred views with these numbers are brought up to date."""

    statements: tuple[str, ...]
    commit: bool = True
    catch_up: tuple[int, ...] = ()
    look_inside: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """All of one law test, as text: what is stored when it fails."""

    tables: tuple[str, ...]
    tables_deferrable: tuple[str, ...]
    views: tuple[dict[str, object], ...]
    first: tuple[str, ...]
    steps: tuple[Step, ...]
    seed: int = 0
    note: str = ""
    options: dict[str, object] = field(default_factory=dict)


class Histories:
    def __init__(
        self, rng: random.Random, tables: Sequence[Table], ids: int, *, across: bool = False
    ) -> None:
        """Keys are drawn from `ids` numbers; `across`: some statements read another table."""
        self._rng = rng
        self._tables = tables
        self._ids = ids
        self._across = across

    def step(self, views: int) -> Step:
        rng = self._rng
        if rng.random() < NO_OP_SHARE:
            statements = [self._no_op()]
        else:
            count = rng.choice((1, 1, 1, 2, 3, 5))
            statements = [one for _ in range(count) for one in self._change()]
        if len(statements) > 1 and rng.random() < 0.25:
            at = rng.randrange(1, len(statements))
            statements[at:] = ["SAVEPOINT s", *statements[at:], "ROLLBACK TO s", *self._change()]
        numbers = tuple(n for n in range(views) if rng.random() < 0.3)
        commit = rng.random() >= ROLLBACK_SHARE
        return Step(tuple(statements), commit, numbers, rng.random() < 0.3)

    def load(self) -> list[str]:
        """Rows that are there before any view."""
        return [self._insert(table, self._rng.randrange(1, 13))[-1] for table in self._tables]

    def _change(self) -> list[str]:
        rng, table = self._rng, self._rng.choice(self._tables)
        if self._across and rng.random() < ACROSS_SHARE:
            # Rows that shifts have moved out of reach go now and then, so that joins stay small.
            return [f"DELETE FROM {table.name} WHERE id >= {self._ids}", self._with_another(table)]
        if rng.random() < 0.4:
            return self._insert(table, rng.choice((1, 1, 1, 2, 4, 10, 50)))
        return [self._statement(table)]

    def _statement(self, table: Table) -> str:
        rng = self._rng
        drawn = 0.38 + 0.62 * rng.random()
        if drawn < 0.45:
            return f"UPDATE {table.name} SET id = id {rng.choice(('+ 1', '- 1', '+ 7'))}"
        if drawn < 0.70:
            columns = rng.sample(table.columns, rng.randrange(1, 3))
            sets = ", ".join(f"{c.name} = {self._value(table, c.name, c.type)}" for c in columns)
            return f"UPDATE {table.name} SET {sets} WHERE {self._rows(table)}"
        if drawn < 0.75:
            swap = "CASE j WHEN 1 THEN 2 WHEN 2 THEN 1 ELSE j END"
            return f"UPDATE {table.name} SET j = {swap} WHERE {self._rows(table)}"
        if drawn < 0.94:
            return f"DELETE FROM {table.name} WHERE {self._rows(table)}"
        if drawn < 0.97:
            return f"DELETE FROM {table.name}"
        return f"TRUNCATE {table.name}"

    def _with_another(self, table: Table) -> str:
        """A statement that writes one table by what is in another, or in itself."""
        rng = self._rng
        other = rng.choice(self._tables)
        name, source = table.name, f"(SELECT DISTINCT id FROM {other.name}) o"
        return rng.choice(
            (
                f"DELETE FROM {name} USING {source} WHERE o.id = {name}.j",
                f"UPDATE {name} SET j = o.id % 4 FROM {source} WHERE o.id = {name}.id",
                f"UPDATE {name} SET j = (SELECT count(*) % 4 FROM {other.name} o"
                f" WHERE o.j = {name}.j) WHERE {self._rows(table)}",
                f"DELETE FROM {name} WHERE id > (SELECT avg(id) FROM {other.name})",
                f"INSERT INTO {name} (id, g) SELECT max(id) + 1, 'a' FROM {name}"
                " HAVING max(id) < 100",
            )
        )

    def _no_op(self) -> str:
        rng, table = self._rng, self._rng.choice(self._tables)
        column = rng.choice(table.columns).name
        return rng.choice(
            (
                f"UPDATE {table.name} SET {column} = {column}",
                f"UPDATE {table.name} SET {column} = {column} WHERE {self._rows(table)}",
                f"DELETE FROM {table.name} WHERE id = -5",
                f"UPDATE {table.name} SET id = id + 1 WHERE false",
            )
        )

    def _rows(self, table: Table) -> str:
        rng = self._rng
        number = rng.randrange(self._ids)
        return rng.choice(
            (
                f"id = {number}",
                f"id = {number}",
                f"id % 3 = {number % 3}",
                f"id BETWEEN {number} AND {number + 3}",
                f"j = {rng.randrange(4)}",
                "g IS NULL" if "g" not in table.key else "g = 'a'",
            )
        )

    def _insert(self, table: Table, count: int) -> list[str]:
        """New rows; mostly those with the same ids are deleted first, so that they fit."""
        rng, rows = self._rng, []
        ids = rng.sample(range(self._ids), min(count, self._ids))
        for number in ids:
            values = [str(number)]
            values += [self._value(table, c.name, c.type) for c in table.columns[1:]]
            rows.append(f"({', '.join(values)})")
        names = ", ".join(c.name for c in table.columns)
        insert = f"INSERT INTO {table.name} ({names}) VALUES {', '.join(rows)}"
        if rng.random() < 0.25 and (table.key or not self._across):
            return [insert]
        return [f"DELETE FROM {table.name} WHERE id IN ({', '.join(map(str, ids))})", insert]

    def _value(self, table: Table, name: str, type_: str) -> str:
        if name == "id":
            return str(self._rng.randrange(self._ids))
        if name == "j" and self._rng.random() < 0.9:
            return self._rng.choice(("0", "1", "2", "3", "NULL"))
        return literal(self._rng, type_, nullable=name not in table.key)
