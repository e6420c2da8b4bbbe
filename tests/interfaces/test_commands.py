"""Commands as a user types them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import belvedere


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "belvedere.interfaces.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_demo_tells_its_story_and_leaves_a_store_that_can_be_dumped(tmp_path: Path) -> None:
    told = run("demo", "--keep", str(tmp_path / "shop.db"))
    assert told.returncode == 0, told.stderr
    assert told.stdout.count("True") == 2, told.stdout  # both views verified
    assert "Vienna" in told.stdout
    for wanted in ("would be immediate", "behind", "lag_ms", "catch up", "locks: root key"):
        assert wanted in told.stdout, wanted
    for freshness in ("any", "session", "250 ms", "latest"):
        assert f"freshness = '{freshness}'" in told.stdout
    dumped = run("dump", str(tmp_path / "shop.db"), "--limit", "2")
    assert dumped.returncode == 0, dumped.stderr
    assert "table customers" in dumped.stdout
    assert "row orders (0) -> {id: 0, customer: 1, total: 0.50}" in dumped.stdout
    assert "row spent (1, 'customer 1') -> {id: 1, name: 'customer 1'} amounts" in dumped.stdout


def test_a_backup_is_restored_to_an_earlier_position(tmp_path: Path) -> None:
    shop, copy, again = (str(tmp_path / name) for name in ("shop.db", "copy", "again.db"))
    with belvedere.connect(shop) as connection:
        connection.autocommit = True
        connection.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
        connection.execute("INSERT INTO t VALUES (1)")
        token = connection.token
        connection.execute("DROP MATERIALIZED VIEW v")
        connection.execute("DROP TABLE t")
    assert run("backup", shop, copy).returncode == 0
    restored = run("restore", copy, again, "--position", "4")
    assert restored.returncode == 0, restored.stderr
    with belvedere.connect(again) as connection:
        assert connection.execute("SELECT id FROM t").fetchall() == [(1,)]
        assert connection.execute("SELECT n FROM v").fetchall() == [(1,)]
        with pytest.raises(belvedere.Error, match="another incarnation"):
            connection.execute("SELECT 1", freshness=token)


def test_what_is_not_a_store_is_refused_in_one_line(tmp_path: Path) -> None:
    for arguments in (
        ("dump", str(tmp_path)),
        ("backup", str(tmp_path / "nowhere"), str(tmp_path / "copy")),
        ("restore", str(tmp_path), str(tmp_path / "copy")),
    ):
        refused = run(*arguments)
        assert refused.returncode == 1
        assert refused.stderr.startswith("belvedere: "), refused.stderr
        assert "Traceback" not in refused.stderr
    assert not (tmp_path / "copy").exists()
