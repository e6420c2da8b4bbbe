"""Store operations of the protocol as readable text, for the interleavings the explorer prints."""

from __future__ import annotations

from typing import Any

from belvedere.kv.cell import (
    CellDelete,
    CellScan,
    CheckAndMutate,
    Get,
    Increment,
    Mutate,
    Operation,
    Put,
)
from belvedere.txn.row_atomic.cells import layout


def describe(operation: Operation) -> str:
    match operation:
        case Get(row):
            return f"get {name(row)}"
        case CellScan(start):
            return f"scan {name(start)}"
        case Increment(row):
            return f"increment {name(row)}"
        case Mutate(row, changes):
            return f"write {name(row)} {_changes(row, changes)}"
        case CheckAndMutate(row, _, expected, changes):
            seen = "absent" if expected is None else value(row, expected)
            return f"if {name(row)} is {seen}: {_changes(row, changes)}"
    return type(operation).__name__


def describe_result(result: Any) -> str:
    if isinstance(result, tuple):
        return f"{len(result)} found"
    return str(result)


def name(row: bytes) -> str:
    family, rest = row[:1], row[1:]
    if family == layout.SYSTEM:
        return rest.decode()
    if family == layout.LOCKS:
        return f"lock {rest[2:].decode(errors='replace')}" if rest else "locks"
    if family == layout.LOG:
        return f"log {int.from_bytes(rest[2:])}"
    if family == layout.OUTCOMES:
        return f"outcome {rest[1:].decode(errors='replace')}"
    if family == layout.HEARTBEATS:
        return f"heartbeat {int.from_bytes(rest)}"
    return f"row {row[5:].decode(errors='replace') or row.hex()}"


def value(row: bytes, stored: bytes) -> str:
    if row[:1] == layout.LOCKS:
        holders = layout.decode(layout.LockValue, stored, row).holders
        return "held by " + ", ".join(_holder(holder) for holder in holders)
    if row[:1] == layout.LOG:
        if stored == layout.ABORT:
            return "abort marker"
        return f"record of node {int.from_bytes(stored) // layout.ATTEMPTS_PER_NODE}"
    return stored.hex() if len(stored) <= 9 else f"{len(stored)} bytes"


def _holder(holder: layout.Holder) -> str:
    stamp = holder.stamp or "-"
    return f"(node {holder.attempt // layout.ATTEMPTS_PER_NODE}, {stamp})"


def _changes(row: bytes, changes: tuple[Put | CellDelete, ...]) -> str:
    shown = []
    for change in changes:
        if isinstance(change, CellDelete):
            shown.append("delete")
        elif row[:1] == layout.LOG and change.column == layout.RECORD:
            continue
        elif row[:1] == layout.LOG and change.column == layout.APPLIED:
            shown.append("applied")
        else:
            at = f"@{change.timestamp} " if row[:1] == b"\x10" else ""
            shown.append(f"{at}{value(row, change.value)}")
    return "put " + ", ".join(shown)
