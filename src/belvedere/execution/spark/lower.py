"""Lowering of plans to Spark DataFrames: every node over the DataFrames of its inputs.

What Spark answers exactly as PostgreSQL does is native: expressions as Spark SQL, joins, groups
and sets by Spark's own operators. The rest runs by our Python operators inside the tasks:

- an expression without a native form becomes a column computed by `mapInArrow`;
- an operator without one gets its inputs exchanged by its key (group, partition, join key), so
  that one task has all rows of a key, and runs over them there;
- an operator without a key (LIMIT, a correlated sub-query) gets all rows in one task.

`report` says which is which; in Spark's EXPLAIN the Python parts are the MapInArrow nodes. Rows of
a DataFrame have no order, so a Sort affects only the node directly above it; ties are broken by all
columns, as in views, so that the same rows always give the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from belvedere.catalog.catalog import empty
from belvedere.errors import Unsupported
from belvedere.execution.direct.compile import compile_plan
from belvedere.execution.direct.context import Context
from belvedere.execution.direct.dependence import dependence_of
from belvedere.execution.spark.expressions import Scope, lower
from belvedere.execution.spark.forms import aggregate_form, comparable
from belvedere.execution.spark.frames import Frame, Frames, leaf_number, schema_of
from belvedere.execution.spark.operators import Computed, Operator, Side, bare_run
from belvedere.execution.spark.types import NotNative, Typed, carrier, is_native
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.expression_printer import print_expression
from belvedere.plan.looks import total_keys
from belvedere.types import Kind, SqlType

Leaf = Callable[[n.Scan], Frame]
"""Reads the rows of a Scan, with columns as its fields; the lowering applies the Scan's filter."""

_SPARK_JOIN = {
    n.JoinKind.INNER: "inner",
    n.JoinKind.LEFT: "left",
    n.JoinKind.RIGHT: "right",
    n.JoinKind.FULL: "full",
    n.JoinKind.SEMI: "left_semi",
    n.JoinKind.ANTI: "left_anti",
}


@dataclass(slots=True)
class Report:
    """The parts of a plan that run in Python, and why: for EXPLAIN. `ways` has the notes by the
    `id()` of the nodes of `plan`, the plan as lowered: an empty list for a native node."""

    python: list[str] = field(default_factory=list)
    plan: n.Node | None = None
    ways: dict[int, list[str]] = field(default_factory=dict)

    def note(self, where: str, reason: str, node: n.Node | None = None) -> None:
        line = f"{where}: {reason}"
        if line not in self.python:
            self.python.append(line)
        if node is not None and line not in (known := self.ways.setdefault(id(node), [])):
            known.append(line)


@dataclass(slots=True)
class Lowering:
    """Lowers one plan. Without `native`, every expression runs in Python: for values that Spark's
    own types cannot hold."""

    frames: Frames
    leaf: Leaf
    native: bool = True
    report: Report = field(default_factory=Report)
    _ctes: dict[int, Frame] = field(default_factory=dict)
    _nodes: list[n.Node] = field(default_factory=list)

    def rows(self, plan: n.Node) -> Frame:
        """Lower a plan: its rows, as a bag, with columns in the order of its fields."""
        self.report.plan = determined(plan)
        return self.frame(self.report.plan)

    def frame(self, node: n.Node) -> Frame:
        self._nodes.append(node)
        self.report.ways.setdefault(id(node), [])
        try:
            return self.lowered_node(node)
        finally:
            self._nodes.pop()

    def note(self, where: str, reason: str) -> None:
        """Note a reason for the node that is being lowered."""
        self.report.note(where, reason, self._nodes[-1] if self._nodes else None)

    def lowered_node(self, node: n.Node) -> Frame:
        if any(map(transform.has_subplan, transform.own_expressions(node))):
            return self.gather(node, "a sub-query")
        match node:
            case n.Scan():
                return self.scan(node)
            case n.Sort() | n.Lock():
                return self.frame(node.input)
            case n.Filter():
                return self.filtered(self.frame(node.input), node.condition)
            case n.Project():
                frame, columns = self.columns(self.frame(node.input), node.expressions)
                return self.frames.selected(frame.data, columns)
            case n.Values():
                return self.local(node)
            case n.TableFunction() if dependence_of(node).nearest is None:
                return self.local(node)
            case n.Aggregate():
                return self.aggregate(node)
            case n.Join():
                return self.join(node)
            case n.SetOperation():
                return self.set_operation(node)
            case n.Distinct(on=None):
                return self.distinct(self.frame(node.input), node)
            case _:
                return self.rarer(node)

    def rarer(self, node: n.Node) -> Frame:
        match node:
            case n.Window():
                return self.keyed(node, node.partition, "window functions run in Python")
            case n.Distinct():
                return self.keyed(node, node.on or (), "DISTINCT ON runs in Python")
            case n.Limit() | n.TopN():
                return self.keyed(node, (), "LIMIT needs all rows in one place")
            case n.With():
                for cte in node.ctes:
                    self._ctes[cte.number] = self.frame(cte.plan)
                return self.frame(node.body)
            case n.CteScan() if node.cte in self._ctes:
                return self.frames.fresh(self._ctes[node.cte])
            case n.RecursiveUnion():
                return self.gather(node, "recursion")
            case _:
                raise Unsupported("plan node has no form in Spark", node=type(node).__name__)

    # -- leaves and rows ----------------------------------------------------------------------

    def scan(self, node: n.Scan) -> Frame:
        bare = n.Scan(node.relation, node.name, node.slots, node.fields)
        frame = self.frames.fresh(self.leaf(bare))
        return frame if node.filter is None else self.filtered(frame, node.filter)

    def local(self, node: n.Values | n.TableFunction) -> Frame:
        run = bare_run(self.frames.environment)
        rows = list(compile_plan(empty(), node)(run))
        return self.frames.local(rows, tuple(one.type for one in node.fields))

    def filtered(self, frame: Frame, condition: e.Expression) -> Frame:
        width = len(frame.names)
        made, (typed,) = self.columns(frame, (condition,))
        kept = made.data.where(f.expr(typed.text))
        if len(made.names) == width:
            return replace(frame, data=kept)
        return self.frames.selected(kept, made.columns[:width])

    def columns(
        self, frame: Frame, expressions: Sequence[e.Expression]
    ) -> tuple[Frame, list[Typed]]:
        """Lower expressions over a frame. The frame that is returned has additional columns for
        those that are computed in Python."""
        found: list[Typed | None] = [self.lowered(frame, one) for one in expressions]
        missing = tuple(one for one, text in zip(expressions, found) if text is None)
        if not missing:
            return frame, [one for one in found if one is not None]
        made = self.frames.names(len(missing))
        types = self.frames.carried(tuple(one.type for one in missing))
        around = self.frames.environment
        step = Computed(missing, frame.types, frame.names, made, types, around)
        schema = schema_of((*frame.names, *made), (*frame.types, *types))
        if not frame.names:
            schema = f"{schema_of((), ())}, {schema}"
        data = frame.data.mapInArrow(step, schema)
        whole = Frame(data, (*frame.names, *made), (*frame.types, *types))
        computed = iter(whole.columns[len(frame.names) :])
        return whole, [next(computed) if one is None else one for one in found]

    def lowered(self, frame: Frame, expression: e.Expression) -> Typed | None:
        if not self.native and not isinstance(expression, e.Column):
            return None
        try:
            return lower(Scope(frame.columns, self.evaluate), expression)
        except NotNative as found:
            text = print_expression(expression)
            self.note(f"expression {text}, {self.in_task(frame, expression)}", found.reason)
            return None

    def in_task(self, frame: Frame, expression: e.Expression) -> str:
        """How a task evaluates an expression that is not native, as text for the report."""
        (result,) = self.frames.carried((expression.type,))
        step = Computed(
            (expression,), frame.types, frame.names, (), (result,), self.frames.environment
        )
        return "over whole columns" if step.is_columnar() else "row by row"

    def evaluate(self, expression: e.Expression) -> object:
        catalog = empty()
        context = Context(catalog, lambda node: compile_plan(catalog, node))
        return context.value_of(expression)(bare_run(self.frames.environment))(())

    # -- groups -------------------------------------------------------------------------------

    def aggregate(self, node: n.Aggregate) -> Frame:
        if node.grouping_sets is not None or node.groupings:
            return self.keyed(node, (), "grouping sets run in Python")
        if self.native:
            try:
                return self.native_aggregate(node)
            except NotNative as found:
                return self.keyed(node, node.groups, found.reason)
        return self.keyed(node, node.groups, "values beyond Spark's types")

    def native_aggregate(self, node: n.Aggregate) -> Frame:
        for call in node.aggregates:
            if call.order_by or call.function.direct is not None:
                raise NotNative(f"{call.function.name} of ordered values runs in Python")
            declared = tuple(one.type for one in call.arguments)
            if call.function.name not in _NATIVE_AGGREGATES:
                aggregate_form(call.function, declared, call.type)  # before the input is lowered
        below = self.frame(node.input)
        wanted = [*node.groups]
        for call in node.aggregates:
            wanted += call.arguments
            wanted += () if call.filter is None else (call.filter,)
        frame, columns = self.columns(below, wanted)
        groups, rest = columns[: len(node.groups)], iter(columns[len(node.groups) :])
        if not all(is_native(one.type) for one in groups):
            raise NotNative("groups whose equal values may look different")
        values = [_aggregate_text(call, rest) for call in node.aggregates]
        if not values:
            kept = self.frames.selected(frame.data, groups)
            return replace(kept, data=kept.data.distinct())
        names = self.frames.names(len(groups) + len(values))
        keys = [f.expr(one.text).alias(name) for one, name in zip(groups, names)]
        aggregates = [
            f.expr(one.text).alias(name) for one, name in zip(values, names[len(groups) :])
        ]
        data = frame.data.groupBy(*keys).agg(*aggregates)
        return Frame(data, names, tuple(one.type for one in [*groups, *values]))

    def distinct(self, frame: Frame, node: n.Node) -> Frame:
        if all(map(is_native, frame.types)) and frame.names:
            return replace(frame, data=frame.data.distinct())
        leaf = given(0, node)
        self.note("distinct", "rows whose equal values may look different")
        data, sides = self.frames.exchanged([frame], [all_columns(frame.types)])
        return self.operated(n.Distinct(_ordered(leaf)), data, sides)

    # -- two inputs ---------------------------------------------------------------------------

    def join(self, node: n.Join) -> Frame:
        if node.lateral:
            return self.lateral(node)
        try:
            if not self.native:
                raise NotNative("values beyond Spark's types")
            return self.native_join(node)
        except NotNative as found:
            reason = found.reason
        sides = [self.frame(node.left), self.frame(node.right)]
        made = replace(node, left=given(0, node.left), right=given(1, node.right))
        self.note(f"{node.kind.value} join", reason)
        if not node.keys:
            data, tagged = self.frames.gathered(sides)
            return self.operated(made, data, tagged, whole=True)
        keys = [tuple(key.left for key in node.keys), tuple(key.right for key in node.keys)]
        data, tagged = self.frames.exchanged(sides, keys)
        return self.operated(made, data, tagged)

    def native_join(self, node: n.Join) -> Frame:
        left, right, widths, parts = self.sides_of(node)
        both = left.columns[: widths[0]] + right.columns[: widths[1]]
        later: e.Expression | None = None
        if node.residual is not None:
            if node.kind is n.JoinKind.INNER:
                later = node.residual
            else:
                parts.append(lower(Scope(both, self.evaluate), node.residual).text)
        condition = f.expr(" AND ".join(parts) or "TRUE")
        data = left.data.join(right.data, condition, _SPARK_JOIN[node.kind])
        kept = both if node.kind not in (n.JoinKind.SEMI, n.JoinKind.ANTI) else both[: widths[0]]
        joined = self.frames.selected(data, kept)
        return joined if later is None else self.filtered(joined, later)

    def sides_of(self, node: n.Join) -> tuple[Frame, Frame, tuple[int, int], list[str]]:
        """Both sides of a join with the columns of the keys after their own, the number of their
        own columns, and the conditions of the keys."""
        left, right = (self.frames.fresh(self.frame(one)) for one in (node.left, node.right))
        widths = len(left.names), len(right.names)
        left, left_keys = self.columns(left, [key.left for key in node.keys])
        right, right_keys = self.columns(right, [key.right for key in node.keys])
        parts = []
        for key, one, other in zip(node.keys, left_keys, right_keys):
            if not comparable(one.type, other.type):
                raise NotNative("join keys whose equal values may look different")
            parts.append(f"({one.text} {'<=>' if key.null_safe else '='} {other.text})")
        return left, right, widths, parts

    def lateral(self, node: n.Join) -> Frame:
        """Lower a lateral join; one that makes rows of each left row separately needs no
        exchange."""
        if any(isinstance(one, n.Scan | n.CteScan) for one in transform.walk(node.right)):
            return self.gather(node, "a lateral join of tables")
        if node.kind not in (n.JoinKind.INNER, n.JoinKind.LEFT):
            raise Unsupported("lateral join of this kind in Spark", kind=node.kind.value)
        self.note("lateral join", "runs in Python")
        data, sides = self.frames.in_place(self.frame(node.left))
        return self.operated(replace(node, left=given(0, node.left)), data, sides)

    def set_operation(self, node: n.SetOperation) -> Frame:
        left, right = self.aligned(self.frame(node.left), self.frame(node.right))
        if node.kind is n.SetKind.UNION:
            union = replace(left, data=left.data.union(right.data))
            return union if node.all else self.distinct(union, node)
        if all(map(is_native, left.types)) and left.names:
            word = ("intersect" if node.kind is n.SetKind.INTERSECT else "except") + (
                "All" if node.all else ""
            )
            if word == "except":
                return replace(left, data=left.data.distinct().subtract(right.data))
            return replace(left, data=getattr(left.data, word)(right.data))
        self.note(node.kind.value, "rows whose equal values may look different")
        leaves = _ordered(given(0, node.left)), _ordered(given(1, node.right))
        data, sides = self.frames.exchanged([left, right], [all_columns(left.types)] * 2)
        return self.operated(transform.with_inputs(node, leaves), data, sides)

    def aligned(self, left: Frame, right: Frame) -> tuple[Frame, Frame]:
        """Cast both to common carriers: decimals of different bounds become digits."""
        types = tuple(_meeting(one, other) for one, other in zip(left.types, right.types))
        return self.recast(left, types), self.recast(right, types)

    def recast(self, frame: Frame, types: tuple[SqlType, ...]) -> Frame:
        columns = [
            one
            if carrier(one.type) == carrier(wanted)
            else Typed(f"CAST({one.text} AS {carrier(wanted)})", wanted)
            for one, wanted in zip(frame.columns, types)
        ]
        return self.frames.selected(frame.data, columns)

    # -- in Python ----------------------------------------------------------------------------

    def keyed(self, node: n.Node, keys: tuple[e.Expression, ...], reason: str) -> Frame:
        """Run an operator of one input in Python, over the rows of each key; without keys, over all
        rows."""
        self.note(type(node).__name__.lower(), reason)
        absorbed, below = _absorbed(node)
        frame = self.frame(below)
        if keys:
            data, sides = self.frames.exchanged([frame], [keys])
            return self.operated(absorbed, data, sides)
        data, sides = self.frames.gathered([frame])
        return self.operated(absorbed, data, sides, whole=True)

    def gather(self, node: n.Node, reason: str) -> Frame:
        """Run this subtree of the plan in one task, over all rows of its tables."""
        self.note(f"{type(node).__name__.lower()} in one task", reason)
        found: list[Frame] = []

        def leaf(one: n.Node) -> n.Node:
            if isinstance(one, n.Scan):
                found.append(self.leaf(n.Scan(one.relation, one.name, one.slots, one.fields)))
                made: n.Node = given(len(found) - 1, one)
                return made if one.filter is None else n.Filter(made, deeper(one.filter))
            if isinstance(one, n.CteScan) and one.cte in self._ctes:
                found.append(self._ctes[one.cte])
                return given(len(found) - 1, one)
            new = transform.rebuild_expressions(one, deeper)
            return transform.rebuild_inputs(new, leaf)

        def deeper(one: e.Expression) -> e.Expression:
            return transform.with_subplan(transform.rebuild(one, deeper), leaf)

        plan = leaf(node)
        data, sides = self.frames.gathered(found or [self.frames.local([()], ())])
        return self.operated(plan, data, sides, whole=True)

    def operated(
        self, plan: n.Node, data: DataFrame, sides: tuple[Side, ...], *, whole: bool = False
    ) -> Frame:
        types = self.frames.carried(tuple(one.type for one in plan.fields))
        names = self.frames.names(len(types))
        step = Operator(plan, sides, types, names, self.frames.environment, whole)
        return Frame(data.mapInArrow(step, schema_of(names, types)), names, types)


_NATIVE_AGGREGATES = frozenset({"sum", "min", "max"})
"""Whether these are native depends on the bounds of their arguments."""


def _aggregate_text(call: e.AggregateCall, columns: Iterator[Typed]) -> Typed:
    arguments = [next(columns) for _ in call.arguments]
    after = ""
    if call.filter is not None:
        after = f" FILTER (WHERE {next(columns).text})"
    types = tuple(one.type for one in arguments)
    template, sql_type = aggregate_form(call.function, types, call.type)
    if call.distinct:
        if not all(map(is_native, types)):
            raise NotNative("distinct values that may look different")
        template = template.replace("({0})", "(DISTINCT {0})").replace("(CAST", "(DISTINCT CAST")
    return Typed(template.format(*(one.text for one in arguments)) + after, sql_type)


def _meeting(one: SqlType, other: SqlType) -> SqlType:
    if carrier(one) == carrier(other):
        return one
    if one.kind is Kind.NUMERIC:
        return SqlType(Kind.NUMERIC)
    raise Unsupported("columns of different types meet", types=f"{one}, {other}")


def given(number: int, node: n.Node) -> n.Changes:
    """The leaf that stands for an input of an operator that runs in a task."""
    return n.Changes(leaf_number(number), "rows", (), node.fields)


def all_columns(types: Sequence[SqlType]) -> tuple[e.Expression, ...]:
    return tuple(e.Column(i, one) for i, one in enumerate(types))


def _absorbed(node: n.Node) -> tuple[n.Node, n.Node]:
    """The operator over a leaf, together with a Sort directly below it; and the node below them."""
    (below,) = transform.inputs(node)
    if isinstance(below, n.Sort) or (
        isinstance(node, n.Limit) and isinstance(below, n.Project | n.Filter)
    ):
        inner, rest = _absorbed(below)
        return transform.with_inputs(node, (inner,)), rest
    return transform.with_inputs(node, (given(0, below),)), below


def determined(node: n.Node) -> n.Node:
    """Make every order of the plan total, so that the same rows always give the same result."""

    def expression(one: e.Expression) -> e.Expression:
        return transform.with_subplan(transform.rebuild(one, expression), determined)

    node = transform.rebuild_inputs(transform.rebuild_expressions(node, expression), determined)
    match node:
        case n.Aggregate() | n.Window() if not isinstance(node.input, n.Sort):
            return replace(node, input=_ordered(node.input))
        case n.TopN(with_ties=False):
            return replace(node, keys=node.keys + total_keys(node.fields))
        case n.Limit(with_ties=False) | n.Distinct(on=tuple()):
            below = node.input
            if isinstance(below, n.Sort):
                keys = below.keys + total_keys(below.fields)
                return replace(node, input=n.Sort(below.input, keys))
            return replace(node, input=_ordered(below))
        case _:
            return node


def _ordered(node: n.Node) -> n.Sort:
    """Sort by all columns: of equal rows with different representations, always the same one
    is chosen."""
    return n.Sort(node, total_keys(node.fields))
