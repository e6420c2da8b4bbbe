"""Fast path of queries over a few rows of one key range: a sum over a prefix, a filter, a sort.

    SELECT sum(amount) FROM order_lines WHERE order_id = ?

The plan is compiled as any other, and runs without the transaction, the tier choice and the
statement's timer around it. It reads one scan, which is consistent by itself. When there turn out
to be more than ROWS_MAX rows, the general path runs the statement, where it can be cancelled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Table
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.execution.memory_limit import Memory, RowLimitExceeded
from belvedere.execution.python.compile import compile_over_rows, compile_plan
from belvedere.execution.python.expressions.generated_function import GeneratedFunction
from belvedere.execution.python.expressions.outer_references import walk_plan
from belvedere.execution.python.statements.key_range import is_one_range, write_range
from belvedere.execution.python.statements.page_reads import projected_columns
from belvedere.execution.python.statements.point_statements import (
    FastPathRead,
    FastPathRun,
    is_simple,
    plain_context,
)
from belvedere.execution.run import Interrupt, Run
from belvedere.kv.batch import Pair
from belvedere.plan import nodes as n
from belvedere.plan.expressions import SequenceCall
from belvedere.types import Row

ROWS_MAX = 1024
Fetch = Callable[[Any, FastPathRun], list[Pair]]
"""Keys and stored rows of a range; more than ROWS_MAX of them are not all."""
_NEVER = Interrupt()
"""Few rows are read at once: there is no moment in which to cancel."""
_OPERATORS = (n.Project, n.Filter, n.Aggregate, n.Sort, n.TopN, n.Limit, n.Distinct)


def compile_few_rows_read(catalog: Catalog, node: n.Node) -> FastPathRead | None:
    """The fast path of a query, or None when it reads more than one range or needs more than its
    rows and parameters."""
    scan = node
    while isinstance(scan, _OPERATORS):
        scan = scan.input
    if not isinstance(scan, n.Scan) or not is_one_range(scan) or not is_simple(node):
        return None
    if any(isinstance(item, SequenceCall) for item, _ in walk_plan(node, 0)):
        return None
    if scan.access.index is not None or not isinstance(catalog.get(scan.relation), Table):
        return _compile_general_read(catalog, node)
    fetch = _compile_fetch(catalog, scan)
    columns, below = projected_columns(node)
    if below is scan and scan.residual is None:
        slots = scan.slots if columns is None else tuple([scan.slots[i] for i in columns])
        project = compiled_table(catalog, scan.relation).layout.projector(slots)
        return _compile_projection(fetch, project)
    return _compile_operators(catalog, node, scan, fetch)


def _compile_fetch(catalog: Catalog, scan: n.Scan) -> Fetch:
    """A function that reads the rows of the range at once."""
    source = GeneratedFunction()
    body = [
        *write_range(catalog, plain_context(catalog), scan, source, "[]"),
        f"return reader.fetch_range(start, end, {ROWS_MAX + 1}, reverse={scan.access.reverse})",
    ]
    return source.build_function("fetch_pairs", body, "reader, run")


def _compile_projection(fetch: Fetch, project: Callable[[bytes], Row]) -> FastPathRead:
    def read_rows(reader: Any, run: FastPathRun) -> list[Row] | None:
        pairs = fetch(reader, run)
        return None if len(pairs) > ROWS_MAX else [project(value) for _, value in pairs]

    return read_rows


def _compile_operators(catalog: Catalog, node: n.Node, scan: n.Scan, fetch: Fetch) -> FastPathRead:
    """The plan above the scan, compiled as any other, over the rows that were read."""
    project = compiled_table(catalog, scan.relation).layout.projector(scan.slots)
    rows = compile_over_rows(catalog, node, scan)

    def read_rows(reader: Any, run: FastPathRun) -> list[Row] | None:
        pairs = fetch(reader, run)
        if len(pairs) > ROWS_MAX:
            return None
        context = Run(reader, run.parameters, None, run.services, _NEVER, Memory())  # type: ignore[arg-type]
        context.deltas = {scan.relation: [project(value) for _, value in pairs]}
        return list(rows(context))

    return read_rows


def _compile_general_read(catalog: Catalog, node: n.Node) -> FastPathRead:
    rows = compile_plan(catalog, node)

    def read_few_rows(reader: object, run: FastPathRun) -> list[Row] | None:
        limits = Memory().with_row_limit(ROWS_MAX)
        context = Run(reader, run.parameters, None, run.services, Interrupt(), limits)  # type: ignore[arg-type]
        try:
            return list(rows(context))
        except RowLimitExceeded:
            return None

    return read_few_rows
