"""node-postgres: parameters, named statements, cursors, transactions, notifications, a pool."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.interfaces.server.clients.conftest import fetch_once, run_program

PACKAGES = ("pg@8.13.1", "pg-cursor@2.12.1")


@pytest.mark.skipif(
    not (shutil.which("node") and shutil.which("npm")), reason="Node or npm is missing"
)
def test_a_program_of_node(uri: str) -> None:
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund", *PACKAGES]
    directory = fetch_once("node", "node_modules/pg-cursor", install)
    program = Path(__file__).with_name("client.js")
    modules = {"NODE_PATH": str(directory / "node_modules")}
    assert run_program(["node", str(program), uri], **modules) == ["done"]
