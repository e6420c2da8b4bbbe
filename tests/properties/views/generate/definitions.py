"""Random view definitions as SQL text, over every operator.

A query is made of text with marks for float sums: `{sum:x}` and `{avg:x}` become `sum(x)` in the
view's definition, and `array_agg(x)` in the query it is compared with, whose sums the test then
makes exactly. Such columns are seen by no further operator.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.properties.views.generate.schemas import Column, Table
from tests.properties.views.workloads.corpus import typed_literal

INTEGERS = ("smallint", "int", "bigint")
NUMBERS = (*INTEGERS, "numeric", "numeric(12,2)")
FLOATS = ("real", "double precision")
TEXTS = ("text", "varchar(8)", "char(4)")
FAMILIES = (NUMBERS, FLOATS, TEXTS)
_MARK = re.compile(r"\{(sum|avg):([^}]*)\}")


@dataclass(frozen=True, slots=True)
class Query:
    """`weight` is about how many base tables are multiplied in it."""

    text: str
    columns: tuple[Column, ...]
    weight: int = 1

    @property
    def plain(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.kind == "plain")


@dataclass(frozen=True, slots=True)
class Definition:
    """`text` may name earlier views; `query` has them written out and is what it is compared
    with."""

    name: str
    text: str
    query: str
    columns: tuple[Column, ...]
    weight: int


def sums(text: str) -> str:
    """The text as a view has it."""
    return _MARK.sub(r"\1(\2)", text)


def arrays(text: str) -> str:
    """The text with the summands instead of float sums."""
    return _MARK.sub(r"array_agg(\2)", text)


@dataclass(frozen=True, slots=True)
class Source:
    """Something in FROM. `text` with views by name, `expanded` with their queries."""

    text: str
    expanded: str
    columns: tuple[Column, ...]
    weight: int


Shape = Callable[["Generator"], tuple[Query, str]]
"""A query with views by name, and its text with them written out."""


class Generator:
    def __init__(
        self,
        rng: random.Random,
        tables: Sequence[Table],
        shapes: Sequence[Shape] = (),
        share: float = 0.5,
    ) -> None:
        """`shapes` are drawn in this share of the cases, if there are any."""
        self.rng = rng
        self.tables = tables
        self._more = shapes
        self._share = share
        self.views: list[Definition] = []
        self._aliases = 0

    def definition(self, name: str) -> Definition:
        """One more view; it may stand on the earlier ones."""
        rng = self.rng
        while True:
            more = self._more and rng.random() < self._share
            made = rng.choice(self._more if more else self._SHAPES)(self)
            if made[0].weight <= 4:
                break
        query, expanded = made
        found = Definition(name, query.text, expanded, query.columns, query.weight)
        self.views.append(found)
        return found

    # -- sources ------------------------------------------------------------------------------

    def alias(self) -> str:
        self._aliases += 1
        return f"s{self._aliases}"

    def one(self, depth: int = 0) -> Source:
        """A table, an earlier view or a derived table, under a name of its own."""
        rng, alias = self.rng, self.alias()
        drawn = rng.random()
        if self.views and drawn < 0.3:
            view = rng.choice(self.views)
            columns = [c for c in view.columns if c.kind == "plain"]
            if columns:
                here = tuple(replace(c, name=f"{alias}.{c.name}") for c in columns)
                inside = f"({arrays(view.query)}) {alias}"
                return Source(f"{view.name} {alias}", inside, here, view.weight)
        if depth < 2 and drawn < 0.45:
            query, expanded = rng.choice(self._DERIVED)(self)
            if query.plain and query.weight <= 2:
                here = tuple(replace(c, name=f"{alias}.{c.name}") for c in query.plain)
                text = f"({sums(query.text)}) {alias}"
                return Source(text, f"({arrays(expanded)}) {alias}", here, query.weight)
        table = rng.choice(self.tables)
        here = tuple(Column(f"{alias}.{c.name}", c.type) for c in table.columns)
        return Source(f"{table.name} {alias}", f"{table.name} {alias}", here, 1)

    def source(self, depth: int = 0) -> Source:
        """One source, or a join of up to four."""
        rng = self.rng
        source = self.one(depth)
        for _ in range(rng.choice((0, 0, 0, 1, 1, 1, 2, 3))):
            other = self.one(depth + 1)
            if source.weight + other.weight > 4:
                break
            source = self._joined(source, other)
        return source

    def _joined(self, left: Source, right: Source) -> Source:
        rng = self.rng
        columns = left.columns + right.columns
        weight = left.weight + right.weight
        condition = self._join_condition(left, right)
        if condition is None:
            if weight > 2:
                return left
            kind, on = "CROSS", ""
        else:
            kinds = ("INNER", "INNER", "LEFT", "RIGHT", "FULL")
            kind, on = rng.choice(kinds), f" ON {condition}"
            if kind == "FULL" and ("<" in condition or " OR " in condition):
                kind = "LEFT"  # PostgreSQL merges or hashes full joins, so they must be equijoins
        texts = [
            f"{a} {kind} JOIN {b}{on}"
            for a, b in ((left.text, right.text), (left.expanded, right.expanded))
        ]
        return Source(texts[0], texts[1], columns, weight)

    def _join_condition(self, left: Source, right: Source) -> str | None:
        rng = self.rng
        pairs = [
            (a, b)
            for a in left.columns
            for b in right.columns
            if a.type == b.type or {a.type, b.type} <= set(NUMBERS)
        ]
        likely = [
            p for p in pairs if p[0].name[-2:] in (".j", ".g") and p[1].name[-2:] == p[0].name[-2:]
        ]
        if not pairs or rng.random() < 0.05:
            return None
        a, b = rng.choice(likely if likely and rng.random() < 0.7 else pairs)
        parts = [f"{a.name} = {b.name}"]
        if left.weight + right.weight <= 2 and rng.random() < 0.1:
            parts = [f"{a.name} < {b.name}"]
        if rng.random() < 0.25:
            a, b = rng.choice(pairs)
            parts.append(f"{a.name} {rng.choice(('<', '<=', '<>', '='))} {b.name}")
        elif rng.random() < 0.15:
            parts.append(self.condition((*left.columns, *right.columns)))
        return " AND ".join(parts)

    # -- expressions --------------------------------------------------------------------------

    def condition(self, columns: Sequence[Column]) -> str:
        rng = self.rng
        one = rng.choice(columns)
        drawn = rng.random()
        if drawn < 0.15:
            return f"{one.name} IS {rng.choice(('', 'NOT '))}NULL"
        if drawn < 0.25:
            items = ", ".join(typed_literal(rng, one.type) for _ in range(3))
            return f"{one.name} {rng.choice(('', 'NOT '))}IN ({items})"
        if drawn < 0.35:
            both = f"{self._simple(one)} OR {self._simple(rng.choice(columns))}"
            return f"({both})"
        if drawn < 0.42:
            return f"NOT ({self._simple(one)})"
        return self._simple(one)

    def _simple(self, column: Column) -> str:
        operator = self.rng.choice(("=", "<>", "<", "<=", ">", ">="))
        return f"{column.name} {operator} {typed_literal(self.rng, column.type)}"

    def where(self, source: Source, share: float = 0.5) -> tuple[str, str]:
        """A WHERE clause, by name and expanded; sometimes with a sub-query."""
        rng = self.rng
        if rng.random() > share:
            return "", ""
        parts = [(condition, condition) for condition in [self.condition(source.columns)]]
        if rng.random() < 0.35 and source.weight <= 2:
            parts.append(self._subquery_condition(source))
        return tuple(" WHERE " + " AND ".join(p[i] for p in parts) for i in (0, 1))  # type: ignore

    def _subquery_condition(self, source: Source) -> tuple[str, str]:
        rng = self.rng
        table, alias = rng.choice(self.tables), self.alias()
        inner = [Column(f"{alias}.{c.name}", c.type) for c in table.columns]
        pairs = [
            (a, b)
            for a in source.columns
            for b in inner
            if a.type == b.type or {a.type, b.type} <= set(NUMBERS)
        ]
        if not pairs:
            text = f"EXISTS (SELECT 1 FROM {table.name} {alias} WHERE {self.condition(inner)})"
            return text, text
        a, b = rng.choice(pairs)
        more = f" AND {self.condition(inner)}" if rng.random() < 0.4 else ""
        only = f" WHERE {self.condition(inner)}" if rng.random() < 0.4 else ""
        others = [c for c in inner if c.type in NUMBERS]
        correlated = f"FROM {table.name} {alias} WHERE {b.name} = {a.name}{more}"
        forms = [
            f"{a.name} IN (SELECT {b.name} FROM {table.name} {alias}{only})",
            f"{a.name} NOT IN (SELECT {b.name} FROM {table.name} {alias}{only})",
            f"EXISTS (SELECT 1 {correlated})",
            f"NOT EXISTS (SELECT 1 {correlated})",
            f"(EXISTS (SELECT 1 {correlated}) OR {self.condition(source.columns)})",
            f"(SELECT count(*) {correlated}) {rng.choice(('=', '>', '<>'))} 1",
        ]
        numbers = [c for c in source.columns if c.type in NUMBERS]
        if others and numbers:
            value, number = rng.choice(others), rng.choice(numbers)
            forms.append(f"{number.name} >= (SELECT max({value.name}) {correlated})")
            forms.append(
                f"{number.name} >= (SELECT avg({value.name}) FROM {table.name} {alias}{only})"
            )
        text = rng.choice(forms)
        return text, text

    def _expression(self, columns: Sequence[Column]) -> tuple[str, str]:
        """(text, type) of a value."""
        rng = self.rng
        one = rng.choice(columns)
        drawn = rng.random()
        if drawn < 0.6:
            return one.name, one.type
        if drawn < 0.7:
            return f"coalesce({one.name}, {typed_literal(rng, one.type)})", one.type
        if drawn < 0.8:
            condition = self.condition(columns)
            return f"CASE WHEN {condition} THEN {one.name} END", one.type
        if one.type in INTEGERS:
            return f"({one.name}::numeric + 1)", "numeric"
        if one.type in ("text", "varchar(8)"):
            return f"upper({one.name})", "text"
        if one.type in ("numeric", "double precision", "real") and ".c" in one.name:
            return f"{one.name}::text", "text"  # equal values that look different stay apart
        return f"({one.name} IS NULL)", "boolean"

    def _columns(self, columns: Sequence[Column], count: int) -> list[tuple[str, Column]]:
        made = []
        for number in range(count):
            text, type_ = self._expression(columns)
            made.append((text, Column(f"x{number}", type_)))
        return made

    # -- shapes -------------------------------------------------------------------------------

    def _select(self, distinct: str = "") -> tuple[Query, str]:
        rng = self.rng
        source = self.source()
        chosen = self._columns(source.columns, rng.randrange(1, 5))
        listed = ", ".join(f"{text} AS {c.name}" for text, c in chosen)
        wheres = self.where(source)
        columns = tuple(c for _, c in chosen)
        head = f"SELECT {distinct}{listed} FROM "
        query = Query(f"{head}{source.text}{wheres[0]}", columns, source.weight)
        return query, f"{head}{source.expanded}{wheres[1]}"

    def _distinct(self) -> tuple[Query, str]:
        return self._select("DISTINCT ")

    def _grouped(self) -> tuple[Query, str]:
        rng = self.rng
        source = self.source()
        keys = self.keys(source)
        calls = self._calls(source, rng.randrange(1, 4))
        listed = [f"{text} AS {c.name}" for text, c in keys + calls]
        group = f" GROUP BY {', '.join(text for text, _ in keys)}" if keys else ""
        if keys and rng.random() < 0.15:
            sets = ", ".join(text for text, _ in keys)
            group = f" GROUP BY {rng.choice(('ROLLUP', 'CUBE'))} ({sets})"
            if rng.random() < 0.4:
                each = ", ".join(f"({text})" for text, _ in keys)
                group = f" GROUP BY GROUPING SETS ({each}, (), ({sets}))"
        having = f" HAVING {self._having(source)}" if rng.random() < 0.25 else ""
        wheres = self.where(source, 0.4)
        head = f"SELECT {', '.join(listed)} FROM "
        columns = tuple(c for _, c in keys + calls)
        query = Query(f"{head}{source.text}{wheres[0]}{group}{having}", columns, source.weight)
        return query, f"{head}{source.expanded}{wheres[1]}{group}{having}"

    def keys(self, source: Source) -> list[tuple[str, Column]]:
        rng = self.rng
        count = min(rng.choice((0, 1, 1, 1, 2, 2, 3, 4)), len(source.columns))
        keys = []
        for number, column in enumerate(rng.sample(source.columns, count)):
            text = column.name
            if column.type in INTEGERS and rng.random() < 0.15:
                text = f"({column.name} > 1)"
                keys.append((text, Column(f"k{number}", "boolean")))
            else:
                keys.append((text, Column(f"k{number}", column.type)))
        return keys

    def _calls(self, source: Source, count: int) -> list[tuple[str, Column]]:
        return [self._call(source, f"a{number}") for number in range(count)]

    def _call(self, source: Source, name: str) -> tuple[str, Column]:
        rng = self.rng
        one = rng.choice(source.columns)
        keep = f" FILTER (WHERE {self.condition(source.columns)})" if rng.random() < 0.15 else ""
        linear: list[tuple[str, str, str]] = [("count(*)", "bigint", "plain")]
        linear.append((f"count({one.name})", "bigint", "plain"))
        if one.type in NUMBERS:
            total = "bigint" if one.type in ("smallint", "int") else "numeric"
            linear.append((f"sum({one.name})", total, "plain"))
            linear.append((f"avg({one.name})", "numeric", "plain"))
        if one.type in FLOATS:
            narrow = one.type == "real"
            linear.append((f"{{sum:{one.name}{{}}}}", one.type, "real sum" if narrow else "sum"))
            linear.append((f"{{avg:{one.name}{{}}}}", "double precision", "avg"))
        others = [(f"count(DISTINCT {one.name})", "bigint", "plain")]
        if one.type not in ("boolean", "uuid", "bytea"):
            others.append((f"min({one.name})", one.type, "plain"))
            others.append((f"max({one.name})", one.type, "plain"))
        if one.type == "boolean":
            others.append((f"bool_or({one.name})", "boolean", "plain"))
        if one.type in ("text", "varchar(8)"):
            others.append((f"string_agg({one.name}, ',' ORDER BY {one.name})", "text", "plain"))
        if one.type in NUMBERS and one.type != "numeric":
            others.append((f"variance({one.name})", "numeric", "plain"))
            others.append((f"stddev_pop({one.name})", "numeric", "plain"))
            others.append((f"sum(DISTINCT {one.name})", "numeric", "plain"))
        text, type_, kind = rng.choice(linear + linear + others)
        if (
            "{}" in text
        ):  # a float sum: FILTER is inside the mark's CASE, so that both forms have it
            value = one.name
            if keep:
                value = f"CASE WHEN {keep[len(' FILTER (WHERE ') : -1]} THEN {one.name} END"
            text, keep = text.replace(f"{one.name}{{}}", value), ""
        return f"{text}{keep}", Column(name, type_, kind)

    def _having(self, source: Source) -> str:
        rng = self.rng
        one = rng.choice(source.columns)
        return rng.choice(
            ("count(*) > 1", "count(*) <= 2", f"count({one.name}) > 0", f"count({one.name}) <> 2")
        )

    def _set_operation(self) -> tuple[Query, str]:
        rng = self.rng
        left, right = self.one(), self.one()
        families = [(a, b) for a in left.columns for b in right.columns if a.type == b.type]
        if not families:
            return self._select()
        chosen = [rng.choice(families) for _ in range(rng.randrange(1, 3))]
        kind = rng.choice(
            ("UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL")
        )
        columns = tuple(Column(f"x{i}", a.type) for i, (a, _) in enumerate(chosen))
        first = ", ".join(f"{a.name} AS x{i}" for i, (a, _) in enumerate(chosen))
        second = ", ".join(b.name for _, b in chosen)
        wheres = self.where(left, 0.3), self.where(right, 0.3)
        texts = [
            f"SELECT {first} FROM {(left.text, left.expanded)[i]}{wheres[0][i]} {kind} "
            f"SELECT {second} FROM {(right.text, right.expanded)[i]}{wheres[1][i]}"
            for i in (0, 1)
        ]
        return Query(texts[0], columns, max(left.weight, right.weight)), texts[1]

    def _top(self) -> tuple[Query, str]:
        """Ordered by everything in the end, so that only equal rows tie."""
        rng = self.rng
        source = self.source()
        count = min(len(source.columns), rng.randrange(1, 4))
        chosen = rng.sample(source.columns, count)
        listed = ", ".join(f"{c.name} AS x{i}" for i, c in enumerate(chosen))
        columns = tuple(Column(f"x{i}", c.type) for i, c in enumerate(chosen))
        numbers = rng.sample(range(1, count + 1), count)
        ways = ("", " DESC", " DESC NULLS LAST", " NULLS FIRST")
        order = ", ".join(f"{number}{rng.choice(ways)}" for number in numbers)
        limit = f" LIMIT {rng.choice((0, 1, 2, 3, 5))}"
        offset = f" OFFSET {rng.randrange(4)}" if rng.random() < 0.3 else ""
        if rng.random() < 0.2:
            limit, offset = f" FETCH FIRST {rng.randrange(1, 4)} ROWS WITH TIES", ""
            order = order.split(", ")[0]
        wheres = self.where(source, 0.3)
        tail = f" ORDER BY {order}{limit}{offset}"
        query = Query(
            f"SELECT {listed} FROM {source.text}{wheres[0]}{tail}", columns, source.weight
        )
        return query, f"SELECT {listed} FROM {source.expanded}{wheres[1]}{tail}"

    def _distinct_on(self) -> tuple[Query, str]:
        rng = self.rng
        source = self.source()
        count = min(len(source.columns), rng.randrange(2, 4))
        chosen = rng.sample(source.columns, count)
        listed = ", ".join(f"{c.name} AS x{i}" for i, c in enumerate(chosen))
        columns = tuple(Column(f"x{i}", c.type) for i, c in enumerate(chosen))
        head = f"SELECT DISTINCT ON ({chosen[0].name}) {listed} FROM "
        order = f" ORDER BY {', '.join(c.name for c in chosen)}"
        return Query(f"{head}{source.text}{order}", columns, source.weight), (
            f"{head}{source.expanded}{order}"
        )

    def _window(self) -> tuple[Query, str]:
        rng = self.rng
        source = self.one()
        names = [c.name for c in source.columns]
        partition = rng.choice(names)
        order = ", ".join(rng.sample(names, len(names)))
        number = rng.choice([c for c in source.columns if c.type in NUMBERS] or [source.columns[0]])
        calls = [
            ("row_number() OVER w", "bigint"),
            ("rank() OVER w", "bigint"),
            ("dense_rank() OVER w", "bigint"),
            (f"lag({number.name}) OVER w", number.type),
            (f"lead({number.name}, 2) OVER w", number.type),
            (f"first_value({number.name}) OVER w", number.type),
            ("count(*) OVER w", "bigint"),
            (f"count(*) OVER (PARTITION BY {partition})", "bigint"),
            ("ntile(2) OVER w", "int"),
        ]
        if number.type in NUMBERS:
            calls.append((f"sum({number.name}) OVER w", "numeric"))
            calls.append((f"max({number.name}) OVER (w ROWS 1 PRECEDING)", number.type))
        chosen = rng.sample(calls, 2)
        kept = rng.sample(source.columns, min(2, len(source.columns)))
        items = [(c.name, c.type) for c in kept] + chosen
        listed = ", ".join(f"{text} AS x{i}" for i, (text, _) in enumerate(items))
        columns = tuple(Column(f"x{i}", type_) for i, (_, type_) in enumerate(items))
        by = f"PARTITION BY {partition} " if rng.random() < 0.8 else ""
        tail = f" WINDOW w AS ({by}ORDER BY {order})"
        wheres = self.where(source, 0.3)
        return (
            Query(f"SELECT {listed} FROM {source.text}{wheres[0]}{tail}", columns, source.weight),
            f"SELECT {listed} FROM {source.expanded}{wheres[1]}{tail}",
        )

    _DERIVED = (_select, _grouped, _grouped, _set_operation, _distinct, _top)
    _SHAPES = (
        _select,
        _select,
        _distinct,
        _grouped,
        _grouped,
        _grouped,
        _grouped,
        _set_operation,
        _top,
        _distinct_on,
        _window,
    )
