"""Lowering of plans to DuckDB SQL: every node is a SELECT over the SELECTs of its inputs.

Columns of a node are named c0, c1, ...; every FROM item has a name of its own (q1, q2, ...), so
that inner queries can refer to any row around them. What is read from Belvedere (scans, table
functions, virtual tables) becomes a leaf: a name in the text and a plan that Python runs to
provide its rows.

    SELECT q1.c0 AS c0 FROM leaf_0 AS q1 WHERE (q1.c1 > CAST(5 AS INTEGER))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from sqlglot import exp

from belvedere.execution.duckdb import python_division
from belvedere.execution.duckdb.expressions import INTEGERS, DuckScope
from belvedere.execution.duckdb.expressions import lower as lower_expression
from belvedere.execution.duckdb.grouping import lower_aggregate, lower_window
from belvedere.execution.duckdb.numeric_division import divide_in_python, divide_in_sql
from belvedere.execution.duckdb.pushdown_forms import pad_char_operands
from belvedere.execution.duckdb.query import (
    ColumnLookup,
    DuckQuery,
    OpenSelect,
    Outer,
    TypedSql,
    Types,
    build_select,
    close_query,
    columns_of,
    common_type,
    common_types,
    leaf_placeholder,
    open_query,
    require_groupable,
    select_list,
)
from belvedere.execution.duckdb.types import (
    NotExact,
    RaggedNumeric,
    literal_text,
    literal_type,
    type_text,
)
from belvedere.execution.python.expressions.outer_references import (
    dependence_of,
)
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.access import FULL
from belvedere.plan.plan_items import SUBQUERIES, walk_items_with_depth, walk_plan_items
from belvedere.types import BIGINT, Kind

PAGE_ROWS_MAX = 1_000


@dataclass(slots=True)
class DuckLowering:
    """One statement under construction. `leaves` are the plans behind the leaf names, in order;
    `evaluate_subquery` gives the value of a scalar sub-query that has no form here, as of now;
    `divides`: NUMERIC quotients are made by DuckDB."""

    evaluate: Callable[[e.Expression], object]
    evaluate_subquery: Callable[[n.Node], object]
    divides: bool = True
    divided: bool = False  # whether there is such a quotient
    leaves: list[n.Node] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)
    ctes: dict[int, tuple[str, Types]] = field(default_factory=dict)
    _names: int = 0

    def new_alias(self) -> str:
        self._names += 1
        return f"q{self._names}"

    def add_leaf(self, node: n.Node) -> DuckQuery:
        types = tuple(one.type for one in node.fields)
        for sql_type in types:
            type_text(sql_type)
        self.leaves.append(node)
        alias, place = self.new_alias(), leaf_placeholder(len(self.leaves) - 1)
        columns = [
            one._replace(tree=_cast_uuid(one.tree)) if one.type.kind is Kind.UUID else one
            for one in columns_of(alias, types)
        ]
        return build_select(OpenSelect(tuple(columns), f"{place} AS {alias}"))

    def expression_scope(self, column: ColumnLookup, outer: Outer) -> DuckScope:
        return DuckScope(
            column,
            outer,
            self.lower_inner,
            self.evaluate,
            self.evaluate_subquery,
            self.divide_numeric,
            self.functions,
        )

    def open_parts(self, query: DuckQuery) -> OpenSelect:
        return open_query(query, self.new_alias())

    def divide_numeric(
        self, dividend: TypedSql, divisor: TypedSql, before: int | None = None, *, few: bool = False
    ) -> TypedSql:
        """`few`: for so few rows that planning the text costs more than the division."""
        if not self.divides:
            raise NotExact("a quotient of NUMERIC values is made in Python")
        self.divided = True
        if not few:
            return divide_in_sql(dividend, divisor, before)
        self.functions.add(python_division.QUOTIENT_FUNCTION)
        return divide_in_python(dividend, divisor, before)

    def lower_inner(self, node: n.Node, outer: Outer) -> DuckQuery:
        """A query inside an expression; when it has no exact form, its leaves are removed again."""
        leaves = len(self.leaves)
        try:
            return self.lower_node(node, outer)
        except NotExact:
            del self.leaves[leaves:]
            raise

    # -- nodes --------------------------------------------------------------------------------

    def lower_node(self, node: n.Node, outer: Outer = ()) -> DuckQuery:
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
                return self.lower_order(node, outer, None)
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
                alias = self.new_alias()
                return build_select(OpenSelect(columns_of(alias, types), f"{name} AS {alias}"))
            case n.VirtualScan() | n.Changes():
                return self.add_leaf(node)
            case n.TableFunction() | n.ForeignScan() if dependence_of(node).nearest is None:
                return self.add_leaf(node)
            case n.Aggregate():
                return lower_aggregate(self, node, outer)
            case n.Window():
                return lower_window(self, node, outer)
            case _:
                raise NotExact(f"{type(node).__name__} runs in Python")

    def scan(self, node: n.Scan, outer: Outer) -> DuckQuery:
        """The access path is followed when it depends on no row; the rest is a condition here."""
        if node.access.ordered and outer:
            raise NotExact("the order of a key inside a correlated query")
        if depends_on_rows(node):
            whole = n.Scan(node.relation, node.name, node.slots, node.fields, FULL)
            condition = node.filter
        else:
            access = node.access
            whole = n.Scan(node.relation, node.name, node.slots, node.fields, access, node.residual)
            condition = node.residual
        if condition is None:
            return self.add_leaf(whole)
        return self.filter(whole, condition, outer)

    def filter(self, below: n.Node, condition: e.Expression, outer: Outer) -> DuckQuery:
        _require_order(below, condition)
        parts = self.open_parts(self.lower_node(below, outer))
        text = lower_expression(self.expression_scope(parts.column_lookup(), outer), condition).text
        return _open_unless(has_subquery(condition), parts._replace(where=(*parts.where, text)))

    def project(self, node: n.Project, outer: Outer) -> DuckQuery:
        if isinstance(node.input, n.Sort | n.TopN | n.Limit):
            return self.lower_order(node.input, outer, node.expressions)
        _require_order(node.input, node.expressions)
        parts = self.open_parts(self.lower_node(node.input, outer))
        scope = self.expression_scope(parts.column_lookup(), outer)
        columns = tuple(lower_expression(scope, one) for one in node.expressions)
        return _open_unless(has_subquery(node.expressions), parts._replace(columns=columns))

    def values(self, node: n.Values, outer: Outer) -> DuckQuery:
        if node.rows == ((),):
            return DuckQuery("SELECT 1 AS nothing", ())
        if not node.rows:
            return _no_rows(node)
        scope = self.expression_scope(_no_columns, outer)
        rows = [[lower_expression(scope, value) for value in row] for row in node.rows]
        types = tuple(common_type([row[i] for row in rows]) for i in range(len(node.fields)))
        if any(isinstance(one, RaggedNumeric) for one in types):
            raise NotExact("NUMERIC values of different scales meet")
        texts = [", ".join(value.text for value in row) for row in rows]
        names = ", ".join(f"c{i}" for i in range(len(types)))
        listed = ", ".join(f"({text})" for text in texts)
        return DuckQuery(f"SELECT * FROM (VALUES {listed}) AS {self.new_alias()}({names})", types)

    # -- order --------------------------------------------------------------------------------

    def lower_order(
        self,
        node: n.Sort | n.TopN | n.Limit,
        outer: Outer,
        expressions: tuple[e.Expression, ...] | None,
    ) -> DuckQuery:
        """Sort, limit and the projection above them as one SELECT, the only form that keeps the
        order."""
        below, keys, limit = self.split_order(node)
        if _is_page(node) and (not outer or _is_single_row(node)):
            below, limit = node, ""
        parts = self.open_parts(
            self.add_leaf(node) if below is node else self.lower_node(below, outer)
        )
        scope = self.expression_scope(parts.column_lookup(), outer)
        if expressions is not None:
            made = tuple(lower_expression(scope, one) for one in expressions)
            parts = parts._replace(columns=made)
        query = build_select(parts)
        order = " ORDER BY " + self.order_by(keys, scope) if keys else ""
        return DuckQuery(query.text + order + limit, query.types)

    def split_order(
        self, node: n.Sort | n.TopN | n.Limit
    ) -> tuple[n.Node, tuple[e.SortKey, ...], str]:
        match node:
            case n.Sort():
                return node.input, node.keys, ""
            case n.TopN():
                limit = self.limit_clause(node.count, node.offset, node.with_ties)
                return node.input, node.keys, limit
            case n.Limit():
                limit = self.limit_clause(node.count, node.offset, node.with_ties)
                if isinstance(node.input, n.Sort):
                    return node.input.input, node.input.keys, limit
                return node.input, (), limit

    def limit_clause(
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

    def order_by(self, keys: Iterable[e.SortKey], scope: DuckScope) -> str:
        parts = []
        for key in keys:
            text = lower_expression(scope, key.expression).text
            nulls = "FIRST" if key.nulls_first else "LAST"
            parts.append(f"({text}) {'DESC' if key.descending else 'ASC'} NULLS {nulls}")
        return ", ".join(parts)

    def distinct(self, node: n.Distinct, outer: Outer) -> DuckQuery:
        if node.on is None:
            query, alias = self.lower_node(node.input, outer), self.new_alias()
            require_groupable(query.types)
            return DuckQuery(f"SELECT DISTINCT * FROM ({query.text}) AS {alias}", query.types)
        if not isinstance(node.input, n.Sort):
            raise NotExact("DISTINCT ON without an order")
        query = self.lower_node(node.input.input, outer)
        parts = self.open_parts(query)
        scope = self.expression_scope(parts.column_lookup(), outer)
        on = ", ".join(lower_expression(scope, one).text for one in node.on)
        order = self.order_by(node.input.keys, scope)
        columns = select_list(parts.columns)
        text = f"SELECT DISTINCT ON ({on}) {columns}{parts.from_where} ORDER BY {order}"
        return DuckQuery(text, query.types)

    # -- two inputs ---------------------------------------------------------------------------

    def join(self, node: n.Join, outer: Outer) -> DuckQuery:
        if node.method is n.JoinMethod.MERGE:  # DuckDB does not need the order
            node = replace(node, left=_in_any_order(node.left), right=_in_any_order(node.right))
        left = self.open_parts(self.lower_node(node.left, outer))
        around = (left.column_lookup(), *outer) if node.lateral else outer
        found = self.lower_node(node.right, around)
        right = close_query(found, self.new_alias()) if node.lateral else self.open_parts(found)
        if node.kind in (n.JoinKind.SEMI, n.JoinKind.ANTI):
            return self.semi_join(node, left, right, outer)
        if node.kind is not n.JoinKind.INNER:  # conditions must not filter unmatched rows
            left, right = (
                close_query(build_select(one), self.new_alias()) if one.where else one
                for one in (left, right)
            )
        within = node.kind is n.JoinKind.INNER and has_subquery(node.residual)
        shown = replace(node, residual=None) if within else node
        condition = self.join_condition(shown, left, right, outer)
        lateral = "LATERAL " if node.lateral else ""
        other = right.source if right.single else f"({right.source})"
        source = f"{left.source} {node.kind.value.upper()} JOIN {lateral}{other} ON {condition}"
        columns, where = left.columns + right.columns, left.where + right.where
        parts = OpenSelect(columns, source, where, single=False)
        if within and node.residual is not None:
            # In WHERE a sub-query is joined to the matching rows; in ON to all pairs.
            text = lower_expression(
                self.expression_scope(parts.column_lookup(), outer), node.residual
            ).text
            return _open_unless(True, parts._replace(where=(*where, text)))
        return build_select(parts)

    def semi_join(
        self, node: n.Join, left: OpenSelect, right: OpenSelect, outer: Outer
    ) -> DuckQuery:
        condition = self.join_condition(node, left, right, outer)
        word = "EXISTS" if node.kind is n.JoinKind.SEMI else "NOT EXISTS"
        inner = right._replace(where=(*right.where, condition))
        test = f"{word} (SELECT 1{inner.from_where})"
        return _open_unless(True, left._replace(where=(*left.where, test)))

    def join_condition(
        self, node: n.Join, left: OpenSelect, right: OpenSelect, outer: Outer
    ) -> str:
        parts = []
        for key in node.keys:
            sign = "IS NOT DISTINCT FROM" if key.null_safe else "="
            first = lower_expression(self.expression_scope(left.column_lookup(), outer), key.left)
            second = lower_expression(
                self.expression_scope(right.column_lookup(), outer), key.right
            )
            kinds = {first.type.kind, second.type.kind}
            if len(kinds) > 1 and not kinds <= INTEGERS:
                raise NotExact("join keys of different types")
            texts = [one.text for one in (first, second)]
            if first.type.kind is Kind.CHAR and pad_char_operands(first, [second]) is None:
                texts = [f"rtrim({text}, ' ')" for text in texts]
            else:
                require_groupable((first.type, second.type))
            parts.append(f"({texts[0]}) {sign} ({texts[1]})")
        if node.residual is not None:
            both = OpenSelect(left.columns + right.columns, "")
            scope = self.expression_scope(both.column_lookup(), outer)
            parts.append(f"({lower_expression(scope, node.residual).text})")
        return " AND ".join(parts) or "TRUE"

    def set_operation(self, node: n.SetOperation, outer: Outer) -> DuckQuery:
        left, right = self.lower_node(node.left, outer), self.lower_node(node.right, outer)
        word = node.kind.value.upper() + (" ALL" if node.all else "")
        text = f"(SELECT * FROM ({left.text})) {word} (SELECT * FROM ({right.text}))"
        types = common_types(left, right)
        if not (node.all and node.kind is n.SetKind.UNION):
            require_groupable(types)
        return DuckQuery(f"SELECT * FROM ({text}) AS {self.new_alias()}", types)

    def with_ctes(self, node: n.With, outer: Outer) -> DuckQuery:
        parts = []
        for cte in node.ctes:
            query, name = self.lower_node(cte.plan, outer), f"cte_{cte.number}"
            self.ctes[cte.number] = (name, query.types)
            parts.append(f"{name} AS MATERIALIZED ({query.text})")
        body = self.lower_node(node.body, outer)
        return DuckQuery(f"WITH {', '.join(parts)} {body.text}", body.types)

    def recursive_union(self, node: n.RecursiveUnion, outer: Outer) -> DuckQuery:
        base, name = self.lower_node(node.base, outer), f"cte_{node.cte}"
        self.ctes[node.cte] = (name, base.types)
        step = self.lower_node(node.step, outer)
        word = "UNION ALL" if node.all else "UNION"
        columns = ", ".join(f"c{i}" for i in range(len(base.types)))
        text = f"{name}({columns}) AS (({base.text}) {word} ({step.text}))"
        common_types(base, step)
        return DuckQuery(f"WITH RECURSIVE {text} SELECT * FROM {name}", base.types)


def _no_rows(node: n.Values) -> DuckQuery:
    types = tuple(literal_type(None, one.type) for one in node.fields)
    columns = [f"{literal_text(None, one)} AS c{i}" for i, one in enumerate(types)]
    return DuckQuery(f"SELECT {', '.join(columns) or '1 AS nothing'} WHERE FALSE", types)


def has_subquery(expressions: object) -> bool:
    return any(isinstance(item, SUBQUERIES) for item in walk_plan_items(expressions))


def _open_unless(shut: bool, parts: OpenSelect) -> DuckQuery:
    """A SELECT, closed if `shut`: DuckDB turns sub-queries into joins over the entire FROM of their
    SELECT, so nothing more is added to a SELECT that has one."""
    query = build_select(parts)
    return query._replace(parts=None) if shut else query


def _cast_uuid(tree: exp.Expr) -> exp.Expr:
    return exp.cast(exp.Anonymous(this="hex", expressions=[tree]), "UUID")


def _no_columns(index: int) -> TypedSql:
    raise AssertionError(index)


def _require_order(below: n.Node, expressions: object) -> None:
    """DuckDB turns sub-queries into joins, which do not preserve the order of a key."""
    while isinstance(below, n.Project | n.Filter | n.Limit):
        below = below.input
    if isinstance(below, n.Scan) and below.access.ordered:
        if has_subquery(expressions):
            raise NotExact("a sub-query beside the order of a key")


def _is_page(node: n.Sort | n.TopN | n.Limit) -> bool:
    """A few rows at one end of a key: read as a separate leaf, not as a limit over a full scan."""
    if not isinstance(node, n.Limit) or node.offset is not None or node.with_ties:
        return False
    scan, count = node.input, node.count
    if not isinstance(scan, n.Scan) or not scan.access.ordered or depends_on_rows(scan):
        return False
    few = isinstance(count, e.Literal) and count.value is not None and count.value <= PAGE_ROWS_MAX
    return few and scan.residual is None


def _in_any_order(node: n.Node) -> n.Node:
    if isinstance(node, n.Project | n.Filter):
        return replace(node, input=_in_any_order(node.input))
    if not isinstance(node, n.Scan):
        return node
    return replace(node, access=replace(node.access, ordered=False))


def _is_single_row(node: n.Node) -> bool:
    """Whether it returns at most one row, so that no order can be lost."""
    return isinstance(node, n.Limit) and node.count == e.Literal(1, BIGINT)


def depends_on_rows(node: n.Scan) -> bool:
    """Whether the access reads rows around the scan; those of its own sub-queries do not count."""
    for item, level in walk_items_with_depth(node.access):
        match item:
            case e.OuterColumn() if item.depth > level:
                return True
            case e.Column() if level == 0:
                return True
    return False
