"""Shared parts of the pipeline commands: a served store, a Spark session, progress, a result table.

When another process has the store open, the job works through that process; otherwise the command
opens the store and serves its own tasks.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from belvedere.errors import Error
from belvedere.interfaces import stores
from belvedere.pipeline.store.client import Store
from belvedere.pipeline.store.spark_session import open_spark_session
from belvedere.pipeline.store.verb_hosts import OwnerHost
from belvedere.remote.client import is_reachable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_S = 0.2


class SparkJob(NamedTuple):
    spark: SparkSession
    store: Store


@contextmanager
def open_job(database: str, master: str, name: str) -> Iterator[SparkJob]:
    """Serve the store and start a Spark session that shows the progress of its tasks."""
    with serve_store(database) as store, open_spark_session(master, f"belvedere {name}") as spark:
        with show_progress(spark, name):
            yield SparkJob(spark, store)


@contextmanager
def serve_store(database: str) -> Iterator[Store]:
    """A store that an owner serves: the process that has it open, or else this one. On HBase it is
    always this one, as one node of several."""
    store = Store.from_url(database)
    owned_elsewhere = isinstance(store.host, OwnerHost) and is_reachable(store.directory)
    with ExitStack() as stack:
        if not owned_elsewhere:
            options = stores.OpenOptions(create=False)
            opened = stores.acquire_store(store.url, options)
            stack.callback(stores.release_store, opened)
        yield store


@contextmanager
def print_errors() -> Iterator[None]:
    """Print an error of the engine without a traceback, and exit with 1."""
    try:
        yield
    except Error as error:
        print(f"belvedere: {error}", file=sys.stderr)
        raise typer.Exit(1) from error


@contextmanager
def show_progress(spark: SparkSession, name: str) -> Iterator[None]:
    """Show a bar of finished tasks, when standard error is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} tasks"),
        TimeElapsedColumn(),
    )
    done = threading.Event()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(name, total=1)
        follower = threading.Thread(target=_poll_tasks, args=(spark, bar, task, done), daemon=True)
        follower.start()
        try:
            yield
        finally:
            done.set()
            follower.join()


def _poll_tasks(spark: SparkSession, bar: Progress, task: Any, done: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    known: dict[int, tuple[int, int]] = {}
    while not done.wait(POLL_S):
        for number in tracker.getActiveStageIds():
            stage = tracker.getStageInfo(number)
            if stage is not None:
                known[number] = (stage.numCompletedTasks, stage.numTasks)
        for number in set(known) - set(tracker.getActiveStageIds()):
            known[number] = (known[number][1], known[number][1])
        if known:
            finished = sum(count for count, _ in known.values())
            bar.update(task, completed=finished, total=sum(total for _, total in known.values()))


def show_table(title: str, heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Print a table of results."""
    table = Table(title=title, title_justify="left")
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row))
    Console(width=None if sys.stdout.isatty() else 120).print(table)


Database = typer.Option(help="the store's directory, or hbase://..", metavar="URL")
Master = typer.Option(help="where Spark runs", metavar="URL")
MASTER = "local[*]"
