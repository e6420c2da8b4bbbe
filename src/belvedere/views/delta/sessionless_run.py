"""Runs of plans and expressions with a reader but without a session."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator

from belvedere.execution.run import Interrupt, Rows, Run, Services
from belvedere.plan.functions.core.function import Environment
from belvedere.txn.contracts import Reader
from belvedere.types import Row

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
ENVIRONMENT = Environment(_EPOCH, _EPOCH, lambda: _EPOCH, random.Random(0))
NO_INTERRUPT = Interrupt()
"""Maintenance is never interrupted: once begun, it must finish."""


def run_compiled_plan(rows: Rows, reader: Reader, deltas: dict[int, list[Row]]) -> Iterator[Row]:
    run = Run(reader, (), ENVIRONMENT, NO_SERVICES, NO_INTERRUPT)
    run.deltas = deltas
    return rows(run)


def make_run_with_reader(reader: Reader) -> Run:
    return Run(reader, (), ENVIRONMENT, NO_SERVICES, NO_INTERRUPT)


def make_run_without_reader() -> Run:
    """A run for expressions that depend on nothing but the row."""
    nothing: Reader = None  # type: ignore[assignment]
    return make_run_with_reader(nothing)


class _NoServices:
    """A view's definition needs no service of a session; the compiler ensures it."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"a view asked for {name}")


NO_SERVICES: Services = _NoServices()  # type: ignore[assignment]
