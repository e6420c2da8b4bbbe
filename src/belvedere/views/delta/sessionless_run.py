"""Runs of plans and expressions with a reader but without a session."""

from __future__ import annotations

import datetime
import itertools
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from belvedere import interrupts
from belvedere.execution.run import Interrupt, Rows, Run, Services, make_statement_interrupt
from belvedere.plan.functions.core.function import Environment
from belvedere.txn.contracts import Reader
from belvedere.types import Row

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
ENVIRONMENT = Environment(_EPOCH, _EPOCH, lambda: _EPOCH, random.Random(0))
CHECK_ROWS = 256


class _Maintenance(threading.local):
    """What stops the maintenance that this thread does: nothing in a commit, which must finish."""

    interrupt: Interrupt = Interrupt()
    stops: bool = False


_maintenance = _Maintenance()


@contextmanager
def stop_with_statement() -> Iterator[None]:
    """Maintenance in this block writes nothing yet, and stops when the statement has to stop that
    this thread runs, if there is one."""
    _maintenance.interrupt, _maintenance.stops = make_statement_interrupt(), True
    try:
        yield
    finally:
        del _maintenance.interrupt, _maintenance.stops


def run_compiled_plan(rows: Rows, reader: Reader, deltas: dict[int, list[Row]]) -> Iterator[Row]:
    run = make_run_with_reader(reader)
    run.deltas = deltas
    return _check_rows(rows(run)) if _maintenance.stops else rows(run)


def _check_rows(rows: Iterator[Row]) -> Iterator[Row]:
    while some := list(itertools.islice(rows, CHECK_ROWS)):
        interrupts.check_statement()
        yield from some


def make_run_with_reader(reader: Reader, environment: Environment = ENVIRONMENT) -> Run:
    return Run(reader, (), environment, NO_SERVICES, _maintenance.interrupt)


def make_run_without_reader() -> Run:
    """A run for expressions that depend on nothing but the row."""
    nothing: Reader = None  # type: ignore[assignment]
    return make_run_with_reader(nothing)


class _NoServices:
    """A view's definition needs no service of a session; the compiler ensures it."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"a view asked for {name}")


NO_SERVICES: Services = _NoServices()  # type: ignore[assignment]
