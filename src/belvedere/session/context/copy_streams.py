"""What COPY .. FROM STDIN reads and COPY .. TO STDOUT writes, given by the session's door."""

from __future__ import annotations

from typing import IO

from belvedere.errors import Unsupported

_HINT = "use cursor.copy, or name a file"


class CopyStreams:
    """Files that can be read or written again from their beginning: a statement that loses a race
    runs again. `column_count` is that of the COPY that runs."""

    __slots__ = ("column_count", "input", "output")

    def __init__(self) -> None:
        self.input: IO[str] | None = None
        self.output: IO[str] | None = None
        self.column_count = 0

    def require_input(self) -> IO[str]:
        if self.input is None:
            raise Unsupported("COPY FROM STDIN here", hint=_HINT)
        self.input.seek(0)
        return self.input

    def require_output(self) -> IO[str]:
        if self.output is None:
            raise Unsupported("COPY TO STDOUT here", hint=_HINT)
        self.output.seek(0)
        self.output.truncate()
        return self.output
