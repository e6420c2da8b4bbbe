"""INSERT, UPDATE and DELETE: evaluate all rows first, then write.

A statement sees its tables as they were when it began, also where it changes them and in its
RETURNING. So these operators compute the new rows and add a `Write` to the run; the statement
applies the writes after its last row has been read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from belvedere.catalog.relation import CompiledTable, compiled_table
from belvedere.errors import InvalidInput
from belvedere.execution import bulk, writes
from belvedere.execution.direct.conflicts import Arbiter, compile_arbiters
from belvedere.execution.direct.context import Bound, Context
from belvedere.execution.run import Rows, Run, Write
from belvedere.plan import nodes as n
from belvedere.txn.rows import failing, null_refused
from belvedere.txn.transaction import Transaction
from belvedere.types import Row

Widen = Callable[[Row], Row]
"""A row of the plan (live columns) to a stored row (every slot)."""


def compile_delete(context: Context, node: n.Delete) -> Rows:
    each, table = context.plan(node.input), compiled_table(context.catalog, node.relation)
    widen, returning = widener(table), _returning(context, node.returning)
    width = node.width

    def rows(run: Run) -> Iterator[Row]:
        found = _first_of_each(each(run), table, widen, width)

        def apply(txn: Transaction) -> None:
            for row in found.values():
                writes.delete(txn, table, widen(row[:width]))

        run.changes.append(Write(node, len(found), apply))
        return iter(()) if returning is None else map(returning(run), list(found.values()))

    return rows


def compile_update(context: Context, node: n.Update) -> Rows:
    each, table = context.plan(node.input), compiled_table(context.catalog, node.relation)
    widen, returning = widener(table), _returning(context, node.returning)
    assigned = context.tuple_of([assignment.value for assignment in node.assignments])
    ordinals = [assignment.ordinal for assignment in node.assignments]
    finish = compile_rules(context, table, node.rules)
    width = node.width

    def rows(run: Run) -> Iterator[Row]:
        values, finished = assigned(run), finish(run)
        changed = []
        for row in _first_of_each(each(run), table, widen, width).values():
            new = list(row[:width])
            for ordinal, value in zip(ordinals, values(row)):
                new[ordinal] = value
            changed.append((row, finished(new)))

        def apply(txn: Transaction) -> None:
            pairs = [(widen(row[:width]), widen(new)) for row, new in changed]
            writes.update_all(txn, table, pairs)

        run.changes.append(Write(node, len(changed), apply))
        if returning is None:
            return iter(())
        return map(returning(run), [new + row[width:] for row, new in changed])

    return rows


def _first_of_each(
    rows: Iterator[Row], table: CompiledTable, widen: Widen, width: int
) -> dict[bytes, Row]:
    """Input rows by the key of their table row; the first of several wins."""
    found: dict[bytes, Row] = {}
    key_of = table.key_of
    for row in rows:
        found.setdefault(key_of(widen(row[:width])), row)
    return found


def _returning(context: Context, expressions: tuple[Any, ...]) -> Bound | None:
    return context.tuple_of(expressions) if expressions else None


def widener(table: CompiledTable) -> Widen:
    columns = table.table.columns
    if len(table.live) == len(columns):
        return lambda row: row
    slots = [column.slot for column in table.live]
    width = len(columns)

    def widen(row: Row) -> Row:
        whole = [None] * width
        for slot, value in zip(slots, row):
            whole[slot] = value
        return tuple(whole)

    return widen


def narrower(table: CompiledTable) -> Widen:
    """The opposite of `widener`."""
    if len(table.live) == len(table.table.columns):
        return lambda row: row
    slots = [column.slot for column in table.live]
    return lambda row: tuple([row[slot] for slot in slots])


# -- rules of new rows -----------------------------------------------------------------------------


def compile_rules(
    context: Context, table: CompiledTable, rules: n.RowRules
) -> Callable[[Run], Callable[[list[Any]], Row]]:
    """Generated columns, then NOT NULL, then CHECK."""
    generated = context.tuple_of([one.value for one in rules.generated])
    places = [one.ordinal for one in rules.generated]
    checks = [(check.name, context.value_of(check.condition)) for check in rules.checks]

    def bind(run: Run) -> Callable[[list[Any]], Row]:
        make = generated(run) if places else None
        tests = [(name, bound(run)) for name, bound in checks]

        def finish(values: list[Any]) -> Row:
            if make is not None:
                for place, value in zip(places, make(values)):
                    values[place] = value
            for ordinal in rules.not_null:
                if values[ordinal] is None:
                    raise null_refused(table, table.live[ordinal].name, values)
            for name, test in tests:
                if test(values) is False:
                    raise _check_violated(table, name, values)
            return tuple(values)

        return finish

    return bind


def _check_violated(table: CompiledTable, name: str, values: list[Any]) -> InvalidInput:
    return InvalidInput(
        "new row violates check constraint",
        sqlstate="23514",
        detail=failing(values),
        constraint=name,
        table=table.table.name,
    )


# -- insert ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Upsert:
    """ON CONFLICT, compiled: the arbiters that detect a conflict, and the action then taken."""

    arbiters: tuple[Arbiter, ...]
    assigned: Bound | None
    ordinals: tuple[int, ...]
    where: Bound | None
    finish: Callable[[Run], Callable[[list[Any]], Row]]


def compile_insert(context: Context, node: n.Insert) -> Rows:
    each, table = context.plan(node.input), compiled_table(context.catalog, node.relation)
    make = row_maker(context, node, table)
    returning = _returning(context, node.returning)
    upsert = _compile_upsert(context, node, table)
    widen = widener(table)

    def rows(run: Run) -> Iterator[Row]:
        made = list(map(make(run), each(run)))
        if upsert is None:
            changed: list[tuple[Row | None, Row]] = [(None, row) for row in made]
        else:
            changed = list(_settle(run, upsert, made, table))

        def apply(txn: Transaction) -> None:
            if upsert is None and len(made) >= bulk.ROWS_MIN:
                bulk.Loader(txn, table).add_rows([widen(row) for row in made])
                return
            for old, new in changed:
                if old is None:
                    writes.insert(txn, table, widen(new))
                else:
                    writes.update(txn, table, widen(old), widen(new))

        run.changes.append(Write(node, len(changed), apply))
        return iter(()) if returning is None else map(returning(run), [new for _, new in changed])

    return rows


def row_maker(
    context: Context, node: n.Insert, table: CompiledTable
) -> Callable[[Run], Callable[[Row], Row]]:
    """Converts rows of an INSERT's input to rows of the table (live columns), by its rules."""
    width = len(table.live)
    hidden = [i for i, column in enumerate(table.live) if column.hidden]
    finish = compile_rules(context, table, node.rules)
    ordinals = node.ordinals
    whole = ordinals == tuple(range(width))

    def bind(run: Run) -> Callable[[Row], Row]:
        finished, row_id = finish(run), run.services.row_id

        def make(row: Row) -> Row:
            if whole:
                return finished(list(row))
            values: list[Any] = [None] * width
            for ordinal, value in zip(ordinals, row):
                values[ordinal] = value
            for ordinal in hidden:
                values[ordinal] = row_id(node.relation)
            return finished(values)

        return make

    return bind


def _compile_upsert(context: Context, node: n.Insert, table: CompiledTable) -> _Upsert | None:
    conflict = node.on_conflict
    if conflict is None:
        return None
    assignments = conflict.assignments
    return _Upsert(
        compile_arbiters(context.catalog, table, conflict, narrower(table), widener(table)),
        None if assignments is None else context.tuple_of([one.value for one in assignments]),
        tuple(one.ordinal for one in assignments or ()),
        None if conflict.where is None else context.truth_of(conflict.where),
        compile_rules(context, table, node.rules),
    )


def _settle(
    run: Run, upsert: _Upsert, proposed: list[Row], table: CompiledTable
) -> Iterator[tuple[Row | None, Row]]:
    """The rows to write: (None, row) for an insert, (existing row, new row) for an update."""
    taken: set[Any] = set()
    finish = upsert.finish(run)
    for row in proposed:
        claims = [claim for arbiter in upsert.arbiters if (claim := arbiter.claim(row)) is not None]
        again = not taken.isdisjoint(claims)
        existing = None if again else _existing(run, upsert.arbiters, row)
        if not again and existing is None:
            taken.update(claims)
            yield None, row
        elif upsert.assigned is not None:
            if again:
                raise _second_time()
            assert existing is not None
            taken.update(claims)
            both = existing + row
            if upsert.where is None or upsert.where(run)(both):
                new = list(existing)
                for ordinal, value in zip(upsert.ordinals, upsert.assigned(run)(both)):
                    new[ordinal] = value
                yield existing, finish(new)


def _existing(run: Run, arbiters: tuple[Arbiter, ...], row: Row) -> Row | None:
    for arbiter in arbiters:
        found = arbiter.find(run.reader, row)
        if found is not None:
            return found
    return None


def _second_time() -> InvalidInput:
    return InvalidInput(
        "ON CONFLICT DO UPDATE cannot affect a row a second time",
        sqlstate="21000",
        hint="make sure that no rows proposed together have the same constrained values",
    )
