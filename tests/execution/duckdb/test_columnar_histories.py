"""Columnar copies beside writers, and over random histories."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import pytest

from belvedere.errors import Error
from belvedere.execution.duckdb import columnar_cache as module
from belvedere.session.session import Session
from tests.execution.duckdb.columnar_reads import KINDS, Store, filled, opened, rows

EXPECTED = ("40001", "40P01", "25P02", "0A000", "55P03", "23505")  # a changed key may be taken
"""What a statement of a random history may fail with."""


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    made = filled(request.param)
    yield made
    made.close()


def test_readers_beside_writers_see_whole_transactions(store: Store) -> None:
    """Every transaction keeps the sum; a reader that saw half of one would not."""
    failures: list[object] = []
    ended = threading.Event()

    def write(seed: int) -> None:
        chosen = random.Random(seed)
        session = store.session()
        try:
            for _ in range(40):
                one, other = chosen.sample(range(1, 51), 2)
                session.execute(
                    "UPDATE t SET v = v + CASE WHEN id = ? THEN 1 ELSE -1 END WHERE id IN (?, ?)",
                    (one, one, other),
                )
        except Error as error:
            failures.append(error)

    def read() -> None:
        session = store.session()
        try:
            while not ended.is_set():
                result = session.execute("SELECT sum(v), count(*) FROM t")
                result.convert_arrow_to_rows()
                if result.rows != [(12750, 50)]:
                    failures.append(result.rows)
                    return
        except Error as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=(seed,)) for seed in (1, 2)]
    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in writers + readers:
        thread.start()
    for thread in writers:
        thread.join()
    ended.set()
    for thread in readers:
        thread.join()
    assert not failures
    assert len(rows(store.session())) == 50


@pytest.mark.parametrize("form", ["table", "columns", "both"])
@pytest.mark.parametrize(
    ("seed", "kind"), [*((seed, "rows") for seed in range(4)), (0, "cells"), (1, "cells")]
)
def test_random_histories_read_like_scans(
    seed: int, form: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    print("seed", seed, form, kind)
    monkeypatch.setattr(module, "DEAD_ROWS_MIN", 10)
    if form != "table":  # no statement is known to be repeated
        monkeypatch.setattr(module, "STATEMENTS_MAX", 0)
        monkeypatch.setattr(module, "DEAD_ROWS_MIN", 1_000)
    monkeypatch.setattr(module, "READS_MAX", 5 if form == "both" else 1_000)
    chosen = random.Random(seed)
    store = opened(kind, lock_wait_ms_max=1)
    sessions = [store.session() for _ in range(3)]
    sessions[0].execute("CREATE TABLE t (id int PRIMARY KEY, v int, name text)")
    for step in range(150):
        session = chosen.choice(sessions)
        try:
            _act(chosen, session, store, step)
        except Error as error:
            if error.sqlstate not in EXPECTED:
                raise
            session.execute("ROLLBACK")
        if chosen.random() < 0.5:
            reader = chosen.choice(sessions)
            if not reader.transactions.failed:
                rows(reader)
    for session in sessions:
        session.execute("ROLLBACK")
        rows(session)
    store.close()


def _act(chosen: random.Random, session: Session, store: Store, step: int) -> None:
    number = chosen.randrange(60)
    match chosen.randrange(11):
        case 0 | 1 | 2:
            session.execute(
                "INSERT INTO t (id, v, name)"
                " SELECT n, n, ? FROM generate_series(?::int, ?::int) g(n)"
                " ON CONFLICT (id) DO UPDATE SET v = t.v + 1",
                (f"step {step}", number, number + chosen.randrange(6)),
            )
        case 3 | 4:
            session.execute("UPDATE t SET v = ? WHERE id % 7 = ?", (step, number % 7))
        case 5:
            session.execute("DELETE FROM t WHERE id BETWEEN ? AND ?", (number, number + 5))
        case 6:
            session.execute("UPDATE t SET id = id + 100 WHERE id = ?", (number,))
        case 7:
            opened = session.transactions.open is not None
            session.execute(chosen.choice(("COMMIT", "ROLLBACK")) if opened else "BEGIN")
        case 8 if session.transactions.open is None and chosen.random() < 0.3:
            session.execute("TRUNCATE t")
        case 9 if session.transactions.open is None and chosen.random() < 0.3:
            session.execute(f"ALTER TABLE t ADD COLUMN c{step} int DEFAULT {step}")
        case 10 if chosen.random() < 0.3:
            store.database.trim(store.database.position - chosen.randrange(10))
        case _:
            pass
