"""`belvedere pipeline backfill | maintain | verify | explain`: the jobs about views."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from belvedere.interfaces.commands.job import (
    MASTER,
    Database,
    Master,
    open_job,
    print_errors,
    show_table,
)
from belvedere.pipeline.store.spark_session import require_spark_and_java
from belvedere.session.materialized.create import bind_simplified_definition
from belvedere.session.statement.catalog_expressions import compile_row_expression

if TYPE_CHECKING:
    from belvedere.pipeline.store.tables import DefinitionCompiler

Views = Annotated[list[str], typer.Argument(help="materialized views, with or without schema")]


def register_commands(app: typer.Typer) -> None:
    """Add these commands to the application."""
    for command in (backfill, maintain, verify, explain):
        app.command()(command)


@contextmanager
def _spark_command() -> Iterator[None]:
    """Fail with a message when Spark is missing; errors of the engine become messages too."""
    with print_errors():
        require_spark_and_java()
        yield


def _make_definitions() -> DefinitionCompiler:
    from belvedere.pipeline.store.tables import DefinitionCompiler  # heavy

    return DefinitionCompiler(bind_simplified_definition, compile_row_expression)


def backfill(
    views: Views,
    database: Annotated[str, Database],
    master: Annotated[str, Master] = MASTER,
) -> None:
    """Fill views made WITH (backfill = 'later'): many views, one scan of each base table."""
    with _spark_command():
        from belvedere.pipeline.jobs import backfill as filling  # heavy

        with open_job(database, master, "backfill") as (spark, store):
            done = list(filling.run_backfill(spark, store, views, _make_definitions()))
        filled = {one.view for one in done}
        before = [name for name in views if name.rpartition(".")[2] not in filled]
        if before:
            print(f"filled already: {', '.join(before)} (REPAIR MATERIALIZED VIEW fills one anew)")
        if done:
            show_table("backfill", ("view", "rows", "files", "snapshot", "position"), done)


def maintain(
    database: Annotated[str, Database],
    views: Annotated[
        list[str] | None, typer.Argument(help="deferred views; all of them when none is named")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="up to now, then end")] = False,
    trigger: Annotated[str, typer.Option(help="how often to look at the log")] = "200 ms",
    checkpoint: Annotated[
        Path | None, typer.Option(help="where the job keeps its place; beside the store by default")
    ] = None,
    master: Annotated[str, Master] = MASTER,
) -> None:
    """Bring deferred views forward by Structured Streaming. Naming a view takes its whole group;
    the worker of the store's owner continues when this ends."""
    with _spark_command():
        from belvedere.pipeline.jobs import maintain as following  # heavy

        with _stop_signal() as stop, open_job(database, master, "maintain") as (spark, store):
            kept = following.run_maintenance(
                spark,
                store,
                views or [],
                _make_definitions(),
                once=once,
                trigger=trigger,
                directory=checkpoint,
                stopped=stop.is_set,
            )
        if not kept:
            print("there are no deferred views")
            return
        heads = ("views", "batches", "positions", "additions", "at", "p50 ms")
        rows = (
            (", ".join(k.views), k.batches, k.positions, k.additions, k.at, k.median_batch_ms)
            for k in kept
        )
        show_table("maintain", heads, rows)


@contextmanager
def _stop_signal() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set, so that the job releases its claims before it ends."""
    event = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: event.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def verify(
    views: Views,
    database: Annotated[str, Database],
    position: Annotated[
        int | None, typer.Option(help="any position of the log; by default where each view is")
    ] = None,
    master: Annotated[str, Master] = MASTER,
) -> None:
    """Recompute views in Spark and compare them row by row; exit code 1 on a difference."""
    with _spark_command():
        from belvedere.pipeline.jobs import verify as verifying  # heavy

        with open_job(database, master, "verify") as (spark, store):
            found = list(
                verifying.verify_views(spark, store, views, _make_definitions(), position=position)
            )
        heads = ("view", "position", "rows", "missing", "unexpected", "ok")
        show_table(
            "verify",
            heads,
            ((v.view, v.position, v.rows, v.missing, v.unexpected, v.is_correct) for v in found),
        )
        for one in found:
            if one.samples:
                title = f"some rows of {one.view} that differ"
                show_table(title, ("row", "expected", "found"), one.samples)
        if not all(one.is_correct for one in found):
            raise typer.Exit(1)


def explain(
    views: Views,
    database: Annotated[str, Database],
    master: Annotated[str, Master] = MASTER,
) -> None:
    """Say of every operator of these jobs whether it is Spark's own or ours, and why."""
    with _spark_command():
        from belvedere.pipeline.jobs import explain as explaining  # heavy

        with open_job(database, master, "explain") as (spark, store):
            lines = list(explaining.explain_jobs_of_views(spark, store, views, _make_definitions()))
        print("\n".join(lines))
