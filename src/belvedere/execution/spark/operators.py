"""Python operators inside Spark's tasks, for plans and expressions without an exact native form.

Each is a function for `mapInArrow`: Arrow batches of carried columns in and out. It lives in a
Python worker of a task. The plan (frozen nodes and the Python forms of their functions) and the
types must pickle; the worker compiles the closures, once per task.

    ComputeTask   columns by expressions over single rows; the other columns pass unchanged. By
                  Arrow kernels where these are exact (`execution.spark.arrow_kernels`)
    OperatorTask  a plan over the rows of one partition, whose leaves are `Changes`
    KeyHashTask   a hash of key expressions, by which rows are exchanged
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from belvedere.catalog.catalog import empty_catalog
from belvedere.errors import Error
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.python.context import CompileContext, row_keys
from belvedere.execution.run import Interrupt, Run, Services
from belvedere.execution.spark.arrow_kernels import (
    ColumnFunction,
    KernelFailure,
    compile_columnar,
)
from belvedere.execution.spark.types import NotNative, arrow_carrier, to_array, to_values
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.fields import Field
from belvedere.plan.functions.core.function import Environment
from belvedere.types import BIGINT, Row, SqlType

Batches = Iterator[pa.RecordBatch]
Types = tuple[SqlType, ...]

ROWS_PER_BATCH = 10_000
TAG, KEY = "belvedere_side", "belvedere_key"
NOTHING = "nothing"
"""The column of frames that have no columns."""


class TaskFailure(Exception):
    """Carries an error of the engine out of a task: Spark passes on only its text, from which
    `translate_failure` parses the SQLSTATE."""

    def __init__(self, error: Error) -> None:
        super().__init__(f"[belvedere {error.sqlstate}] {error.message}; {error.facts}")


def run_without_store(environment: Environment) -> Run:
    """A run without a store, for plans whose leaves are all given: they read nothing else."""
    nothing: Any = None
    services: Services = nothing
    return Run(nothing, (), environment, services, Interrupt())


@dataclass(frozen=True, slots=True)
class ComputeTask:
    """Adds a column for each expression over the row's columns."""

    expressions: tuple[e.Expression, ...]
    types: Types
    names: tuple[str, ...]
    added_names: tuple[str, ...]
    results: Types
    environment: Environment

    def __call__(self, batches: Batches) -> Batches:
        compute = self.compile_batch()
        for batch in batches:
            try:
                arrays = compute(batch)
            except Error as error:
                raise TaskFailure(error) from None
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, *arrays], names=[*batch.schema.names, *self.added_names]
            )

    def compile_batch(self) -> Callable[[pa.RecordBatch], list[pa.Array]]:
        """Compile the function from a batch to the new columns: by kernels where these are exact,
        the others together row by row. Compiled once, for many batches."""
        several = [
            self._compile_columnar(one, result)
            for one, result in zip(self.expressions, self.results)
        ]

        def compute_columns(batch: pa.RecordBatch) -> list[pa.Array]:
            given = [batch.column(name) for name in self.names]
            found: dict[int, pa.Array] = {}
            for at, whole in enumerate(several):
                if whole is not None:
                    with contextlib.suppress(KernelFailure):
                        found[at] = whole(given, batch.num_rows)
            left = tuple(at for at in range(len(several)) if at not in found)
            found.update(zip(left, self._compute_by_rows(left, batch)))
            return [found[at] for at in range(len(several))]

        return compute_columns

    def is_columnar(self) -> bool:
        """Whether all expressions have kernels; one that fails still falls back to rows."""
        pairs = zip(self.expressions, self.results)
        return all(self._compile_columnar(one, result) is not None for one, result in pairs)

    def _compile_columnar(self, expression: e.Expression, result: SqlType) -> ColumnFunction | None:
        context, run = _bare_context(), run_without_store(self.environment)
        try:
            return compile_columnar(
                expression, self.types, lambda one: context.value_of(one)(run)(()), result
            )
        except NotNative:
            return None

    def _compute_by_rows(self, which: tuple[int, ...], batch: pa.RecordBatch) -> list[pa.Array]:
        if not which:
            return []
        expressions = tuple(self.expressions[at] for at in which)
        value = _compile_tuple(expressions, self.environment)
        used = sorted({c.index for one in expressions for c in _find_columns(one)})
        found = [value(row) for row in _sparse_rows(batch, self.names, self.types, used)]
        columns = list(zip(*found)) if found else [()] * len(which)
        return [to_array(list(some), self.results[at]) for at, some in zip(which, columns)]


@lru_cache(maxsize=64)
def _compile_tuple(
    expressions: tuple[e.Expression, ...], environment: Environment
) -> Callable[[Row], Row]:
    """Compile the function from a row to the values of all expressions, once per process."""
    made: Callable[[Row], Row] = _bare_context().tuple_of(expressions)(
        run_without_store(environment)
    )
    return made


def _bare_context() -> CompileContext:
    catalog = empty_catalog()
    return CompileContext(catalog, lambda node: compile_plan(catalog, node))


def _find_columns(expression: e.Expression) -> list[e.Column]:
    found: list[e.Column] = []
    stack: list[Any] = [expression]
    while stack:
        one = stack.pop()
        if isinstance(one, e.Column):
            found.append(one)
        elif isinstance(one, tuple):
            stack += one
        elif hasattr(one, "__dataclass_fields__"):
            stack += [getattr(one, name) for name in one.__dataclass_fields__ if name != "function"]
    return found


def _sparse_rows(
    batch: pa.RecordBatch, names: Sequence[str], types: Types, used: Sequence[int]
) -> Iterator[Row]:
    """Decode rows with only the used columns; the others are None."""
    nothing = [None] * batch.num_rows
    columns: list[list[Any]] = [nothing] * len(types)
    for index in used:
        columns[index] = to_values(batch.column(names[index]), types[index])
    return zip(*columns) if columns else iter([()] * batch.num_rows)


def _to_carried_array(values: list[Any], sql_type: SqlType) -> pa.Array:
    try:
        return to_array(values, sql_type)
    except Error as error:
        raise TaskFailure(error) from None


# -- operators -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OperatorInput:
    """One input of an operator: the column of the tagged union that has its rows, its types, and
    the `Changes` leaf that gets its rows."""

    column: str
    types: Types
    leaf: int


@dataclass(frozen=True, slots=True)
class OperatorTask:
    """Runs `plan` over all rows of a partition of tagged rows (`execution.spark.dataframes`)."""

    plan: n.Node
    sides: tuple[OperatorInput, ...]
    types: Types
    names: tuple[str, ...]
    environment: Environment
    runs_when_empty: bool = False  # one partition only: it runs also when there are no rows

    def __call__(self, batches: Batches) -> Batches:
        deltas: dict[int, list[Row]] = {side.leaf: [] for side in self.sides}
        empty_handed = True
        for batch in batches:
            empty_handed = empty_handed and not batch.num_rows
            for number, side in enumerate(self.sides):
                deltas[side.leaf] += input_rows(batch, number, side)
        if empty_handed and not self.runs_when_empty:
            return
        run = run_without_store(self.environment)
        run.deltas = deltas
        try:
            rows = list(compile_plan(empty_catalog(), self.plan)(run))
        except Error as error:
            raise TaskFailure(error) from None
        yield from rows_to_batches(rows, self.types, self.names)


def input_rows(batch: pa.RecordBatch, number: int, side: OperatorInput) -> list[Row]:
    """The rows of one input in a batch of tagged rows."""
    mine = batch.filter(pc.equal(batch.column(TAG), number))
    if not side.types:
        return [()] * mine.num_rows
    fields = mine.column(side.column).flatten()
    return list(zip(*(to_values(f, t) for f, t in zip(fields, side.types))))


def rows_to_batches(rows: list[Row], types: Types, names: Sequence[str]) -> Batches:
    """Encode Python rows as batches of carried columns."""
    for start in range(0, len(rows), ROWS_PER_BATCH):
        part = rows[start : start + ROWS_PER_BATCH]
        if not types:
            yield pa.RecordBatch.from_arrays(
                [pa.array([1] * len(part), pa.int32())], names=[NOTHING]
            )
            continue
        arrays = [_to_carried_array(list(v), t) for v, t in zip(zip(*part), types)]
        yield pa.RecordBatch.from_arrays(arrays, names=list(names))


@dataclass(frozen=True, slots=True)
class KeyHashTask:
    """Adds a hash that is the same for keys that are equal in SQL, whatever their
    representation."""

    keys: tuple[e.Expression, ...]
    types: Types
    names: tuple[str, ...]
    environment: Environment

    def __call__(self, batches: Batches) -> Batches:
        of_row = _bare_context().tuple_of(self.keys)(run_without_store(self.environment))
        canonical = row_keys(tuple(Field("key", key.type) for key in self.keys))
        used = sorted({c.index for one in self.keys for c in _find_columns(one)})
        for batch in batches:
            rows = _sparse_rows(batch, self.names, self.types, used)
            try:
                hashes = [stable_hash(canonical(of_row(row))) for row in rows]
            except Error as error:
                raise TaskFailure(error) from None
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, pa.array(hashes, arrow_carrier(BIGINT))],
                names=[*batch.schema.names, KEY],
            )


def stable_hash(key: Row) -> int:
    """A hash that is the same in every process, unlike Python's `hash` of a text."""
    total = 0
    for value in key:
        one = _hash_value(value)
        total = (total * 1_000_003 + one) & 0xFFFFFFFFFFFFFFFF
    return total - (1 << 64) if total >> 63 else total


def _hash_value(value: Any) -> int:
    if isinstance(value, str):
        return int.from_bytes(value.encode("utf-8", "surrogatepass"), "big") % 0x1FFFFFFFFFFFFFFF
    if isinstance(value, bytes):
        return int.from_bytes(value, "big") % 0x1FFFFFFFFFFFFFFF
    if isinstance(value, tuple):
        return stable_hash(value)
    if isinstance(value, int | float) or hasattr(value, "as_tuple"):
        return hash(value)  # equal numbers have one hash, of whatever type, in every process
    return _hash_value(repr(value))
