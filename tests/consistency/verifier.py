"""The Result Verifier of the CloudTPS thesis, at each freshness.

Every client inserts n rows and deletes m of them again, all of one value v that N divides, while a
verifier reads the sum from a view. Whatever the interleaving, each sum it sees is divisible by N;
counts times v are sums; and at the end clients x (n - m) x v is left.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from belvedere.errors import Retry
from belvedere.session.context.shared_state import SharedState
from belvedere.session.session import Session

DIVISOR = 7
VALUE = 3 * DIVISOR


@dataclass(frozen=True, slots=True)
class Load:
    clients: int = 3
    inserts: int = 30
    deletes: int = 12

    @property
    def left(self) -> int:
        return self.clients * (self.inserts - self.deletes) * VALUE


@dataclass(slots=True)
class Found:
    """Sums and counts that were read, in order, and what was wrong with them."""

    sums: list[tuple[int, int]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def verify(shared: SharedState, maintenance: str, freshness: str, load: Load, seed: int) -> Found:
    session = Session(shared)
    session.execute("CREATE TABLE events (id int PRIMARY KEY, kind int, cost int)")
    session.execute(
        f"CREATE MATERIALIZED VIEW totals WITH (maintenance = '{maintenance}') AS"
        " SELECT kind, sum(cost) AS total, count(*) AS n FROM events GROUP BY kind"
    )
    found, failed, working = Found(), list[BaseException](), threading.Event()
    working.set()

    def guarded(work: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 (raised below)
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    verifier = guarded(lambda: _look_while(working, Session(shared), freshness, found))
    clients = [
        guarded(lambda number=number: _load(Session(shared), load, number, seed))
        for number in range(load.clients)
    ]
    for thread in clients:
        thread.join()
    working.clear()
    verifier.join()
    if failed:
        raise failed[0]
    _require_end(session, load, found)
    return found


def _load(session: Session, load: Load, number: int, seed: int) -> None:
    """Inserts and deletes in any order in which every deleted row is there."""
    rng, there, deleted = random.Random(f"{seed}/{number}"), list[int](), 0
    inserted = 0
    while inserted < load.inserts or deleted < load.deletes:
        insert = inserted < load.inserts and (not there or rng.random() < 0.6)
        if insert or deleted == load.deletes:
            key = number * 10_000 + inserted
            _retried(session, f"INSERT INTO events VALUES ({key}, {key % 3}, {VALUE})")
            there.append(key)
            inserted += 1
        else:
            key = there.pop(rng.randrange(len(there)))
            _retried(session, f"DELETE FROM events WHERE id = {key}")
            deleted += 1


def _retried(session: Session, statement: str) -> None:
    while True:
        try:
            session.execute(statement)
            return
        except Retry:
            continue


def _look_while(working: threading.Event, session: Session, freshness: str, found: Found) -> None:
    session.execute(f"SET freshness = '{freshness}'")
    while working.is_set() or not found.sums:
        look(session, found)


def look(session: Session, found: Found) -> None:
    """All groups in one read: each sum by itself, and all of them together."""
    result = session.execute("SELECT total, n FROM totals")
    result.convert_arrow_to_rows()
    for total, count in result.rows:
        if total % DIVISOR or total != count * VALUE:
            found.wrong.append(f"{count} rows sum to {total}")
    found.sums.append((sum(row[0] for row in result.rows), sum(row[1] for row in result.rows)))


def _require_end(session: Session, load: Load, found: Found) -> None:
    session.execute("SET freshness = 'latest'")
    look(session, found)
    if found.sums[-1][0] != load.left:
        found.wrong.append(f"ends with {found.sums[-1][0]}, not with {load.left}")
