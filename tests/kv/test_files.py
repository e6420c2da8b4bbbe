"""Private trees, and files that are replaced when they are whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import belvedere
from belvedere.database import SQL_COMPILERS, Database, restore_backup
from belvedere.kv.files import make_private_directory, make_tree_private, replace_when_written


def open_to_others(directory: Path) -> list[str]:
    """What below the directory others may read, write or enter."""
    return [
        str(path)
        for path in (directory, *directory.rglob("*"))
        if path.lstat().st_mode & 0o077 and not path.is_symlink()
    ]


@pytest.fixture
def _lax() -> None:
    """A process that lets others read what it makes."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_lax")
def test_all_of_a_store_its_backup_and_what_is_restored_are_the_owners_alone(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store"
    with belvedere.connect(str(path), autocommit=True) as con:
        con.execute("CREATE TABLE t (id bigint PRIMARY KEY, a text)")
        con.execute("INSERT INTO t SELECT i, repeat('x', 5000) FROM generate_series(1, 4000) s(i)")
        assert open_to_others(path) == []
    with Database.open(path, **SQL_COMPILERS) as db:
        db.back_up(tmp_path / "backup")
        restore_backup(tmp_path / "backup", tmp_path / "restored", **SQL_COMPILERS)
        assert open_to_others(path) == []
    assert open_to_others(tmp_path / "backup") == []
    assert open_to_others(tmp_path / "restored") == []


@pytest.mark.usefixtures("_lax")
def test_a_store_that_others_could_read_is_closed_to_them_when_it_is_opened(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store"
    belvedere.connect(str(path)).close()
    for one in (path, *path.rglob("*")):
        one.chmod(0o755 if one.is_dir() else 0o644)
    with belvedere.connect(str(path)):
        assert open_to_others(path) == []


@pytest.mark.usefixtures("_lax")
def test_a_file_system_without_access_lists_has_private_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr(os, "setxattr", refuse)
    make_private_directory(tmp_path / "a")
    (tmp_path / "a" / "file").write_text("x")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    make_tree_private(tmp_path / "a")
    assert open_to_others(tmp_path / "a") == []


def test_a_file_is_replaced_when_all_of_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    path.chmod(0o640)

    def write(text: str, fail: bool) -> None:
        with replace_when_written(path) as draft:
            draft.write_text(text)
            assert path.read_text() == "old"
            if fail:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write("half", fail=True)
    assert path.read_text() == "old"
    write("new", fail=False)
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_a_device_is_written_itself() -> None:
    with replace_when_written(Path("/dev/null")) as draft:
        assert draft == Path("/dev/null")
