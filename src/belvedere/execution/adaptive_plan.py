"""Plans whose tier each run chooses: Python as long as few rows are read, else DuckDB.

    SELECT v, count(*) FROM t WHERE id BETWEEN $1 AND $2 GROUP BY v
    INSERT INTO u SELECT id, v FROM t WHERE id > $1

How much of a table a range by parameters holds is known only when it is read; its estimate is a
fixed share of the table, so DuckDB, at some milliseconds a run, is chosen for ten rows too. Of such
a plan Python reads the first ROWS_MAX rows; when there are more, DuckDB runs it from the start.
After MISSES_MAX runs in a row with more, DuckDB gets it at once and Python tries only every
RETRY_RUNS-th run: what a client asks for may change, and an attempt in vain costs less than a
statement of DuckDB, so that it is lost among so many of them.

Only what may run twice is tried: of a statement that changes data the query that it takes its rows
from, which are all there before any is written; nothing with a volatile function or a sequence.
A value that fails in the attempt is left to DuckDB's plan, which says whether it is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from belvedere.catalog.catalog import Catalog
from belvedere.errors import InvalidInput, Unavailable, Unsupported
from belvedere.execution.duckdb.engine import DuckEngine
from belvedere.execution.memory_limit import RowLimitExceeded
from belvedere.execution.python.compile import Wrap, compile_plan, compile_with_other_tier
from belvedere.execution.run import Rows, Run
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.functions import Volatility
from belvedere.plan.plan_items import walk_plan_items
from belvedere.types import Row

ROWS_MAX = 1000
"""Read by Python; a row that a hash or merge join makes counts as one read."""
MISSES_MAX = 3
RETRY_RUNS = 32

_OPERATORS = (
    n.Scan,
    n.Filter,
    n.Project,
    n.Aggregate,
    n.Sort,
    n.TopN,
    n.Limit,
    n.Distinct,
    n.SetOperation,
)
"""Nodes whose work follows from the rows that are read. That of joins is looked at one by one."""
_CHANGES = (n.Insert, n.Update, n.Delete)
_KEYS = (paths.AccessKind.KEY, paths.AccessKind.KEYS)


class AdaptivePlan:
    """One plan for few rows and one for many; EXPLAIN ANALYZE prints `notes`."""

    def __init__(self, few: Rows, many: Rows) -> None:
        self._few, self._many = few, many
        self._misses = 0  # runs in a row that read too many
        self._passed = 0  # runs that were not tried
        self._outcome = ""

    def __call__(self, run: Run) -> Iterator[Row]:
        held = self._try_few_rows(run) if self._is_worth_trying() else None
        return self._many(run) if held is None else iter(held)

    @property
    def notes(self) -> list[str]:
        return [*([self._outcome] if self._outcome else []), *getattr(self._many, "notes", ())]

    def _is_worth_trying(self) -> bool:
        if self._misses < MISSES_MAX:
            return True
        self._passed += 1
        return self._passed % RETRY_RUNS == 0

    def _try_few_rows(self, run: Run) -> list[Row] | None:
        """The rows, or None when DuckDB has to say what they are."""
        attempt = run.with_ctes({})  # what it caches is not for the other plan
        attempt.memory = run.memory.with_row_limit(ROWS_MAX)
        try:
            rows = attempt.memory.hold_rows(self._few(attempt))
        except RowLimitExceeded:
            self._misses += 1
            self._outcome = f"run again by DuckDB: more than {ROWS_MAX} rows were read"
            return None
        except (InvalidInput, Unsupported) as error:
            self._outcome = f"run again by DuckDB: {error}"
            return None
        except Unavailable as error:
            if error.sqlstate != "53200":
                raise
            self._misses += 1
            self._outcome = f"run again by DuckDB: {error.message}"
            return None
        self._misses = 0
        self._outcome = f"run in Python: at most {ROWS_MAX} rows were read"
        return rows


class _AroundAdaptivePlan:
    """A plan with an adaptive plan in it, or around it only what counts its rows."""

    def __init__(self, rows: Rows, part: AdaptivePlan) -> None:
        self._rows, self._part = rows, part

    def __call__(self, run: Run) -> Iterator[Row]:
        return self._rows(run)

    @property
    def notes(self) -> list[str]:
        return self._part.notes


def compile_adaptive_plan(
    catalog: Catalog, node: n.Node, engine: DuckEngine, wrap: Wrap | None = None
) -> Rows:
    """A plan of which `find_adaptive_part` finds a part."""
    from belvedere.execution.split_tiers import compile_hybrid  # heavy

    part = find_adaptive_part(node)
    assert part is not None

    def wrap_below(inner: n.Node, rows: Rows) -> Rows:  # the part itself is wrapped around both
        return rows if wrap is None or inner is part else wrap(inner, rows)

    def count_joined(inner: n.Node, rows: Rows) -> Rows:
        multiplies = isinstance(inner, n.Join) and inner.lookup is None
        return wrap_below(inner, _count_rows(rows) if multiplies else rows)

    joins = any(isinstance(item, n.Join) for item in transform.walk_plan(part))
    below = None if wrap is None else wrap_below
    few = compile_plan(catalog, part, count_joined if joins else below)
    plan = AdaptivePlan(few, compile_hybrid(catalog, part, engine, below))

    def compile_part(inner: n.Node) -> Rows | None:
        return plan if inner is part else None

    return _AroundAdaptivePlan(compile_with_other_tier(catalog, node, compile_part, wrap), plan)


def _count_rows(rows: Rows) -> Rows:
    def counted_rows(run: Run) -> Iterator[Row]:
        read = run.memory.count_read
        for row in rows(run):
            read(1)
            yield row

    return counted_rows


def find_adaptive_part(node: n.Node) -> n.Node | None:
    """The query of the statement if it may turn out to read few rows: its scans are of keys or
    ranges, and how long they are depends on parameters."""
    part = node
    if isinstance(node, _CHANGES):
        part = node.input
        around = replace(node, input=n.EMPTY_ROW)
        if len(transform.walk_plan(around)) > 2:  # sub-queries, which DuckDB may have to run
            return None
    return part if _has_open_bounds(part) and _may_run_twice(part) else None


def _has_open_bounds(node: n.Node) -> bool:
    """Whether all that is read is bounded, and some of it by parameters."""
    nodes = transform.walk_plan(node)
    joins = [item for item in nodes if isinstance(item, n.Join)]
    looked_up = {id(join.right) for join in joins if join.lookup is not None}
    scans = [item for item in nodes if isinstance(item, n.Scan) and id(item) not in looked_up]
    return (
        all(isinstance(item, _OPERATORS) or _is_linear_join(item) for item in nodes)
        and all(_has_open_bound(scan.access) or scan.access.kind in _KEYS for scan in scans)
        and any(_has_parameter(scan.access) for scan in scans)
    )


def _is_linear_join(node: n.Node) -> bool:
    """Whether its work follows from the rows it reads and makes."""
    if not isinstance(node, n.Join) or node.lateral:
        return False
    if node.lookup is not None:
        return node.kind not in (n.JoinKind.RIGHT, n.JoinKind.FULL)
    return bool(node.keys) and node.residual is None


def _has_open_bound(access: paths.Access) -> bool:
    """Whether the access is narrowed by a value that is known only when it runs."""
    return access.kind is not paths.AccessKind.FULL and any(
        isinstance(item, e.Parameter | e.OuterColumn) for item in walk_plan_items(access)
    )


def _has_parameter(access: paths.Access) -> bool:
    return any(isinstance(item, e.Parameter) for item in walk_plan_items(access))


def _may_run_twice(node: n.Node) -> bool:
    """Whether running it has no effect and gives the same again. A quantified sub-query is left
    out too: its values are compared with each row."""
    for item in walk_plan_items(node):
        if isinstance(item, e.SequenceCall | e.QuantifiedSubquery):
            return False
        function = getattr(item, "function", None)
        if function is not None and function.volatility is Volatility.VOLATILE:
            return False
    return True
