"""What COPY .. FROM STDIN reads and COPY .. TO STDOUT writes, given by the session's door."""

from __future__ import annotations

from typing import BinaryIO, TextIO

from belvedere.errors import Unsupported

_HINT = "use cursor.copy, or name a file"


class CopyStreams:
    """Files that can be read or written again from their beginning: a statement that loses a race
    runs again. `column_count` and `binary` are of the COPY that runs; its binary form goes through
    the `buffer` of a file."""

    __slots__ = ("binary", "column_count", "input", "output")

    def __init__(self) -> None:
        self.input: TextIO | None = None
        self.output: TextIO | None = None
        self.column_count = 0
        self.binary = False

    def require_input(self) -> TextIO:
        if self.input is None:
            raise Unsupported("COPY FROM STDIN here", hint=_HINT)
        self.input.seek(0)
        return self.input

    def require_output(self) -> TextIO:
        if self.output is None:
            raise Unsupported("COPY TO STDOUT here", hint=_HINT)
        self.output.seek(0)
        self.output.truncate()
        return self.output

    def require_binary_input(self) -> BinaryIO:
        return self.require_input().buffer

    def require_binary_output(self) -> BinaryIO:
        return self.require_output().buffer
