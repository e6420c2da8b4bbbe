"""Fast path of UPDATE and DELETE of a few rows of one key range.

    UPDATE order_lines SET delivered = ? WHERE order_id = ?

The rows are read with their keys and stored forms in one scan, so that none of them is looked up or
encoded again to be replaced. Ranges of more than ROWS_MAX rows take the general path, where they
can be cancelled and their rows are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.codec.compile import indent
from belvedere.execution import row_writes
from belvedere.execution.python.expressions.expression_source import ExpressionWriter
from belvedere.execution.python.expressions.generated_function import GeneratedFunction
from belvedere.execution.python.operators.access import compile_ranges
from belvedere.execution.python.statements.key_range import is_one_range, write_range
from belvedere.execution.python.statements.point_statements import (
    FastPathRun,
    FastPathWrite,
    is_simple,
    plain_context,
)
from belvedere.execution.python.statements.point_writes import (
    can_generate_update,
    compile_new_row,
    keeps_keys,
    reads_every_column,
    rules_are_simple,
)
from belvedere.execution.python.statements.row_change_source import (
    column_name,
    write_new_row,
    write_root_of_key,
)
from belvedere.kv.batch import Pair
from belvedere.plan import nodes as n
from belvedere.txn.transaction.table_rows import replace_row
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row

ROWS_MAX = 1024

ReadPairs = Callable[[Transaction, FastPathRun], list[tuple[bytes, bytes, Row]] | None]
"""The keys, stored forms and rows that a statement changes; None: they are too many."""


def compile_few_rows_write(catalog: Catalog, node: n.Node) -> FastPathWrite | None:
    """The fast path of a statement, or None when it changes other rows than those of a range of the
    primary key, or needs more than its rows and parameters."""
    match node:
        case n.Update() if not node.returning:
            return _compile_update(catalog, node)
        case n.Delete() if not node.returning:
            return _compile_delete(catalog, node)
        case _:
            return None


def _compile_update(catalog: Catalog, node: n.Update) -> FastPathWrite | None:
    table, read = compiled_table(catalog, node.relation), _compile_read(catalog, node)
    if read is None or not keeps_keys(catalog, table, node) or not rules_are_simple(node.rules):
        return None
    if not all(is_simple(assignment.value) for assignment in node.assignments):
        return None
    generated = _generate_update(catalog, node)
    if generated is not None:
        return generated
    make = compile_new_row(plain_context(catalog), table, node)

    def update_rows(transaction: Transaction, run: FastPathRun) -> int | None:
        found = read(transaction, run)
        if found is None:
            return None
        for key, stored, old in found:
            replace_row(transaction, table, key, old, make(run, old), stored)
        return len(found)

    return update_rows


def _compile_delete(catalog: Catalog, node: n.Delete) -> FastPathWrite | None:
    table, read = compiled_table(catalog, node.relation), _compile_read(catalog, node)
    if read is None:
        return None
    generated = _generate_delete(catalog, node)
    if generated is not None:
        return generated

    def delete_rows(transaction: Transaction, run: FastPathRun) -> int | None:
        found = read(transaction, run)
        if found is None:
            return None
        row_writes.delete_stored(transaction, table, found)
        return len(found)

    return delete_rows


def _compile_read(catalog: Catalog, node: n.Update | n.Delete) -> ReadPairs | None:
    scan, table = node.input, compiled_table(catalog, node.relation)
    if not isinstance(scan, n.Scan) or not reads_every_column(scan, table):
        return None
    if scan.access.index is not None or not is_one_range(scan):
        return None
    if scan.residual is not None and not is_simple(scan.residual):
        return None
    if len(table.live_columns) < len(table.table.columns):
        return None
    context, decode = plain_context(catalog), table.decode
    ranges = compile_ranges(context, scan.access, table.key)
    bind: Any = None if scan.residual is None else context.truth_of(scan.residual)

    def read_rows(transaction: Transaction, run: Any) -> list[tuple[bytes, bytes, Row]] | None:
        pairs: list[Pair] = []
        for start, end in ranges(run, ()):
            for batch in transaction.scan(start, end, limit=ROWS_MAX + 1):
                pairs += batch
        if len(pairs) > ROWS_MAX:
            return None
        found = [(key, stored, decode(stored)) for key, stored in pairs]
        if bind is None:
            return found
        holds = bind(run)
        return [one for one in found if holds(one[2])]

    return read_rows


# -- generated -------------------------------------------------------------------------------------


def _generate_update(catalog: Catalog, node: n.Update) -> FastPathWrite | None:
    if not can_generate_update(catalog, node):
        return None
    source, table = GeneratedFunction(), compiled_table(catalog, node.relation)
    writer = ExpressionWriter(source, plain_context(catalog).plan, column_name)
    return _generate_loop(catalog, node, source, write_new_row(table, node, source, writer))


def _generate_delete(catalog: Catalog, node: n.Delete) -> FastPathWrite | None:
    if row_writes.referring_keys(catalog, node.relation):
        return None
    return _generate_loop(catalog, node, GeneratedFunction(), ["new = None"])


def _generate_loop(
    catalog: Catalog, node: n.Update | n.Delete, source: GeneratedFunction, change: list[str]
) -> FastPathWrite | None:
    """One function: the range, its rows at once, and for each of them what `change` makes of
    `stored`, the lock of its root and the write. None: a condition is left, or a root has to be
    looked up."""
    scan = node.input
    assert isinstance(scan, n.Scan)
    root = write_root_of_key(catalog, node.relation, source)
    if root is None or scan.residual is not None:
        return None
    body = [
        *write_range(catalog, plain_context(catalog), scan, source, "0"),
        f"pairs = transaction.fetch_range(start, end, {ROWS_MAX + 1})",
        f"if len(pairs) > {ROWS_MAX}: return None",
        "write = transaction.write_under",
        "for key, stored in pairs:",
        *indent([*change, f"write({root}, key, stored, new)"]),
        "return len(pairs)",
    ]
    return source.build_function("write_rows", body, "transaction, run")
