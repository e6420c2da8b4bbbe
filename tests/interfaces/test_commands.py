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


def test_a_store_that_is_made_by_a_wrong_name_is_told(tmp_path: Path) -> None:
    shop = str(tmp_path / "typo.db")
    first, second = (run("shell", shop, "-c", "SELECT 1") for _ in range(2))
    assert f"made {shop}" in first.stderr
    assert second.stderr == ""


def test_a_server_that_cannot_begin_leaves_no_store(tmp_path: Path) -> None:
    shop = tmp_path / "typo.db"
    told = run("serve", str(shop), "--socket", str(tmp_path / "none"))
    assert told.returncode == 1
    assert "socket cannot be opened" in told.stderr
    assert not shop.exists()


def test_a_server_on_a_store_in_use_says_what_to_do(tmp_path: Path) -> None:
    with belvedere.connect(str(tmp_path / "shop.db")):
        told = run("serve", str(tmp_path / "shop.db"), "--socket", str(tmp_path))
    assert told.returncode == 1
    assert "close it there, and connect to the server" in told.stderr


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


def test_a_dump_as_sql_is_run_by_the_shell(tmp_path: Path) -> None:
    shop, script, again = (str(tmp_path / name) for name in ("shop.db", "shop.sql", "again.db"))
    with belvedere.connect(shop, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, name text)")
        connection.execute("INSERT INTO t VALUES (1, 'it''s;')")
    dumped = run("dump", shop, "--sql")
    assert dumped.returncode == 0, dumped.stderr
    Path(script).write_text(dumped.stdout, encoding="utf-8")
    assert run("shell", again, "-f", script).returncode == 0
    with belvedere.connect(again) as connection:
        assert connection.execute("SELECT * FROM t").fetchall() == [(1, "it's;")]


def test_the_shell_opens_a_damaged_store_when_it_is_told_to(tmp_path: Path) -> None:
    shop = str(tmp_path / "shop.db")
    with belvedere.connect(shop, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
    (tmp_path / "shop.db" / "anchor").unlink()
    refused = run("shell", shop, "-c", "SELECT count(*) AS n FROM t", "--format", "csv")
    assert refused.returncode == 1
    assert "open with --accept-data-loss" in refused.stderr
    opened = run("shell", shop, "-c", "SELECT 1 AS n FROM t", "--accept-data-loss")
    assert opened.returncode == 0, opened.stderr


def test_a_restore_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    shop, copy = str(tmp_path / "shop.db"), str(tmp_path / "copy")
    with belvedere.connect(shop, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
    assert run("backup", shop, copy).returncode == 0
    before = sorted(tmp_path.iterdir())
    refused = run("restore", copy, str(tmp_path / "again.db"), "--position", "99")
    assert refused.returncode == 1
    assert "does not reach that position" in refused.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_the_secret_of_a_store_is_nobody_elses_in_a_backup_and_after_it(tmp_path: Path) -> None:
    shop, copy, again = (str(tmp_path / name) for name in ("shop.db", "copy", "again.db"))
    belvedere.connect(shop).close()
    assert run("backup", shop, copy).returncode == 0
    assert run("restore", copy, again).returncode == 0
    for file in (tmp_path / "copy" / "BACKUP", tmp_path / "again.db" / "BELVEDERE"):
        assert file.stat().st_mode & 0o077 == 0


def test_a_place_that_cannot_be_made_is_refused_in_one_line(tmp_path: Path) -> None:
    shop, copy, file = (str(tmp_path / name) for name in ("shop.db", "copy", "file"))
    belvedere.connect(shop).close()
    assert run("backup", shop, copy).returncode == 0
    Path(file).write_text("in the way", encoding="utf-8")
    for arguments in (
        ("backup", shop, f"{file}/copy"),
        ("restore", copy, f"{file}/again.db"),
        ("shell", f"{file}/new.db", "-c", "SELECT 1"),
    ):
        refused = run(*arguments)
        assert refused.returncode == 1
        assert "the directory cannot be used" in refused.stderr, refused.stderr
        assert "Traceback" not in refused.stderr
