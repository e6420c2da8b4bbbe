"""A batch store that fails on request: the nth call of a kind, before or after its effect.

    FaultyStore(store, [Fault("sync", 2, FaultTiming.BEFORE)])    the second sync fails, others work
    FaultyStore(store, random_faults(rng, count=3, horizon=100))

BEFORE and AFTER are what honest hardware does: the caller hears Unavailable and cannot know which
of the two it was. SKIPPED (a disk that says yes and does nothing) and TORN (a batch of which the
first half arrives) break the contract on purpose: a test that stays green with them is no test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from threading import Lock
from typing import TypeVar

from belvedere.errors import Unavailable
from belvedere.kv.batch import BatchStore, KeySpan, Write
from belvedere.kv.doubles.intercept import InterceptedStore, StoreCall
from belvedere.kv.files import IO_ERROR

Answer = TypeVar("Answer")


class FaultTiming(StrEnum):
    BEFORE = "before"
    AFTER = "after"
    SKIPPED = "skipped"
    TORN = "torn"


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to the `nth` call (from 1) of the method `call`; each fault strikes once."""

    call: str
    nth: int
    when: FaultTiming

    def __post_init__(self) -> None:
        if self.when is FaultTiming.TORN and self.call != "write":
            raise ValueError("only a write can be torn")
        if self.when is FaultTiming.SKIPPED and self.call not in ("write", "sync", "delete_range"):
            raise ValueError("only a call without an answer can be skipped")


def random_faults(
    rng: Random,
    *,
    count: int,
    horizon: int,
    calls: Sequence[str] = ("get", "scan", "write", "sync"),
) -> list[Fault]:
    """Honest faults, spread over the first `horizon` calls of each kind."""
    return [
        Fault(
            rng.choice(calls),
            rng.randint(1, horizon),
            rng.choice((FaultTiming.BEFORE, FaultTiming.AFTER)),
        )
        for _ in range(count)
    ]


class FaultyStore(InterceptedStore):
    """Passes every call on, except where a fault strikes. `struck` lists those that did, in order.

    A write with sync is a write and a sync, each with its own faults.
    """

    __slots__ = ("_lock", "_pending", "_seen", "struck")

    def __init__(self, inner: BatchStore, faults: Iterable[Fault] = ()) -> None:
        super().__init__(inner)
        self._pending = {(fault.call, fault.nth): fault for fault in faults}
        self._seen: Counter[str] = Counter()
        self._lock = Lock()
        self.struck: list[Fault] = []

    def add_fault(self, call: str, when: FaultTiming, *, nth_from_now: int = 1) -> None:
        """Plan one more fault, counted from here."""
        with self._lock:
            fault = Fault(call, self._seen[call] + nth_from_now, when)
            self._pending[call, fault.nth] = fault

    def write(
        self, batch: Sequence[Write], *, sync: bool = False, cleared: Sequence[KeySpan] = ()
    ) -> None:
        super().write(batch, cleared=cleared)
        if sync:
            self.sync()

    def intercept_call(self, call: StoreCall, act: Callable[[], Answer]) -> Answer:
        fault = self._next_fault(call.name)
        if fault is None:
            return act()
        if fault.when is FaultTiming.SKIPPED:
            # Only calls that answer None can be skipped, so there is nothing to make up.
            return None  # type: ignore[return-value]
        if fault.when is FaultTiming.TORN:
            batch = call.arguments["batch"]
            half = batch[: (len(batch) + 1) // 2]
            self.inner.write(half, cleared=call.arguments["cleared"])
        if fault.when is FaultTiming.AFTER:
            act()
        raise Unavailable(
            "input or output failed", sqlstate=IO_ERROR, call=call.name, nth=fault.nth
        )

    def _next_fault(self, name: str) -> Fault | None:
        with self._lock:
            self._seen[name] += 1
            fault = self._pending.pop((name, self._seen[name]), None)
            if fault is not None:
                self.struck.append(fault)
            return fault
