"""Plans to DuckDB SQL: every node a SELECT over the SELECTs of its inputs.

Columns of a node are named c0, c1, ...; every FROM item has a name of its own (q1, q2, ...), so
that inner queries can refer to any row around them. What is read from Belvedere (scans, table
functions, virtual tables) becomes a leaf: a name in the text and a plan that Python runs to fill
it.

    SELECT q1.c0 AS c0 FROM (SELECT * FROM leaf_0) AS q1 WHERE q1.c1 > CAST(5 AS INTEGER)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from belvedere.execution.direct.dependence import SUBQUERIES, dependence_of, walk
from belvedere.execution.duck.expressions import Scope
from belvedere.execution.duck.expressions import lower as lower_expression
from belvedere.execution.duck.grouping import lower_aggregate, lower_window
from belvedere.execution.duck.query import (
    ColumnPlaces,
    Outer,
    Place,
    Query,
    Types,
    leaf_place,
    named,
    one_type,
    places,
    renamed,
    require_groupable,
    same_types,
)
from belvedere.execution.duck.types import NotExact, literal_text, literal_type, type_text
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.access import FULL
from belvedere.types import Kind


@dataclass(slots=True)
class Lowering:
    """One statement in the making. `leaves` are the plans behind the leaf names, in order;
    `settle` gives the value of a scalar sub-query that has no form here, as of now."""

    evaluate: Callable[[e.Expression], object]
    settle: Callable[[n.Node], object]
    leaves: list[n.Node] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)
    ctes: dict[int, tuple[str, Types]] = field(default_factory=dict)
    _names: int = 0

    def name(self) -> str:
        self._names += 1
        return f"q{self._names}"

    def leaf(self, node: n.Node) -> Query:
        types = tuple(one.type for one in node.fields)
        for sql_type in types:
            type_text(sql_type)
        self.leaves.append(node)
        columns = ", ".join(
            f"CAST(hex(c{i}) AS UUID) AS c{i}" if one.kind is Kind.UUID else f"c{i}"
            for i, one in enumerate(types)
        )
        place = leaf_place(len(self.leaves) - 1)
        return Query(f"SELECT {columns or '*'} FROM {place}", types)

    def scope(self, column: ColumnPlaces, outer: Outer) -> Scope:
        return Scope(column, outer, self.inner, self.evaluate, self.settle, self.functions)

    def inner(self, node: n.Node, outer: Outer) -> Query:
        """A query inside an expression; when it has no form, nothing of it stays."""
        leaves = len(self.leaves)
        try:
            return self.query(node, outer)
        except NotExact:
            del self.leaves[leaves:]
            raise

    # -- nodes --------------------------------------------------------------------------------

    def query(self, node: n.Node, outer: Outer = ()) -> Query:
        match node:
            case n.Scan():
                return self.scan(node, outer)
            case n.Filter():
                return self.filter(node.input, node.condition, outer)
            case n.Project():
                return self.project(node, outer)
            case n.Values():
                return self.values(node, outer)
            case n.Join():
                return self.join(node, outer)
            case n.Sort() | n.TopN() | n.Limit():
                return self.ordered(node, outer, None)
            case n.Distinct():
                return self.distinct(node, outer)
            case n.SetOperation():
                return self.set_operation(node, outer)
            case n.With():
                return self.with_ctes(node, outer)
            case n.RecursiveUnion():
                return self.recursive_union(node, outer)
            case n.CteScan():
                if node.cte not in self.ctes:
                    raise NotExact("a CTE outside of this part is read")
                name, types = self.ctes[node.cte]
                return Query(f"SELECT * FROM {name}", types)
            case n.VirtualScan():
                return self.leaf(node)
            case n.TableFunction() if dependence_of(node).nearest is None:
                return self.leaf(node)
            case n.Aggregate():
                return lower_aggregate(self, node, outer)
            case n.Window():
                return lower_window(self, node, outer)
            case _:
                raise NotExact(f"{type(node).__name__} runs in Python")

    def scan(self, node: n.Scan, outer: Outer) -> Query:
        """The access path is followed when it depends on no row; the rest is a condition here."""
        if node.access.ordered and outer:
            raise NotExact("the order of a key inside a correlated query")
        if _depends_on_rows(node):
            whole = n.Scan(node.relation, node.name, node.slots, node.fields, FULL)
            condition = node.filter
        else:
            whole = n.Scan(node.relation, node.name, node.slots, node.fields, node.access)
            condition = node.residual
        if condition is None:
            return self.leaf(whole)
        return self.filter(whole, condition, outer)

    def filter(self, below: n.Node, condition: e.Expression, outer: Outer) -> Query:
        _require_order(below, condition)
        query, alias = self.query(below, outer), self.name()
        text = self.condition(condition, alias, query.types, outer)
        return Query(f"SELECT * FROM ({query.text}) AS {alias} WHERE {text}", query.types)

    def condition(self, condition: e.Expression, alias: str, types: Types, outer: Outer) -> str:
        scope = self.scope(places(alias, types), outer)
        return lower_expression(scope, condition).text

    def project(self, node: n.Project, outer: Outer) -> Query:
        if isinstance(node.input, n.Sort | n.TopN | n.Limit):
            return self.ordered(node.input, outer, node.expressions)
        _require_order(node.input, node.expressions)
        query, alias = self.query(node.input, outer), self.name()
        scope = self.scope(places(alias, query.types), outer)
        columns = [lower_expression(scope, one) for one in node.expressions]
        return Query(
            f"SELECT {named(columns)} FROM ({query.text}) AS {alias}",
            tuple(column.type for column in columns),
        )

    def values(self, node: n.Values, outer: Outer) -> Query:
        if node.rows == ((),):
            return Query("SELECT 1 AS nothing", ())
        if not node.rows:
            return _no_rows(node)
        scope = self.scope(_no_columns, outer)
        rows = [[lower_expression(scope, value) for value in row] for row in node.rows]
        types = tuple(one_type([row[i] for row in rows]) for i in range(len(node.fields)))
        texts = [", ".join(value.text for value in row) for row in rows]
        names = ", ".join(f"c{i}" for i in range(len(types)))
        listed = ", ".join(f"({text})" for text in texts)
        return Query(f"SELECT * FROM (VALUES {listed}) AS {self.name()}({names})", types)

    # -- order --------------------------------------------------------------------------------

    def ordered(
        self,
        node: n.Sort | n.TopN | n.Limit,
        outer: Outer,
        expressions: tuple[e.Expression, ...] | None,
    ) -> Query:
        """Sort, limit and the projection above them as one SELECT, which alone keeps the order."""
        below, keys, limit = self.unstack(node)
        query, alias = self.query(below, outer), self.name()
        scope = self.scope(places(alias, query.types), outer)
        columns, types = f"{alias}.*", query.types
        if expressions is not None:
            made = [lower_expression(scope, one) for one in expressions]
            columns, types = named(made), tuple(one.type for one in made)
        text = f"SELECT {columns} FROM ({query.text}) AS {alias}"
        if keys:
            text += " ORDER BY " + self.order_by(keys, scope)
        return Query(text + limit, types)

    def unstack(self, node: n.Sort | n.TopN | n.Limit) -> tuple[n.Node, tuple[e.SortKey, ...], str]:
        match node:
            case n.Sort():
                return node.input, node.keys, ""
            case n.TopN():
                limit = self.limit(node.count, node.offset, node.with_ties)
                return node.input, node.keys, limit
            case n.Limit():
                limit = self.limit(node.count, node.offset, node.with_ties)
                if isinstance(node.input, n.Sort):
                    return node.input.input, node.input.keys, limit
                return node.input, (), limit

    def limit(
        self, count: e.Expression | None, offset: e.Expression | None, with_ties: bool
    ) -> str:
        if with_ties:
            raise NotExact("WITH TIES runs in Python")
        text = ""
        for word, expression in (("LIMIT", count), ("OFFSET", offset)):
            value = None if expression is None else self.evaluate(expression)
            if value is not None:
                assert isinstance(value, int)
                if value < 0:
                    raise NotExact("a negative limit")
                text += f" {word} {value}"
        return text

    def order_by(self, keys: Iterable[e.SortKey], scope: Scope) -> str:
        parts = []
        for key in keys:
            text = lower_expression(scope, key.expression).text
            nulls = "FIRST" if key.nulls_first else "LAST"
            parts.append(f"({text}) {'DESC' if key.descending else 'ASC'} NULLS {nulls}")
        return ", ".join(parts)

    def distinct(self, node: n.Distinct, outer: Outer) -> Query:
        if node.on is None:
            query, alias = self.query(node.input, outer), self.name()
            require_groupable(query.types)
            return Query(f"SELECT DISTINCT * FROM ({query.text}) AS {alias}", query.types)
        if not isinstance(node.input, n.Sort):
            raise NotExact("DISTINCT ON without an order")
        query, alias = self.query(node.input.input, outer), self.name()
        scope = self.scope(places(alias, query.types), outer)
        on = ", ".join(lower_expression(scope, one).text for one in node.on)
        order = self.order_by(node.input.keys, scope)
        return Query(
            f"SELECT DISTINCT ON ({on}) {alias}.* FROM ({query.text}) AS {alias} ORDER BY {order}",
            query.types,
        )

    # -- two inputs ---------------------------------------------------------------------------

    def join(self, node: n.Join, outer: Outer) -> Query:
        left, left_name = self.query(node.left, outer), self.name()
        around = (places(left_name, left.types), *outer) if node.lateral else outer
        right, right_name = self.query(node.right, around), self.name()
        condition = self.join_condition(node, (left_name, left), (right_name, right), outer)
        columns = renamed(left_name, left.types, right_name, right.types)
        source = f"({left.text}) AS {left_name}"
        if node.kind in (n.JoinKind.SEMI, n.JoinKind.ANTI):
            word = "EXISTS" if node.kind is n.JoinKind.SEMI else "NOT EXISTS"
            inner = f"SELECT 1 FROM ({right.text}) AS {right_name} WHERE {condition}"
            return Query(f"SELECT * FROM {source} WHERE {word} ({inner})", left.types)
        lateral = "LATERAL " if node.lateral else ""
        text = (
            f"SELECT {columns} FROM {source} {node.kind.value.upper()} JOIN "
            f"{lateral}({right.text}) AS {right_name} ON {condition}"
        )
        return Query(text, left.types + right.types)

    def join_condition(
        self, node: n.Join, left: tuple[str, Query], right: tuple[str, Query], outer: Outer
    ) -> str:
        of_left, of_right = places(left[0], left[1].types), places(right[0], right[1].types)
        parts = []
        for key in node.keys:
            sign = "IS NOT DISTINCT FROM" if key.null_safe else "="
            first = lower_expression(self.scope(of_left, outer), key.left)
            second = lower_expression(self.scope(of_right, outer), key.right)
            if first.type.kind is not second.type.kind:
                raise NotExact("join keys of different types")
            require_groupable((first.type, second.type))
            texts = [one.text for one in (first, second)]
            parts.append(f"({texts[0]}) {sign} ({texts[1]})")
        if node.residual is not None:
            width = len(left[1].types)

            def both(index: int) -> Place:
                return of_left(index) if index < width else of_right(index - width)

            scope = self.scope(both, outer)
            parts.append(f"({lower_expression(scope, node.residual).text})")
        return " AND ".join(parts) or "TRUE"

    def set_operation(self, node: n.SetOperation, outer: Outer) -> Query:
        left, right = self.query(node.left, outer), self.query(node.right, outer)
        word = node.kind.value.upper() + (" ALL" if node.all else "")
        text = f"(SELECT * FROM ({left.text})) {word} (SELECT * FROM ({right.text}))"
        if not (node.all and node.kind is n.SetKind.UNION):
            require_groupable(left.types)
        return Query(f"SELECT * FROM ({text}) AS {self.name()}", same_types(left, right))

    def with_ctes(self, node: n.With, outer: Outer) -> Query:
        parts = []
        for cte in node.ctes:
            query, name = self.query(cte.plan, outer), f"cte_{cte.number}"
            self.ctes[cte.number] = (name, query.types)
            parts.append(f"{name} AS MATERIALIZED ({query.text})")
        body = self.query(node.body, outer)
        return Query(f"WITH {', '.join(parts)} {body.text}", body.types)

    def recursive_union(self, node: n.RecursiveUnion, outer: Outer) -> Query:
        base, name = self.query(node.base, outer), f"cte_{node.cte}"
        self.ctes[node.cte] = (name, base.types)
        step = self.query(node.step, outer)
        word = "UNION ALL" if node.all else "UNION"
        columns = ", ".join(f"c{i}" for i in range(len(base.types)))
        text = f"{name}({columns}) AS (({base.text}) {word} ({step.text}))"
        same_types(base, step)
        return Query(f"WITH RECURSIVE {text} SELECT * FROM {name}", base.types)


def _no_rows(node: n.Values) -> Query:
    types = tuple(literal_type(None, one.type) for one in node.fields)
    columns = [f"{literal_text(None, one)} AS c{i}" for i, one in enumerate(types)]
    return Query(f"SELECT {', '.join(columns) or '1 AS nothing'} WHERE FALSE", types)


def _no_columns(index: int) -> Place:
    raise AssertionError(index)


def _require_order(below: n.Node, expressions: object) -> None:
    """DuckDB makes joins of sub-queries, which do not keep the order of a key."""
    while isinstance(below, n.Project | n.Filter | n.Limit):
        below = below.input
    if isinstance(below, n.Scan) and below.access.ordered:
        if any(isinstance(item, SUBQUERIES) for item, _ in walk(expressions, 0)):
            raise NotExact("a sub-query beside the order of a key")


def _depends_on_rows(node: n.Scan) -> bool:
    return any(isinstance(item, e.OuterColumn | e.Column) for item, _ in walk(node.access, 0))
