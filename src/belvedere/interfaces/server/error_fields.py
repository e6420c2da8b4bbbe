"""Errors and notices as messages, with the fields that PostgreSQL's clients look at.

S V   severity            C   SQLSTATE          M   message, with the facts
D H   detail, hint        P   where in the text
s t c n                   schema, table, column and constraint that it is about
"""

from __future__ import annotations

from belvedere.errors import Error
from belvedere.interfaces.server.messages import build_message, pack_text

_NAMED = {"schema": b"s", "table": b"t", "column": b"c", "constraint": b"n"}
_INTERNAL = "XX000"


def build_error(error: BaseException, *, fatal: bool = False) -> bytes:
    """The message for an error. One that is none of Belvedere's is a bug: it is told as that."""
    severity = "FATAL" if fatal else "ERROR"
    if not isinstance(error, Error):
        return _build_report(b"E", severity, _INTERNAL, f"internal error: {error!r}"[:2000])
    # Fields of their own say what an existing object is called: clients show only the message.
    facts = error.facts
    message = error.message
    if facts:
        message += " (" + ", ".join(f"{name}={value}" for name, value in facts.items()) + ")"
    more = [(b"D", error.detail), (b"H", error.hint)]
    if error.position is not None:
        more.append((b"P", str(error.position)))
    more += [(code, error.facts.get(name)) for name, code in _NAMED.items()]
    found = [(code, str(value)) for code, value in more if value is not None]
    return _build_report(b"E", severity, error.sqlstate, message, found)


def build_notice(text: str, severity: str = "NOTICE", sqlstate: str = "00000") -> bytes:
    return _build_report(b"N", severity, sqlstate, text)


def _build_report(
    kind: bytes,
    severity: str,
    sqlstate: str,
    message: str,
    more: list[tuple[bytes, str]] | None = None,
) -> bytes:
    fields = [(b"S", severity), (b"V", severity), (b"C", sqlstate), (b"M", message), *(more or ())]
    return build_message(kind, b"".join(code + pack_text(text) for code, text in fields) + b"\0")
