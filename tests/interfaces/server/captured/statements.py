"""Statements that clients were seen to send, and OIDs in them and in their answers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

FILE = Path(__file__).parent / "statements.jsonl"
_NUMBER = re.compile(r"\b[1-9][0-9]{4,}\b")
_NAME = re.compile(r"\{([a-z]+ [^{}]+)\}")
_NAMED = """
SELECT oid, 'class ' || relnamespace::regnamespace::text || '.' || relname FROM pg_class
UNION ALL SELECT oid, 'constraint ' || conrelid::regclass::text || '.' || conname FROM pg_constraint
UNION ALL SELECT oid, 'schema ' || nspname FROM pg_namespace
"""


class CapturedStatement(NamedTuple):
    client: str
    text: str
    values: list[str | None]


class OidNames:
    """What the OIDs of objects of users number, in one database."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        rows = connection.execute(_NAMED).fetchall()
        self.names = {oid: name for oid, name in rows if oid >= 16_000 and "pg_toast" not in name}
        self.oids = {name: oid for oid, name in self.names.items()}


def load_statements() -> list[CapturedStatement]:
    return [CapturedStatement(**json.loads(line)) for line in FILE.read_text().splitlines()]


def hide_oids(text: str, names: OidNames) -> str:
    """The text with names in the places of OIDs."""

    def name_number(found: re.Match[str]) -> str:
        name = names.names.get(int(found[0]))
        return found[0] if name is None else "{" + name + "}"

    return _NUMBER.sub(name_number, text)


def show_oids(text: str, names: OidNames) -> str:
    """The text with the OIDs of a database in the places of names."""
    return _NAME.sub(lambda found: str(names.oids.get(found[1], found[0])), text)


def load_known() -> list[CapturedStatement]:
    """Statements of other programs: each after a line with its program, up to a semicolon."""
    found = []
    for part in (Path(__file__).parent / "known.sql").read_text().split(";\n"):
        client, _, text = part.strip().partition("\n")
        if text:
            found.append(CapturedStatement(client.removeprefix("-- "), text, []))
    return found
