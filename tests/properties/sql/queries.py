"""Random queries: joins of all kinds, sub-queries, groups, windows, set operations, CTEs.

A query is kept in parts, so that a failing one can be made smaller. Its rows are compared in order
when ORDER BY names every column, else as a bag; LIMIT comes only with such an order.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.properties.sql.expressions import Column, Expressions, Scope
from tests.properties.sql.schemas import Table
from tests.properties.sql.values import PLAIN

JOINS = (
    "JOIN",
    "JOIN",
    "LEFT JOIN",
    "LEFT JOIN",
    "RIGHT JOIN",
    "FULL JOIN",
    "CROSS",
    "LATERAL",
)


@dataclass(frozen=True, slots=True)
class Query:
    """`columns` are expressions with their types."""

    columns: tuple[tuple[str, str], ...]
    source: str
    where: str = ""
    groups: str = ""
    having: str = ""
    distinct: bool = False
    order: str = ""
    limit: str = ""
    before: str = ""
    after: str = ""

    @property
    def ordered(self) -> bool:
        return bool(self.order)

    def __str__(self) -> str:
        parts = [
            self.before,
            "SELECT DISTINCT" if self.distinct else "SELECT",
            ", ".join(text for text, _ in self.columns),
            f"FROM {self.source}" if self.source else "",
            f"WHERE {self.where}" if self.where else "",
            f"GROUP BY {self.groups}" if self.groups else "",
            f"HAVING {self.having}" if self.having else "",
            self.after,
            f"ORDER BY {self.order}" if self.order else "",
            self.limit,
        ]
        return " ".join(part for part in parts if part)

    def simpler(self) -> Iterator[Query]:
        """The query with one part less."""
        plain = replace(self, order="", limit="")
        if self.order:
            yield plain
        if self.after:
            yield replace(plain, after="")
        for part in ("where", "having"):
            if getattr(self, part):
                yield replace(self, **{part: ""})
        if self.distinct:
            yield replace(self, distinct=False)
        if len(self.columns) > 1 and not self.after:
            for place in range(len(self.columns)):
                rest = self.columns[:place] + self.columns[place + 1 :]
                yield replace(plain, columns=rest)


class Queries:
    def __init__(self, rng: random.Random, tables: list[Table]) -> None:
        self.rng = rng
        self.tables = tuple(tables)

    def query(self) -> Query:
        rng = self.rng
        hazard = rng.choice(("",) * 9 + ("division", "overflow", "cast"))
        maker = Expressions(rng, hazard)
        if hazard:
            return self._risky(maker)
        made = self._core(maker, rng.choice(("plain",) * 4 + ("groups",) * 3 + ("windows",)))
        if rng.random() < 0.12:
            made = self._with(maker, made)
        if rng.random() < 0.18:
            made = self._set_operation(maker, made)
        return self._ordered(made) if rng.random() < 0.6 else made

    # -- FROM ---------------------------------------------------------------------------------

    def _source(self, maker: Expressions, joins: int) -> tuple[str, Scope, list[str]]:
        """FROM, what it shows, and the columns that together are unique (empty: none are)."""
        text, columns, unique = self._relation(maker)
        for _ in range(joins):
            right, more, key = self._relation(maker)
            kind = self.rng.choice(JOINS)
            if kind == "CROSS":
                text = f"{text} CROSS JOIN {right}"
            elif kind == "LATERAL":
                right, more, key = self._lateral(maker, columns)
                text = f"{text} {self.rng.choice(('JOIN', 'LEFT JOIN'))} LATERAL {right} ON true"
            else:
                on = self._on(maker, kind, columns, more)
                text = f"{text} {kind} {right} ON {on}"
            unique = [*unique, *key] if unique and key else []
            columns += more
        return text, Scope(tuple(columns), self.tables, 2), unique

    def _relation(self, maker: Expressions) -> tuple[str, list[Column], list[str]]:
        alias = maker.alias()
        if self.rng.random() < 0.15:
            inner = self._core(maker, self.rng.choice(("plain", "groups")), joins=0)
            names = [f"c{place}" for place in range(len(inner.columns))]
            columns = [Column(f"{alias}.{n}", k) for n, (_, k) in zip(names, inner.columns)]
            return f"({inner}) AS {alias} ({', '.join(names)})", columns, []
        table = self.rng.choice(self.tables)
        columns = [Column(f"{alias}.{name}", kind) for name, kind in table.columns]
        return f"{table.name} {alias}", columns, [f"{alias}.id"]

    def _lateral(
        self, maker: Expressions, left: list[Column]
    ) -> tuple[str, list[Column], list[str]]:
        """An aggregate or the first rows of a table for each row before it, or a series."""
        alias, inner = maker.alias(), maker.alias()
        numbers = [one.text for one in left if one.kind == "integer"]
        if numbers and self.rng.random() < 0.3:
            bound = self.rng.choice(numbers)
            text = f"generate_series(1, least({bound}, 3)) AS {alias} (n)"
            return text, [Column(f"{alias}.n", "integer")], []
        table = self.rng.choice(self.tables)
        own = tuple(Column(f"{inner}.{name}", kind) for name, kind in table.columns)
        where = maker.condition(Scope(own + tuple(left), self.tables, 1, sub=False))
        body = f"FROM {table.name} {inner} WHERE {where}"
        if self.rng.random() < 0.5:
            return (
                f"(SELECT count(*), max({inner}.id) {body}) AS {alias} (n, m)",
                [Column(f"{alias}.n", "bigint"), Column(f"{alias}.m", "integer")],
                [],
            )
        return (
            f"(SELECT {inner}.id {body} ORDER BY {inner}.id LIMIT 2) AS {alias} (m)",
            [Column(f"{alias}.m", "integer")],
            [],
        )

    def _on(self, maker: Expressions, kind: str, left: list[Column], right: list[Column]) -> str:
        pairs = [
            (one.text, two.text)
            for one in left
            for two in right
            if PLAIN.get(one.kind, one.kind) == PLAIN.get(two.kind, two.kind)
        ]
        equal = " = ".join(self.rng.choice(pairs)) if pairs else ""
        if kind == "FULL JOIN":  # PostgreSQL has no other one
            return equal or "1 = 1"
        scope = Scope(tuple(left + right), self.tables, 1, sub=kind == "JOIN")
        if not equal or self.rng.random() < 0.2:
            return maker.condition(scope)
        return f"{equal} AND {maker.condition(scope)}" if self.rng.random() < 0.3 else equal

    # -- SELECT -------------------------------------------------------------------------------

    def _core(self, maker: Expressions, shape: str, joins: int | None = None) -> Query:
        rng = self.rng
        count = rng.choice((0, 0, 1, 1, 2, 3)) if joins is None else joins
        source, scope, unique = self._source(maker, count)
        where = maker.condition(scope) if rng.random() < 0.5 else ""
        if shape == "groups":
            return self._grouped(maker, source, scope, where)
        kinds = [maker.kind() for _ in range(rng.randint(1, 4))]
        columns = [(maker.of(kind, scope), kind) for kind in kinds]
        if shape == "windows":
            columns += [self._window(maker, scope, unique) for _ in range(rng.randint(1, 2))]
        distinct = shape == "plain" and rng.random() < 0.2
        return Query(tuple(columns), source, where, distinct=distinct)

    def _grouped(self, maker: Expressions, source: str, scope: Scope, where: str) -> Query:
        rng = self.rng
        shallow = replace(scope, depth=1, sub=False)
        keys = []
        for _ in range(rng.choice((0, 1, 1, 2))):
            column = rng.choice(scope.columns)
            keys.append((column.text, PLAIN.get(column.kind, column.kind)))
            if rng.random() < 0.25:
                kind = rng.choice(("integer", "text", "date", "boolean"))
                keys[-1] = (f"coalesce({maker.of(kind, shallow)})", kind)
        aggregates = [self._aggregate(maker, shallow) for _ in range(rng.randint(1, 3))]
        having = ""
        if rng.random() < 0.3:
            having = f"count(*) {rng.choice(('>', '<=', '<>'))} {rng.randint(0, 3)}"
        names = [text for text, _ in keys]
        groups = ", ".join(names)
        if names and rng.random() < 0.2:
            groups = f"{rng.choice(('ROLLUP', 'CUBE'))} ({groups})"
        columns = (*keys, *aggregates)
        if names and rng.random() < 0.15:
            call = rng.choice(("rank()", "count(*)", "sum(count(*))"))
            over = rng.choice(("ORDER BY count(*)", "PARTITION BY count(*)"))
            kind = "numeric" if call.startswith("sum") else "bigint"
            columns += ((f"{call} OVER ({over})", kind),)
        return Query(columns, source, where, groups, having)

    def _aggregate(self, maker: Expressions, scope: Scope) -> tuple[str, str]:
        rng = self.rng
        number = rng.choice(("integer", "bigint", "numeric", "smallint"))
        kind = rng.choice(("integer", "text", "date", "numeric", "timestamp", "double precision"))
        text = maker.of("text", scope)
        call, result = rng.choice(
            (
                ("count(*)", "bigint"),
                (f"count({maker.of(kind, scope)})", "bigint"),
                (f"count(DISTINCT {maker.of(kind, scope)})", "bigint"),
                (f"sum({maker.of('integer', scope)})", "bigint"),
                (f"sum({maker.of('numeric', scope)})", "numeric"),
                (f"sum({maker.leaf('double precision', scope)})", "double precision"),
                (f"avg({maker.of(number, scope)})", "numeric"),
                (f"{rng.choice(('min', 'max'))}({maker.of(kind, scope)})", kind),
                (f"sum(DISTINCT {maker.of('integer', scope)})", "bigint"),
                (f"bool_or({maker.condition(scope)})", "boolean"),
                (f"bool_and({maker.condition(scope)})", "boolean"),
                (f"string_agg({text}, ',' ORDER BY {text})", "text"),
                (f"{rng.choice(('var_pop', 'stddev'))}({maker.leaf('integer', scope)})", "numeric"),
            )
        )
        if rng.random() < 0.2:
            call = f"{call} FILTER (WHERE {maker.condition(scope)})"
        return call, result

    def _window(self, maker: Expressions, scope: Scope, unique: list[str]) -> tuple[str, str]:
        """Of an order with ties only what all peers share."""
        rng = self.rng
        shallow = replace(scope, depth=1, sub=False)
        partition = ""
        if rng.random() < 0.6:
            partition = f"PARTITION BY {rng.choice(scope.columns).text}"
        by = rng.choice(scope.columns).text
        direction = rng.choice(("", " DESC", " NULLS FIRST"))
        shared = [
            ("rank()", "bigint"),
            ("dense_rank()", "bigint"),
            ("count(*)", "bigint"),
            (f"sum({maker.leaf('integer', shallow)})", "bigint"),
            (f"max({maker.leaf('text', shallow)})", "text"),
            ("cume_dist()", "double precision"),
        ]
        if not unique:
            call, kind = rng.choice(shared)
            return f"{call} OVER ({partition} ORDER BY {by}{direction})", kind
        order = ", ".join([by + direction, *unique])
        call, kind = rng.choice(
            (
                *shared,
                ("row_number()", "bigint"),
                (f"lag({maker.leaf('integer', shallow)})", "integer"),
                (f"lead({maker.leaf('text', shallow)}, 2)", "text"),
                (f"first_value({maker.leaf('date', shallow)})", "date"),
                ("ntile(3)", "integer"),
                (f"sum({maker.leaf('numeric', shallow)})", "numeric"),
                (f"min({maker.leaf('integer', shallow)})", "integer"),
            )
        )
        frame = ""
        if rng.random() < 0.4:
            low = rng.choice(("UNBOUNDED PRECEDING", "2 PRECEDING", "CURRENT ROW"))
            high = rng.choice(("CURRENT ROW", "1 FOLLOWING", "UNBOUNDED FOLLOWING"))
            frame = f" ROWS BETWEEN {low} AND {high}"
        return f"{call} OVER ({partition} ORDER BY {order}{frame})", kind

    # -- around it ----------------------------------------------------------------------------

    def _with(self, maker: Expressions, made: Query) -> Query:
        """The query over a CTE of itself."""
        names = [f"c{place}" for place in range(len(made.columns))]
        kept = self.rng.choice(("", "", "MATERIALIZED "))
        before = f"WITH w ({', '.join(names)}) AS {kept}({made})"
        columns = tuple(Column(f"x.{n}", k) for n, (_, k) in zip(names, made.columns))
        scope = Scope(columns, self.tables, 1)
        picked = tuple((one.text, one.kind) for one in columns)
        source = "w x"
        if self.rng.random() < 0.4:
            source = f"w x JOIN w y ON x.c0 = y.c0 AND {maker.condition(scope)}"
        return Query(picked, source, maker.condition(scope), before=before)

    def _set_operation(self, maker: Expressions, made: Query) -> Query:
        word = self.rng.choice(("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL"))
        source, scope, _ = self._source(maker, self.rng.choice((0, 0, 1)))
        columns = tuple((maker.of(kind, scope), kind) for _, kind in made.columns)
        other = Query(columns, source, maker.condition(scope))
        return replace(made, after=f"{word} {other}")

    def _ordered(self, made: Query) -> Query:
        rng = self.rng
        places = list(range(1, len(made.columns) + 1))
        rng.shuffle(places)
        ways = ("", "", " DESC", " NULLS FIRST", " DESC NULLS LAST")
        order = ", ".join(f"{place}{rng.choice(ways)}" for place in places)
        limit = ""
        if rng.random() < 0.4:
            limit = f"LIMIT {rng.randint(0, 6)}"
            limit += f" OFFSET {rng.randint(0, 3)}" if rng.random() < 0.4 else ""
        return replace(made, order=order, limit=limit)

    def _risky(self, maker: Expressions) -> Query:
        """What fails is evaluated for every row of one table, or for every row that is kept."""
        table = self.rng.choice(self.tables)
        alias = maker.alias()
        own = tuple(Column(f"{alias}.{name}", kind) for name, kind in table.columns)
        scope = Scope(own, self.tables, 1, sub=False)
        kind = {"cast": "integer", "overflow": self.rng.choice(("integer", "bigint", "smallint"))}
        wanted = kind.get(maker.hazard) or self.rng.choice(("integer", "numeric", "bigint"))
        made = maker.of(wanted, scope, risky=True)
        source = f"{table.name} {alias}"
        shape = self.rng.randrange(3)
        if shape == 0:
            return Query(((f"max({made})", wanted),), source)
        if shape == 1:
            return Query(((f"{alias}.id", "integer"),), source, f"{made} > 0")
        where = maker.condition(scope) if self.rng.random() < 0.5 else ""
        return Query(((made, wanted), (f"{alias}.id", "integer")), source, where)
