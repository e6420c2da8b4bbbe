"""Random typed expressions over the columns in scope.

Nothing here depends on the order of rows or of evaluation. What may fail (division by a column,
overflow, a cast of text) is made only for a query with that hazard, and only where `risky` allows
it: where each engine evaluates it for the same rows.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.properties.sql.schemas import Table
from tests.properties.sql.values import INTEGERS, PLAIN, constant, large

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
KINDS = (
    "integer",
    "integer",
    "bigint",
    "smallint",
    "numeric",
    "double precision",
    "text",
    "text",
    "boolean",
    "date",
    "timestamp",
    "real",
    "interval",
    "time",
)


@dataclass(frozen=True, slots=True)
class Column:
    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression may use. `sub` makes sub-queries; None where there are none."""

    columns: tuple[Column, ...]
    tables: tuple[Table, ...] = ()
    depth: int = 2
    sub: bool = True

    def deeper(self) -> Scope:
        return replace(self, depth=self.depth - 1)


class Expressions:
    """`hazard` is what may fail in this statement: division, overflow, cast, or nothing."""

    def __init__(self, rng: random.Random, hazard: str = "") -> None:
        self.rng = rng
        self.hazard = hazard
        self.aliases = 0

    def alias(self) -> str:
        self.aliases += 1
        return f"s{self.aliases}"

    def kind(self) -> str:
        return self.rng.choice(KINDS)

    def of(self, kind: str, scope: Scope, *, risky: bool = False) -> str:
        """An expression of the type."""
        rng = self.rng
        if risky and self.hazard and rng.random() < 0.7:
            made = self._hazard(kind, scope)
            if made is not None:
                return made
        if scope.depth <= 0 or rng.random() < 0.35:
            return self.leaf(kind, scope)
        if rng.random() < 0.2:
            return self._common(kind, scope)
        made = {
            "boolean": self.condition,
            "text": self._text,
            "date": self._date,
            "timestamp": self._timestamp,
            "numeric": self._numeric,
            "double precision": self._float,
            "interval": self._interval,
            "time": self._time,
            "real": self._real,
        }.get(kind)
        if made is not None:
            return made(scope)
        if kind in INTEGERS:
            return self._integer(kind, scope)
        return self.leaf(kind, scope)

    def leaf(self, kind: str, scope: Scope) -> str:
        fitting = [one.text for one in scope.columns if PLAIN.get(one.kind, one.kind) == kind]
        if fitting and self.rng.random() < 0.8:
            return self.rng.choice(fitting)
        return constant(self.rng, kind)

    def _common(self, kind: str, scope: Scope) -> str:
        """What every type has."""
        inner = scope.deeper()
        one, two = self.of(kind, inner), self.of(kind, inner)
        shape = self.rng.randrange(6)
        if shape == 0:
            return f"coalesce({one}, {two})"
        if shape == 1:
            return f"nullif({one}, {two})"
        if shape == 2 and kind != "boolean":
            return f"{self.rng.choice(('greatest', 'least'))}({one}, {two})"
        if shape == 3 and scope.sub and scope.tables:
            return self._scalar_subquery(kind, scope) or one
        if shape == 4:
            tested = self.of("integer", inner)
            return f"CASE {tested} WHEN {self.leaf('integer', inner)} THEN {one} ELSE {two} END"
        return f"CASE WHEN {self.condition(inner)} THEN {one} ELSE {two} END"

    # -- numbers ------------------------------------------------------------------------------

    def _integer(self, kind: str, scope: Scope) -> str:
        rng, inner = self.rng, scope.deeper()
        one = self.of(kind, inner)
        shapes: list[Callable[[], str]] = [
            lambda: f"({one} + {self.leaf(kind, inner)})",
            lambda: f"({one} - {self.leaf(kind, inner)})",
            lambda: f"abs({one})",
            lambda: f"(- {one})",
            lambda: f"({one} / ({rng.choice((2, 3, -4))})::{kind})",
            lambda: f"({one} % ({rng.choice((2, 3, -4))})::{kind})",
        ]
        if kind == "integer":
            shapes += [
                lambda: f"({self.leaf(kind, inner)} * {self.leaf(kind, inner)})",
                lambda: f"length({self.of('text', inner)})",
                lambda: f"position({constant(rng, 'text', 0)} IN {self.of('text', inner)})",
                lambda: f"({self.of('date', inner)} - {self.of('date', inner)})",
                lambda: f"({self.of('boolean', inner)})::integer",
                lambda: f"({self.of('numeric', inner)})::integer",
                lambda: f"({self.of('smallint', inner)} + {self.leaf('integer', inner)})",
                lambda: f"sign({self.of('double precision', inner)})::integer",
                lambda: (
                    f"extract({rng.choice(('year', 'month', 'day', 'dow', 'week', 'quarter'))} "
                    f"FROM {self.of(rng.choice(('date', 'timestamp')), inner)})::integer"
                ),
                lambda: f"cardinality(ARRAY[{one}, {self.leaf(kind, inner)}])",
                lambda: f"(ARRAY[{one}, {self.leaf(kind, inner)}])[{rng.randint(0, 3)}]",
                lambda: f"(({one}) & {self.leaf(kind, inner)})",
                lambda: f"ascii({self.of('text', inner)})",
            ]
        if kind == "bigint":
            shapes += [
                lambda: f"({self.of('integer', inner)})::bigint",
                lambda: f"({one} + {self.leaf('integer', inner)})",
                lambda: f"round({self.of('double precision', inner)})::bigint",
            ]
        return rng.choice(shapes)()

    def _numeric(self, scope: Scope) -> str:
        rng, inner = self.rng, scope.deeper()
        one, leaf = self.of("numeric", inner), self.leaf("numeric", inner)
        integer = self.of("integer", inner)
        return rng.choice(
            (
                f"({one} + {leaf})",
                f"({one} - {integer})",
                f"({self.leaf('numeric', inner)} * {leaf})",
                f"({one} / {rng.choice(('3', '7.5', '(-0.25)', '1000'))})",
                f"({one} % 3)",
                f"round({one}, {rng.choice((0, 1, 2))})",
                f"{rng.choice(('floor', 'ceil', 'trunc', 'abs', 'round'))}({one})",
                f"({integer})::numeric",
                f"({integer} / 2.0)",
                f"extract(epoch FROM {self.of('timestamp', inner)})",
                f"extract(day FROM {self.of('interval', inner)})",
                f"({self.leaf('double precision', inner)})::numeric",
                f"(({one})::text)::numeric",
                f"sqrt(abs({one}))",
                f"power({leaf}, 2)",
                f"({one})::numeric(12,3)",
                f"(- {one})",
            )
        )

    def _float(self, scope: Scope) -> str:
        rng, inner = self.rng, scope.deeper()
        one = self.of("double precision", inner)
        leaf = self.leaf("double precision", inner)
        return rng.choice(
            (
                f"({one} + {leaf})",
                f"({one} - {self.of('integer', inner)})",
                f"({leaf} * 0.5::double precision)",
                f"({one} / 4)",
                f"abs({one})",
                f"{rng.choice(('floor', 'ceil', 'round', 'trunc'))}({one})",
                f"({self.of('integer', inner)})::double precision",
                f"(- {one})",
            )
        )

    # -- text and time ------------------------------------------------------------------------

    def _text(self, scope: Scope) -> str:
        rng, inner = self.rng, scope.deeper()
        one = self.of("text", inner)
        other = self.of(rng.choice(("text", "integer", "numeric", "boolean", "date")), inner)
        return rng.choice(
            (
                f"({one} || {self.leaf('text', inner)})",
                f"({one} || {other})",
                f"{rng.choice(('upper', 'lower', 'trim', 'ltrim', 'rtrim', 'reverse', 'initcap'))}"
                f"({one})",
                f"substr({one}, {rng.randint(-1, 3)}, {rng.randint(0, 3)})",
                f"{rng.choice(('left', 'right'))}({one}, {rng.randint(-2, 3)})",
                f"replace({one}, {constant(rng, 'text', 0)}, {constant(rng, 'text', 0)})",
                f"lpad({one}, {rng.randint(0, 5)}, '*')",
                f"({other})::text",
                f"concat({one}, {other})",
                f"({one})::varchar(2)::text",
                f"({one})::char(4)::text",
                f"split_part({one}, 'a', {rng.choice((1, 2, -1))})",
                f"regexp_replace({one}, '{rng.choice(('[ab]', '^.', 'a*', '(a)(b)'))}', 'x', 'g')",
                f"to_char({self.of('date', inner)}, 'YYYY-MM-DD Dy')",
                f"to_char({self.of('integer', inner)}, 'FM999')",
                f"array_to_string(ARRAY[{one}, {self.leaf('text', inner)}], '-', '?')",
                f"md5({one})",
                f"translate({one}, 'ab', 'x')",
                f"repeat({one}, 2)",
                f"concat_ws('/', {one}, {other})",
                f"format('%s|%s', {one}, {other})",
                f"overlay({one} placing 'Z' from 1)",
                f"btrim({one}, 'a ')",
            )
        )

    def _date(self, scope: Scope) -> str:
        rng, inner = self.rng, scope.deeper()
        one = self.of("date", inner)
        return rng.choice(
            (
                f"({one} + {self.leaf('integer', inner)})",
                f"({one} - {rng.randint(0, 40)})",
                f"({self.of('timestamp', inner)})::date",
            )
        )

    def _timestamp(self, scope: Scope) -> str:
        rng, inner = self.rng, scope.deeper()
        one = self.of("timestamp", inner)
        unit = rng.choice(("year", "month", "day", "hour", "week", "quarter"))
        return rng.choice(
            (
                f"({one} + {constant(rng, 'interval')})",
                f"date_trunc('{unit}', {one})",
                f"({self.of('date', inner)})::timestamp",
                f"({self.of('date', inner)} - {constant(rng, 'interval')})",
            )
        )

    def _interval(self, scope: Scope) -> str:
        inner = scope.deeper()
        one = self.of("interval", inner)
        return self.rng.choice(
            (
                f"({self.of('timestamp', inner)} - {self.of('timestamp', inner)})",
                f"({one} + {self.leaf('interval', inner)})",
                f"({one} * {self.rng.choice(('2', '(-1)', '0.5'))})",
                f"(- {one})",
                f"({self.of('time', inner)} - {self.of('time', inner)})",
                f"justify_days({one})",
                f"age({self.of('timestamp', inner)}, {self.of('timestamp', inner)})",
            )
        )

    def _time(self, scope: Scope) -> str:
        inner = scope.deeper()
        return self.rng.choice(
            (
                f"({self.of('timestamp', inner)})::time",
                f"({self.of('time', inner)} + {constant(self.rng, 'interval')})",
            )
        )

    def _real(self, scope: Scope) -> str:
        inner = scope.deeper()
        one = self.of("real", inner)
        return self.rng.choice(
            (
                f"({one} + {self.leaf('real', inner)})",
                f"({one} / 2::real)",
                f"({self.of('double precision', inner)})::real",
                f"abs({one})",
                f"({self.leaf('numeric', inner)})::real",
            )
        )

    # -- conditions ---------------------------------------------------------------------------

    def condition(self, scope: Scope) -> str:
        rng, inner = self.rng, scope.deeper()
        if scope.depth <= 0:
            return self.leaf("boolean", scope)
        kind = self.kind()
        one = self.of(kind, inner)
        shapes: list[Callable[[], str]] = [
            lambda: f"({one} {rng.choice(COMPARISONS)} {self.of(kind, inner)})",
            lambda: f"({one} {rng.choice(COMPARISONS)} {self.leaf(kind, inner)})",
            lambda: f"({self.condition(inner)} AND {self.condition(inner)})",
            lambda: f"({self.condition(inner)} OR {self.condition(inner)})",
            lambda: f"(NOT {self.condition(inner)})",
            lambda: f"({one} IS {rng.choice(('', 'NOT '))}NULL)",
            lambda: f"({one} IS {rng.choice(('', 'NOT '))}DISTINCT FROM {self.leaf(kind, inner)})",
            lambda: f"({one} {rng.choice(('', 'NOT '))}IN ({self._items(kind, inner)}))",
            lambda: (
                f"({one} {rng.choice(('', 'NOT '))}BETWEEN {self.leaf(kind, inner)}"
                f" AND {self.leaf(kind, inner)})"
            ),
            lambda: (
                f"({self.of('text', inner)} {rng.choice(('', 'NOT '))}"
                f"{rng.choice(('LIKE', 'ILIKE'))} "
                f"'{rng.choice(('a%', '%b', '_', '%', '', 'A_', '%a%', '1%'))}')"
            ),
            lambda: (
                f"(({self.condition(inner)}) IS {rng.choice(('', 'NOT '))}"
                f"{rng.choice(('TRUE', 'FALSE', 'UNKNOWN'))})"
            ),
            lambda: f"({self.of('integer', inner)} < {self.of('numeric', inner)})",
            lambda: f"({one} = ANY (ARRAY[{self._items(kind, inner)}]))",
            lambda: (
                f"(({one}, {self.leaf('integer', inner)}) {rng.choice(COMPARISONS)} "
                f"({self.leaf(kind, inner)}, {self.leaf('integer', inner)}))"
            ),
            lambda: f"({self.of('date', inner)} < {self.of('timestamp', inner)})",
            lambda: (
                f"({self.of('text', inner)} ~ '{rng.choice(('^a', 'b$', '[0-9]', '.', 'A|z'))}')"
            ),
            lambda: f"({self.leaf('real', inner)} = {self.leaf('double precision', inner)})",
            lambda: f"starts_with({self.of('text', inner)}, 'a')",
        ]
        if scope.sub and scope.tables:
            shapes += [lambda: self._in_subquery(inner), lambda: self._exists(inner)]
        return rng.choice(shapes)()

    def _items(self, kind: str, scope: Scope) -> str:
        return ", ".join(self.leaf(kind, scope) for _ in range(self.rng.randint(1, 4)))

    # -- sub-queries --------------------------------------------------------------------------

    def _inside(self, scope: Scope) -> tuple[str, Table, Scope, Scope]:
        """A table under a new alias, the scope of it alone, and the one that sees outside too."""
        table = self.rng.choice(scope.tables)
        alias = self.alias()
        own = tuple(Column(f"{alias}.{name}", kind) for name, kind in table.columns)
        alone = Scope(own, scope.tables, min(scope.depth, 1), sub=False)
        return alias, table, alone, replace(alone, columns=own + scope.columns)

    def _scalar_subquery(self, kind: str, scope: Scope) -> str | None:
        alias, table, alone, both = self._inside(scope)
        if kind in ("smallint", "boolean", "interval"):
            return None
        if kind == "bigint":
            made = f"count({self.rng.choice(('*', self.leaf('text', alone)))})"
        else:
            made = f"{self.rng.choice(('min', 'max'))}({self.of(kind, alone)})"
        where = self.condition(both if self.rng.random() < 0.6 else alone)
        return f"(SELECT {made} FROM {table.name} {alias} WHERE {where})"

    def _in_subquery(self, scope: Scope) -> str:
        alias, table, alone, both = self._inside(scope)
        kind = self.rng.choice(("integer", "integer", "text", "date", "numeric"))
        one, two = self.of(kind, scope.deeper()), self.leaf(kind, alone)
        where = self.condition(both if self.rng.random() < 0.4 else alone)
        word = self.rng.choice(("IN", "NOT IN", "= ANY", "< ALL", ">= ANY"))
        return f"({one} {word} (SELECT {two} FROM {table.name} {alias} WHERE {where}))"

    def _exists(self, scope: Scope) -> str:
        alias, table, _, both = self._inside(scope)
        where = self.condition(both)
        outside = [one for one in scope.columns if one.kind == "integer"]
        if outside and self.rng.random() < 0.7:
            equal = f"{alias}.id = {self.rng.choice(outside).text}"
            where = equal if self.rng.random() < 0.5 else f"{equal} AND {where}"
        negated = self.rng.choice(("", "NOT "))
        return f"({negated}EXISTS (SELECT 1 FROM {table.name} {alias} WHERE {where}))"

    # -- what fails ---------------------------------------------------------------------------

    def _hazard(self, kind: str, scope: Scope) -> str | None:
        leaf = self.leaf
        match self.hazard:
            case "division" if kind in (*INTEGERS, "numeric", "double precision"):
                sign = self.rng.choice("/%" if kind in INTEGERS else "/")
                return f"({leaf(kind, scope)} {sign} {leaf(kind, scope)})"
            case "overflow" if kind in INTEGERS:
                sign = self.rng.choice("+-*")
                return f"({leaf(kind, scope)} {sign} {large(self.rng, kind)})"
            case "cast" if kind == "integer":
                return f"({leaf('text', scope)})::integer"
        return None
