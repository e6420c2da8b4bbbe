"""The client's own record of what it asked for and what it was told.

One JSON object a line, appended with a single write before the client goes on, so that a line is
there or not. Nothing of the engine is used to write or read it.

    opening  before the store is opened, with the durability asked for
    open     incarnation, position and durability of a store that was opened
    try      transaction id and the rows it is about to change, before commit is called
    ack      transaction id, position and token, after commit returned
    fail     transaction id and SQLSTATE, after commit raised
    closing  before close is called
    close    after it returned
    trim     about to trim the log through a position
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class AckFile:
    """The writing side. Any thread may use it: each line is one append."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, kind: str, **facts: Any) -> None:
        line = json.dumps({"kind": kind, **facts}, separators=(",", ":")).encode() + b"\n"
        written = os.write(self._descriptor, line)
        if written != len(line):
            raise OSError("an acknowledgement was cut short")

    def close(self) -> None:
        os.close(self._descriptor)


@dataclass(slots=True)
class Told:
    """What the client knows of one transaction."""

    transaction: str
    effect: list[list[Any]] = field(default_factory=list)
    position: int | None = None
    token: str | None = None
    incarnation: int | None = None
    failed: str | None = None


@dataclass(slots=True)
class Session:
    """One opening of the store; the incarnation is None when the client died before it knew."""

    durability: str
    incarnation: int | None = None
    position: int = 0
    closing: bool = False
    closed: bool = False


@dataclass(slots=True)
class Client:
    """Everything in an ack file."""

    told: dict[str, Told]
    sessions: list[Session]

    @property
    def acknowledged(self) -> list[Told]:
        return [told for told in self.told.values() if told.position is not None]


def read_acks(path: Path) -> Client:
    """Read the file; a last line without its end was never finished and does not count."""
    client = Client({}, [])
    data = path.read_bytes() if path.exists() else b""
    for line in data.split(b"\n")[:-1]:
        fact = json.loads(line)
        _take(client, fact.pop("kind"), fact)
    return client


def _take(client: Client, kind: str, fact: dict[str, Any]) -> None:
    if kind == "opening":
        client.sessions.append(Session(**fact))
    elif kind == "open":
        client.sessions[-1].incarnation = fact["incarnation"]
        client.sessions[-1].position = fact["position"]
    elif kind == "closing":
        client.sessions[-1].closing = True
    elif kind == "close":
        client.sessions[-1].closed = True
    elif kind == "try":
        client.told[fact["transaction"]] = Told(**fact)
    elif kind in ("ack", "fail"):
        told = client.told[fact.pop("transaction")]
        for name, value in fact.items():
            setattr(told, name, value)
