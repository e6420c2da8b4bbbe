"""State entries: the groups and amounts that inserted and deleted rows add to a view's state."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from belvedere.catalog.catalog import Catalog
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.python.expressions.expression_source import ExpressionWriter as Texts
from belvedere.execution.python.expressions.generated_function import GeneratedFunction
from belvedere.types import Row
from belvedere.views.codegen.state_entry import generate_entry_text
from belvedere.views.delta.linear_aggregates import AggregateGrouping, Amounts
from belvedere.views.delta.sessionless_run import make_run_without_reader
from belvedere.views.operators.operator import WeightedRows

StateEntry = tuple[Row, Amounts]
"""Stored columns, and the amounts that one row adds."""

StateEntryOf = Callable[[Row], StateEntry]
ONE_ROW: Amounts = (1,)


def rows_to_weighted_entries(
    entry_of: StateEntryOf | None, rows: WeightedRows
) -> Iterator[tuple[Row, Amounts, int]]:
    """Rows of a tree as (stored columns, amounts, weight)."""
    if entry_of is None:
        return ((row, ONE_ROW, weight) for row, weight in rows)
    return ((*entry_of(row), weight) for row, weight in rows)


def compile_row_entry_function(
    catalog: Catalog, group: AggregateGrouping | None
) -> StateEntryOf | None:
    """A function from a row to its entry; None: the row itself, once. Expressions of a definition
    depend on nothing but the row (`compile.require_deterministic`), so they are bound once, to a
    run without a reader."""
    if group is None:
        return None
    source = GeneratedFunction()
    texts = Texts(source, lambda node: compile_plan(catalog, node))
    bound = source.build_row_function(generate_entry_text(source, texts, group, None))
    entry: StateEntryOf = bound(make_run_without_reader())
    return entry
