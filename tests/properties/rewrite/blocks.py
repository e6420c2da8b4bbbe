"""Random blocks as SQL: views, and queries that are like them, or narrower, or coarser."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from tests.properties.rewrite.schemas import COLUMNS, RandomTable, random_value

AGGREGATES = ("count", "sum", "avg", "min", "max")
SUMMABLE = ("a", "b", "n", "d", "id")


@dataclass(frozen=True)
class Leaf:
    """A table under an alias, joined to an earlier one; the first has no condition."""

    table: RandomTable
    alias: str
    on: str = ""
    outer: bool = False


@dataclass(frozen=True)
class RandomBlock:
    """SELECT outputs FROM leaves WHERE conditions GROUP BY groups; columns are alias.column."""

    leaves: tuple[Leaf, ...]
    conditions: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    groups: tuple[str, ...] | None = None
    having: str = ""
    distinct: bool = False
    order: str = ""

    @property
    def columns(self) -> list[str]:
        return [f"{leaf.alias}.{c}" for leaf in self.leaves for c in leaf.table.columns]

    def sql(self, rng: random.Random | None = None, *, names: bool = False) -> str:
        """`rng`: inner joins are written in any order, and as conditions."""
        conditions = list(self.conditions)
        leaves = list(self.leaves)
        if rng is not None and not any(leaf.outer for leaf in leaves) and rng.random() < 0.5:
            conditions += [leaf.on for leaf in leaves if leaf.on]
            rng.shuffle(leaves)
            source = ", ".join(f"{leaf.table.name} AS {leaf.alias}" for leaf in leaves)
        else:
            source = f"{leaves[0].table.name} AS {leaves[0].alias}"
            for leaf in leaves[1:]:
                kind = "LEFT JOIN" if leaf.outer else "JOIN"
                source += f" {kind} {leaf.table.name} AS {leaf.alias} ON {leaf.on}"
        if rng is not None:
            rng.shuffle(conditions)
        listed = [f"{one} AS c{i}" for i, one in enumerate(self.outputs)] if names else self.outputs
        text = f"SELECT {'DISTINCT ' if self.distinct else ''}{', '.join(listed)} FROM {source}"
        if conditions:
            text += f" WHERE {' AND '.join(conditions)}"
        if self.groups:
            text += f" GROUP BY {', '.join(self.groups)}"
        return text + self.having + self.order


@dataclass
class BlockSource:
    rng: random.Random
    tables: list[RandomTable]
    aliases: int = field(default=0)

    def random_view(self) -> RandomBlock:
        block = self._random_joins()
        if self.rng.random() < 0.3:
            block = replace(block, conditions=(self._random_condition(block),))
        kind = self.rng.random()
        if kind < 0.45:
            count = self.rng.randint(3, 8)
            return replace(block, outputs=tuple(self._pick(block.columns, count)))
        if kind < 0.55:
            outputs = tuple(self._pick(block.columns, self.rng.randint(1, 3)))
            return replace(block, outputs=outputs, distinct=True)
        groups = tuple(self._pick(block.columns, self.rng.randint(0, 4)))
        calls = [self._random_call(block) for _ in range(self.rng.randint(1, 4))]
        if self.rng.random() < 0.8:
            calls.append("count(*)")
        return replace(block, outputs=(*groups, *dict.fromkeys(calls)), groups=groups)

    def random_query(self, views: list[RandomBlock]) -> RandomBlock:
        """Mostly made from a view."""
        if self.rng.random() < 0.12:
            return self._add_order(self.random_view())
        view = self.rng.choice(views)
        query = self._vary_leaves(view)
        if self.rng.random() < 0.6:
            query = self._add_conditions(query, view)
        known = [one for one in view.outputs if one in query.columns]
        if view.groups is None and not view.distinct:
            made = self._query_rows(query, known)
        else:
            made = self._query_groups(query, view, known)
        return self._add_order(made)

    # -- parts --------------------------------------------------------------------------------

    def _random_joins(self) -> RandomBlock:
        rng = self.rng
        leaves = [Leaf(rng.choice(self.tables[::-1]), "x")]
        while len(leaves) < 4 and rng.random() < 0.65:
            leaf = self._random_parent(leaves)
            if leaf is None:
                break
            leaves.append(leaf)
        if rng.random() < 0.12:  # any other join, also with itself
            table = rng.choice(self.tables)
            column = rng.choice(("a", "b", "id"))
            on = f"x.{column} = y{len(leaves)}.{column}"
            leaves.append(Leaf(table, f"y{len(leaves)}", on, rng.random() < 0.3))
        return RandomBlock(tuple(leaves))

    def _random_parent(self, leaves: list[Leaf]) -> Leaf | None:
        """A table that one of the leaves refers to."""
        choices = [(leaf, one) for leaf in leaves for one in leaf.table.references]
        if not choices:
            return None
        child, reference = self.rng.choice(choices)
        parent = next(one for one in self.tables if one.name == reference.parent)
        alias = f"{child.alias}_{reference.column}"
        if any(leaf.alias == alias for leaf in leaves):
            return None
        on = f"{child.alias}.{reference.column} = {alias}.id"
        return Leaf(parent, alias, on, self.rng.random() < 0.15)

    def _random_condition(self, block: RandomBlock, columns: list[str] | None = None) -> str:
        rng = self.rng
        column = rng.choice(columns or block.columns)
        name = column.partition(".")[2]
        value = random_value(rng, name if name in COLUMNS else "b")
        if value == "NULL":
            return f"{column} IS {rng.choice(('NULL', 'NOT NULL'))}"
        match rng.randrange(6):
            case 0 | 1:
                return f"{column} = {value}"
            case 2:
                return f"{column} {rng.choice(('<', '<=', '>', '>=', '<>'))} {value}"
            case 3:
                other = random_value(rng, name if name in COLUMNS else "b")
                return f"{column} IN ({value}, {other})"
            case 4 if name in ("a", "b", "id"):
                return f"{column} BETWEEN {rng.randint(0, 2)} AND {rng.randint(2, 6)}"
            case _:
                return f"({column} = {value} OR {column} IS NULL)"

    def _random_call(self, block: RandomBlock) -> str:
        name = self.rng.choice(AGGREGATES)
        columns = block.columns
        if name in ("sum", "avg"):
            columns = [one for one in columns if one.partition(".")[2] in SUMMABLE]
        column = self.rng.choice(columns)
        distinct = "DISTINCT " if name == "count" and self.rng.random() < 0.15 else ""
        return f"{name}({distinct}{column})"

    def _pick(self, columns: list[str], count: int) -> list[str]:
        return self.rng.sample(columns, min(count, len(columns)))

    # -- variations ---------------------------------------------------------------------------

    def _vary_leaves(self, view: RandomBlock) -> RandomBlock:
        """The view's leaves, sometimes fewer, more, or joined otherwise."""
        rng, leaves = self.rng, list(view.leaves)
        while len(leaves) > 1 and rng.random() < 0.3:
            leaves.pop()
        if len(leaves) < 4 and rng.random() < 0.25:
            more = self._random_parent(leaves)
            if more is not None:
                leaves.append(more)
        if rng.random() < 0.1:
            at = rng.randrange(len(leaves))
            leaves[at] = replace(leaves[at], outer=not leaves[at].outer and at > 0)
        if len(leaves) > 1 and rng.random() < 0.1:
            at = rng.randrange(1, len(leaves))
            leaves[at] = replace(leaves[at], on=f"x.b = {leaves[at].alias}.id")
        kept = {leaf.alias for leaf in leaves}
        conditions = [c for c in view.conditions if c.lstrip("(").partition(".")[0] in kept]
        if conditions and rng.random() < 0.1:
            conditions.pop()
        return RandomBlock(tuple(leaves), tuple(conditions))

    def _add_conditions(self, query: RandomBlock, view: RandomBlock) -> RandomBlock:
        known = [one for one in view.outputs if one in query.columns]
        more = [
            self._random_condition(query, known if known and self.rng.random() < 0.9 else None)
            for _ in range(self.rng.randint(1, 2))
        ]
        return replace(query, conditions=(*query.conditions, *more))

    def _query_rows(self, query: RandomBlock, known: list[str]) -> RandomBlock:
        rng = self.rng
        columns = known if known and rng.random() < 0.93 else query.columns
        outputs = self._pick(columns, rng.randint(1, 4))
        kind = rng.random()
        if kind < 0.25:
            groups = tuple(outputs[:2]) if rng.random() < 0.8 else ()
            usable = [one for one in columns if one.partition(".")[2] in SUMMABLE]
            calls = [f"{rng.choice(AGGREGATES)}({one})" for one in self._pick(usable, 2)]
            calls.append("count(*)")
            return replace(query, outputs=(*groups, *calls), groups=groups)
        if kind < 0.4:
            return replace(query, outputs=tuple(outputs), distinct=True)
        numbers = [one for one in outputs if one.partition(".")[2] in ("a", "b", "id")]
        if numbers and rng.random() < 0.4:
            outputs.append(rng.choice((f"{numbers[0]} + 1", f"coalesce({numbers[0]}, -1) * 2")))
        return replace(query, outputs=tuple(outputs))

    def _query_groups(self, query: RandomBlock, view: RandomBlock, known: list[str]) -> RandomBlock:
        rng = self.rng
        groups = tuple(self._pick(known, rng.randint(0, len(known)))) if known else ()
        if rng.random() < 0.4:
            groups = tuple(known)
        extra = [
            c
            for c in query.columns
            if c.partition(".")[0] not in {leaf.alias for leaf in view.leaves}
        ]
        if extra and rng.random() < 0.5:
            groups = (*groups, rng.choice(extra))
        calls = [one for one in view.outputs if "(" in one and self._reads_only(one, query)]
        calls = self._pick(calls, rng.randint(1, 3))
        if known and rng.random() < 0.3:
            calls.append(f"{rng.choice(('count(DISTINCT', 'count(', 'min(', 'max('))} {known[0]})")
        averaged = [one for one in calls if one.startswith("sum(")]
        if averaged and rng.random() < 0.4:
            calls.append(averaged[0].replace("sum(", "avg("))
        if "count(*)" in view.outputs and rng.random() < 0.5:
            calls.append("count(*)")
        if known and calls and rng.random() < 0.15:
            calls[0] += f" FILTER (WHERE {self._random_condition(query, known)})"
        if not calls and not groups:
            calls = ["count(*)"]
        outputs = (*groups, *dict.fromkeys(calls))
        if not calls:
            return replace(query, outputs=outputs, distinct=True)
        made = replace(query, outputs=outputs, groups=groups)
        if groups and rng.random() < 0.2:
            made = replace(made, having=f" HAVING {calls[0]} IS NOT NULL")
        return made

    def _reads_only(self, call: str, query: RandomBlock) -> bool:
        inside = call.partition("(")[2].rstrip(")").removeprefix("DISTINCT ")
        return inside == "*" or inside in query.columns

    def _add_order(self, block: RandomBlock) -> RandomBlock:
        """With an order by all columns a limit always gives the same rows."""
        if self.rng.random() > 0.15 or any(".u" in one for one in block.outputs):
            return block
        listed = ", ".join(str(i + 1) for i in range(len(block.outputs)))
        limit = f" LIMIT {self.rng.randint(1, 5)}" if self.rng.random() < 0.7 else ""
        return replace(block, order=f" ORDER BY {listed}{limit}")
