"""INSERT, UPDATE and DELETE: evaluate all rows first, then write.

A statement sees its tables as they were when it began, also where it changes them and in its
RETURNING. So these operators compute the new rows and add a `PendingWrite` to the run; the
statement applies the writes after its last row has been read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from belvedere.catalog.relation_codecs import CompiledTable, compiled_table
from belvedere.errors import InvalidInput
from belvedere.execution import bulk_insert, row_writes
from belvedere.execution.python.context import BindRun, CompileContext
from belvedere.execution.python.statements.on_conflict import Arbiter, compile_arbiters
from belvedere.execution.run import PendingWrite, Rows, Run
from belvedere.plan import nodes as n
from belvedere.txn.transaction.table_rows import describe_failing_row, null_violation
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row

Widen = Callable[[Row], Row]
"""A row of the plan (live columns) to a stored row (every slot)."""


def compile_delete(context: CompileContext, node: n.Delete) -> Rows:
    each, table = context.plan(node.input), compiled_table(context.catalog, node.relation)
    widen, returning = row_widener(table), _compile_returning(context, node.returning)
    width = node.width

    def run_delete(run: Run) -> Iterator[Row]:
        found = _rows_by_key(each(run), table, widen, width)

        def apply_deletes(txn: Transaction) -> None:
            row_writes.delete_all(txn, table, [widen(row[:width]) for row in found.values()])

        run.changes.append(PendingWrite(node, len(found), apply_deletes))
        return iter(()) if returning is None else map(returning(run), list(found.values()))

    return run_delete


def compile_update(context: CompileContext, node: n.Update) -> Rows:
    each, table = context.plan(node.input), compiled_table(context.catalog, node.relation)
    widen, returning = row_widener(table), _compile_returning(context, node.returning)
    assigned = context.tuple_of([assignment.value for assignment in node.assignments])
    ordinals = [assignment.ordinal for assignment in node.assignments]
    finish = compile_rules(context, table, node.rules)
    width = node.width

    def run_update(run: Run) -> Iterator[Row]:
        values, finished = assigned(run), finish(run)
        changed = []
        for row in _rows_by_key(each(run), table, widen, width).values():
            new = list(row[:width])
            for ordinal, value in zip(ordinals, values(row)):
                new[ordinal] = value
            changed.append((row, finished(new)))

        def apply_updates(txn: Transaction) -> None:
            pairs = [(widen(row[:width]), widen(new)) for row, new in changed]
            row_writes.update_all(txn, table, pairs)

        run.changes.append(PendingWrite(node, len(changed), apply_updates))
        if returning is None:
            return iter(())
        return map(returning(run), [new + row[width:] for row, new in changed])

    return run_update


def _rows_by_key(
    rows: Iterator[Row], table: CompiledTable, widen: Widen, width: int
) -> dict[bytes, Row]:
    """Input rows by the key of their table row; the first of several wins."""
    found: dict[bytes, Row] = {}
    key_of = table.key_of
    for row in rows:
        found.setdefault(key_of(widen(row[:width])), row)
    return found


def _compile_returning(context: CompileContext, expressions: tuple[Any, ...]) -> BindRun | None:
    return context.tuple_of(expressions) if expressions else None


def row_widener(table: CompiledTable) -> Widen:
    columns = table.table.columns
    if len(table.live_columns) == len(columns):
        return lambda row: row
    slots = [column.slot for column in table.live_columns]
    width = len(columns)

    def widen_row(row: Row) -> Row:
        whole = [None] * width
        for slot, value in zip(slots, row):
            whole[slot] = value
        return tuple(whole)

    return widen_row


def row_narrower(table: CompiledTable) -> Widen:
    """The opposite of `row_widener`."""
    if len(table.live_columns) == len(table.table.columns):
        return lambda row: row
    slots = [column.slot for column in table.live_columns]
    return lambda row: tuple([row[slot] for slot in slots])


# -- rules of new rows -----------------------------------------------------------------------------


def compile_rules(
    context: CompileContext, table: CompiledTable, rules: n.RowRules
) -> Callable[[Run], Callable[[list[Any]], Row]]:
    """Generated columns, then NOT NULL, then CHECK."""
    generated = context.tuple_of([one.value for one in rules.generated])
    places = [one.ordinal for one in rules.generated]
    checks = [(check.name, context.value_of(check.condition)) for check in rules.checks]

    def bind_run(run: Run) -> Callable[[list[Any]], Row]:
        make = generated(run) if places else None
        tests = [(name, bound(run)) for name, bound in checks]

        def apply_rules(values: list[Any]) -> Row:
            if make is not None:
                for place, value in zip(places, make(values)):
                    values[place] = value
            for ordinal in rules.not_null:
                if values[ordinal] is None:
                    raise null_violation(table, table.live_columns[ordinal].name, values)
            for name, test in tests:
                if test(values) is False:
                    raise _check_violated(table, name, values)
            return tuple(values)

        return apply_rules

    return bind_run


def _check_violated(table: CompiledTable, name: str, values: list[Any]) -> InvalidInput:
    return InvalidInput(
        "new row violates check constraint",
        sqlstate="23514",
        detail=describe_failing_row(values),
        constraint=name,
        table=table.table.name,
    )


# -- insert ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Upsert:
    """ON CONFLICT, compiled: the arbiters that detect a conflict, and the action then taken."""

    arbiters: tuple[Arbiter, ...]
    assigned: BindRun | None
    ordinals: tuple[int, ...]
    where: BindRun | None
    finish: Callable[[Run], Callable[[list[Any]], Row]]


def compile_insert(context: CompileContext, node: n.Insert) -> Rows:
    each, table = context.plan(node.input), compiled_table(context.catalog, node.relation)
    make = row_maker(context, node, table)
    returning = _compile_returning(context, node.returning)
    upsert = _compile_upsert(context, node, table)
    widen = row_widener(table)

    def run_insert(run: Run) -> Iterator[Row]:
        made = list(map(make(run), each(run)))
        if upsert is None:
            changed: list[tuple[Row | None, Row]] = [(None, row) for row in made]
        else:
            changed = list(_resolve_conflicts(run, upsert, made, table))

        def apply_inserts(txn: Transaction) -> None:
            if upsert is None and len(made) >= bulk_insert.ROWS_MIN:
                loader = bulk_insert.BulkLoader(txn, table, run.memory)
                loader.add_rows([widen(row) for row in made])
                return
            if len(changed) > 1:
                txn.fetch_ahead(table.key_of(widen(new)) for _, new in changed)
            for old, new in changed:
                if old is None:
                    row_writes.insert(txn, table, widen(new))
                else:
                    row_writes.update(txn, table, widen(old), widen(new))

        run.changes.append(PendingWrite(node, len(changed), apply_inserts))
        return iter(()) if returning is None else map(returning(run), [new for _, new in changed])

    return run_insert


def row_maker(
    context: CompileContext, node: n.Insert, table: CompiledTable
) -> Callable[[Run], Callable[[Row], Row]]:
    """Converts rows of an INSERT's input to rows of the table (live columns), by its rules."""
    width = len(table.live_columns)
    hidden = [i for i, column in enumerate(table.live_columns) if column.hidden]
    finish = compile_rules(context, table, node.rules)
    ordinals = node.ordinals
    whole = ordinals == tuple(range(width))

    def bind_run(run: Run) -> Callable[[Row], Row]:
        finished, row_id = finish(run), run.services.row_id

        def make_row(row: Row) -> Row:
            if whole:
                return finished(list(row))
            values: list[Any] = [None] * width
            for ordinal, value in zip(ordinals, row):
                values[ordinal] = value
            for ordinal in hidden:
                values[ordinal] = row_id(node.relation)
            return finished(values)

        return make_row

    return bind_run


def _compile_upsert(
    context: CompileContext, node: n.Insert, table: CompiledTable
) -> _Upsert | None:
    conflict = node.on_conflict
    if conflict is None:
        return None
    assignments = conflict.assignments
    return _Upsert(
        compile_arbiters(context.catalog, table, conflict, row_narrower(table), row_widener(table)),
        None if assignments is None else context.tuple_of([one.value for one in assignments]),
        tuple(one.ordinal for one in assignments or ()),
        None if conflict.where is None else context.truth_of(conflict.where),
        compile_rules(context, table, node.rules),
    )


def _resolve_conflicts(
    run: Run, upsert: _Upsert, proposed: list[Row], table: CompiledTable
) -> Iterator[tuple[Row | None, Row]]:
    """The rows to write: (None, row) for an insert, (existing row, new row) for an update."""
    taken: set[Any] = set()
    finish = upsert.finish(run)
    for row in proposed:
        claims = [claim for arbiter in upsert.arbiters if (claim := arbiter.claim(row)) is not None]
        again = not taken.isdisjoint(claims)
        existing = None if again else _find_existing(run, upsert.arbiters, row)
        if not again and existing is None:
            taken.update(claims)
            yield None, row
        elif upsert.assigned is not None:
            if again:
                raise _second_update_error()
            assert existing is not None
            taken.update(claims)
            both = existing + row
            if upsert.where is None or upsert.where(run)(both):
                new = list(existing)
                for ordinal, value in zip(upsert.ordinals, upsert.assigned(run)(both)):
                    new[ordinal] = value
                yield existing, finish(new)


def _find_existing(run: Run, arbiters: tuple[Arbiter, ...], row: Row) -> Row | None:
    for arbiter in arbiters:
        found = arbiter.find(run.reader, row)
        if found is not None:
            return found
    return None


def _second_update_error() -> InvalidInput:
    return InvalidInput(
        "ON CONFLICT DO UPDATE cannot affect a row a second time",
        sqlstate="21000",
        hint="make sure that no rows proposed together have the same constrained values",
    )
