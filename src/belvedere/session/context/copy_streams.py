"""What COPY .. FROM STDIN reads and COPY .. TO STDOUT writes, given by the session's door."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from belvedere.errors import Unsupported

_HINT = "use cursor.copy, or name a file"


class CopyStreams:
    """How files of bytes are opened, once for each run of a statement. `column_count` and `binary`
    are of the COPY that runs. `can_rewrite`: what was written can be taken back, so a statement
    that loses a race may run again."""

    __slots__ = ("binary", "can_rewrite", "column_count", "input", "output")

    def __init__(self) -> None:
        self.input: Callable[[], BinaryIO] | None = None
        self.output: Callable[[], BinaryIO] | None = None
        self.can_rewrite = True
        self.column_count = 0
        self.binary = False

    def open_input(self) -> BinaryIO:
        if self.input is None:
            raise Unsupported("COPY FROM STDIN here", hint=_HINT)
        return self.input()

    def open_output(self) -> BinaryIO:
        if self.output is None:
            raise Unsupported("COPY TO STDOUT here", hint=_HINT)
        return self.output()
