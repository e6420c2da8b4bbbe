"""Random INSERT, UPDATE and DELETE statements, some of which violate one constraint.

Which row of several fails first is not settled by anyone, so what can fail has one row or one
reason.
"""

from __future__ import annotations

import random

from tests.properties.sql.expressions import Column, Expressions, Scope
from tests.properties.sql.schemas import Table, insertion
from tests.properties.sql.values import PLAIN, stored


class Changes:
    def __init__(self, rng: random.Random, tables: list[Table]) -> None:
        self.rng = rng
        self.tables = tuple(tables)
        self.next = 100

    def statement(self) -> str:
        maker = Expressions(self.rng)
        table = self.rng.choice(self.tables)
        make = self.rng.choice(
            (self._insert, self._insert, self._select, self._update, self._update, self._delete)
        )
        made = make(maker, table)
        if self.rng.random() < 0.4:
            made += " RETURNING *"
        return made

    def _scope(self, table: Table, name: str, depth: int = 2) -> Scope:
        columns = tuple(Column(f"{name}.{column}", kind) for column, kind in table.columns)
        return Scope(columns, self.tables, depth)

    def _insert(self, maker: Expressions, table: Table) -> str:
        rng = self.rng
        self.next += 1
        id_ = rng.randint(1, 12) if rng.random() < 0.3 else self.next
        made = insertion(rng, table, id_)
        if rng.random() < 0.3:
            made += " ON CONFLICT DO NOTHING"
        elif rng.random() < 0.3:
            column = rng.choice(table.free)[0]
            value = rng.choice((f"excluded.{column}", f"{table.name}.{column}"))
            made += f" ON CONFLICT (id) DO UPDATE SET {column} = {value}"
            if rng.random() < 0.4:
                made += f" WHERE {table.name}.id > {rng.randint(0, 8)}"
        return made

    def _select(self, maker: Expressions, table: Table) -> str:
        """Ids are new; references are taken over or left out."""
        self.next += 100
        source = self.rng.choice(self.tables)
        alias = maker.alias()
        scope = self._scope(source, alias, 1)
        values = [f"{alias}.id + {self.next}"]
        for column, kind in table.columns[1:]:
            if column == "ref":
                values.append("NULL")
            elif f"{column} {kind} NOT NULL" in table.definition:
                values.append(stored(self.rng, kind, 0))
            else:
                values.append(f"({maker.leaf(PLAIN.get(kind, kind), scope)})::{kind}")
        where = maker.condition(scope)
        return (
            f"INSERT INTO {table.name} SELECT {', '.join(values)} "
            f"FROM {source.name} {alias} WHERE {where}"
        )

    def _update(self, maker: Expressions, table: Table) -> str:
        rng = self.rng
        scope = self._scope(table, table.name, 1)
        # A unique key that only passes through a duplicate fails in PostgreSQL by luck of order.
        column, kind = rng.choice([one for one in table.free if one[0] not in table.unique])
        plain = PLAIN.get(kind, kind)
        value = maker.of(plain, scope)
        if plain != kind:
            value = f"({value})::{kind}"
        if rng.random() < 0.25:
            other = rng.choice(self.tables)
            alias = maker.alias()
            both = Scope(
                scope.columns + self._scope(other, alias).columns, self.tables, 1, sub=False
            )
            where = f"{alias}.id = {table.name}.id AND {maker.condition(both)}"
            source = f"{other.name} {alias}"
            return f"UPDATE {table.name} SET {column} = {value} FROM {source} WHERE {where}"
        where = maker.condition(self._scope(table, table.name))
        return f"UPDATE {table.name} SET {column} = {value} WHERE {where}"

    def _delete(self, maker: Expressions, table: Table) -> str:
        name = table.name
        few = f"{name}.id % 4 = {self.rng.randint(0, 3)}"
        condition = maker.condition(self._scope(table, name))
        if self.rng.random() < 0.2:
            other = self.rng.choice(self.tables)
            alias = maker.alias()
            where = f"{alias}.id = {name}.id AND {few} AND {condition}"
            return f"DELETE FROM {name} USING {other.name} {alias} WHERE {where}"
        return f"DELETE FROM {name} WHERE {few} AND {condition}"
