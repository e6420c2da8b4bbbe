"""Backups and restores that are unfinished say so, are durable before they are whole, and leave
alone what is not theirs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from belvedere import failpoints
from belvedere.database import Database, restore_backup
from belvedere.errors import InvalidInput, Unavailable
from belvedere.txn.batch_atomic import directory as files
from belvedere.txn.batch_atomic.draft_directory import DraftDirectory
from tests.txn.shop import put

STEPS = (
    "restore.marked",
    "restore.before_rewind",
    "restore.after_rewind",
    "restore.before_install",
)


@pytest.fixture
def backup(directory_shop: Database, tmp_path: Path) -> Path:
    for number in range(3):
        put(directory_shop, "product", (number, "x"))
    directory_shop.back_up(tmp_path / "backup")
    return tmp_path / "backup"


def leave_unfinished(path: Path, final: str) -> None:
    """What a process that was killed leaves."""
    path.mkdir()
    (path / files.MARKERS[final]).write_bytes(b"{}")
    (path / "data").mkdir()
    (path / "data" / "CURRENT").write_text("half")


@pytest.mark.parametrize("step", STEPS)
def test_a_directory_is_marked_from_the_first_step_to_the_last(
    backup: Path, directory_shop: Database, tmp_path: Path, step: str
) -> None:
    refused: list[str] = []

    def open_it() -> None:
        with pytest.raises(InvalidInput, match="has not finished") as found:
            Database.open(tmp_path / "r", accept_data_loss=True)
        refused.append(str(found.value))

    failpoints.arm(step, "call", call=open_it)
    restore_backup(backup, tmp_path / "r", directory_shop.position - 1)
    assert len(refused) == 1
    assert "restore` again" in refused[0]


@pytest.mark.parametrize("final", list(files.MARKERS))
def test_what_an_interrupted_attempt_left_is_refused_and_made_again(
    backup: Path, directory_shop: Database, tmp_path: Path, final: str
) -> None:
    leave_unfinished(tmp_path / "r", final)
    with pytest.raises(InvalidInput, match="has not finished"):
        Database.open(tmp_path / "r")
    if final == files.BACKUP_FILE:
        with pytest.raises(InvalidInput, match="has not finished"):
            restore_backup(tmp_path / "r", tmp_path / "r2")
        directory_shop.back_up(tmp_path / "r")
        assert (tmp_path / "r" / final).exists()
    else:
        restore_backup(backup, tmp_path / "r")
        Database.open(tmp_path / "r").close()


def test_an_attempt_that_is_under_way_is_not_begun_again(backup: Path, tmp_path: Path) -> None:
    with (
        DraftDirectory(tmp_path / "r", files.IDENTITY_FILE, b"{}"),
        pytest.raises(Unavailable, match="another process"),
    ):
        restore_backup(backup, tmp_path / "r")


def test_a_directory_with_other_things_in_it_is_not_touched(
    backup: Path, directory_shop: Database, tmp_path: Path
) -> None:
    for name in ("mine", "r.restoring"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "letter").write_text("dear")
    for command in (
        lambda: restore_backup(backup, tmp_path / "mine"),
        lambda: directory_shop.back_up(tmp_path / "mine"),
    ):
        with pytest.raises(InvalidInput, match="exists already"):
            command()
    restore_backup(backup, tmp_path / "r")
    for name in ("mine", "r.restoring"):
        assert [entry.name for entry in (tmp_path / name).iterdir()] == ["letter"]


def test_a_failure_removes_what_was_made_and_no_more(backup: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "new"):
        with pytest.raises(InvalidInput, match="does not reach"):
            restore_backup(backup, tmp_path / name, 10**6)
    assert not (tmp_path / "new").exists()
    assert [entry.name for entry in (tmp_path / "empty").iterdir()] == [files.LOCK_FILE]


def test_everything_is_synced_before_a_restore_or_a_backup_has_its_name(
    backup: Path, directory_shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[str] = set()
    fsync, rename = os.fsync, Path.rename
    missing: list[str] = []

    def note_sync(descriptor: int) -> None:
        synced.add(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    def check_names(path: Path, target: Path) -> Path:
        for folder, _, names in os.walk(path.parent):
            missing.extend(
                p for n in (*names, "") if (p := f"{folder}/{n}".rstrip("/")) not in synced
            )
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "rename", check_names)
    restore_backup(backup, tmp_path / "r")
    directory_shop.back_up(tmp_path / "second")
    assert missing == []
    assert {str(tmp_path), str(tmp_path / "r" / "data")} <= synced
