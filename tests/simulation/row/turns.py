"""Whole databases under a seeded schedule: threads that run one at a time, in virtual time.

Every operation on the store, and every wait, is a place where a node stops; the seed says who goes
on. A node may be killed at any of these places (before its request has an effect, or after), or
paused for longer than its lease and go on as if nothing had happened. Nodes have one thread each,
so that a node never waits for another except through the store.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from belvedere.kv.cell import (
    Cells,
    CellScan,
    CellStore,
    CheckAndMutate,
    Get,
    Increment,
    Mutate,
    SingleRow,
    perform_in_order,
)

T = TypeVar("T")
SECONDS_A_STEP = 0.002
WATCHDOG_SECONDS = 300.0


class Killed(BaseException):
    """The process is gone: nothing catches it, and every later request of it fails the same way."""


@dataclass(eq=False)
class Actor:
    """One node's thread, as the schedule sees it."""

    name: str
    wake_at: float = 0.0
    dies_in: int = -1  # operations; -1: it does not
    dead: bool = False
    over: bool = False
    error: BaseException | None = None
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


class Turns:
    """Who goes on. `now` is the time of everybody."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._parked = threading.Semaphore(0)
        self.now = 0.0
        self.steps = 0
        self.actors: list[Actor] = []
        self.counts: Counter[str] = Counter()

    def add(self, name: str, program: Callable[[Actor], None]) -> Actor:
        actor = Actor(name)
        self.actors.append(actor)
        threading.Thread(target=self._live, args=(actor, program), daemon=True).start()
        return actor

    def _live(self, actor: Actor, program: Callable[[Actor], None]) -> None:
        actor.go.acquire()
        try:
            program(actor)
        except Killed:
            self.counts["killed"] += 1
        except BaseException as error:  # noqa: BLE001 (told by `run`)
            actor.error = error
        actor.over = True
        self._parked.release()

    def run(self, between: Callable[[], None] = lambda: None) -> None:
        """Until everybody is over. `between` is called between two steps."""
        while living := [actor for actor in self.actors if not actor.over]:
            between()
            ready = [actor for actor in living if actor.wake_at <= self.now]
            if not ready:
                self.now = min(actor.wake_at for actor in living)
                continue
            self.steps += 1
            self.now += SECONDS_A_STEP
            self._random.choice(ready).go.release()
            if not self._parked.acquire(timeout=WATCHDOG_SECONDS):
                raise AssertionError("a node waits for something that is not in the store")
        for actor in self.actors:
            if actor.error is not None:
                raise actor.error

    def stop(self, actor: Actor, seconds: float = 0.0) -> None:
        """Called by the actor's own thread: let somebody else go on."""
        actor.wake_at = max(actor.wake_at, self.now + seconds)
        self._parked.release()
        actor.go.acquire()
        if actor.dead:
            raise Killed

    def pause(self, actor: Actor, seconds: float) -> None:
        actor.wake_at = max(actor.wake_at, self.now + seconds)
        self.counts["paused"] += 1


class TurnedCells:
    """A store as one actor reaches it."""

    def __init__(self, under: CellStore, turns: Turns, actor: Actor, random: Random) -> None:
        self._under = under
        self._turns = turns
        self._actor = actor
        self._random = random

    def get(self, get: Get) -> Cells:
        return self._do(lambda: self._under.get(get))

    def multi_get(self, gets: tuple[Get, ...]) -> tuple[Cells, ...]:
        return self._do(lambda: self._under.multi_get(gets))

    def scan(self, scan: CellScan) -> tuple[tuple[bytes, Cells], ...]:
        return self._do(lambda: self._under.scan(scan))

    def mutate(self, mutate: Mutate) -> None:
        return self._do(lambda: self._under.mutate(mutate))

    def check_and_mutate(self, mutate: CheckAndMutate) -> bool:
        return self._do(lambda: self._under.check_and_mutate(mutate))

    def increment(self, increment: Increment) -> int:
        return self._do(lambda: self._under.increment(increment))

    def execute_many(self, operations: tuple[SingleRow, ...]) -> tuple[Any, ...]:
        return perform_in_order(self, operations)

    def close(self) -> None:
        """The store is everybody's."""

    def _do(self, operation: Callable[[], T]) -> T:
        actor = self._actor
        self._turns.stop(actor)
        if actor.dies_in == 0:
            actor.dead = True
            if self._random.random() < 0.5:
                operation()  # the request was on its way
            raise Killed
        actor.dies_in -= actor.dies_in > 0
        return operation()
