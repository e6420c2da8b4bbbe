"""Nodes of one row-atomic store: databases on the memory double."""

from __future__ import annotations

from typing import TypeVar

from belvedere.config import Config
from belvedere.database import Database
from belvedere.kv.cell import CellStore
from belvedere.kv.doubles.cells import MemoryCells
from belvedere.txn.row_atomic.commit_protocol import RowCommit
from belvedere.txn.row_atomic.engine import CellStoreSetup
from belvedere.txn.row_atomic.node import Node, NodeSettings

DEFAULTS = NodeSettings()
Made = TypeVar("Made", bound=Database)


def cells(store: CellStore | None = None, settings: NodeSettings = DEFAULTS) -> CellStoreSetup:
    """A store to open; whoever uses it beats for itself."""
    return CellStoreSetup(
        store if store is not None else MemoryCells(), settings, sends_heartbeats=False
    )


def open_node(store: CellStore | None = None, settings: NodeSettings = DEFAULTS) -> Database:
    """One more database on the store."""
    return Database.on_cells(cells(store, settings), Config(lock_wait_ms_max=5_000))


def open_as(
    kind: type[Made], store: CellStore | None = None, settings: NodeSettings = DEFAULTS
) -> Made:
    """The same, of a kind with participants of its own."""
    return kind(cells(store, settings), Config(lock_wait_ms_max=5_000))


def commits(node: Database) -> RowCommit:
    assert isinstance(node.commits, RowCommit)
    return node.commits


def memory(node: Database) -> Node:
    return commits(node).node
