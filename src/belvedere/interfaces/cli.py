"""The command line `belvedere`: a table of commands, each imported when it is called.

`belvedere --help` imports none of them, so it answers at once.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typer import Typer


class Command(NamedTuple):
    """A command. `target` is module:function, whose parameters are the command's, or module:app
    for a command with subcommands."""

    help: str
    target: str


COMMANDS: dict[str, Command] = {
    "demo": Command("a shop with views, in a minute", "belvedere.interfaces.commands.demo:demo"),
    "shell": Command("a SQL shell", "belvedere.interfaces.commands.shell:shell"),
    "serve": Command(
        "a server for clients of PostgreSQL", "belvedere.interfaces.commands.serve:serve"
    ),
    "dump": Command(
        "everything a store holds, readable", "belvedere.interfaces.commands.entries:dump"
    ),
    "backup": Command(
        "copy a store, also while it is in use",
        "belvedere.interfaces.commands.entries:backup",
    ),
    "copy": Command(
        "copy a database between a directory and HBase, verified",
        "belvedere.interfaces.commands.copy:copy",
    ),
    "restore": Command("make a store of a backup", "belvedere.interfaces.commands.entries:restore"),
    "advise": Command(
        "which views are worth having", "belvedere.interfaces.commands.advise:advise"
    ),
    "pipeline": Command(
        "load, export, fill, maintain and verify on Spark",
        "belvedere.interfaces.commands.pipeline:app",
    ),
    "node": Command(
        "tend a database on HBase, beside any others", "belvedere.interfaces.commands.node:node"
    ),
    "bench": Command(
        "measure against the raw engine", "belvedere.interfaces.commands.entries:bench"
    ),
}


def main(arguments: Sequence[str] | None = None) -> None:
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] in ("-h", "--help", "help"):
        print(usage_text())
        raise SystemExit(0 if given else 2)
    if given[0] in ("-V", "--version"):
        print(f"belvedere {metadata.version('belvedere')}")
        return
    command = COMMANDS.get(given[0])
    if command is None:
        print(f"belvedere: no command {given[0]!r}\n\n{usage_text()}", file=sys.stderr)
        raise SystemExit(2)
    run_command(given[0], command, given[1:])


def usage_text() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {command.help}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: belvedere COMMAND ...",
            "",
            *lines,
            "",
            "belvedere COMMAND --help says more of each.",
        ]
    )


def run_command(name: str, command: Command, arguments: list[str]) -> None:
    import typer  # heavy

    module, _, function = command.target.partition(":")
    found = getattr(importlib.import_module(module), function)
    app = found if isinstance(found, typer.Typer) else _make_app(name, command, found)
    app(arguments, prog_name=f"belvedere {name}")


def _make_app(name: str, command: Command, function: Callable[..., None]) -> Typer:
    import typer  # heavy

    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(name=name, help=command.help)(function)
    return app


if __name__ == "__main__":
    main()
