"""A CellStore with seeded faults, for callers that run in threads and in real time.

Each change may be lost before or after its effect, carried out once more later, or answered False
although applied. What is repeated or delayed arrives during later calls, at most `late_calls_max`
of them later. Virtual time, pauses and deaths are in `cells_network`; this one is for complete
databases.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

from belvedere.errors import Unavailable
from belvedere.kv.cell import (
    Cells,
    CellScan,
    CellStore,
    CheckAndMutate,
    Get,
    Increment,
    Mutate,
    ReplyLost,
    SingleRow,
    execute_operation,
    perform_in_order,
)

MutatingOperation = Mutate | CheckAndMutate | Increment
Answer = TypeVar("Answer", None, bool, int)


class FaultyCells:
    """Wraps a store. `share` of the changes meet a fault; 0 is a faithful store."""

    def __init__(self, under: CellStore, seed: int, share: float, late_calls_max: int = 50) -> None:
        self.under = under
        self.share = share
        self.counts: Counter[str] = Counter()
        self._random = Random(seed)
        self._late_calls_max = late_calls_max
        self._late: list[tuple[int, MutatingOperation]] = []
        self._calls = 0
        self._mutex = threading.Lock()

    def get(self, get: Get) -> Cells:
        self._deliver_late_requests()
        return self.under.get(get)

    def multi_get(self, gets: tuple[Get, ...]) -> tuple[Cells, ...]:
        self._deliver_late_requests()
        return self.under.multi_get(gets)

    def scan(self, scan: CellScan) -> Sequence[tuple[bytes, Cells]]:
        self._deliver_late_requests()
        return self.under.scan(scan)

    def mutate(self, mutate: Mutate) -> None:
        fault = self._choose_fault(mutate)
        self.under.mutate(mutate)
        self._raise_if_reply_lost(fault)

    def check_and_mutate(self, mutate: CheckAndMutate) -> bool:
        fault = self._choose_fault(mutate)
        answer = self.under.check_and_mutate(mutate)
        self._raise_if_reply_lost(fault)
        return answer and fault != "answered false"

    def increment(self, increment: Increment) -> int:
        fault = self._choose_fault(increment)
        answer = self.under.increment(increment)
        self._raise_if_reply_lost(fault)
        return answer

    def execute_many(self, operations: tuple[SingleRow, ...]) -> tuple[Any, ...]:
        return perform_in_order(self, operations)

    def close(self) -> None:
        self.under.close()

    def _choose_fault(self, change: MutatingOperation) -> str:
        """Which fault a change meets; raises when it does not reach the store now."""
        self._deliver_late_requests()
        with self._mutex:
            if self._random.random() >= self.share:
                return ""
            fault = self._random.choice(
                ("lost", "delayed", "reply lost", "twice", "answered false")
            )
            self.counts[fault] += 1
            if fault in ("delayed", "twice"):
                due = self._calls + self._random.randint(1, self._late_calls_max)
                self._late.append((due, change))
        if fault in ("lost", "delayed"):
            raise ReplyLost("request lost")
        return fault

    def _raise_if_reply_lost(self, fault: str) -> None:
        if fault == "reply lost":
            raise ReplyLost("reply lost")

    def _deliver_late_requests(self) -> None:
        """Carry out what was on its way and is due by now."""
        with self._mutex:
            self._calls += 1
            due = [change for when, change in self._late if when <= self._calls]
            self._late = [each for each in self._late if each[0] > self._calls]
        for change in due:
            try:
                execute_operation(self.under, change)
            except Unavailable:
                self.counts["late request refused"] += 1
