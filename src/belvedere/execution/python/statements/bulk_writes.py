"""UPDATE and DELETE of the rows of a table, or of ranges of its primary key, in batches.

    UPDATE accounts SET balance = balance * 1.01 WHERE branch = 7

Rows are read with their keys and stored forms, so that none is looked up or encoded again to be
replaced, and a batch goes through each step as lists: condition, new rows, encoding, locks,
changes. Everything else (a key that changes, rows of a join, rows by an index) takes the general
path in `dml`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from belvedere.catalog.relation_codecs import CompiledTable, compiled_table
from belvedere.execution import row_writes
from belvedere.execution.python.context import BindRun, CompileContext
from belvedere.execution.python.expressions.expression_source import ExpressionWriter
from belvedere.execution.python.expressions.generated_function import GeneratedFunction
from belvedere.execution.python.operators.access import compile_ranges
from belvedere.execution.python.statements.dml import compile_rules
from belvedere.execution.python.statements.point_writes import keeps_keys, reads_every_column
from belvedere.execution.run import PendingWrite, Rows, Run
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.txn.gc_pause import pause_cycle_collector
from belvedere.txn.transaction.table_rows import null_violation
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row


class StoredRows(NamedTuple):
    """Rows of a table with their keys and stored forms."""

    keys: list[bytes]
    stored: list[bytes]
    rows: list[Row]


ReadStored = Callable[[Run], Iterator[StoredRows]]


def compile_bulk_update(context: CompileContext, node: n.Update) -> Rows | None:
    """None: the statement takes the general path."""
    table, read = compiled_table(context.catalog, node.relation), _compile_read(context, node)
    if read is None or not keeps_keys(context.catalog, table, node):
        return None
    make = _compile_new_rows(context, table, node)
    returning = context.tuple_of(node.returning) if node.returning else None

    def run_update(run: Run) -> Iterator[Row]:
        make_rows, found, new_rows = make(run), StoredRows([], [], []), list[Row]()
        with pause_cycle_collector():
            for batch in read(run):
                new_rows += make_rows(batch.rows)
                _extend(found, batch)

        def apply_updates(transaction: Transaction) -> None:
            row_writes.replace_many(transaction, table, *found, new_rows)

        run.changes.append(PendingWrite(node, len(new_rows), apply_updates))
        return iter(()) if returning is None else map(returning(run), new_rows)

    return run_update


def compile_bulk_delete(context: CompileContext, node: n.Delete) -> Rows | None:
    """None: the statement takes the general path."""
    table, read = compiled_table(context.catalog, node.relation), _compile_read(context, node)
    if read is None:
        return None
    returning = context.tuple_of(node.returning) if node.returning else None

    def run_delete(run: Run) -> Iterator[Row]:
        found = StoredRows([], [], [])
        with pause_cycle_collector():
            for batch in read(run):
                _extend(found, batch)

        def apply_deletes(transaction: Transaction) -> None:
            row_writes.delete_many(transaction, table, *found)

        run.changes.append(PendingWrite(node, len(found.keys), apply_deletes))
        return iter(()) if returning is None else map(returning(run), list(found.rows))

    return run_delete


def _extend(found: StoredRows, batch: StoredRows) -> None:
    for column, more in zip(found, batch, strict=True):
        column += more  # type: ignore[operator]


def _compile_read(context: CompileContext, node: n.Update | n.Delete) -> ReadStored | None:
    scan, table = node.input, compiled_table(context.catalog, node.relation)
    if not isinstance(scan, n.Scan) or scan.relation != node.relation:
        return None
    if context.counts_rows:  # those of the scan too
        return None
    access = scan.access
    if access.index is not None or access.reverse or (access.full_key and access.range is None):
        return None
    whole = len(table.live_columns) == len(table.table.columns)
    if not whole or not reads_every_column(scan, table):
        return None
    ranges = compile_ranges(context, access, table.key)
    keep = None if scan.residual is None else _compile_condition(context, scan.residual)
    decode = table.decode

    def read_stored(run: Run) -> Iterator[StoredRows]:
        noticed, read = run.interrupt.count_rows, run.memory.count_read
        held = None if keep is None else keep(run)
        for start, end in ranges(run, run.outer):
            for pairs in run.reader.scan(start, end):
                noticed(len(pairs))
                read(len(pairs))
                rows = [decode(stored) for _, stored in pairs]
                if held is not None:
                    wanted = held(rows)
                    pairs, rows = [pairs[at] for at in wanted], [rows[at] for at in wanted]
                run.memory.reserve_changes([form for _, form in pairs])
                yield StoredRows([key for key, _ in pairs], [form for _, form in pairs], rows)

    return read_stored


def _compile_condition(context: CompileContext, condition: e.Expression) -> BindRun:
    """A function from rows to the places of those that satisfy the condition."""
    source = GeneratedFunction()
    truth = ExpressionWriter(source, context.plan).write_truth(condition)
    return source.build_row_function(f"[at for at, row in enumerate(rows) if {truth}]", "rows")


def _compile_new_rows(context: CompileContext, table: CompiledTable, node: n.Update) -> BindRun:
    """A function from rows to what they become, by the table's rules."""
    source = GeneratedFunction()
    writer = ExpressionWriter(source, context.plan)
    assigned = {one.ordinal: writer.write_value(one.value) for one in node.assignments}
    values = [assigned.get(at, f"row[{at}]") for at in range(node.width)]
    made = source.build_row_function(f"[({', '.join(values)},) for row in rows]", "rows")
    rules = node.rules
    if rules.generated or rules.checks:
        finish = compile_rules(context, table, rules)

        def bind_rules(run: Run) -> Callable[[list[Row]], list[Row]]:
            make, finished = made(run), finish(run)
            return lambda rows: [finished(list(row)) for row in make(rows)]

        return bind_rules
    not_null = [at for at in rules.not_null if at in assigned]

    def bind_run(run: Run) -> Callable[[list[Row]], list[Row]]:
        make = made(run)

        def make_rows(rows: list[Row]) -> list[Row]:
            found: list[Row] = make(rows)
            for at in not_null:
                for row in found:
                    if row[at] is None:
                        raise null_violation(table, table.live_columns[at].name, row)
            return found

        return make_rows

    return bind_run
