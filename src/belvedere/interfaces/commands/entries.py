"""Commands that are one call each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from belvedere.interfaces.commands import dump as dumping


def dump(
    path: Annotated[Path, typer.Argument(help="the store's directory")],
    limit: Annotated[int | None, typer.Option(help="rows of each relation at most")] = None,
) -> None:
    for line in dumping.dump(path, limit):
        print(line)
