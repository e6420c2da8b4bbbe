"""Sessions act out a script, on Belvedere or on PostgreSQL, and what happens is written down.

A script is a list of steps, each a session and a statement. A step that has to wait for a lock is
noted as waiting, and its answer at the step by which it came; the later steps of that session wait
behind it. Whether something waits is asked of the engine, so nothing here depends on time.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

DEADLOCK = "40P01"
WAITS = "waits"
POLL_S = 0.001

Answer = str | tuple[Any, ...]
"""An SQLSTATE; or the rows, or how many were changed."""


class Step(NamedTuple):
    who: int
    text: str
    parameters: tuple[Any, ...] = ()


class Event(NamedTuple):
    """What became of a step (its place in the script), when the script was at `at`."""

    at: int
    step: int
    answer: Answer


class Engine(Protocol):
    """A database with as many sessions as a script has."""

    def execute(self, who: int, text: str, parameters: tuple[Any, ...]) -> Answer: ...

    def is_waiting(self, unfinished: Sequence[int]) -> bool:
        """Whether each of these sessions, all of which run a statement, waits for a lock."""

    def reset(self) -> None:
        """End all transactions, and put the tables back to where every script begins."""


@dataclass(slots=True)
class Stage:
    """One script on one engine."""

    engine: Engine
    pool: ThreadPoolExecutor
    script: Sequence[Step]
    events: list[Event] = field(default_factory=list)
    _running: dict[int, tuple[int, Future[Answer]]] = field(default_factory=dict)
    _behind: dict[int, list[int]] = field(default_factory=dict)

    def act(self) -> list[Event]:
        """Run the script to its end, or to a deadlock, whose victim is not always the same."""
        for at in range(len(self.script)):
            who = self.script[at].who
            if who in self._running:
                self._behind.setdefault(who, []).append(at)
            else:
                self._start(at, at)
            if self._settle(at) == DEADLOCK:
                break
        self._finish()
        return sorted(self.events, key=lambda event: (event.at, event.step, event.answer != WAITS))

    def _start(self, at: int, step: int) -> None:
        who, text, parameters = self.script[step]
        if not text.startswith(("INSERT", "UPDATE", "DELETE")) and not text.endswith("FOR UPDATE"):
            self.events.append(Event(at, step, self.engine.execute(who, text, parameters)))
            return
        future = self.pool.submit(self.engine.execute, who, text, parameters)
        self._running[who] = (step, future)
        self._await(future)
        if not future.done():
            self.events.append(Event(at, step, WAITS))

    def _await(self, *futures: Future[Answer]) -> None:
        """Until one of these is done, or all sessions with a running statement wait."""
        while not wait(futures, timeout=POLL_S, return_when="FIRST_COMPLETED").done:
            unfinished = [who for who, (_, one) in self._running.items() if not one.done()]
            # The first two sessions alone have transactions, so only they can wait in a circle,
            # and then one of them is told.
            if not {0, 1} <= set(unfinished) and self.engine.is_waiting(unfinished):
                return

    def _settle(self, at: int) -> str:
        """Note every answer that has come, until all that still run wait."""
        worst = ""
        while self._running:
            futures = [future for _, future in self._running.values()]
            self._await(*futures)
            done = [who for who, (_, future) in self._running.items() if future.done()]
            if not done:
                break
            for who in sorted(done):
                step, future = self._running.pop(who)
                answer = future.result()
                self.events.append(Event(at, step, answer))
                if answer == DEADLOCK:
                    worst = DEADLOCK
                while worst != DEADLOCK and who not in self._running and self._behind.get(who):
                    self._start(at, self._behind[who].pop(0))
        return worst

    def _finish(self) -> None:
        """Free those that still wait: every session that can, rolls back."""
        while self._running:
            for who in (0, 1):
                if who not in self._running:
                    self.engine.execute(who, "ROLLBACK", ())
            self._await(*[future for _, future in self._running.values()])
            for who, (_, future) in list(self._running.items()):
                if future.done():
                    del self._running[who]
        self.engine.reset()
