"""Rows of foreign tables: what HBase can leave out is left out there, the rest here."""

from __future__ import annotations

from collections.abc import Iterator

from belvedere.catalog.catalog import Catalog
from belvedere.execution.foreign.foreign_rows import ForeignRequest, open_foreign_rows
from belvedere.execution.python.context import CompileContext
from belvedere.execution.python.operators.scan_requests import compile_condition
from belvedere.execution.run import Rows, Run
from belvedere.plan import nodes as n
from belvedere.types import Row


def describe_foreign_scan(catalog: Catalog, node: n.ForeignScan, run: Run) -> str:
    """Where the rows come from, and what of the condition HBase does."""
    table = open_foreign_rows(catalog, node.relation)
    build = None if node.filter is None else compile_condition(node.filter, node.slots)
    said = table.describe_push_down(None if build is None else build(run))
    return f"foreign table {node.name}: hbase {table.table}, {' and '.join(said) or 'all rows'}"


def compile_foreign_scan(context: CompileContext, node: n.ForeignScan) -> Rows:
    table = open_foreign_rows(context.catalog, node.relation)
    build = None if node.filter is None else compile_condition(node.filter, node.slots)
    truth = None if node.filter is None else context.truth_of(node.filter)

    def scan_foreign(run: Run) -> Iterator[Row]:
        condition = None if build is None else build(run)
        wanted = run.wanted if truth is None else 0
        request = ForeignRequest(node.slots, condition, wanted)
        passes = None if truth is None else truth(run)
        for rows in table.read_rows(request):
            run.interrupt.count_rows(len(rows))
            run.memory.count_read(len(rows))
            yield from rows if passes is None else filter(passes, rows)

    return scan_foreign
