"""What clients did and what they were told: the only thing the checker ever sees.

A history is a list of transactions, each with its operations in order. The objects are plain: lists
that are appended to, accounts, counters, keys, unique values, parents with children, shifts.

    read     key, list       the elements of a list as seen
    scan     -, {key: list}  all lists at once; one that is not there was seen empty
    append   key, element    elements are unique over the whole history
    total    -, number       the sum of all accounts
    add      key, number     to a counter
    count    key, number     a counter as seen
    insert   key, owner      a row under its primary key; rows of this table are never deleted
    claim    value, key      a row with that unique value; never deleted either
    inserts  -, [key, owner] pairs: all rows of that table; claims likewise
    family   -, [parents, [child, parent] pairs]
    mirror   name, [a, b]    one thing read from a table and through its index
    shift    key, number     how many are on call as seen; never to be 0 in a serial world

Everything survives JSON, so that a client can write it to a file line by line and be killed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

READ_COMMITTED = "read committed"
SNAPSHOT = "repeatable read"
SERIALIZABLE = "serializable"
LEVELS = (READ_COMMITTED, SNAPSHOT, SERIALIZABLE)

COMMITTED = "committed"
ABORTED = "aborted"
UNKNOWN = "unknown"


class Op(NamedTuple):
    kind: str
    key: Any
    value: Any


@dataclass(slots=True)
class Txn:
    """`began` and `ended` are numbers of one clock that only counts; `snapshot` and `position` what
    the engine said; `outcome` what the client was told."""

    id: str
    session: str
    level: str
    began: int
    ended: int = 0
    outcome: str = UNKNOWN
    snapshot: int = 0
    position: int = 0
    ops: list[Op] = field(default_factory=list)

    def reads(self) -> Iterable[tuple[int, Any, tuple[Any, ...]]]:
        """(place in the transaction, key, elements) of every list read singly."""
        for place, op in enumerate(self.ops):
            if op.kind == "read":
                yield place, op.key, tuple(op.value)

    def appends(self) -> dict[Any, list[Any]]:
        found: dict[Any, list[Any]] = {}
        for op in self.ops:
            if op.kind == "append":
                found.setdefault(op.key, []).append(op.value)
        return found

    def of(self, kind: str) -> list[Op]:
        return [op for op in self.ops if op.kind == kind]


class HistoryFile:
    """One line before a commit is asked for, one after it was answered; each a single write. A kill
    can end a write at a page of memory: what such a line was to note did not happen, or was not
    answered, so it goes when the file is opened again."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        whole = path.read_bytes().rfind(b"\n") + 1
        os.ftruncate(self._descriptor, whole)

    def note(self, txn: Txn) -> None:
        line = json.dumps(asdict(txn), separators=(",", ":")).encode() + b"\n"
        if os.write(self._descriptor, line) != len(line):
            raise OSError("a line of the history was cut short")

    def close(self) -> None:
        os.close(self._descriptor)


def read_history(path: Path) -> list[Txn]:
    """The newest line of every transaction; a last line without its end does not count."""
    found: dict[str, Txn] = {}
    data = path.read_bytes() if path.exists() else b""
    for line in data.split(b"\n")[:-1]:
        fields = json.loads(line)
        ops = [Op(kind, _key(key), value) for kind, key, value in fields.pop("ops")]
        found[fields["id"]] = Txn(**fields, ops=ops)
    for txn in found.values():
        for place, op in enumerate(txn.ops):
            if op.kind == "scan":  # JSON makes every key a text
                txn.ops[place] = op._replace(value={int(k): v for k, v in op.value.items()})
    return list(found.values())


def _key(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key
