"""`belvedere pipeline`: jobs on Spark, each a thin wrapper of a `run` in `belvedere.pipeline`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from belvedere.errors import InvalidInput
from belvedere.interfaces.commands import pipeline_jobs
from belvedere.interfaces.commands.job import (
    MASTER,
    Database,
    Master,
    open_job,
    print_errors,
    serve_store,
    show_table,
)
from belvedere.pipeline.jobs.store_status import read_store_status as status_of
from belvedere.pipeline.store.client import ReadRequest
from belvedere.pipeline.store.spark_session import require_spark_and_java

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="read, load, fill, maintain and verify at scale, on Spark",
)
pipeline_jobs.register_commands(app)


@app.command()
def load(
    files: Annotated[list[str], typer.Argument(help="CSV, Parquet, JSON, or what --format says")],
    database: Annotated[str, Database],
    table: Annotated[str, typer.Option(help="where the rows go")],
    form: Annotated[
        str | None, typer.Option("--format", help="any format Spark knows; else by the file's name")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="an option of the format, as name=value")
    ] = None,
    operation: Annotated[str, typer.Option(help="append, upsert or delete")] = "append",
    on_error: Annotated[
        str, typer.Option("--on-error", help="of a row that breaks a rule: stop or reject")
    ] = "stop",
    rejects: Annotated[
        Path | None, typer.Option(help="where rejected rows go; by default TABLE.rejects.csv")
    ] = None,
    master: Annotated[str, Master] = MASTER,
) -> None:
    """Load files into a table, all rows or none; --on-error reject keeps the good ones."""
    with print_errors():
        require_spark_and_java()
        from belvedere.pipeline.jobs import load as loading  # heavy

        if on_error not in ("stop", "reject"):
            raise InvalidInput("unknown --on-error", sqlstate="22023", hint="stop or reject")
        chosen = loading.choose_file_format(files, form)
        with open_job(database, master, "load") as (spark, store):
            done = loading.run_load(
                loading.LoadInputs(
                    spark, tuple(files), chosen, dict(map(_parse_option, option or []))
                ),
                store,
                table,
                operation=operation,
                on_error=on_error,
                rejects=rejects,
            )
        rows = [
            ("rows written", done.rows),
            ("rows rejected", done.rejected),
            ("position", done.position),
        ]
        if done.rejects_file is not None:
            rows.append(("rejects", done.rejects_file))  # type: ignore[arg-type]
        show_table(f"load into {table}", ("what", "value"), rows)
        if done.reasons:
            show_table("constraint report", ("sqlstate", "reason", "rows"), done.reasons)


def _parse_option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidInput("an option is name=value", sqlstate="22023", found=text)
    return name, value


@app.command()
def export(
    database: Annotated[str, Database],
    to: Annotated[Path, typer.Option(help="a directory that does not exist yet")],
    query: Annotated[str | None, typer.Option(help="the rows of this SELECT")] = None,
    table: Annotated[str | None, typer.Option(help="all rows of a table")] = None,
    view: Annotated[str | None, typer.Option(help="all rows of a view")] = None,
    form: Annotated[str, typer.Option("--format", help="any format Spark knows")] = "parquet",
    position: Annotated[int | None, typer.Option(help="an earlier position of the log")] = None,
    master: Annotated[str, Master] = MASTER,
) -> None:
    """Write the rows of a query, table or view, at one position, into files."""
    with print_errors():
        require_spark_and_java()
        from belvedere.pipeline.jobs import export as exporting  # heavy

        relation = _parse_relation(query, table, view)
        with open_job(database, master, "export") as (spark, store):
            done = exporting.run_export(spark, store, relation, to, form=form, position=position)
        rows = [
            ("rows", done.rows),
            ("files", done.files),
            ("position", done.position),
            ("directory", done.directory),
        ]
        show_table("export", ("what", "value"), rows)


def _parse_relation(query: str | None, table: str | None, view: str | None) -> ReadRequest:
    given = {"query": query, "table": table, "view": view}
    named = [(kind, text) for kind, text in given.items() if text is not None]
    if len(named) != 1:
        raise InvalidInput("one of --query, --table and --view is wanted", sqlstate="22023")
    return ReadRequest(*named[0])  # type: ignore[arg-type]


@app.command()
def status(database: Annotated[str, Database]) -> None:
    """Where the log is, and how far views and writers have come. Needs no Spark."""
    with print_errors(), serve_store(database) as store:
        found = status_of(store)
        first, last = found.identity.first, found.identity.position
        print(f"position {last}, log from {first}, incarnation {found.identity.incarnation}")
        heads = ("view", "state", "maintenance", "position", "backlog", "error")
        show_table("views", heads, ([row[head] for head in heads] for row in found.views))
        if found.writers:
            rows = ([row["writer"], row["batch"], row["rows"]] for row in found.writers)
            show_table("streams that write here", ("writer", "batch", "rows"), rows)
