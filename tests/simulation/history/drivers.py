"""Ways to run sessions: step by step in one thread, in threads, in a child that is killed."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field
from pathlib import Path

from belvedere import failpoints
from belvedere.config import Config, Durability
from belvedere.database import Database
from tests.simulation.crash.processes import Child, call, killed
from tests.simulation.history.checker import Anomaly, check
from tests.simulation.history.events import HistoryFile, Op, Txn, read_history
from tests.simulation.history.schema import LISTS, TOTAL, prepare, read_list
from tests.simulation.history.workload import (
    BLOCKED,
    WORK,
    GaveUp,
    Session,
    Shared,
    Steps,
    last_look,
)

ALL = tuple(WORK)
TRIES = 30
RUN_NUMBERS = 10_000_000


@dataclass(slots=True)
class Outcome:
    """A history with what the checker said of it."""

    history: list[Txn]
    problems: list[Anomaly] = field(default_factory=list)
    run: str = ""

    @property
    def committed(self) -> int:
        return sum(txn.outcome == "committed" for txn in self.history)

    @property
    def unknown(self) -> int:
        return sum(txn.outcome == "unknown" for txn in self.history)


def _judged(shared: Shared, run: str) -> Outcome:
    last_look(shared)
    history = shared.history
    outcome = Outcome(history, check(history, shared.level, TOTAL), run)
    held = shared.database.locks.list_locks()
    if held:
        outcome.problems.append(Anomaly("lock kept", f"{len(held)} locks are held by nobody"))
    if shared.timeouts:
        outcome.problems.append(Anomaly("lock wait", f"{shared.timeouts} waits ran out"))
    return outcome


# -- step by step -----------------------------------------------------------------------------


def interleaved(
    level: str,
    seed: object,
    *,
    sessions: int = 4,
    transactions: int = 60,
    kinds: tuple[str, ...] = ALL,
    in_commit: bool = False,
    path: str | Path = ":memory:",
) -> Outcome:
    """Statements of several sessions in a random order that the seed decides. With `in_commit`,
    open transactions also read in the middle of others' commits."""
    rng = random.Random(f"{level}/{seed}")
    config = Config(durability=Durability.OFF, lock_wait_ms_max=0)
    with Database.open(path, config) as database:
        prepare(database)
        shared = Shared(database, level)
        clients = [
            Session(f"s{n}", shared, random.Random(rng.random()), kinds, tries=TRIES)
            for n in range(sessions)
        ]
        if in_commit:
            failpoints.arm("commit.after_write", "call", call=lambda: _peek(clients, rng))
        try:
            _schedule(clients, transactions, rng)
        finally:
            if in_commit:
                failpoints.disarm_failpoint("commit.after_write")
        run = f"interleaved level={level!r} seed={seed} sessions={sessions} kinds={kinds}"
        return _judged(shared, run)


def _schedule(clients: list[Session], transactions: int, rng: random.Random) -> None:
    running: dict[str, Steps] = {}
    begun = 0
    while True:
        idle = [client for client in clients if client.name not in running]
        if begun < transactions and idle and (not running or rng.random() < 0.5):
            client = rng.choice(idle)
            running[client.name] = client.one_transaction()
            begun += 1
        elif not running:
            return
        name = rng.choice(sorted(running))
        if next(running[name], None) is None:
            del running[name]


def _peek(clients: list[Session], rng: random.Random) -> None:
    """Point reads of whoever is in the middle of a transaction, but not of a commit."""
    for client in clients:
        txn, record = client.txn, client.record
        if txn is not None and record is not None and not txn.changes:
            id_ = rng.choice(LISTS)
            record.ops.append(Op("read", id_, read_list(txn, id_)))


# -- threads ----------------------------------------------------------------------------------


def threaded(
    level: str,
    seed: object,
    *,
    threads: int = 4,
    transactions: int = 200,
    kinds: tuple[str, ...] = ALL,
    lock_wait_ms: int = 30_000,
) -> Outcome:
    """Sessions in threads of their own, on one store in memory."""
    off = Durability.OFF
    return _threaded(level, seed, ":memory:", off, threads, transactions, kinds, lock_wait_ms)


def threaded_on_disk(
    level: str,
    seed: object,
    home: Path,
    *,
    durability: Durability = Durability.FULL,
    threads: int = 4,
    transactions: int = 200,
    kinds: tuple[str, ...] = ALL,
) -> Outcome:
    """The same on RocksDB, in a child: whoever has opened a store cannot fork any more."""
    home.mkdir(parents=True, exist_ok=True)
    return call(
        lambda: _threaded(
            level, seed, home / "store", durability, threads, transactions, kinds, 30_000
        ),
        home / "stderr",
    )


def _threaded(
    level: str,
    seed: object,
    path: str | Path,
    durability: Durability,
    threads: int,
    transactions: int,
    kinds: tuple[str, ...],
    lock_wait_ms: int,
) -> Outcome:
    config = Config(durability=durability, lock_wait_ms_max=lock_wait_ms)
    with Database.open(path, config) as database:
        prepare(database)
        shared = Shared(database, level)
        _run_threads(shared, seed, threads, transactions, kinds)
        run = f"threaded level={level!r} seed={seed} threads={threads} durability={durability}"
        return _judged(shared, run)


def _run_threads(
    shared: Shared, seed: object, threads: int, transactions: int, kinds: tuple[str, ...]
) -> None:
    failures: list[BaseException] = []
    each = transactions // threads

    def work(number: int) -> None:
        rng = random.Random(f"{seed}/{number}")
        session = Session(f"r{shared.first}t{number}", shared, rng, kinds)
        try:
            for _ in range(each):
                for step in session.one_transaction():
                    if step == BLOCKED:
                        raise GaveUp
        except BaseException as error:
            failures.append(error)
            raise

    workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]


# -- crashes ----------------------------------------------------------------------------------


def crashed(
    level: str,
    seed: int,
    directory: Path,
    *,
    rounds: int = 3,
    transactions: int = 120,
    threads: int = 4,
    point: str | None = None,
    mutation: str = "",
    kinds: tuple[str, ...] = ALL,
) -> Outcome:
    """Threads in a child that is killed at some failpoint, the store reopened by the next; then a
    last look. A transaction that was asked to commit and never answered is unknown.

    Must be called where no store was ever opened: the children are forked."""
    rng = random.Random(f"crashed/{level}/{seed}")
    directory.mkdir(parents=True, exist_ok=True)
    home, path = directory / "store", directory / "history"
    call(lambda: _prepare_store(home), directory / "stderr")
    points = []
    for number in range(1, rounds + 1):
        place = point or rng.choice(KILL_POINTS)
        points.append(f"{place}=kill@{rng.randint(1, transactions // 6)}")
        child = Child(
            lambda number=number: _live(
                home, path, level, seed, number, threads, transactions, kinds
            ),
            directory / f"stderr{number}",
            points=points[-1].split()[0],
            mutation=mutation,
        )
        killed_at = killed(child.wait()[0])
        points[-1] += " (killed)" if killed_at else " (not reached)"
    call(lambda: _look(home, path, level, rounds + 1), directory / "stderr")
    history = read_history(path)
    run = f"crashed level={level!r} seed={seed} points={points}"
    return Outcome(history, check(history, level, TOTAL), run)


KILL_POINTS = (
    "commit.before_section",
    "commit.before_write",
    "commit.after_write",
    "sync.before",
    "sync.after",
    "anchor.after_write",
    "publish.before",
    "publish.after",
    "acknowledge.before",
)


def _prepare_store(home: Path) -> bool:
    with Database.open(home) as database:
        prepare(database)
    return True


def _live(
    home: Path,
    path: Path,
    level: str,
    seed: int,
    number: int,
    threads: int,
    transactions: int,
    kinds: tuple[str, ...],
) -> bool:
    with Database.open(home, Config(durability=Durability.FULL)) as database:
        shared = Shared(database, level, file=HistoryFile(path), first=number * RUN_NUMBERS)
        _run_threads(shared, f"{seed}/{number}", threads, transactions, kinds)
    return True


def _look(home: Path, path: Path, level: str, number: int) -> bool:
    with Database.open(home) as database:
        shared = Shared(database, level, file=HistoryFile(path), first=number * RUN_NUMBERS)
        last_look(shared)
    return True
