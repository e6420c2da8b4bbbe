"""Fast path of queries over a few rows of one key range: a sum over a prefix, a filter, a sort.

    SELECT sum(amount) FROM order_lines WHERE order_id = ?

The plan is compiled as any other, and runs without the transaction, the tier choice and the
statement's timer around it. It reads one scan, which is consistent by itself. When there turn out
to be more than ROWS_MAX rows, the general path runs the statement, where it can be cancelled.
"""

from __future__ import annotations

from belvedere.catalog.catalog import Catalog
from belvedere.execution.memory_limit import Memory, RowLimitExceeded
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.python.expressions.outer_references import walk_plan
from belvedere.execution.python.statements.page_reads import is_one_range
from belvedere.execution.python.statements.point_statements import (
    FastPathRead,
    FastPathRun,
    is_simple,
)
from belvedere.execution.run import Interrupt, Run
from belvedere.plan import nodes as n
from belvedere.plan.expressions import SequenceCall
from belvedere.types import Row

ROWS_MAX = 1024
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
    rows = compile_plan(catalog, node)

    def read_few_rows(reader: object, run: FastPathRun) -> list[Row] | None:
        limits = Memory().with_row_limit(ROWS_MAX)
        context = Run(reader, run.parameters, None, run.services, Interrupt(), limits)  # type: ignore[arg-type]
        try:
            return list(rows(context))
        except RowLimitExceeded:
            return None

    return read_few_rows
