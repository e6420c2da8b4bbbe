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

from belvedere.catalog.catalog import empty_catalog
from belvedere.errors import Unsupported
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.python.context import CompileContext
from belvedere.execution.python.expressions.outer_references import dependence_of
from belvedere.execution.spark.dataframes import (
    FrameBuilder,
    TypedFrame,
    leaf_number,
    schema_of,
)
from belvedere.execution.spark.expressions import SparkScope, lower_expression
from belvedere.execution.spark.native_functions import aggregate_form, is_comparable
from belvedere.execution.spark.operators import (
    ComputeTask,
    OperatorInput,
    OperatorTask,
    run_without_store,
)
from belvedere.execution.spark.total_order import _sort_totally, make_order_total
from belvedere.execution.spark.types import NotNative, SparkExpression, is_native, spark_carrier
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.expression_printer import print_expression
from belvedere.types import Kind, SqlType

ScanReader = Callable[[n.Scan], TypedFrame]
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
class LoweringReport:
    """The parts of a plan that run in Python, and why: for EXPLAIN. `notes_by_node` has the notes
    by the `id()` of the nodes of `plan`, the plan as lowered: an empty list for a native node."""

    python_notes: list[str] = field(default_factory=list)
    plan: n.Node | None = None
    notes_by_node: dict[int, list[str]] = field(default_factory=dict)

    def add_note(self, where: str, reason: str, node: n.Node | None = None) -> None:
        line = f"{where}: {reason}"
        if line not in self.python_notes:
            self.python_notes.append(line)
        if node is not None and line not in (known := self.notes_by_node.setdefault(id(node), [])):
            known.append(line)


@dataclass(slots=True)
class SparkLowering:
    """Lowers one plan. Without `native`, every expression runs in Python: for values that Spark's
    own types cannot hold."""

    frames: FrameBuilder
    read_scan: ScanReader
    native: bool = True
    report: LoweringReport = field(default_factory=LoweringReport)
    _ctes: dict[int, TypedFrame] = field(default_factory=dict)
    _nodes: list[n.Node] = field(default_factory=list)

    def lower_plan(self, plan: n.Node) -> TypedFrame:
        """Lower a plan: its rows, as a bag, with columns in the order of its fields."""
        self.report.plan = make_order_total(plan)
        return self.lower_node(self.report.plan)

    def lower_node(self, node: n.Node) -> TypedFrame:
        self._nodes.append(node)
        self.report.notes_by_node.setdefault(id(node), [])
        try:
            return self.dispatch_node(node)
        finally:
            self._nodes.pop()

    def add_note(self, where: str, reason: str) -> None:
        """Note a reason for the node that is being lowered."""
        self.report.add_note(where, reason, self._nodes[-1] if self._nodes else None)

    def dispatch_node(self, node: n.Node) -> TypedFrame:
        if any(map(transform.has_subplan, transform.own_expressions(node))):
            return self.run_in_one_task(node, "a sub-query")
        match node:
            case n.Scan():
                return self.lower_scan(node)
            case n.Sort() | n.Lock():
                return self.lower_node(node.input)
            case n.Filter():
                return self.filter_frame(self.lower_node(node.input), node.condition)
            case n.Project():
                frame, columns = self.lower_columns(self.lower_node(node.input), node.expressions)
                return self.frames.select_columns(frame.data, columns)
            case n.Values():
                return self.lower_constant_rows(node)
            case n.TableFunction() if dependence_of(node).nearest is None:
                return self.lower_constant_rows(node)
            case n.Aggregate():
                return self.lower_aggregate(node)
            case n.Join():
                return self.lower_join(node)
            case n.SetOperation():
                return self.lower_set_operation(node)
            case n.Distinct(on=None):
                return self.lower_distinct(self.lower_node(node.input), node)
            case _:
                return self.dispatch_rare_node(node)

    def dispatch_rare_node(self, node: n.Node) -> TypedFrame:
        match node:
            case n.Window():
                return self.run_by_key(node, node.partition, "window functions run in Python")
            case n.Distinct():
                return self.run_by_key(node, node.on or (), "DISTINCT ON runs in Python")
            case n.Limit() | n.TopN():
                return self.run_by_key(node, (), "LIMIT needs all rows in one place")
            case n.With():
                for cte in node.ctes:
                    self._ctes[cte.number] = self.lower_node(cte.plan)
                return self.lower_node(node.body)
            case n.CteScan() if node.cte in self._ctes:
                return self.frames.rename_columns(self._ctes[node.cte])
            case n.RecursiveUnion():
                return self.run_in_one_task(node, "recursion")
            case _:
                raise Unsupported("plan node has no form in Spark", node=type(node).__name__)

    # -- leaves and rows ----------------------------------------------------------------------

    def lower_scan(self, node: n.Scan) -> TypedFrame:
        bare = n.Scan(node.relation, node.name, node.slots, node.fields)
        frame = self.frames.rename_columns(self.read_scan(bare))
        return frame if node.filter is None else self.filter_frame(frame, node.filter)

    def lower_constant_rows(self, node: n.Values | n.TableFunction) -> TypedFrame:
        run = run_without_store(self.frames.environment)
        rows = list(compile_plan(empty_catalog(), node)(run))
        return self.frames.local_frame(rows, tuple(one.type for one in node.fields))

    def filter_frame(self, frame: TypedFrame, condition: e.Expression) -> TypedFrame:
        width = len(frame.names)
        made, (typed,) = self.lower_columns(frame, (condition,))
        kept = made.data.where(f.expr(typed.text))
        if len(made.names) == width:
            return replace(frame, data=kept)
        return self.frames.select_columns(kept, made.columns[:width])

    def lower_columns(
        self, frame: TypedFrame, expressions: Sequence[e.Expression]
    ) -> tuple[TypedFrame, list[SparkExpression]]:
        """Lower expressions over a frame. The frame that is returned has additional columns for
        those that are computed in Python."""
        found: list[SparkExpression | None] = [self.lower_native(frame, one) for one in expressions]
        missing = tuple(one for one, text in zip(expressions, found) if text is None)
        if not missing:
            return frame, [one for one in found if one is not None]
        made = self.frames.new_names(len(missing))
        types = self.frames.carrier_types(tuple(one.type for one in missing))
        around = self.frames.environment
        step = ComputeTask(missing, frame.types, frame.names, made, types, around)
        schema = schema_of((*frame.names, *made), (*frame.types, *types))
        if not frame.names:
            schema = f"{schema_of((), ())}, {schema}"
        data = frame.data.mapInArrow(step, schema)
        whole = TypedFrame(data, (*frame.names, *made), (*frame.types, *types))
        computed = iter(whole.columns[len(frame.names) :])
        return whole, [next(computed) if one is None else one for one in found]

    def lower_native(self, frame: TypedFrame, expression: e.Expression) -> SparkExpression | None:
        if not self.native and not isinstance(expression, e.Column):
            return None
        try:
            return lower_expression(SparkScope(frame.columns, self.evaluate_constant), expression)
        except NotNative as found:
            text = print_expression(expression)
            self.add_note(
                f"expression {text}, {self.describe_evaluation(frame, expression)}", found.reason
            )
            return None

    def describe_evaluation(self, frame: TypedFrame, expression: e.Expression) -> str:
        """How a task evaluates an expression that is not native, as text for the report."""
        (result,) = self.frames.carrier_types((expression.type,))
        step = ComputeTask(
            (expression,), frame.types, frame.names, (), (result,), self.frames.environment
        )
        return "over whole columns" if step.is_columnar() else "row by row"

    def evaluate_constant(self, expression: e.Expression) -> object:
        catalog = empty_catalog()
        context = CompileContext(catalog, lambda node: compile_plan(catalog, node))
        return context.value_of(expression)(run_without_store(self.frames.environment))(())

    # -- groups -------------------------------------------------------------------------------

    def lower_aggregate(self, node: n.Aggregate) -> TypedFrame:
        if node.grouping_sets is not None or node.groupings:
            return self.run_by_key(node, (), "grouping sets run in Python")
        if self.native:
            try:
                return self.lower_native_aggregate(node)
            except NotNative as found:
                return self.run_by_key(node, node.groups, found.reason)
        return self.run_by_key(node, node.groups, "values beyond Spark's types")

    def lower_native_aggregate(self, node: n.Aggregate) -> TypedFrame:
        for call in node.aggregates:
            if call.order_by or call.function.direct is not None:
                raise NotNative(f"{call.function.name} of ordered values runs in Python")
            declared = tuple(one.type for one in call.arguments)
            if call.function.name not in _NATIVE_AGGREGATES:
                aggregate_form(call.function, declared, call.type)  # before the input is lowered
        below = self.lower_node(node.input)
        wanted = [*node.groups]
        for call in node.aggregates:
            wanted += call.arguments
            wanted += () if call.filter is None else (call.filter,)
        frame, columns = self.lower_columns(below, wanted)
        groups, rest = columns[: len(node.groups)], iter(columns[len(node.groups) :])
        if not all(is_native(one.type) for one in groups):
            raise NotNative("groups whose equal values may look different")
        values = [_aggregate_text(call, rest) for call in node.aggregates]
        if not values:
            kept = self.frames.select_columns(frame.data, groups)
            return replace(kept, data=kept.data.distinct())
        names = self.frames.new_names(len(groups) + len(values))
        keys = [f.expr(one.text).alias(name) for one, name in zip(groups, names)]
        aggregates = [
            f.expr(one.text).alias(name) for one, name in zip(values, names[len(groups) :])
        ]
        data = frame.data.groupBy(*keys).agg(*aggregates)
        return TypedFrame(data, names, tuple(one.type for one in [*groups, *values]))

    def lower_distinct(self, frame: TypedFrame, node: n.Node) -> TypedFrame:
        if all(map(is_native, frame.types)) and frame.names:
            return replace(frame, data=frame.data.distinct())
        leaf = input_leaf(0, node)
        self.add_note("distinct", "rows whose equal values may look different")
        data, sides = self.frames.exchange_by_key([frame], [all_columns(frame.types)])
        return self.apply_operator(n.Distinct(_sort_totally(leaf)), data, sides)

    # -- two inputs ---------------------------------------------------------------------------

    def lower_join(self, node: n.Join) -> TypedFrame:
        if node.lateral:
            return self.lower_lateral_join(node)
        try:
            if not self.native:
                raise NotNative("values beyond Spark's types")
            return self.lower_native_join(node)
        except NotNative as found:
            reason = found.reason
        sides = [self.lower_node(node.left), self.lower_node(node.right)]
        made = replace(node, left=input_leaf(0, node.left), right=input_leaf(1, node.right))
        self.add_note(f"{node.kind.value} join", reason)
        if not node.keys:
            data, tagged = self.frames.gather_rows(sides)
            return self.apply_operator(made, data, tagged, whole=True)
        keys = [tuple(key.left for key in node.keys), tuple(key.right for key in node.keys)]
        data, tagged = self.frames.exchange_by_key(sides, keys)
        return self.apply_operator(made, data, tagged)

    def lower_native_join(self, node: n.Join) -> TypedFrame:
        left, right, widths, parts = self.lower_join_inputs(node)
        both = left.columns[: widths[0]] + right.columns[: widths[1]]
        later: e.Expression | None = None
        if node.residual is not None:
            if node.kind is n.JoinKind.INNER:
                later = node.residual
            else:
                parts.append(
                    lower_expression(SparkScope(both, self.evaluate_constant), node.residual).text
                )
        condition = f.expr(" AND ".join(parts) or "TRUE")
        data = left.data.join(right.data, condition, _SPARK_JOIN[node.kind])
        kept = both if node.kind not in (n.JoinKind.SEMI, n.JoinKind.ANTI) else both[: widths[0]]
        joined = self.frames.select_columns(data, kept)
        return joined if later is None else self.filter_frame(joined, later)

    def lower_join_inputs(
        self, node: n.Join
    ) -> tuple[TypedFrame, TypedFrame, tuple[int, int], list[str]]:
        """Both sides of a join with the columns of the keys after their own, the number of their
        own columns, and the conditions of the keys."""
        left, right = (
            self.frames.rename_columns(self.lower_node(one)) for one in (node.left, node.right)
        )
        widths = len(left.names), len(right.names)
        left, left_keys = self.lower_columns(left, [key.left for key in node.keys])
        right, right_keys = self.lower_columns(right, [key.right for key in node.keys])
        parts = []
        for key, one, other in zip(node.keys, left_keys, right_keys):
            if not is_comparable(one.type, other.type):
                raise NotNative("join keys whose equal values may look different")
            parts.append(f"({one.text} {'<=>' if key.null_safe else '='} {other.text})")
        return left, right, widths, parts

    def lower_lateral_join(self, node: n.Join) -> TypedFrame:
        """Lower a lateral join; one that makes rows of each left row separately needs no
        exchange."""
        if any(isinstance(one, n.Scan | n.CteScan) for one in transform.walk_plan(node.right)):
            return self.run_in_one_task(node, "a lateral join of tables")
        if node.kind not in (n.JoinKind.INNER, n.JoinKind.LEFT):
            raise Unsupported("lateral join of this kind in Spark", kind=node.kind.value)
        self.add_note("lateral join", "runs in Python")
        data, sides = self.frames.tag_without_exchange(self.lower_node(node.left))
        return self.apply_operator(replace(node, left=input_leaf(0, node.left)), data, sides)

    def lower_set_operation(self, node: n.SetOperation) -> TypedFrame:
        left, right = self.align_types(self.lower_node(node.left), self.lower_node(node.right))
        if node.kind is n.SetKind.UNION:
            union = replace(left, data=left.data.union(right.data))
            return union if node.all else self.lower_distinct(union, node)
        if all(map(is_native, left.types)) and left.names:
            word = ("intersect" if node.kind is n.SetKind.INTERSECT else "except") + (
                "All" if node.all else ""
            )
            if word == "except":
                return replace(left, data=left.data.distinct().subtract(right.data))
            return replace(left, data=getattr(left.data, word)(right.data))
        self.add_note(node.kind.value, "rows whose equal values may look different")
        leaves = _sort_totally(input_leaf(0, node.left)), _sort_totally(input_leaf(1, node.right))
        data, sides = self.frames.exchange_by_key([left, right], [all_columns(left.types)] * 2)
        return self.apply_operator(transform.with_inputs(node, leaves), data, sides)

    def align_types(self, left: TypedFrame, right: TypedFrame) -> tuple[TypedFrame, TypedFrame]:
        """Cast both to common carriers: decimals of different bounds become digits."""
        types = tuple(
            _common_carrier_type(one, other) for one, other in zip(left.types, right.types)
        )
        return self.cast_columns(left, types), self.cast_columns(right, types)

    def cast_columns(self, frame: TypedFrame, types: tuple[SqlType, ...]) -> TypedFrame:
        columns = [
            one
            if spark_carrier(one.type) == spark_carrier(wanted)
            else SparkExpression(f"CAST({one.text} AS {spark_carrier(wanted)})", wanted)
            for one, wanted in zip(frame.columns, types)
        ]
        return self.frames.select_columns(frame.data, columns)

    # -- in Python ----------------------------------------------------------------------------

    def run_by_key(self, node: n.Node, keys: tuple[e.Expression, ...], reason: str) -> TypedFrame:
        """Run an operator of one input in Python, over the rows of each key; without keys, over all
        rows."""
        self.add_note(type(node).__name__.lower(), reason)
        absorbed, below = _split_operator(node)
        frame = self.lower_node(below)
        if keys:
            data, sides = self.frames.exchange_by_key([frame], [keys])
            return self.apply_operator(absorbed, data, sides)
        data, sides = self.frames.gather_rows([frame])
        return self.apply_operator(absorbed, data, sides, whole=True)

    def run_in_one_task(self, node: n.Node, reason: str) -> TypedFrame:
        """Run this subtree of the plan in one task, over all rows of its tables."""
        self.add_note(f"{type(node).__name__.lower()} in one task", reason)
        found: list[TypedFrame] = []

        def replace_leaves(one: n.Node) -> n.Node:
            if isinstance(one, n.Scan):
                found.append(self.read_scan(n.Scan(one.relation, one.name, one.slots, one.fields)))
                made: n.Node = input_leaf(len(found) - 1, one)
                return (
                    made if one.filter is None else n.Filter(made, replace_in_subplan(one.filter))
                )
            if isinstance(one, n.CteScan) and one.cte in self._ctes:
                found.append(self._ctes[one.cte])
                return input_leaf(len(found) - 1, one)
            new = transform.rebuild_expressions(one, replace_in_subplan)
            return transform.rebuild_inputs(new, replace_leaves)

        def replace_in_subplan(one: e.Expression) -> e.Expression:
            return transform.with_subplan(
                transform.rebuild_operands(one, replace_in_subplan), replace_leaves
            )

        plan = replace_leaves(node)
        data, sides = self.frames.gather_rows(found or [self.frames.local_frame([()], ())])
        return self.apply_operator(plan, data, sides, whole=True)

    def apply_operator(
        self,
        plan: n.Node,
        data: DataFrame,
        sides: tuple[OperatorInput, ...],
        *,
        whole: bool = False,
    ) -> TypedFrame:
        types = self.frames.carrier_types(tuple(one.type for one in plan.fields))
        names = self.frames.new_names(len(types))
        step = OperatorTask(plan, sides, types, names, self.frames.environment, whole)
        return TypedFrame(data.mapInArrow(step, schema_of(names, types)), names, types)


_NATIVE_AGGREGATES = frozenset({"sum", "min", "max"})
"""Whether these are native depends on the bounds of their arguments."""


def _aggregate_text(call: e.AggregateCall, columns: Iterator[SparkExpression]) -> SparkExpression:
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
    return SparkExpression(template.format(*(one.text for one in arguments)) + after, sql_type)


def _common_carrier_type(one: SqlType, other: SqlType) -> SqlType:
    if spark_carrier(one) == spark_carrier(other):
        return one
    if one.kind is Kind.NUMERIC:
        return SqlType(Kind.NUMERIC)
    raise Unsupported("columns of different types meet", types=f"{one}, {other}")


def input_leaf(number: int, node: n.Node) -> n.Changes:
    """The leaf that stands for an input of an operator that runs in a task."""
    return n.Changes(leaf_number(number), "rows", (), node.fields)


def all_columns(types: Sequence[SqlType]) -> tuple[e.Expression, ...]:
    return tuple(e.Column(i, one) for i, one in enumerate(types))


def _split_operator(node: n.Node) -> tuple[n.Node, n.Node]:
    """The operator over a leaf, together with a Sort directly below it; and the node below them."""
    (below,) = transform.inputs(node)
    if isinstance(below, n.Sort) or (
        isinstance(node, n.Limit) and isinstance(below, n.Project | n.Filter)
    ):
        inner, rest = _split_operator(below)
        return transform.with_inputs(node, (inner,)), rest
    return transform.with_inputs(node, (input_leaf(0, below),)), below
