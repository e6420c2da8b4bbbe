"""Split of a plan between the tiers: DuckDB runs the largest parts it can answer exactly, Python
the rest.

The split is found top down: a node whose entire subtree has an exact form becomes one DuckDB
statement; otherwise the node runs as a Python operator, and the same test applies to its inputs.
Parameters enter the SQL text as constants, so a part is lowered again when they change.

If DuckDB fails on values (an overflow of DECIMAL(38), a NUMERIC NaN, a division in a row that
would have been filtered out first), the part runs in Python instead: only PostgreSQL's semantics
decide what is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Table, View
from belvedere.errors import InvalidInput, Unavailable, Unsupported
from belvedere.execution.duckdb.engine import DuckEngine
from belvedere.execution.duckdb.grouping import PartialAggregates, lower_partials
from belvedere.execution.duckdb.leaves import compile_leaf, compile_scan_parts
from belvedere.execution.duckdb.lower import DuckLowering, depends_on_rows, has_subquery
from belvedere.execution.duckdb.query import DuckQuery, display_text
from belvedere.execution.duckdb.rows import TableRows, ragged_rows
from belvedere.execution.duckdb.types import NotExact, RaggedNumeric, output_text
from belvedere.execution.python.compile import Wrap, compile_plan, compile_with_other_tier
from belvedere.execution.python.context import CompileContext
from belvedere.execution.python.expressions.outer_references import dependence_of
from belvedere.execution.run import Rows, Run, scalar_value
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions import Volatility, duckdb_type
from belvedere.plan.plan_items import walk_plan_items
from belvedere.types import Kind, Row

if TYPE_CHECKING:
    import pyarrow as pa

_NEVER_A_STATEMENT = (
    n.Scan,
    n.Values,
    n.VirtualScan,
    n.ForeignScan,
    n.TableFunction,
    n.CteScan,
    n.Insert,
    n.Update,
    n.Delete,
    n.Lock,
)
"""Nodes that never form a DuckDB statement of their own: no gain, or DuckDB cannot run them."""


_NOTHING = n.Values((), ())


@dataclass(slots=True)
class HybridReport:
    """How the plan was split, for EXPLAIN: the SQL of the DuckDB parts, what each table is read
    from, and why the other parts run in Python."""

    statements: list[str] = field(default_factory=list)
    reads: dict[str, str] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_single_use: bool = (
        False  # a text contains a value read from the data: valid for one run only
    )


class HybridPlan:
    """A split plan, lowered for the parameters of each run; EXPLAIN ANALYZE prints `notes`."""

    def __init__(
        self, catalog: Catalog, node: n.Node, engine: DuckEngine, wrap: Wrap | None = None
    ) -> None:
        self._catalog, self._node, self._engine, self._wrap = catalog, node, engine, wrap
        self._can_reuse = not _is_unstable(node)
        self._compiled: tuple[Row, str, Rows] | None = None  # for these parameters, as written
        self.notes: list[str] = []

    def __call__(self, run: Run) -> Iterator[Row]:
        # Equal values may be written otherwise (1.0 and 1.00, 0.0 and -0.0); lists have no hash.
        # What has no text of its own is told by its address, so the values are kept.
        written, known = repr(run.parameters), self._compiled
        if known is not None and known[1] == written:
            return known[2](run)
        self.notes = []
        report = HybridReport(notes=self.notes)
        compiled = lower_hybrid(self._catalog, self._node, self._engine, run, report, self._wrap)
        if self._can_reuse and not report.is_single_use:
            self._compiled = run.parameters, written, compiled
        return compiled(run)


def compile_hybrid(
    catalog: Catalog, node: n.Node, engine: DuckEngine, wrap: Wrap | None = None
) -> HybridPlan:
    return HybridPlan(catalog, node, engine, wrap)


def lower_hybrid(
    catalog: Catalog,
    node: n.Node,
    engine: DuckEngine,
    run: Run,
    report: HybridReport,
    wrap: Wrap | None = None,
) -> Rows:
    """The plan lowered for the parameters of this run; `report` receives the details."""
    if isinstance(node, n.Scan) and wrap is None and _is_columnar(node):
        report.statements.append("(the scan itself, as Arrow columns)")
        report.reads[node.name] = engine.describe_source(compile_leaf(catalog, node))
        return _compile_columnar_scan(catalog, node, engine)
    split = _TierSplit(catalog, engine, run, report)
    return compile_with_other_tier(catalog, node, split.lower_part, wrap)


def iterate_scan_parts(
    catalog: Catalog, node: n.Scan, run: Run
) -> Iterator[pa.Table | list[Row]] | None:
    """The rows of the scan of a table, part by part, as Arrow columns mostly; None: it is another
    scan, to be read row by row."""
    if not _is_columnar(node) or not isinstance(catalog.get(node.relation), Table):
        return None
    return compile_scan_parts(catalog, node)(run)


class SingleStatement:
    """A plan that DuckDB runs entirely, lowered once for all runs."""

    def __init__(self, catalog: Catalog, node: n.Node) -> None:
        self._catalog, self._node = catalog, node
        self._compiled: tuple[DuckEngine, Rows, HybridReport] | None = None

    def fetch_rows(self, engine: DuckEngine, run: Run) -> Iterator[Row] | str:
        """Its rows, or the reason why it has no exact form in DuckDB. Unsupported when DuckDB fails
        on values."""
        known = self._compiled
        if known is None or known[0] is not engine:
            report = HybridReport()
            made = _TierSplit(self._catalog, engine, run, report).lower_part(self._node)
            if made is None:
                return report.reasons[0] if report.reasons else "it gains nothing from DuckDB"
            known = engine, made, report
        _, made, report = known
        found = made(run)
        failed = bool(report.notes)
        self._compiled = None if failed or report.is_single_use else known
        if failed:
            raise Unsupported("these values in DuckDB", detail=report.notes[0])
        return found


def _is_columnar(node: n.Scan) -> bool:
    """Whether a scan can be returned as columns, without building rows first."""
    kinds = (paths.AccessKind.FULL, paths.AccessKind.RANGE, paths.AccessKind.PREFIX)
    plain = node.access.index is None and node.access.kind in kinds and not node.access.reverse
    exact = all(duckdb_type(field.type) is not None for field in node.fields)
    return plain and exact and node.residual is None and bool(node.slots)


def _compile_columnar_scan(catalog: Catalog, node: n.Scan, engine: DuckEngine) -> Rows:
    leaf, types = compile_leaf(catalog, node), tuple(field.type for field in node.fields)
    direct = compile_plan(catalog, node)

    def read_columns(run: Run) -> Iterator[Row]:
        try:
            copied = engine.read_copy(leaf, run)
            return TableRows(leaf.read(run) if copied is None else copied, types)
        except (Unsupported, NotExact):  # a value that Arrow cannot represent
            return direct(run)

    return read_columns


@dataclass(frozen=True, slots=True)
class _TierSplit:
    catalog: Catalog
    engine: DuckEngine
    run: Run
    report: HybridReport
    divides: bool = True
    sorts: bool = True

    def lower_part(self, node: n.Node) -> Rows | None:
        """The node as one DuckDB statement, or None when it must be a Python operator."""
        if isinstance(node, _NEVER_A_STATEMENT) or dependence_of(node).nearest is not None:
            return None
        if not self.sorts and _has_sort(node):
            return None
        if self._has_state_lookup(node):
            self._note_reason("look-ups in the state of a view")
            return None
        made, reason = self._try_lowering(node, divides=False)
        if made is None and isinstance(node, n.Aggregate):
            made = self._lower_in_parts(node)
        if made is None and self.divides and not _ends_in_groups(node):
            made, reason = self._try_lowering(node, divides=True)
        if made is None:
            self._note_reason(reason)
        return made

    def _note_reason(self, reason: str) -> None:
        if reason not in self.report.reasons:
            self.report.reasons.append(reason)

    def _has_state_lookup(self, node: n.Node) -> bool:
        """Whether a scan of a view's state is narrowed by rows around it: DuckDB would read all."""
        return any(
            isinstance(item, n.Scan)
            and depends_on_rows(item)
            and isinstance(self.catalog.get(item.relation), View)
            for item in walk_plan_items(node)
        )

    def _try_lowering(self, node: n.Node, *, divides: bool) -> tuple[Rows | None, str]:
        """The node as a statement, or the reason why it has no exact form."""
        last = divides == self.divides  # else there is another attempt, perhaps without sub-queries
        lowering = DuckLowering(
            self._evaluate_constant, self._evaluate_subquery if last else _refuse_subquery, divides
        )
        try:
            return self._compile_statement(node, lowering, lowering.lower_node(node), None), ""
        except NotExact as found:
            return None, found.reason

    def _lower_in_parts(self, node: n.Aggregate) -> Rows | None:
        """The node as a statement whose rows Python finishes."""
        if all(call.function.partial is None for call in node.aggregates):
            return None
        lowering = DuckLowering(self._evaluate_constant, self._evaluate_subquery, self.divides)
        try:
            partials = lower_partials(lowering, node, ())
        except NotExact:
            return None
        return self._compile_statement(node, lowering, partials.query, partials)

    def _evaluate_subquery(self, plan: n.Node) -> object:
        """The value of a scalar sub-query, evaluated separately. If that fails, the part runs in
        Python, which evaluates the sub-query only when needed."""
        if dependence_of(plan) != (None, False) or _is_unstable(plan):
            raise NotExact("a sub-query that has no form in DuckDB")
        self.report.is_single_use = True
        rows = compile_with_other_tier(self.catalog, plan, self.lower_part)
        try:
            return scalar_value(rows(self.run.nested_run(())))
        except (InvalidInput, Unsupported) as error:
            raise NotExact(f"a sub-query fails: {error}") from error

    def _evaluate_constant(self, expression: e.Expression) -> object:
        context = CompileContext(self.catalog, lambda inner: compile_plan(self.catalog, inner))
        return context.value_of(expression)(self.run)(())

    def _compile_statement(
        self,
        node: n.Node,
        lowering: DuckLowering,
        query: DuckQuery,
        partials: PartialAggregates | None,
    ) -> Rows:
        leaves = [compile_leaf(self.catalog, leaf) for leaf in lowering.leaves]
        text = _fetch_text(query)
        self.report.statements.append(display_text(text))
        for leaf in leaves:
            self.report.reads[leaf.name] = self.engine.describe_source(leaf)
        functions = frozenset(lowering.functions)
        engine, notes = self.engine, self.report.notes
        again, unsorted = (
            self._fallback_plan(node, lowering.divided),
            self._plan_without_sorts(node),
        )
        finish = None if partials is None else partials.finish_row
        few = _returns_few_rows(node)
        is_ragged = any(isinstance(one, RaggedNumeric) for one in query.types)

        def run_statement(run: Run) -> Iterator[Row]:
            try:
                table = engine.fetch(text, leaves, functions, run, few=few)
            except (InvalidInput, Unsupported, NotExact) as error:
                note = f"run again {again.where}: {error}"
                if note not in notes:
                    notes.append(note)
                return again.compile_rows()(run)
            except Unavailable as error:
                if unsorted is None or error.sqlstate != "53200":
                    raise
                notes.append(f"run again {unsorted.where}: {error.message}")
                return unsorted.compile_rows()(run)
            if is_ragged:
                return ragged_rows(table, query.types)
            found = TableRows(table, query.types)
            return found if finish is None else map(finish, found)

        return run_statement

    def _fallback_plan(self, node: n.Node, divided: bool) -> _Fallback:
        """The fallback when DuckDB fails: the same with quotients in Python, as they may have more
        digits than DuckDB holds, or the entire part in Python."""
        if not divided:
            return _Fallback("in Python", lambda: compile_plan(self.catalog, node))
        split = replace(self, divides=False)
        return _Fallback(
            "with quotients in Python",
            lambda: compile_with_other_tier(self.catalog, node, split.lower_part),
        )

    def _plan_without_sorts(self, node: n.Node) -> _Fallback | None:
        """The fallback when DuckDB runs out of memory: it does not spill sorts of wide rows."""
        if not self.sorts or not _has_sort(node):
            return None
        split = replace(self, sorts=False)
        return _Fallback(
            "with sorts in Python",
            lambda: compile_with_other_tier(self.catalog, node, split.lower_part),
        )


def _has_sort(node: n.Node) -> bool:
    return any(isinstance(item, n.Sort) for item in walk_plan_items(node))


def _returns_few_rows(node: n.Node) -> bool:
    while isinstance(node, n.Sort | n.Project | n.Filter):
        node = node.input
    limited = isinstance(node, n.TopN | n.Limit) and node.count is not None
    return limited or isinstance(node, n.Aggregate)


def _refuse_subquery(plan: n.Node) -> object:
    raise NotExact("a sub-query with a quotient of NUMERIC values")


def _ends_in_groups(node: n.Node) -> bool:
    """Whether a node works on the groups of an aggregation: these are few, and a quotient of each
    costs Python less than DuckDB."""
    while isinstance(node, n.Sort | n.TopN | n.Limit | n.Project | n.Filter):
        below = node.input
        if has_subquery(replace(node, input=_NOTHING)):
            return False
        node = below
    return isinstance(node, n.Aggregate)


class _Fallback(NamedTuple):
    where: str
    compile_rows: Callable[[], Rows]


def _fetch_text(query: DuckQuery) -> str:
    if all(one.kind is not Kind.UUID for one in query.types):
        return query.text
    columns = [f"{output_text(f'c{i}', t)} AS c{i}" for i, t in enumerate(query.types)]
    columns += [f"c{i}s" for i, one in enumerate(query.types) if isinstance(one, RaggedNumeric)]
    return f"SELECT {', '.join(columns)} FROM ({query.text})"


def _is_unstable(node: n.Node) -> bool:
    """Whether lowering evaluates an expression whose value may differ from run to run."""
    return any(
        isinstance(item, e.Call | e.Cast) and item.function.volatility is not Volatility.IMMUTABLE
        for item in walk_plan_items(node)
    )
