"""Which tier answers a statement: Python closures for few rows, DuckDB for many.

Fixed costs decide: a Python operator costs some hundred nanoseconds a row and nothing else, a
DuckDB statement a few milliseconds and next to nothing a row. The border is at about five thousand
rows of work, counted over all operators. `SET tier = direct | duckdb` forces one.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.execution.direct.compile import Wrap, compile_plan
from belvedere.execution.direct.dependence import walk
from belvedere.execution.duck.engine import DuckEngine
from belvedere.execution.run import Rows
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n

DIRECT_ROWS_MAX = 5_000
RANGE_SHARE = 0.1
FILTER_SHARE = 0.3
FUNCTION_ROWS = 100.0

Sizes = Callable[[int], float]
"""About how many rows a relation has."""


class Tier(enum.StrEnum):
    AUTO = "auto"
    DIRECT = "direct"
    DUCKDB = "duckdb"


class Choice(NamedTuple):
    """The tier and why; `work` is the estimate of rows handled."""

    tier: Tier
    reason: str
    work: float


def choose(node: n.Node, tier: Tier, sizes: Sizes) -> Choice:
    if tier is not Tier.AUTO:
        return Choice(tier, f"set tier = {tier}", 0)
    work = _Estimate(sizes).work(node)
    if work <= DIRECT_ROWS_MAX:
        return Choice(Tier.DIRECT, f"about {work:.0f} rows of work", work)
    return Choice(Tier.DUCKDB, f"about {work:.0f} rows of work", work)


def compile_for(
    catalog: Catalog, node: n.Node, choice: Choice, engine: DuckEngine, wrap: Wrap | None = None
) -> Rows:
    if choice.tier is Tier.DUCKDB:
        from belvedere.execution.hybrid import compile_hybrid  # heavy

        return compile_hybrid(catalog, node, engine, wrap)
    return compile_plan(catalog, node, wrap)


def estimated_rows(node: n.Node, sizes: Sizes) -> float:
    return _Estimate(sizes).rows(node)


class _Estimate:
    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._ctes: dict[int, float] = {}

    def work(self, node: n.Node) -> float:
        """Rows handled by all operators; a sub-query counts once per row around it."""
        total = self.rows(node)
        if isinstance(node, n.Join) and not node.keys and node.lookup is None:
            total = max(total, self.rows(node.left) * self.rows(node.right))
        for child in _children(node):
            total += self.work(child)
        times = max((self.rows(child) for child in _children(node)), default=1.0)
        for plan in _subplans(node):
            total += max(times, 1.0) * self.work(plan)
        return total

    def rows(self, node: n.Node) -> float:
        match node:
            case n.Scan():
                return self._scanned(node)
            case n.Values():
                return len(node.rows)
            case n.TableFunction():
                return FUNCTION_ROWS
            case n.CteScan():
                return self._ctes.get(node.cte, FUNCTION_ROWS)
            case n.Filter():
                return self.rows(node.input) * FILTER_SHARE
            case n.Aggregate():
                return 1.0 if not node.groups else max(1.0, self.rows(node.input) * FILTER_SHARE)
            case n.Limit() | n.TopN():
                return self._limited(node)
            case n.Join():
                return self._joined(node)
            case n.SetOperation():
                return self.rows(node.left) + self.rows(node.right)
            case n.RecursiveUnion():
                return 10 * self.rows(node.base)
            case n.With():
                for cte in node.ctes:
                    self._ctes[cte.number] = self.rows(cte.plan)
                return self.rows(node.body)
            case _:
                children = _children(node)
                return self.rows(children[0]) if children else 1.0

    def _scanned(self, node: n.Scan) -> float:
        access, whole = node.access, self._sizes(node.relation)
        match access.kind:
            case paths.AccessKind.FULL:
                return whole
            case paths.AccessKind.KEY:
                return 1.0
            case paths.AccessKind.KEYS:
                return min(whole, 10.0 * len(access.parts))
            case _:
                return min(whole, max(1.0, whole * RANGE_SHARE))

    def _limited(self, node: n.Limit | n.TopN) -> float:
        below = self.rows(node.input)
        if isinstance(node.count, e.Literal) and node.count.value is not None:
            return min(below, float(node.count.value))
        return below

    def _joined(self, node: n.Join) -> float:
        left = self.rows(node.left)
        if node.lookup is not None:
            return left
        right = self.rows(node.right)
        if node.kind in (n.JoinKind.SEMI, n.JoinKind.ANTI):
            return left
        return max(left, right) if node.keys else left * right


def _children(node: n.Node) -> list[n.Node]:
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


def _subplans(node: n.Node) -> list[n.Node]:
    """The plans inside this node's own expressions."""
    inputs = {id(child) for child in _children(node)}
    found = []
    for name in getattr(node, "__slots__", ()):
        part = getattr(node, name)
        if id(part) in inputs:
            continue
        for item, level in walk(part, 0):
            if level == 0 and isinstance(
                item, e.ScalarSubquery | e.Exists | e.QuantifiedSubquery | e.ArraySubquery
            ):
                found.append(item.plan)
    return found
