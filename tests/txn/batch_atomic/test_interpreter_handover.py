"""Turns of the interpreter: short while a commit waits, then what they were."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import belvedere
from belvedere.txn.batch_atomic import group_sync
from belvedere.txn.batch_atomic.interpreter_handover import TURN_S, InterpreterHandover


@pytest.fixture(autouse=True)
def _keep_interval() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.005)
    yield
    sys.setswitchinterval(before)


def test_turns_are_short_while_somebody_waits() -> None:
    handover = InterpreterHandover()
    handover.shorten_turns("a")
    assert sys.getswitchinterval() == pytest.approx(TURN_S)
    handover.shorten_turns("b")
    handover.restore_turns("a")
    assert sys.getswitchinterval() == pytest.approx(TURN_S)
    handover.restore_turns("b")
    assert sys.getswitchinterval() == pytest.approx(0.005)


def test_what_others_set_meanwhile_stays() -> None:
    handover = InterpreterHandover()
    handover.shorten_turns("a")
    sys.setswitchinterval(0.001)
    handover.restore_turns("a")
    assert sys.getswitchinterval() == pytest.approx(0.001)


def test_shorter_turns_of_the_user_are_kept() -> None:
    sys.setswitchinterval(TURN_S / 5)
    handover = InterpreterHandover()
    handover.shorten_turns("a")
    assert sys.getswitchinterval() == pytest.approx(TURN_S / 5)
    handover.restore_turns("a")
    assert sys.getswitchinterval() == pytest.approx(TURN_S / 5)


def test_one_that_leaves_late_does_not_leave_turns_short() -> None:
    """A leaves, B comes before A has made turns longer: B must not take them for the usual ones."""
    handover = InterpreterHandover()
    handover.shorten_turns("a")
    handover._waiting.discard("a")
    handover.shorten_turns("b")
    handover.restore_turns("b")
    assert sys.getswitchinterval() == pytest.approx(0.005)


def test_a_durable_commit_has_short_turns_during_its_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float] = []
    sync_once = group_sync.GroupSync._sync_once

    def note_interval(self: group_sync.GroupSync) -> None:
        seen.append(sys.getswitchinterval())
        sync_once(self)

    with belvedere.connect(str(tmp_path / "store"), autocommit=True, durability="full") as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY)")
        monkeypatch.setattr(group_sync.GroupSync, "_sync_once", note_interval)
        con.execute("INSERT INTO t VALUES (1)")
    assert seen[0] == pytest.approx(TURN_S)
    assert sys.getswitchinterval() == pytest.approx(0.005)
