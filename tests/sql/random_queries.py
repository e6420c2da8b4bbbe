"""Random queries over three small tables full of NULLs: what an optimizer can get wrong.

Every query is valid for PostgreSQL and deterministic as a bag of rows. The same seed gives the same
queries.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

SETUP = """
create table t (id int primary key, a int, b int, s text, d numeric(8,2));
create table u (k int, l int, a int, s text, primary key (k, l));
create table v (a int, s text, f boolean);
create index t_a on t (a, b) include (s);
create index t_s on t (s);
create unique index u_a on u (a, l, k);
create index t_part on t (b) where a > 2
"""
TEXTS = ("x", "y", "zz", "", "Xy")


def rows(rng: random.Random) -> list[str]:
    """INSERT statements that fill the tables."""

    def number() -> str:
        return "null" if rng.random() < 0.2 else str(rng.randint(-1, 5))

    def text() -> str:
        return "null" if rng.random() < 0.2 else f"'{rng.choice(TEXTS)}'"

    def decimal() -> str:
        return "null" if rng.random() < 0.2 else f"{rng.randint(-200, 900) / 100:.2f}"

    def truth() -> str:
        return rng.choice(("true", "false", "null"))

    made = [
        f"insert into t values ({i}, {number()}, {number()}, {text()}, {decimal()})"
        for i in range(1, 13)
    ]
    made += [
        f"insert into u values ({k}, {m}, {number()}, {text()})"
        for k in range(1, 5)
        for m in range(1, 4)
    ]
    return made + [f"insert into v values ({number()}, {text()}, {truth()})" for _ in range(9)]


# What random queries reach too seldom: each access path, orders by key, shapes of sub-queries.
CHOSEN = (
    "select * from t where id in (1, 3, 3, null)",
    "select * from t where id = any (array[2, 4, null, 2])",
    "select * from u where k in (1, 2) and l = 2",
    "select * from u where k = 1 and l > 1",
    "select * from u where k > 1 and k <= 3 order by k desc, l desc limit 4",
    "select a, b, s from t where a = 2 order by b desc limit 3",
    "select s from t where a is null order by b",
    "select id from t where a > 2 order by b, id limit 3",
    "select id from t where s like 'x%' and s is not null",
    "select id from t where s >= 'x' and s < 'y' and id > 2",
    "select id, (select max(k) from u where u.a = t.a) from t order by id",
    "select id from t where d > (select avg(d) from t i where i.a = t.a)",
    "select id from t where a not in (select k from u)",
    "select id from t where a not in (select a from v)",
    "select id from t where (a, s) in (select a, s from u)",
    "select t.id, u.k from t left join u on u.a = t.a and u.l = 1 and t.b > 1",
    "select t.id from t where exists (select 1 from u where u.a = t.a and u.s = t.s)",
    "select x.id, y.m from t x, lateral (select max(l) as m from u where u.k = x.id) y",
    "select x.id, y.l from t x left join lateral "
    "(select l from u where u.k = x.id order by l limit 1) y on true",
    "select count(*) from t join u on t.a = u.a join v on v.a = u.k where t.id < 6",
    "select t.id from t full join u on t.id = u.k where t.s = 'x'",
    "select t.id, u.k, u.l from t full join u on t.id = u.k and u.l > 1 and t.a > 1",
    "select t.id, u.k from t right join u on t.id = u.k and u.l = 1 where t.a is null",
    "select t.id, u.k from t right join u on t.id = u.k where coalesce(t.b, 0) = 0",
    "select t.id, u.k from t left join u on u.k = t.id where u.l = 1 or t.a = 2",
    "select t.id, u.k from t full join u on u.k = t.id where u.l = 1 or t.a = 2",
    "select k, l, s from u order by k, l desc limit 2",
    "select a, b, id from t order by a desc, b limit 3",
    "select t.id, u.l from u join t on t.id = u.k and t.a = u.a",
    "select t.id, u.l from u join t on t.id = u.k and t.a = u.l where u.k in (1, 2)",
    "select t.id, u.l from u left join t on t.id = u.k and t.s = u.s and t.b > u.l where u.k = 2",
    "select t.id, u.l from t left join u on u.k = t.id and u.a = t.a and u.s = t.s",
    "select t.id from t where exists (select 1 from u where u.k = t.id and u.a = t.a)",
    "select a, count(*), sum(b) filter (where id > 3) from t group by rollup (a)",
    "select distinct on (a) a, b from t where b is not null order by a, b, id",
    "select id, rank() over (partition by a order by b, id) from t where a in (1, 2)",
    "select * from (select a, rank() over (partition by a order by id) from t) q where a = 1",
    "with recursive r (n) as (select 1 union all select n + 1 from r where n < 5) "
    "select r.n, t.s from r join t on t.id = r.n",
)

COLUMNS = {
    "t": {"id": "n", "a": "n", "b": "n", "s": "s", "d": "n"},
    "u": {"k": "n", "l": "n", "a": "n", "s": "s"},
    "v": {"a": "n", "s": "s", "f": "f"},
}
NUMBERS = ("=", "<", "<=", ">", ">=", "<>")


@dataclass(frozen=True, slots=True)
class Source:
    alias: str
    columns: dict[str, str]


class Generator:
    """One query after another from one random stream."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.aliases = 0

    def query(self) -> str:
        kind = self.rng.random()
        if kind < 0.12:
            word = self.rng.choice(("union", "union all", "intersect", "except", "except all"))
            return f"{self.select(0, columns=2)} {word} {self.select(0, columns=2)}"
        if kind < 0.2:
            return self.with_query()
        return self.select(0)

    def with_query(self) -> str:
        inner = self.select(0, columns=2)
        other = self.rng.choice(("", " where x > 1", " where y is not null"))
        twice = self.rng.random() < 0.3
        body = f"select p.x, q.y from c p, c q{other.replace('x', 'p.x').replace(' y', ' q.y')}"
        body = body if twice else f"select x, y from c{other}"
        return f"with c (x, y) as ({inner}) {body}"

    # -- pieces ---------------------------------------------------------------------------------

    def alias(self) -> str:
        self.aliases += 1
        return f"r{self.aliases}"

    def source(self, depth: int, outer: list[Source]) -> tuple[str, Source]:
        name = self.alias()
        if depth < 2 and self.rng.random() < 0.15:
            inner = self.select(depth + 1, columns=2, outer=[])
            return f"({inner}) {name} (x, y)", Source(name, {"x": "n", "y": "n"})
        table = self.rng.choice(("t", "t", "u", "v"))
        return f"{table} {name}", Source(name, COLUMNS[table])

    def from_clause(self, depth: int, outer: list[Source]) -> tuple[str, list[Source]]:
        text, first = self.source(depth, outer)
        sources = [first]
        group = [first]  # what an ON condition may read: the items since the last comma
        for _ in range(self.rng.choice((0, 0, 1, 1, 2))):
            piece, source = self.source(depth, outer)
            style = self.rng.random()
            known = [*group, source]
            if style < 0.25:
                text += f", {piece}"
                known = [source]
            elif style < 0.85:
                kind = self.rng.choice(("join", "join", "left join", "right join", "full join"))
                condition = self.equality(group, source)
                if kind != "full join" and self.rng.random() < 0.3:
                    condition += " and " + self.condition(known, [], 2)
                text += f" {kind} {piece} on {condition}"
            else:
                text = f"{text} cross join {piece}"
            group = known
            sources.append(source)
        return text, sources

    def equality(self, left: list[Source], right: Source) -> str:
        return f"{self.column(left, 'n')} = {self.column([right], 'n')}"

    def column(self, sources: list[Source], kind: str) -> str:
        found = [
            f"{source.alias}.{name}"
            for source in sources
            for name, one in source.columns.items()
            if one == kind
        ]
        return self.rng.choice(found) if found else {"n": "1", "s": "'x'", "f": "true"}[kind]

    def number(self, sources: list[Source], outer: list[Source], depth: int) -> str:
        kind = self.rng.random()
        if kind < 0.55:
            return self.column(sources, "n")
        if kind < 0.75:
            return str(self.rng.randint(-1, 5))
        if kind < 0.82 and outer:
            return self.column(outer, "n")
        if kind < 0.9:
            return f"({self.column(sources, 'n')} + {self.rng.randint(0, 3)})"
        if kind < 0.95:
            return f"coalesce({self.column(sources, 'n')}, {self.column(sources, 'n')}, 0)"
        left, right = self.column(sources, "n"), self.column(sources, "n")
        return f"case when {left} > 1 then {right} else {left} end"

    def condition(self, sources: list[Source], outer: list[Source], depth: int) -> str:
        kind = self.rng.random()
        number = lambda: self.number(sources, outer, depth)  # noqa: E731  one stream, many draws
        if kind < 0.35:
            return f"{number()} {self.rng.choice(NUMBERS)} {number()}"
        if kind < 0.42:
            return f"{self.column(sources, 's')} {self.rng.choice(('=', '<', 'like', '>='))} 'x'"
        if kind < 0.5:
            negated = self.rng.choice(("", "not "))
            items = ", ".join(self.rng.choice(("1", "2", "3", "null")) for _ in range(3))
            return f"{number()} {negated}in ({items})"
        if kind < 0.57:
            return f"{number()} is {self.rng.choice(('null', 'not null'))}"
        if kind < 0.62:
            return f"{number()} is not distinct from {number()}"
        if kind < 0.67:
            return f"{number()} between {number()} and {number()}"
        if kind < 0.8 and depth < 2:
            return self.subquery_condition(sources, outer, depth)
        if kind < 0.87:
            return f"not ({self.condition(sources, outer, depth + 1)})"
        word = self.rng.choice(("and", "or"))
        left = self.condition(sources, outer, depth + 1)
        return f"({left} {word} {self.condition(sources, outer, depth + 1)})"

    def subquery_condition(self, sources: list[Source], outer: list[Source], depth: int) -> str:
        around = sources + outer
        number = self.number(sources, outer, depth)
        match self.rng.randint(0, 3):
            case 0:
                negated = self.rng.choice(("", "not "))
                return f"{negated}exists ({self.select(depth + 1, columns=1, outer=around)})"
            case 1:
                negated = self.rng.choice(("", "not "))
                inner = self.select(depth + 1, columns=1, outer=around)
                return f"{number} {negated}in ({inner})"
            case 2:
                word = self.rng.choice(("any", "all"))
                inner = self.select(depth + 1, columns=1, outer=around)
                return f"{number} {self.rng.choice(NUMBERS)} {word} ({inner})"
            case _:
                return f"{number} {self.rng.choice(NUMBERS)} ({self.scalar(depth + 1, around)})"

    def scalar(self, depth: int, outer: list[Source]) -> str:
        text, sources = self.from_clause(depth, outer)
        call = self.rng.choice(("max", "min", "sum", "count"))
        where = self.condition(sources, outer, depth + 1)
        if outer and self.rng.random() < 0.7:
            where = f"{self.column(sources, 'n')} = {self.column(outer, 'n')} and {where}"
        return f"select {call}({self.column(sources, 'n')}) from {text} where {where}"

    def select(
        self, depth: int, columns: int | None = None, outer: list[Source] | None = None
    ) -> str:
        outer = outer or []
        text, sources = self.from_clause(depth, outer)
        where = ""
        if self.rng.random() < 0.75:
            where = f" where {self.condition(sources, outer, depth)}"
            if outer and self.rng.random() < 0.6:
                where += f" and {self.column(sources, 'n')} = {self.column(outer, 'n')}"
        count = columns or self.rng.randint(1, 4)
        if self.rng.random() < 0.25 and not (columns == 1 and outer):
            return self.grouped(text, sources, where, count)
        items = [self.number(sources, outer, depth) for _ in range(count)]
        if columns is None and depth == 0 and self.rng.random() < 0.2:
            items[-1] = f"({self.scalar(1, sources)})"
        distinct = "distinct " if self.rng.random() < 0.15 else ""
        tail = self.tail(items) if depth == 0 and columns is None and not distinct else ""
        return f"select {distinct}{', '.join(items)} from {text}{where}{tail}"

    def tail(self, items: list[str]) -> str:
        """An order by every column is one order of the bag's rows, so a limit is deterministic."""
        if self.rng.random() < 0.7:
            return ""
        order = ", ".join(
            f"{i + 1}{self.rng.choice(('', ' desc', ' nulls first'))}" for i in range(len(items))
        )
        return f" order by {order} limit {self.rng.randint(0, 6)}"

    def grouped(self, text: str, sources: list[Source], where: str, count: int) -> str:
        keys = [self.column(sources, "n") for _ in range(max(1, count - 1))][:2]
        calls = (
            "count(*)",
            f"sum({self.column(sources, 'n')})",
            f"max({self.column(sources, 'n')})",
        )
        items = (keys + [self.rng.choice(calls) for _ in range(count)])[-count:]
        having = ""
        if self.rng.random() < 0.3:
            having = f" having count(*) {self.rng.choice(('>', '<'))} {self.rng.randint(1, 3)}"
        return f"select {', '.join(items)} from {text}{where} group by {', '.join(keys)}{having}"
