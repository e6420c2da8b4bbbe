"""Every interleaving of a few small transactions, each judged by the checker.

A transaction is a word of steps: `r` and a letter reads a list, `a` and a letter appends to it, `s`
scans all three lists of the run, `i` and a letter reads through the index. The end, a commit, is a
step of its own. Every run has lists of its own, so one database serves them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement, count

from belvedere.catalog.model import Table
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.config import Config
from belvedere.database import Database
from belvedere.errors import InvalidInput, Retry, Unavailable
from belvedere.txn.transaction.transaction import Transaction
from tests.simulation.history.checker import check
from tests.simulation.history.events import ABORTED, COMMITTED, Op, Txn
from tests.simulation.history.schema import append_to_list, prepare, read_list
from tests.simulation.history.workload import ISOLATION

LETTERS = "xyz"

WORDS = (
    "rx ax",
    "rx ay",
    "ry ax",
    "ax ay",
    "ay ax",
    "rx ry",
    "ry rx",
    "s ax",
    "s az",
    "ix iy",
    "rx rx",
    "ax rx ay",
    "rx ay az",
)


@dataclass(slots=True)
class Small:
    """One transaction on its way."""

    word: list[str]
    txn: Transaction
    record: Txn
    done: bool = False


@dataclass(slots=True)
class Exhaustive:
    level: str
    runs: int = 0
    problems: list[str] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def run_all(self, words: Sequence[str], size: int, limit: int | None = None) -> None:
        """Every choice of `size` words, with repetition, in every order of steps."""
        with Database.open(":memory:", Config(lock_wait_ms_max=0)) as database:
            prepare(database)
            for chosen in combinations_with_replacement(words, size):
                steps = [len(word.split()) + 1 for word in chosen]
                for order in interleavings(steps):
                    if limit is not None and self.runs >= limit:
                        return
                    self._run(database, chosen, order)

    def _run(self, database: Database, chosen: Sequence[str], order: tuple[int, ...]) -> None:
        base = 1000 + 10 * self.runs
        self.runs += 1
        history = self.play(database, chosen, order, base)
        problems = check(history, self.level)
        if problems:
            told = ", ".join(map(str, problems))
            self.problems.append(f"{self.level} {chosen} in order {order}: {told}")

    def play(
        self, database: Database, chosen: Sequence[str], order: tuple[int, ...], base: int
    ) -> list[Txn]:
        """Run one order of steps; transactions begin with their first."""
        smalls: dict[int, Small] = {}
        clock = count(1)
        for number in order:
            if number not in smalls:
                record = Txn(f"t{number}", f"t{number}", self.level, next(clock))
                txn = database.begin(ISOLATION[self.level])
                smalls[number] = Small(chosen[number].split(), txn, record)
            small = smalls[number]
            if small.done:
                continue
            try:
                self._step(small, base)
            except (Retry, InvalidInput, Unavailable):  # a lock that is held ends it, too
                small.record.outcome = ABORTED
                small.done = True
            if small.done:
                small.txn.rollback()
                small.record.ended = next(clock)
        return [small.record for small in smalls.values()] + [_look(database, base, next(clock))]

    def _step(self, small: Small, base: int) -> None:
        if not small.word:
            small.txn.commit()
            small.record.outcome, small.done = COMMITTED, True
            return
        small.txn.begin_statement()
        step = small.word.pop(0)
        ops = small.record.ops
        if step == "s":
            ops.append(Op("scan", None, _scan(small.txn, base)))
            return
        id_ = base + LETTERS.index(step[1])
        if step[0] == "a":
            element = next(self._numbers)
            ops.append(Op("read", id_, append_to_list(small.txn, id_, element)))
            ops.append(Op("append", id_, element))
        else:
            ops.append(Op("read", id_, read_list(small.txn, id_, by_index=step[0] == "i")))


def interleavings(steps: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Every order in which transactions of so many steps can take turns."""
    if not any(steps):
        yield ()
        return
    for number, left in enumerate(steps):
        if left:
            rest = [*steps]
            rest[number] -= 1
            for tail in interleavings(rest):
                yield (number, *tail)


def _scan(txn: Transaction, base: int) -> dict[int, list[int]]:
    table = compiled_table(txn.catalog, txn.catalog.require_relation(Table, "list").id)
    start, end = (table.key.encode_first(base + n) for n in (0, len(LETTERS)))
    found = {}
    for batch in txn.scan(start, end):
        for _, value in batch:
            id_, _, text = table.decode(value)
            found[id_] = [int(part) for part in text.split(",")]
    return found


def _look(database: Database, base: int, now: int) -> Txn:
    with database.begin() as txn:
        ops = [Op("scan", None, _scan(txn, base))]
    return Txn("last look", "last look", "", now, now + 1, COMMITTED, ops=ops)
