"""Choice of the tier that runs a statement: Python closures for few rows, DuckDB for many.

Fixed costs decide: a Python operator costs some hundred nanoseconds a row and nothing else, a
DuckDB statement a few milliseconds and next to nothing a row. They break even at about five
thousand rows of work, counted over all operators. `SET tier = direct | duckdb` forces one. Where
parameters say how many rows are read, each run chooses again (`adaptive_plan`).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeGuard

from belvedere.catalog.catalog import Catalog
from belvedere.errors import Unavailable
from belvedere.execution import adaptive_plan
from belvedere.execution.duckdb.engine import DuckEngine
from belvedere.execution.memory_limit import RowLimitExceeded
from belvedere.execution.python.compile import Wrap, compile_plan
from belvedere.execution.run import Rows, Run
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.plan_items import walk_items_with_depth, walk_plan_items
from belvedere.plan.row_repeat import find_repeat_column
from belvedere.types import Row

DIRECT_ROWS_MAX = 5_000
CORRECT_ROWS = 20 * DIRECT_ROWS_MAX
"""A plan for few rows may read this many before DuckDB runs the statement instead."""

FILTER_SHARE = 0.3
SKIP_SHARE = 0.05
"""A row that OFFSET skips in a scan, which is not decoded, in rows of work."""
LIMIT_ROWS = 500.0
"""The estimate for a LIMIT by a parameter; if it is far too low, DuckDB runs the statement."""


Sizes = Callable[[int], float]
"""Estimated number of rows of a relation."""

Estimate = Callable[[n.Node], float]
"""Estimated number of rows a node returns."""


class Tier(enum.StrEnum):
    AUTO = "auto"
    DIRECT = "direct"
    DUCKDB = "duckdb"


class ExecutionChoice(NamedTuple):
    """The tier and why; `work` is the estimate of rows handled."""

    tier: Tier
    reason: str
    work: float
    free: bool = False  # the tier was chosen, not requested
    adaptive: bool = False  # DuckDB, if Python does not find few rows first
    rows: float = 0.0  # the estimate of rows returned


_UNDERESTIMATED = ExecutionChoice(Tier.DUCKDB, "more rows than estimated", 0)


def choose_tier(node: n.Node, tier: Tier, sizes: Sizes, rows: Estimate) -> ExecutionChoice:
    if tier is not Tier.AUTO:
        return ExecutionChoice(tier, f"set tier = {tier}", 0)
    work = _WorkEstimate(sizes, rows).estimate_rows(node)
    reason = f"about {work:.0f} rows of work"
    if work <= DIRECT_ROWS_MAX:
        return ExecutionChoice(Tier.DIRECT, reason, work, free=True)
    adaptive = adaptive_plan.find_adaptive_part(node) is not None
    if adaptive:
        reason += f"; Python first, for up to {adaptive_plan.ROWS_MAX} rows read"
    return ExecutionChoice(Tier.DUCKDB, reason, work, free=True, adaptive=adaptive, rows=rows(node))


def compile_for_tier(
    catalog: Catalog,
    node: n.Node,
    choice: ExecutionChoice,
    engine: DuckEngine,
    wrap: Wrap | None = None,
) -> Rows:
    if choice.adaptive:
        return adaptive_plan.compile_adaptive_plan(catalog, node, engine, wrap)
    if choice.tier is Tier.DUCKDB:
        from belvedere.execution.result_size import SizeCheckedPlan, find_counted_input  # heavy
        from belvedere.execution.split_tiers import compile_hybrid  # heavy

        large = compile_hybrid(catalog, node, engine, wrap)
        if find_counted_input(node) is None:
            return large
        return SizeCheckedPlan(catalog, node, choice.rows, engine, large)
    direct = compile_plan(catalog, node, wrap)
    if not choice.free or changes_data(node):
        return direct
    return _FallbackPlan(
        direct, lambda: compile_for_tier(catalog, node, _UNDERESTIMATED, engine, wrap)
    )


class _FallbackPlan:
    """A Python plan that falls back to DuckDB when it reads far more rows than estimated or exceeds
    the memory limit. Later executions go to DuckDB directly."""

    def __init__(self, direct: Rows, make_large: Callable[[], Rows]) -> None:
        self._direct = direct
        self._make_large = make_large
        self._large: Rows | None = None
        self.notes: list[str] = []

    def __call__(self, run: Run) -> Iterator[Row]:
        if self._large is None:
            memory = run.memory
            run.memory = memory.with_row_limit(CORRECT_ROWS)
            try:
                return iter(run.memory.hold_rows(self._direct(run)))
            except RowLimitExceeded:
                self.notes.append(f"run again by DuckDB: more than {CORRECT_ROWS} rows were read")
            except Unavailable as error:
                if error.sqlstate != "53200":
                    raise
                self.notes.append(f"run again by DuckDB: {error.message}")
            self._large = self._make_large()
            run = run.with_ctes({})  # results cached for the other plan are of no use
            run.memory = memory
        return self._large(run)


def changes_data(node: n.Node) -> bool:
    return any(
        isinstance(item, n.Insert | n.Update | n.Delete | n.Lock | e.SequenceCall)
        for item in walk_plan_items(node)
    )


class _WorkEstimate:
    """Rows handled by all operators of a plan."""

    def __init__(self, sizes: Sizes, rows: Estimate) -> None:
        self._sizes = sizes
        self._rows = rows

    def estimate_rows(self, node: n.Node, wanted: float = math.inf) -> float:
        """`wanted`: how many rows the consumer requests; streaming operators produce no more."""
        rows = min(self._handled_rows(node), wanted)
        if _is_nested_loop(node):
            rows = max(rows, self._rows(node.left) * self._rows(node.right))
        below = self._requested_rows(node, wanted)
        if isinstance(node, n.Limit):
            rows = min(rows, below)
        total = rows + sum(self.estimate_rows(child, below) for child in _input_nodes(node))
        times = max([min(self._rows(child), below) for child in _input_nodes(node)] or [1.0])
        return total + sum(
            max(times, 1.0) * self.estimate_rows(plan) for plan in _expression_plans(node)
        )

    def _handled_rows(self, node: n.Node) -> float:
        """Rows the node handles: all rows a full scan reads, not those its condition selects."""
        if isinstance(node, n.Scan) and node.access.kind is paths.AccessKind.FULL:
            return self._sizes(node.relation)
        if isinstance(node, n.Scan) and node.access.kind is paths.AccessKind.KEY:
            return 1.0
        return self._rows(node)

    def _requested_rows(self, node: n.Node, wanted: float) -> float:
        match node:
            case n.Limit() if isinstance(node.count, e.Literal) and node.count.value is not None:
                skipped = node.offset.value if isinstance(node.offset, e.Literal) else 0
                share = SKIP_SHARE if _is_skipping(node.input) else 1.0
                return min(wanted, float(node.count.value + (skipped or 0) * share))
            case n.Limit() if node.count is not None and not isinstance(node.count, e.Literal):
                return min(wanted, LIMIT_ROWS)
            case n.Project() | n.Limit():
                return wanted
            case n.Filter():
                return wanted / FILTER_SHARE
            case n.Join() if node.lookup is not None or find_repeat_column(node) is not None:
                return wanted
            case _:
                return math.inf


def _is_nested_loop(node: n.Node) -> TypeGuard[n.Join]:
    """Whether all pairs of rows are looked at."""
    if not isinstance(node, n.Join) or node.keys or node.lookup is not None:
        return False
    return find_repeat_column(node) is None


def _is_skipping(node: n.Node) -> bool:
    """Whether Python skips the rows of an OFFSET without decoding them."""
    while isinstance(node, n.Project) and all(isinstance(x, e.Column) for x in node.expressions):
        node = node.input
    return isinstance(node, n.Scan) and node.residual is None


def _input_nodes(node: n.Node) -> list[n.Node]:
    match node:
        case n.Join() if node.lookup is not None:
            return [node.left]
        case n.Join() | n.SetOperation():
            return [node.left, node.right]
        case n.RecursiveUnion():
            return [node.base, node.step]
        case n.With():
            return [*(cte.plan for cte in node.ctes), node.body]
        case _:
            below = getattr(node, "input", None)
            return [] if below is None else [below]


def _expression_plans(node: n.Node) -> list[n.Node]:
    """The plans inside this node's own expressions."""
    inputs = {id(child) for child in _input_nodes(node)}
    found = []
    for name in getattr(node, "__slots__", ()):
        part = getattr(node, name)
        if id(part) in inputs:
            continue
        for item, level in walk_items_with_depth(part):
            if level == 0 and isinstance(
                item, e.ScalarSubquery | e.Exists | e.QuantifiedSubquery | e.ArraySubquery
            ):
                found.append(item.plan)
    return found
