"""Who owns what: contracts know no implementation, and the database alone chooses and wires."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "belvedere"
IMPLEMENTATIONS = ("belvedere.txn.batch_atomic", "belvedere.txn.row_atomic", "belvedere.kv.rocksdb")
CHOSEN = frozenset(
    "BatchAtomicEngine BatchChangeLog BatchCommit CellChangeLog CellStoreSetup Database"
    " GatheringStore MemoryStore RocksStore RowAtomicEngine RowCommit".split()
)
"""Classes behind a contract: only the place that makes them knows which one it has."""
WIRED = frozenset(
    ["BatchAtomicEngine", "HostDatabase", "RowAtomicEngine", "SharedState", "ViewService"]
)
DATABASE = "database.py"


def product() -> Iterator[tuple[str, ast.Module]]:
    """The modules that ship, by path, without those that measure the product from outside."""
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith("benchmarks/"):
            yield name, ast.parse(path.read_text())


def calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """Calls of a plain or dotted name, by its last part."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.func.id, node
            elif isinstance(node.func, ast.Attribute):
                yield node.func.attr, node


def names_in(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


@pytest.mark.parametrize("contract", ["txn/contracts.py", "txn/engine.py", "kv/batch.py"])
def test_a_contract_imports_no_implementation(contract: str) -> None:
    found = [
        node.module
        for node in ast.walk(ast.parse((SOURCE / contract).read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(IMPLEMENTATIONS)
    ]
    assert found == []


def test_only_the_database_asks_what_kind_of_store_it_has() -> None:
    found = {
        (path, name)
        for path, tree in product()
        for called, call in calls(tree)
        if called == "isinstance" and len(call.args) == 2
        for name in names_in(call.args[1]) & CHOSEN
    }
    assert found == {(DATABASE, "CellStoreSetup")}


def test_the_database_alone_wires_parts() -> None:
    found = {(path, name) for path, tree in product() for name, _ in calls(tree) if name in WIRED}
    assert found == {(DATABASE, name) for name in WIRED}
    attached = {
        path
        for path, tree in product()
        for name, call in calls(tree)
        if name == "attach_duckdb" and ast.unparse(call.func).endswith("tiers.attach_duckdb")
    }
    assert attached == {DATABASE}


def test_a_database_is_nothing_but_itself() -> None:
    """What it has, such as views, are its parts."""
    (found,) = [
        node
        for node in ast.parse((SOURCE / DATABASE).read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == "Database"
    ]
    assert found.bases == []
