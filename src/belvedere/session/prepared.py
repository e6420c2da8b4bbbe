"""A data statement made ready to run: parameters, compiled plan, and the short way for point reads.

Point reads are most of what an application sends, so a plan that is one key look-up and a choice of
columns becomes one function `(reader, parameters) -> rows`, without a Run or any operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.catalog.relation import compiled_table
from belvedere.codec.compile import compile_function
from belvedere.execution.choose import Choice, Tier, choose, compile_for
from belvedere.execution.direct.compile import Wrap
from belvedere.execution.direct.dependence import walk
from belvedere.execution.run import Rows
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.function import Function
from belvedere.session.parameters import converter
from belvedere.session.shared import Shared
from belvedere.session.statistics import StatementRecord
from belvedere.sql.statements import DataPlan
from belvedere.txn.border import Reader
from belvedere.types import Row

Point = Callable[[Reader, Row], list[Row]]


class Prepared:
    """One statement of one catalog, for one tier setting."""

    __slots__ = (
        "catalog",
        "choice",
        "convert",
        "data",
        "deferred",
        "needs_environment",
        "point",
        "record",
        "rows",
        "target",
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
        self.catalog = catalog
        self.data = data
        self.tier = tier
        self.record = record
        self.convert: Callable[[Sequence[Any]], Row] = converter(data.parameters)
        self.needs_environment = _uses_environment(data.plan)
        self.point: Point | None = None
        self.target = _target(data.plan)
        if not data.changes and wrap is None and tier is not Tier.DUCKDB:
            self.point = compile_point(catalog, data.plan)
        self.choice: Choice = choose(data.plan, tier, shared.size_of)
        self.rows: Rows = compile_for(catalog, data.plan, self.choice, shared.engine, wrap)
        record.tier = self.choice.tier.value


def _target(node: n.Node) -> n.Node:
    """The node whose changes the row count is about."""
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


# -- point reads -----------------------------------------------------------------------------------


def compile_point(catalog: Catalog, node: n.Node) -> Point | None:
    """The short way, when the plan is `SELECT columns FROM t WHERE whole key = parameters`."""
    columns: list[int] | None = None
    if isinstance(node, n.Project):
        if not all(isinstance(one, e.Column) for one in node.expressions):
            return None
        columns = [one.index for one in node.expressions if isinstance(one, e.Column)]
        node = node.input
    if not isinstance(node, n.Scan) or node.residual is not None:
        return None
    access = node.access
    if access.index is not None or access.kind is not paths.AccessKind.KEY:
        return None
    values = [part.value for part in access.parts if isinstance(part, paths.OnePart)]
    if len(values) < len(access.parts):
        return None
    if not all(isinstance(value, e.Parameter | e.Literal) for value in values):
        return None
    slots = node.slots if columns is None else tuple(node.slots[i] for i in columns)
    return _point(catalog, node.relation, slots, values)


def _point(
    catalog: Catalog, relation: int, slots: tuple[int, ...], values: list[e.Expression]
) -> Point:
    table = compiled_table(catalog, relation)
    constants: dict[str, Any] = {"project": table.layout.projector(slots)}
    texts = []
    for number, value in enumerate(values):
        if isinstance(value, e.Parameter):
            texts.append(f"parameters[{value.index - 1}]")
        else:
            assert isinstance(value, e.Literal)
            constants[f"c{number}"] = value.value
            texts.append(f"c{number}")
    if len(texts) == 1:
        constants["encode"] = table.key.encode1
        key = f"encode({texts[0]})"
    else:
        constants["encode"] = table.key.encode
        key = f"encode(({', '.join(texts)}))"
    nulls = " or ".join(f"{text} is None" for text in texts)
    body = [
        f"if {nulls}: return []",
        f"value = reader.get({key})",
        "return [] if value is None else [project(value)]",
    ]
    return compile_function("point", "reader, parameters", body, constants)
