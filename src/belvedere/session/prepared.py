"""A compiled data statement: parameter converter, compiled plan, single-row fast paths, tier."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.execution.choose import Choice, Tier, choose, compile_for
from belvedere.execution.direct.compile import Wrap
from belvedere.execution.direct.dependence import walk
from belvedere.execution.direct.pages import compile_page
from belvedere.execution.direct.points import (
    PointRead,
    PointSwap,
    PointWrite,
    compile_point_read,
    compile_point_swap,
    compile_point_write,
)
from belvedere.execution.run import Rows
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.function import Function
from belvedere.session.parameters import converter
from belvedere.session.shared import Shared
from belvedere.session.statistics import StatementRecord
from belvedere.sql.statements import DataPlan
from belvedere.types import Kind, Row


class Prepared:
    """One statement, compiled for one catalog and one tier setting: the entry of the plan cache."""

    __slots__ = (
        "bypass",
        "catalog",
        "choice",
        "convert",
        "data",
        "deferred",
        "needs_environment",
        "plain",
        "point_read",
        "point_swap",
        "point_write",
        "position",
        "record",
        "rows",
        "target",
        "text",
        "tier",
    )

    def __init__(
        self,
        catalog: Catalog,
        data: DataPlan,
        tier: Tier,
        shared: Shared,
        record: StatementRecord,
        wrap: Wrap | None = None,
        deferred: tuple[View, ...] = (),
    ) -> None:
        """`deferred` are the deferred views the plan reads."""
        self.deferred = deferred
        self.bypass: Callable[[Any], Prepared] | None = None  # of a session
        self.catalog = catalog
        self.data = data
        self.tier = tier
        self.position = shared.host.position
        self.record = record
        self.text = record.text
        self.convert: Callable[[Sequence[Any]], Row] = converter(data.parameters, data.zone)
        self.needs_environment = _uses_environment(data.plan)
        kinds = {(field.type.element or field.type).kind for field in data.plan.fields}
        self.plain = Kind.INTERVAL not in kinds
        if data.zone is not datetime.UTC and Kind.TIMESTAMPTZ in kinds:
            self.plain = False
        self.point_read: PointRead | None = None
        self.point_write: PointWrite | None = None
        self.point_swap: PointSwap | None = None
        self.target = _target(data.plan)
        if wrap is None and not deferred and tier is not Tier.DUCKDB:
            if not data.changes:
                self.point_read = compile_point_read(catalog, data.plan)
                if self.point_read is None and shared.host.swaps is not None:
                    # On a batch-atomic store one scan is consistent without a snapshot.
                    self.point_read = compile_page(catalog, data.plan)
            elif not data.returns:
                self.point_write = compile_point_write(catalog, data.plan)
                if shared.host.swaps is not None:
                    self.point_swap = compile_point_swap(catalog, data.plan)
        self.choice: Choice = choose(data.plan, tier, shared.size_of, shared.estimator(catalog))
        self.rows: Rows = compile_for(catalog, data.plan, self.choice, shared.engine, wrap)
        record.tier = self.choice.tier.value

    def is_outgrown(self, position: int) -> bool:
        """Whether a plan for few rows was made from row counts that may be out of date."""
        chosen = self.tier is Tier.AUTO and self.choice.tier is Tier.DIRECT
        return chosen and position > self.position


def _target(node: n.Node) -> n.Node:
    """The node whose changes the statement counts as affected rows."""
    while isinstance(node, n.With):
        node = node.body
    return node


def _uses_environment(node: n.Node) -> bool:
    for item, _ in walk(node, 0):
        for part in _functions(item):
            if part.environment:
                return True
    return False


def _functions(item: Any) -> tuple[Function, ...]:
    match item:
        case e.Call() | e.Cast() | e.AggregateCall() | e.WindowCall() | n.TableCall():
            return (item.function,)
        case _:
            return ()
