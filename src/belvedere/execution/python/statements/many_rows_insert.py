"""INSERT of one row, for many rows of parameters at once: executemany and long VALUES lists.

    rows of parameters -> keys, keys of roots, stored forms -> one check, one lock and one write

It stores what the statement would, row by row, for an insert that `point_writes` writes out. What
it refuses is not said by row: the caller takes the rows back and runs them one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation_codecs import CompiledTable, compiled_table
from belvedere.codec.compile import indent
from belvedere.execution.python.expressions.generated_function import GeneratedFunction
from belvedere.execution.python.statements.point_statements import FastPathRun
from belvedere.execution.python.statements.point_writes import write_inserted_row
from belvedere.execution.python.statements.row_change_source import write_root_of_key
from belvedere.plan import nodes as n
from belvedere.txn.gc_pause import pause_cycle_collector
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row


class NewRows(NamedTuple):
    """Rows to be inserted: their keys, the keys of their roots, and their stored forms."""

    keys: list[bytes]
    roots: list[bytes]
    stored: list[bytes]


MakeRows = Callable[[FastPathRun, Iterable[Row]], NewRows]


class ManyRowsInsert(NamedTuple):
    table: CompiledTable
    make_rows: MakeRows
    """From rows of parameters. InvalidInput: one of them cannot be stored."""

    def insert_rows(self, transaction: Transaction, rows: NewRows) -> bool:
        """False, with locks taken perhaps and nothing written: one by one they may be refused."""
        keys, roots, stored = rows
        with pause_cycle_collector():
            if len(set(keys)) < len(keys):
                return False
            transaction.lock_roots(roots, _wait_for_next)
            if not transaction.has_no_rows(keys, self.table.end):
                return False
            transaction.write_many(keys, [None] * len(keys), stored)
        return True


def _wait_for_next(_: int) -> None:
    """New rows were changed by nobody: none is checked before the next lock is waited for."""


def compile_many_rows_insert(catalog: Catalog, node: n.Node) -> ManyRowsInsert | None:
    """None: its rows are inserted one by one."""
    if not isinstance(node, n.Insert) or node.returning or node.on_conflict is not None:
        return None
    source, table = GeneratedFunction(), compiled_table(catalog, node.relation)
    root = write_root_of_key(catalog, node.relation, source)
    lines = None if root is None else write_inserted_row(catalog, node, source)
    if root is None or lines is None or source.calls_functions_of_run:
        return None
    given: Any = source.use_parameters()
    kept = ["keys.append(key)", "stored.append(new)"]
    apart = [] if root == "key" else [f"roots.append({root})"]
    body = [
        "keys, stored = [], []",
        "roots = []" if apart else "roots = keys",
        f"for {given} in given:",
        *indent([*lines, *kept, *apart]),
        f"return {source.add_constant(NewRows, 'made')}(keys, roots, stored)",
    ]
    return ManyRowsInsert(table, source.build_function("make_rows", body, "run, given"))
