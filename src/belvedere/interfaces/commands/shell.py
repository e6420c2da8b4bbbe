"""`belvedere shell PATH [-c SQL .. | -f FILE ..] [--format table|csv|json]`, and more options."""

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
    command: Annotated[
        list[str] | None, typer.Option("-c", help="run this SQL or command and leave; repeatable")
    ] = None,
    file: Annotated[
        list[Path] | None, typer.Option("-f", help="run this file and leave; repeatable")
    ] = None,
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
    if command and file:
        raise typer.BadParameter("-c and -f do not go together")
    is_new = stores.is_new_directory(path)
    try:
        connection = _open_connection(path, durability, accept_data_loss)
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    if is_new:
        print(f"there was no store: made {path}", file=sys.stderr)
    with connection:
        made = Shell(connection, form, sys.stdout, sys.stderr)
        try:
            good = _run_input(made, command or [], file or [])
        except EOFError:  # \q
            good = True
    if not good:
        raise typer.Exit(1)


def _read_input() -> str:
    """All of the standard input, with line ends as they are: values may hold them."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(newline="")
    return sys.stdin.read()


def _run_input(made: Shell, commands: list[str], files: list[Path]) -> bool:
    """Run what the command line gives, or what comes from the terminal or a pipe."""
    if commands or files:
        return all(map(made.run_text, commands)) and all(map(made.run_file, files))
    return made.run_interactive() if sys.stdin.isatty() else made.run_text(_read_input())


def _open_connection(path: str, durability: str | None, accept_data_loss: bool) -> dbapi.Connection:
    """Connect; to a store that another process has open, through that process."""
    chosen = None if durability is None else stores.parse_durability(durability)
    options = stores.OpenOptions(
        durability=chosen, autocommit=True, accept_data_loss=accept_data_loss
    )
    return dbapi.Connection(*stores.open_session(path, options))
