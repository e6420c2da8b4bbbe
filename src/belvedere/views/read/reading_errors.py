"""The error of a query that a view it reads causes: which view, which expression, which row.

A view of sums stores the sums; what is computed from them is computed by its readers, and may fail
there. When a query over views fails, what each of them computes is evaluated again over its rows.

    select * from v       v computes 10 / sum(a), and the sum of group 2 is 0

    division by zero (view=v)
    detail: the view computes 10 / sum with sum = 0, where g = 2
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.errors import Error, InvalidInput
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.run import Rows, Run
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.txn.contracts import Reader
from belvedere.types import Row
from belvedere.views.delta.sessionless_run import run_compiled_plan
from belvedere.views.maintain.failed_expression import add_view_to_error
from belvedere.views.maintain.failing_part import FailingPartFinder
from belvedere.views.read.expand_views import list_views_read_by_plan
from belvedere.views.registry.view_registry import ViewRegistry

LOOKED_AT_MAX = 100_000
"""How many rows of a view are looked at."""

R = TypeVar("R")
T = TypeVar("T")


def name_views_in_row_errors(
    registry: ViewRegistry, catalog: Catalog, plan: n.Node, rows: Rows
) -> Rows:
    """The rows of a plan; an error that a view it reads causes is told with the view."""
    views = list_views_read_by_plan(catalog, plan)
    if not views:
        return rows

    def run_rows(run: Run) -> Iterator[Row]:
        try:
            found = rows(run)
        except InvalidInput as error:
            raise build_reading_error(registry, catalog, views, run.reader, error) from error
        return found if hasattr(found, "table") else name_in_rows(run, found)

    def name_in_rows(run: Run, found: Iterator[Row]) -> Iterator[Row]:
        try:
            yield from found
        except InvalidInput as error:
            raise build_reading_error(registry, catalog, views, run.reader, error) from error

    return run_rows


def name_views_in_read_errors(
    registry: ViewRegistry,
    catalog: Catalog,
    plan: n.Node,
    read: Callable[[Reader, T], R] | None,
) -> Callable[[Reader, T], R] | None:
    """The same for a fast path, where there is one."""
    views = list_views_read_by_plan(catalog, plan)
    if read is None or not views:
        return read

    def read_rows(reader: Reader, run: T) -> R:
        try:
            return read(reader, run)
        except InvalidInput as error:
            raise build_reading_error(registry, catalog, views, reader, error) from error

    return read_rows


def build_reading_error(
    registry: ViewRegistry,
    catalog: Catalog,
    views: Sequence[View],
    reader: Reader,
    error: InvalidInput,
) -> InvalidInput:
    """The error with the first of these views that fails with it; as it is when none does."""
    if error.facts.keys() & {"view", "index"}:
        return error
    finder = FailingPartFinder(catalog, reader, error)
    for view in views:
        for node in _list_computing_nodes(registry.build_reading_plan(catalog, view)):
            below = transform.inputs(node)[0]
            rows = run_compiled_plan(compile_plan(catalog, below), reader, {})
            try:
                own = tuple(transform.own_expressions(node))
                told = finder.describe_failing_row(own, below.fields, islice(rows, LOOKED_AT_MAX))
            except Error:  # what is below fails otherwise: the first error is the one to tell
                break
            if told is not None:
                return add_view_to_error(catalog, view, error, told)
    return error


def build_verify_error(
    registry: ViewRegistry, catalog: Catalog, view: View, reader: Reader, error: InvalidInput
) -> InvalidInput:
    """The same for what recomputes this view alone: it is named in any case."""
    told = build_reading_error(registry, catalog, [view], reader, error)
    return told if told is not error else add_view_to_error(catalog, view, error, None)


def _list_computing_nodes(plan: n.Node) -> Iterator[n.Filter | n.Project]:
    """The innermost first."""
    for below in transform.inputs(plan):
        yield from _list_computing_nodes(below)
    if isinstance(plan, n.Filter | n.Project):
        yield plan
