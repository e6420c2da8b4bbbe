"""`belvedere shell PATH [-c SQL | -f FILE] [--format table|csv|json] [--accept-data-loss]`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from belvedere.database import MEMORY
from belvedere.interfaces import dbapi
from belvedere.interfaces.shell.render import OutputFormat
from belvedere.interfaces.shell.shell import Shell
from belvedere.remote.client import is_reachable

if TYPE_CHECKING:
    from belvedere.interfaces.remote import RemoteConnection


def shell(
    path: Annotated[str, typer.Argument(help="the store's directory, or :memory:")],
    command: Annotated[str | None, typer.Option("-c", help="run this SQL and leave")] = None,
    file: Annotated[Path | None, typer.Option("-f", help="run this file and leave")] = None,
    form: Annotated[
        OutputFormat, typer.Option("--format", help="how rows are printed")
    ] = OutputFormat.TABLE,
    durability: Annotated[str, typer.Option(help="full or off")] = "full",
    accept_data_loss: Annotated[
        bool, typer.Option("--accept-data-loss", help="open a damaged store with what is left")
    ] = False,
) -> None:
    try:
        connection = _open_connection(path, durability, accept_data_loss)
    except dbapi.Error as error:
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
            good = made.run_text(sys.stdin.read())
    if not good:
        raise typer.Exit(1)


def _open_connection(
    path: str, durability: str, accept_data_loss: bool
) -> dbapi.Connection | RemoteConnection:
    """Connect; to a store that another process has open, through that process."""
    if path != MEMORY and is_reachable(Path(path)):
        from belvedere.interfaces.remote import RemoteConnection  # heavy

        return RemoteConnection(Path(path))
    return dbapi.connect(
        path, durability=durability, autocommit=True, accept_data_loss=accept_data_loss
    )
