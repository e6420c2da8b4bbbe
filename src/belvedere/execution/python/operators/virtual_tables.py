"""Tables computed by the system: scans, and look-ups by an equality of the filter above."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from belvedere.execution.python.context import CompileContext
from belvedere.execution.run import Rows, Run
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.transform import conjuncts, has_subplan, operands
from belvedere.types import Kind, Row

_KEY_KINDS = frozenset({Kind.OID, Kind.TEXT})
"""Types whose values are their own keys."""


def compile_virtual_scan(node: n.VirtualScan) -> Rows:
    def scan_virtual(run: Run) -> Iterator[Row]:
        return iter(run.services.virtual_rows(node.schema, node.name))

    return scan_virtual


def compile_filter_input(context: CompileContext, node: n.Node, condition: e.Expression) -> Rows:
    """The rows under a filter. Of a system table that is kept as a list, only those which one
    equality of the condition admits: clients ask for the columns of each table in turn."""
    if not context.fuses or not isinstance(node, n.VirtualScan):
        return context.plan(node)
    found = next(filter(None, map(_find_lookup, conjuncts(condition))), None)
    return context.plan(node) if found is None else _compile_lookup(context, node, *found)


def _find_lookup(condition: e.Expression) -> tuple[int, e.Expression] | None:
    """The column and the value of an equality that is settled before a row is seen."""
    if not isinstance(condition, e.Call) or condition.function.name != "=":
        return None
    left, right = condition.arguments
    for column, value in ((left, right), (right, left)):
        if isinstance(column, e.Column) and column.type.kind in _KEY_KINDS:
            return (column.index, value) if _is_settled(value) else None
    return None


def _is_settled(expression: e.Expression) -> bool:
    if isinstance(expression, e.Column) or has_subplan(expression):
        return False
    return all(map(_is_settled, operands(expression)))


def _compile_lookup(
    context: CompileContext, node: n.VirtualScan, column: int, value: e.Expression
) -> Rows:
    value_of = context.value_of(value)
    kept: tuple[object, dict[Any, list[Row]]] = (None, {})

    def look_up(run: Run) -> Iterator[Row]:
        nonlocal kept
        rows = run.services.virtual_rows(node.schema, node.name)
        if not isinstance(rows, list):
            return iter(rows)
        known, index = kept
        if known is not rows:
            index = _index_rows(rows, column)
            kept = (rows, index)
        return iter(index.get(value_of(run)(()), ()))

    return look_up


def _index_rows(rows: list[Row], column: int) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = {}
    for row in rows:
        if row[column] is not None:
            found.setdefault(row[column], []).append(row)
    return found
