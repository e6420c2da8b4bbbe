"""The commands `dump`, `backup`, `restore` and `bench`: one call into the engine each."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from belvedere.database import SQL_COMPILERS, Database, restore_backup
from belvedere.errors import Error
from belvedere.interfaces.commands import dump as dumping
from belvedere.pipeline.store.spark_session import require_spark_and_java
from belvedere.remote.client import ask_owner_once, is_reachable
from belvedere.remote.frames import Request

BY_ROWS = ("store", "ycsb", "queries", "tpch", "statements", "bulk", "server")
BY_CUSTOMERS = ("tpcw",)
BY_SCALE = (
    "tpcc",
    "views",
    "growth",
    "matrix",
    "vms",
    "cloudtps",
    "pnuts",
    "pipeline",
    "hbase",
    "scaling",
)
WORKLOADS = (*BY_ROWS, *BY_CUSTOMERS, *BY_SCALE)
"""Workloads of `belvedere bench`, by what says how large they are."""

ON_SPARK = {"vms": "papers.vms_spark"}
ON_DATABASE = ("tpcw", "hbase", "scaling", "tpcc", "ycsb")
MODULES = {
    "bulk": "bulk.suite",
    "hbase": "hbase.suite",
    "statements": "statements.suite",
    "tpcc": "tpcc.suite",
    "tpch": "tpch_views",
    "tpcw": "tpcw.suite",
    "views": "views.suite",
    "growth": "views.growth",
    "matrix": "views.refresh_matrix",
    "pipeline": "pipeline.suite",
    "vms": "papers.vms",
    "cloudtps": "papers.cloudtps",
    "pnuts": "papers.pnuts",
    "scaling": "scaling.suite",
}
"""Workload to its module in `belvedere.benchmarks`, where that has another name."""

Store = Annotated[Path, typer.Argument(help="the store's directory")]


def dump(
    path: Store,
    limit: Annotated[int | None, typer.Option(help="rows of each relation at most", min=0)] = None,
    sql: Annotated[bool, typer.Option("--sql", help="as a script that makes it again")] = False,
    output: Annotated[
        Path | None, typer.Option(help="a file, which has its name once it is whole")
    ] = None,
) -> None:
    with _print_errors():
        lines = dumping.dump_store(path, limit, sql=sql)
        if output is not None:
            dumping.write_dump(output, lines)
            return
        for line in lines:
            print(line)


def backup(
    path: Store,
    destination: Annotated[Path, typer.Argument(help="a directory that does not exist yet")],
) -> None:
    with _print_errors():
        if is_reachable(path):
            request = Request("backup", {"destination": str(destination.absolute())})
            position = ask_owner_once(path, request)
        else:
            with Database.open(path, create=False, **SQL_COMPILERS) as db:
                position = db.back_up(destination)
        print(f"backed up {path} at position {position} to {destination}")


def restore(
    path: Annotated[Path, typer.Argument(help="what `belvedere backup` made")],
    destination: Annotated[Path, typer.Argument(help="a directory that does not exist yet")],
    position: Annotated[
        int | None, typer.Option(help="an earlier position, as far back as the log goes")
    ] = None,
) -> None:
    with _print_errors():
        reached = restore_backup(path, destination, position, **SQL_COMPILERS)
        print(
            f"restored {destination} at position {reached}; earlier tokens are refused from now on"
        )


def bench(
    workload: Annotated[str, typer.Argument(help="one of: " + ", ".join(WORKLOADS))],
    rows: Annotated[int, typer.Option(help=f"rows to load ({', '.join(BY_ROWS)})")] = 100_000,
    scale: Annotated[
        float, typer.Option(help=f"1 is full size ({', '.join(BY_SCALE)})", min=1e-6)
    ] = 1.0,
    customers: Annotated[int, typer.Option(help="customers to load (tpcw)", min=10)] = 50_000,
    database: Annotated[
        str | None,
        typer.Option(
            help="the URL of an empty store to measure (tpcw, hbase, scaling), or of a server with"
            " PostgreSQL's protocol (tpcc, ycsb)"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="what random choices start from")] = 1,
    part: Annotated[
        list[str] | None,
        typer.Option(
            help="only this part, by its letter (views, growth, matrix, tpcc, statements, bulk);"
            " repeatable"
        ),
    ] = None,
    spark: Annotated[
        bool, typer.Option("--spark", help="views are maintained by the job on Spark (vms)")
    ] = False,
    json: Annotated[Path | None, typer.Option(help="also write the figures here")] = None,
    plots: Annotated[Path | None, typer.Option(help="also draw the curves, to this place")] = None,
) -> None:
    if workload not in WORKLOADS:
        raise typer.BadParameter(f"known workloads: {', '.join(WORKLOADS)}")
    if spark and workload not in ON_SPARK:
        raise typer.BadParameter(f"--spark is for: {', '.join(ON_SPARK)}")
    if spark or workload == "pipeline":
        with _print_errors():
            require_spark_and_java()
    name = ON_SPARK[workload] if spark else MODULES.get(workload, workload)
    module = importlib.import_module(f"belvedere.benchmarks.{name}")
    if part and not set(part) <= _part_letters(module):
        known = ", ".join(sorted(_part_letters(module))) or "none"
        raise typer.BadParameter(f"parts of {workload}: {known}")
    size = rows if workload in BY_ROWS else customers if workload in BY_CUSTOMERS else scale
    with _print_errors():
        given: dict[str, object] = {"database": database} if workload in ON_DATABASE else {}
        report = module.run(size, seed, *([part] if part else []), **given)
    report.print()
    if json is not None:
        report.write_json(json)
    if plots is not None:
        with _print_errors():
            for file in report.save_plots(plots):
                print(file)


def _part_letters(workload: ModuleType) -> set[str]:
    """Letters of the parts of a workload that can be run separately."""
    return {name[0] for name in getattr(workload, "STEPS", ())}


@contextmanager
def _print_errors() -> Iterator[None]:
    """Print an error of the engine without a traceback, and exit with 1."""
    try:
        yield
    except Error as error:
        print(f"belvedere: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
