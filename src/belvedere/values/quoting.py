"""Names and texts as parts of an SQL statement."""

from __future__ import annotations


def quote_identifier(*names: str) -> str:
    """A name, or a path of names, in double quotes."""
    return ".".join(['"' + name.replace('"', '""') + '"' for name in names])


def quote_literal(text: str) -> str:
    """A text in single quotes, in which a backslash means nothing."""
    return "'" + text.replace("'", "''") + "'"
