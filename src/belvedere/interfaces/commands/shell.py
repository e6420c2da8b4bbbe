"""`belvedere shell PATH [-c SQL | -f FILE] [--format table|csv|json] [--accept-data-loss]`."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated

import typer

from belvedere.errors import Error
from belvedere.interfaces import dbapi, stores
from belvedere.interfaces.shell.render import OutputFormat
from belvedere.interfaces.shell.shell import Shell


def shell(
    path: Annotated[str, typer.Argument(help="the store's directory, or :memory:")],
    command: Annotated[str | None, typer.Option("-c", help="run this SQL and leave")] = None,
    file: Annotated[Path | None, typer.Option("-f", help="run this file and leave")] = None,
    form: Annotated[
        OutputFormat, typer.Option("--format", help="how rows are printed")
    ] = OutputFormat.TABLE,
    durability: Annotated[
        str | None, typer.Option(help="full or off; as it is open, or full, when not given")
    ] = None,
    accept_data_loss: Annotated[
        bool, typer.Option("--accept-data-loss", help="open a damaged store with what is left")
    ] = False,
) -> None:
    try:
        connection = _open_connection(path, durability, accept_data_loss)
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    with connection:
        made = Shell(connection, form, sys.stdout, sys.stderr)
        if command is not None:
            good = made.run_text(command)
        elif file is not None:
            good = made.run_file(file)
        elif sys.stdin.isatty():
            good = made.run_interactive()
        else:
            good = made.run_text(_read_input())
    if not good:
        raise typer.Exit(1)


def _read_input() -> str:
    """All of the standard input, with line ends as they are: values may hold them."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(newline="")
    return sys.stdin.read()


def _open_connection(path: str, durability: str | None, accept_data_loss: bool) -> dbapi.Connection:
    """Connect; to a store that another process has open, through that process."""
    chosen = None if durability is None else stores.parse_durability(durability)
    options = stores.OpenOptions(
        durability=chosen, autocommit=True, accept_data_loss=accept_data_loss
    )
    return dbapi.Connection(*stores.open_session(path, options))
