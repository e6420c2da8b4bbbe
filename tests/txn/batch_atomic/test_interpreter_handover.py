"""Turns of the interpreter: short while a commit waits, then what they were."""

from __future__ import annotations

from pathlib import Path

import pytest

import belvedere
from belvedere.txn.batch_atomic import group_sync, interpreter_handover
from belvedere.txn.batch_atomic.interpreter_handover import TURN_S, InterpreterHandover


class Client:
    """What waits."""


A, B = Client(), Client()


class Interpreter:
    """The interval of `sys`, which other threads of the tests do not touch."""

    def __init__(self) -> None:
        self.seconds = 0.005

    def getswitchinterval(self) -> float:
        return self.seconds

    def setswitchinterval(self, seconds: float) -> None:
        self.seconds = seconds


@pytest.fixture
def interpreter(monkeypatch: pytest.MonkeyPatch) -> Interpreter:
    made = Interpreter()
    monkeypatch.setattr(interpreter_handover, "sys", made)
    return made


def test_turns_are_short_while_somebody_waits(interpreter: Interpreter) -> None:
    handover = InterpreterHandover()
    handover.shorten_turns(A)
    assert interpreter.seconds == pytest.approx(TURN_S)
    handover.shorten_turns(B)
    handover.restore_turns(A)
    assert interpreter.seconds == pytest.approx(TURN_S)
    handover.restore_turns(B)
    assert interpreter.seconds == pytest.approx(0.005)


def test_what_others_set_meanwhile_stays(interpreter: Interpreter) -> None:
    handover = InterpreterHandover()
    handover.shorten_turns(A)
    interpreter.setswitchinterval(0.001)
    handover.restore_turns(A)
    assert interpreter.seconds == pytest.approx(0.001)


def test_shorter_turns_of_the_user_are_kept(interpreter: Interpreter) -> None:
    interpreter.setswitchinterval(TURN_S / 5)
    handover = InterpreterHandover()
    handover.shorten_turns(A)
    assert interpreter.seconds == pytest.approx(TURN_S / 5)
    handover.restore_turns(A)
    assert interpreter.seconds == pytest.approx(TURN_S / 5)


def test_one_that_leaves_late_does_not_leave_turns_short(interpreter: Interpreter) -> None:
    """A leaves, B comes before A has made turns longer: B must not take them for the usual ones."""
    handover = InterpreterHandover()
    handover.shorten_turns(A)
    handover._waiting.discard(A)
    handover.shorten_turns(B)
    handover.restore_turns(B)
    assert interpreter.seconds == pytest.approx(0.005)


def test_a_client_that_never_left_is_forgotten(interpreter: Interpreter) -> None:
    handover = InterpreterHandover()
    handover.shorten_turns(Client())  # interrupted
    handover.shorten_turns(A)
    handover.restore_turns(A)
    assert interpreter.seconds == pytest.approx(0.005)


class Recorder:
    """Writes down who came and left, and when there was a sync."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def shorten_turns(self, waiting: object) -> None:
        self.events.append("short")

    def restore_turns(self, waiting: object) -> None:
        self.events.append("usual")


def test_turns_are_short_from_before_the_sync_until_it_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder()
    sync_once = group_sync.GroupSync._sync_once

    def note_sync(self: group_sync.GroupSync) -> None:
        recorder.events.append("sync")
        sync_once(self)
        recorder.events.append("published")

    with belvedere.connect(str(tmp_path / "store"), autocommit=True, durability="full") as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY)")
        monkeypatch.setattr(group_sync, "HANDOVER", recorder)
        monkeypatch.setattr(group_sync.GroupSync, "_sync_once", note_sync)
        con.execute("INSERT INTO t VALUES (1)")
        assert recorder.events[:4] == ["short", "sync", "published", "usual"]
