"""A store on disk and a fork in one process are refused at once, whichever comes first.

Every test asks in a child or a process of its own: this process goes on forking."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from belvedere.kv.rocksdb import RocksStore
from tests.simulation.crash.forking import NotForkable
from tests.simulation.crash.processes import call


def refusal(work: str, directory: Path) -> str:
    """What a fresh process says that does this."""
    done = subprocess.run(
        [sys.executable, "-c", work, str(directory)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode != 0, done.stdout
    return done.stderr.splitlines()[-1]


OPEN = """
import sys
from pathlib import Path
from belvedere.database import Database
home = Path(sys.argv[1])
"""
FORK = "call(lambda: True, home / 'stderr')\n"
OPEN_STORE = "Database.open(home / 'store')\n"
GUARDED = "from tests.simulation.crash.processes import call\n"


def test_a_fork_after_a_store_was_opened_is_refused(tmp_path: Path) -> None:
    said = refusal(OPEN + GUARDED + OPEN_STORE + FORK, tmp_path)
    assert "NotForkable" in said
    assert f"has opened a store on disk: {tmp_path / 'store'}" in said
    assert "open it in a child" in said


def test_a_store_opened_after_a_fork_is_refused(tmp_path: Path) -> None:
    said = refusal(OPEN + GUARDED + FORK + OPEN_STORE, tmp_path)
    assert "NotForkable" in said
    assert "must not open a store on disk" in said


def test_a_store_that_was_there_before_the_guard_is_seen_by_its_threads(tmp_path: Path) -> None:
    said = refusal(OPEN + OPEN_STORE + GUARDED + FORK, tmp_path)
    assert "thread rocksdb" in said


def test_children_open_stores_one_after_the_other(tmp_path: Path) -> None:
    def live() -> bool:
        RocksStore.open(tmp_path / "store", create=True).close()
        return True

    assert call(live, tmp_path / "stderr")
    assert call(live, tmp_path / "stderr")


def test_a_child_may_open_a_store_that_its_own_child_left(tmp_path: Path) -> None:
    def live() -> bool:
        call(lambda: True, tmp_path / "inner")
        RocksStore.open(tmp_path / "store", create=True).close()
        return True

    assert call(live, tmp_path / "stderr")


def test_a_child_that_opened_a_store_forks_no_more(tmp_path: Path) -> None:
    def live() -> str:
        RocksStore.open(tmp_path / "store", create=True).close()
        try:
            call(lambda: True, tmp_path / "inner")
        except NotForkable as refused:
            return str(refused)
        return ""

    assert "has opened a store on disk" in call(live, tmp_path / "stderr")
