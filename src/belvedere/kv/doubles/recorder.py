"""A batch store that writes down every call as one printable line, for golden tests.

    write k1=v1, k2=(deleted), sync -> done
    get k1 -> v1
    get k9 -> (none)
    scan [k1, end) -> k1=v1
    scan [k1, end) -> (end)
    sync -> fails: Unavailable 58030 input or output failed

Paths are written by name only, so that a golden text holds in any directory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from belvedere.errors import Error
from belvedere.kv.batch import BatchStore
from belvedere.kv.doubles.intercept import InterceptedStore, StoreCall

Answer = TypeVar("Answer")
Show = Callable[[bytes], str]


SHOWN_BYTES_MAX = 200


def format_bytes(content: object) -> str:
    """Printable ASCII as it is, everything else as \\xNN; empty bytes as ''; long ones cut."""
    if not isinstance(content, bytes):
        return ascii(content)
    shown = ascii(content[:SHOWN_BYTES_MAX])[2:-1] or "''"
    return shown if len(content) <= SHOWN_BYTES_MAX else f"{shown}.. ({len(content)} bytes)"


class RecordingStore(InterceptedStore):
    """Passes every call on, and appends its line to `lines`."""

    __slots__ = ("_show_key", "_show_value", "lines")

    def __init__(
        self, inner: BatchStore, *, show_key: Show = format_bytes, show_value: Show = format_bytes
    ) -> None:
        super().__init__(inner)
        self.lines: list[str] = []
        self._show_key = show_key
        self._show_value = show_value

    def intercept_call(self, call: StoreCall, act: Callable[[], Answer]) -> Answer:
        asked = f"{call.name} {self._format_arguments(call)}".rstrip()
        try:
            answer = act()
        except Error as error:
            kind = type(error).__name__
            self.lines.append(f"{asked} -> fails: {kind} {error.sqlstate} {error.message}")
            raise
        self.lines.append(f"{asked} -> {self._format_answer(call, answer)}")
        return answer

    def _format_arguments(self, call: StoreCall) -> str:
        arguments = call.arguments
        match call.name:
            case "get":
                return self._show_key(arguments["key"])
            case "multi_get":
                return ", ".join(map(self._show_key, arguments["keys"]))
            case "write":
                shown = [
                    f"clear {self._format_range({'start': start, 'end': end})}"
                    for start, end in arguments["cleared"]
                ]
                shown.append(self._format_pairs(arguments["batch"]))
                return ", ".join([*shown, *(["sync"] if arguments["sync"] else [])])
            case "scan" | "scan_values" | "delete_range":
                return self._format_range(arguments)
            case "ingest":
                return ", ".join(file.name for file in arguments["files"])
            case _:
                return " ".join(_format_argument(value) for value in arguments.values())

    def _format_range(self, arguments: dict[str, Any]) -> str:
        end = arguments["end"]
        shown = f"[{self._show_key(arguments['start'])}, "
        shown += "end)" if end is None else f"{self._show_key(end)})"
        if arguments.get("reverse"):
            shown += " reverse"
        if arguments.get("limit") is not None:
            shown += f" limit {arguments['limit']}"
        return shown

    def _format_answer(self, call: StoreCall, answer: object) -> str:
        match call.name, answer:
            case (("scan" | "scan_values"), []):
                return "(end)"
            case "scan", list():
                return self._format_pairs(answer)
            case (("scan_values" | "multi_get"), list()):
                return ", ".join(self._format_value(value, "(none)") for value in answer)
            case "get", (bytes() | None):
                return self._format_value(answer, "(none)")
            case _:
                return "done"

    def _format_pairs(self, pairs: Sequence[tuple[bytes, bytes | None]]) -> str:
        return ", ".join(
            f"{self._show_key(key)}={self._format_value(value, '(deleted)')}"
            for key, value in pairs
        )

    def _format_value(self, value: bytes | None, absent: str) -> str:
        return absent if value is None else self._show_value(value)


def _format_argument(value: object) -> str:
    return value.name if isinstance(value, Path) else str(value)
