"""Operators of one input without ordering (filter, project, distinct, lock), and leaves that are
not relations (values, table functions)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from belvedere.execution.memory_limit import CHUNK_ROWS, Memory
from belvedere.execution.python.context import CompileContext, row_keys
from belvedere.execution.python.expressions.expression_source import (
    ExpressionWriter,
    python_form,
)
from belvedere.execution.python.expressions.generated_function import (
    GeneratedFunction,
    tuple_source,
)
from belvedere.execution.python.operators.virtual_tables import compile_filter_input
from belvedere.execution.run import Rows, Run
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.types import Row

CHECK_EVERY_ROWS = 4096


def compile_filter(context: CompileContext, node: n.Filter) -> Rows:
    source = GeneratedFunction()
    truth = ExpressionWriter(source, context.plan).write_truth(node.condition)
    each = source.add_constant(compile_filter_input(context, node.input, node.condition), "rows")
    return source.build_function(
        "filter", [f"for row in {each}(run):", f"    if {truth}:", "        yield row"]
    )


def compile_project(context: CompileContext, node: n.Project) -> Rows:
    """A projection, together with the filter below it, as one loop."""
    source = GeneratedFunction()
    writer = ExpressionWriter(source, context.plan)
    below = node.input
    lines = []
    if context.fuses and isinstance(below, n.Filter):
        truth = writer.write_truth(below.condition)
        lines.append(f"    if not {truth}: continue")
        rows = compile_filter_input(context, below.input, below.condition)
    else:
        rows = context.plan(below)
    each = source.add_constant(rows, "rows")
    result = tuple_source(map(writer.write_value, node.expressions))
    return source.build_function(
        "project", [f"for row in {each}(run):", *lines, f"    yield {result}"]
    )


def compile_values(context: CompileContext, node: n.Values) -> Rows:
    if node.rows == ((),):
        return lambda run: iter(((),))
    if all(isinstance(value, e.Literal) for row in node.rows for value in row):
        constant = tuple(
            tuple([value.value for value in row if isinstance(value, e.Literal)])
            for row in node.rows
        )
        return lambda run: iter(constant)
    made = [context.tuple_of(row) for row in node.rows]
    return lambda run: (bound(run)(run.outer) for bound in made)


def compile_distinct(context: CompileContext, node: n.Distinct) -> Rows:
    each = context.plan(node.input)
    if node.on is None:
        key = row_keys(node.fields)
        return lambda run: distinct_rows(each(run), key, run.memory)
    key_of = context.key_of(node.on)
    return lambda run: distinct_rows(each(run), key_of(run), run.memory)


def distinct_rows(rows: Iterator[Row], key: Callable[[Row], Any], memory: Memory) -> Iterator[Row]:
    """The first row of each key."""
    seen = set()
    for row in rows:
        value = key(row)
        if value not in seen:
            seen.add(value)
            if not len(seen) % CHUNK_ROWS:
                memory.reserve_rows(CHUNK_ROWS, row)
            yield row


def compile_table_function(context: CompileContext, node: n.TableFunction) -> Rows:
    made = [_compile_table_call(context, call) for call in node.calls]
    widths = [len(call.fields) for call in node.calls]

    def call_functions(run: Run) -> Iterator[Row]:
        if len(made) == 1:
            found = made[0](run)
        else:
            found = _zip_rows([one(run) for one in made], widths)
        if node.ordinality:
            found = ((*row, number) for number, row in enumerate(found, 1))
        return _interruptible_rows(run, found)

    return call_functions


def _compile_table_call(context: CompileContext, call: n.TableCall) -> Rows:
    """The rows of one set-returning function; a strict one returns none for a NULL argument."""
    function = call.function
    form = python_form(function, tuple([argument.type for argument in call.arguments]))
    arguments = context.tuple_of(call.arguments)
    several = len(call.fields) > 1

    def call_function(run: Run) -> Iterator[Row]:
        given = arguments(run)(run.outer)
        if function.strict and None in given:
            return iter(())
        found = form(run.environment, *given) if function.environment else form(*given)
        return iter(found) if several else ((value,) for value in found)

    return call_function


def _zip_rows(parts: list[Iterator[Row]], widths: list[int]) -> Iterator[Row]:
    for rows in itertools.zip_longest(*parts):
        row: Row = ()
        for found, width in zip(rows, widths):
            row += (None,) * width if found is None else found
        yield row


def _interruptible_rows(run: Run, rows: Iterator[Row]) -> Iterator[Row]:
    """The same rows, cancellable: table functions read no relation, whose scan would check."""
    while batch := list(itertools.islice(rows, CHECK_EVERY_ROWS)):
        yield from batch
        run.interrupt.check()


def compile_lock(context: CompileContext, node: n.Lock) -> Rows:
    """Locks every row that passes; rows to be skipped are left out."""
    each = context.plan(node.input)

    def lock_each_row(run: Run) -> Iterator[Row]:
        for row in run.interrupt.check_rows(each(run)):
            held = True
            for target in node.targets:
                key = tuple([row[i] for i in target.key])
                if None not in key:
                    held = (
                        held
                        and run.services.lock_rows(
                            target.relation, [key], node.strength, node.wait
                        )[0]
                    )
            if held:
                yield row

    return lock_each_row
