"""Task functions of a verification: rows as canonical text, the same for rows that are equal.

Recomputed rows arrive as carried columns (`RowTextTask`), stored ones as keys and values of the
view's state, which the view's reading plan turns into rows (`StateToRowTextTask`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

from belvedere.catalog.relation_codecs import compiled_view
from belvedere.errors import Error
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.python.context import row_keys
from belvedere.execution.spark.dataframes import leaf_number
from belvedere.execution.spark.operators import TaskFailure, run_without_store
from belvedere.execution.spark.types import to_values
from belvedere.pipeline.store.client import PositionLease, Store
from belvedere.pipeline.store.tables import Batches, decode_catalog, iterate_task_numbers
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.fields import Field, Fields
from belvedere.plan.functions.core.function import Environment
from belvedere.plan.plan_items import walk_plan_items
from belvedere.types import Row, SqlType
from belvedere.values.decimals import EXACT
from belvedere.views.delta.sessionless_run import ENVIRONMENT

ROWS = "row string"


def is_row_wise_plan(plan: n.Node) -> bool:
    """Whether the plan maps every stored row to rows of the view independently of the others."""
    for item in walk_plan_items(plan):
        if isinstance(item, n.Limit | n.SetOperation | n.Aggregate):
            return False
        if isinstance(item, n.Join) and not item.lateral:
            return False  # it combines stored rows
    return True


@dataclass(frozen=True, slots=True)
class StateReadTask:
    """In a task: reads keys and values of a part of a view's stored state."""

    store: Store
    lease: PositionLease
    view: int
    parts: tuple[tuple[tuple[bytes, bytes], ...], ...]

    def __call__(self, batches: Batches) -> Batches:
        for number in iterate_task_numbers(batches):
            for start, end in self.parts[number] if number < len(self.parts) else ():
                arguments = {"view": self.view, **self.lease.to_verb_arguments()}
                yield from self.store.fetch_verb_batches("state", start=start, end=end, **arguments)


@dataclass(frozen=True, slots=True)
class StateToRowTextTask:
    """In a task: computes the view's rows, as text, from all stored values that it is given."""

    view: int
    objects: tuple[bytes, ...]
    plan: n.Node
    environment: Environment = field(default=ENVIRONMENT)

    def __call__(self, batches: Batches) -> Batches:
        catalog = decode_catalog(self.objects)
        stored = compiled_view(catalog, self.view)
        decode = stored.layout.projector(_find_state_slots(self.plan))
        given = n.Changes(leaf_number(0), "state", (), _find_state_scan(self.plan).fields)
        rows_of = compile_plan(catalog, _replace_state_scan(self.plan, given))
        text = build_row_formatter(self.plan.fields)
        run_ = run_without_store(self.environment)
        values = (value for batch in batches for value in batch.column("value").to_pylist())
        run_.deltas = {leaf_number(0): [decode(value) for value in values]}
        yield _build_row_text_batch([text(row) for row in rows_of(run_)])


@dataclass(frozen=True, slots=True)
class StoredRowTextTask:
    """In a task: reads a part of a view's stored state and computes the view's rows from it."""

    read: StateReadTask
    rows: StateToRowTextTask

    def __call__(self, batches: Batches) -> Batches:
        try:
            yield from self.rows(self.read(batches))
        except Error as error:
            raise TaskFailure(error) from None


def _find_state_scan(plan: n.Node) -> n.Scan:
    return next(one for one in transform.walk_plan(plan) if isinstance(one, n.Scan))


def _find_state_slots(plan: n.Node) -> tuple[int, ...]:
    return _find_state_scan(plan).slots


def _replace_state_scan(plan: n.Node, leaf: n.Node) -> n.Node:
    if isinstance(plan, n.Scan):
        return leaf
    return transform.rebuild_inputs(plan, lambda one: _replace_state_scan(one, leaf))


# -- rows as text ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowTextTask:
    """In a task: formats carried rows as text that is the same where the rows are equal."""

    types: tuple[SqlType, ...]
    names: tuple[str, ...]
    fields: Fields

    def __call__(self, batches: Batches) -> Batches:
        text = build_row_formatter(self.fields)
        for batch in batches:
            columns = [
                to_values(batch.column(name), one) for name, one in zip(self.names, self.types)
            ]
            rows: Iterator[Row] = zip(*columns) if columns else iter([()] * batch.num_rows)
            yield _build_row_text_batch([text(row) for row in rows])


def build_row_formatter(fields: Fields) -> Callable[[Row], str]:
    key = row_keys(tuple(Field(one.name, one.type) for one in fields))
    return lambda row: ", ".join(map(_format_canonical_value, key(row)))


def _format_canonical_value(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value)
        case Decimal():
            if not value:
                return "0"  # whatever its scale
            return f"{value.normalize(EXACT):f}" if value.is_finite() else str(value)
        case float():
            return repr(value + 0.0)
        case _:
            return repr(value)


def _build_row_text_batch(rows: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(rows, pa.utf8())], names=["row"])
