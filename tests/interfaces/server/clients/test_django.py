"""Django's ORM with a small app: migrations, rows, queries."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.interfaces.server.clients.conftest import PASSWORD, USER, run_program

PROGRAM = Path(__file__).parent / "shop_app" / "program.py"


def test_an_app_migrates_and_uses_its_tables(port: int, tmp_path: Path) -> None:
    (tmp_path / "shop_migrations").mkdir()
    (tmp_path / "shop_migrations" / "__init__.py").touch()
    command = [sys.executable, str(PROGRAM), str(port), USER, PASSWORD, str(tmp_path)]
    assert run_program(command) == ["done"]
