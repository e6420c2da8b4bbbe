"""Compiled SQL expressions of the catalog (of indexes, checks, defaults), for callers without a
session: commits and index builds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Table
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.python.context import CompileContext
from belvedere.execution.python.statements.dml import row_narrower
from belvedere.session.statement import bind
from belvedere.types import Row


def compile_row_expression(catalog: Catalog, table: Table, text: str) -> Callable[[Row], Any]:
    """Compile an immutable expression over a table's stored row."""
    expression = bind.bind_row_expression(catalog, table, text)
    context = CompileContext(catalog, lambda node: compile_plan(catalog, node))
    # Immutable expressions need nothing of a run: no parameters, no clock, no outer rows.
    evaluate = context.value_of(expression)(None)  # type: ignore[arg-type]
    narrow = row_narrower(compiled_table(catalog, table.id))
    return lambda row: evaluate(narrow(row))
