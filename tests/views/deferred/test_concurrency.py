"""Views while many write: every state a reader sees is that of its query, at every freshness."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from belvedere import failpoints
from belvedere.errors import InvalidInput, Retry, Unavailable
from belvedere.session.session import Session
from belvedere.views.backfill.batch_atomic_backfill import BatchAtomicBackfill
from tests.mutations.registry import mutated
from tests.views.sql import Store, opened, rows_of

pytestmark = pytest.mark.slow

TABLES = (
    "CREATE TABLE parents (id int PRIMARY KEY, city text, weight numeric(8,2))",
    "CREATE TABLE children (id int PRIMARY KEY, parent int, n int)",
)
DEFINITIONS = {
    "joined": "SELECT p.city, c.n FROM parents p JOIN children c ON c.parent = p.id",
    "pairs": "SELECT a.id AS x, b.id AS y FROM children a JOIN children b ON a.parent = b.parent",
    "lonely": "SELECT p.id, c.id AS child FROM parents p LEFT JOIN children c ON c.parent = p.id",
    "without": "SELECT id FROM parents p WHERE NOT EXISTS"
    " (SELECT 1 FROM children c WHERE c.parent = p.id)",
    "totals": "SELECT parent, count(*) AS c, sum(n) AS s FROM children GROUP BY parent",
    "extremes": "SELECT parent, min(n) AS low, max(n) AS high FROM children GROUP BY parent",
    "often": "SELECT parent FROM children GROUP BY parent HAVING count(*) > 1",
    "cities": "SELECT DISTINCT city FROM parents",
}


def write(session: Session, rng: random.Random) -> None:
    """One transaction of one to four statements; lost races are tried again."""
    statements = [change(rng) for _ in range(rng.randrange(1, 5))]
    while True:
        try:
            session.execute("BEGIN")
            for statement in statements:
                session.execute(statement)
            session.execute("COMMIT")
        except (Retry, InvalidInput, Unavailable) as error:
            session.rollback()
            if isinstance(error, Retry):
                continue
        return


def change(rng: random.Random) -> str:
    id_, parent, n = rng.randrange(12), rng.choice(("NULL", *range(4))), rng.randrange(5)
    return rng.choice(
        (
            f"INSERT INTO children VALUES ({id_}, {parent}, {n})",
            f"INSERT INTO children VALUES ({id_}, {parent}, {n})",
            f"UPDATE children SET parent = {parent} WHERE id = {id_}",
            f"UPDATE children SET n = {n} WHERE id = {id_}",
            f"DELETE FROM children WHERE id = {id_}",
            f"INSERT INTO parents VALUES ({id_ % 5}, 'city {n}', {n})",
            f"UPDATE parents SET city = 'city {n}' WHERE id = {id_ % 5}",
            f"DELETE FROM parents WHERE id = {id_ % 5}",
        )
    )


class Crowd:
    """Threads that write until each has done its share; a failure in one is raised by `join`."""

    def __init__(self, store: Store, seed: int, writers: int, transactions: int) -> None:
        self._errors: list[BaseException] = []
        self._threads = [
            threading.Thread(
                target=self._guarded, args=(self._write(store, seed + i, transactions),)
            )
            for i in range(writers)
        ]
        for thread in self._threads:
            thread.start()

    def _write(self, store: Store, seed: int, transactions: int) -> Callable[[], None]:
        def work() -> None:
            rng, session = random.Random(seed), store.session()
            for _ in range(transactions):
                write(session, rng)

        return work

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 (raised again by join)
            self._errors.append(error)

    @property
    def busy(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def join(self) -> None:
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]


def create_views(store: Store) -> None:
    for name, text in DEFINITIONS.items():
        store.run(f"CREATE MATERIALIZED VIEW {name} AS {text}")
        store.run(
            f"CREATE MATERIALIZED VIEW {name}_later WITH (maintenance = 'deferred') AS {text}"
        )


def check_snapshot(session: Session) -> None:
    """All views and their queries inside one transaction: one position."""
    session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    try:
        for name, text in DEFINITIONS.items():
            expected = Counter(rows_of(session, text))
            for view in (name, f"{name}_later"):
                assert Counter(rows_of(session, f"SELECT * FROM {view}")) == expected, view
    finally:
        session.execute("ROLLBACK")


def test_every_snapshot_beside_concurrent_writers_obeys_the_law(seed: int) -> None:
    with opened() as store:
        store.run(*TABLES)
        create_views(store)
        crowd, reader = Crowd(store, seed * 100, writers=4, transactions=40), store.session()
        while crowd.busy:
            check_snapshot(reader)
        crowd.join()
        check_snapshot(reader)
        for name in DEFINITIONS:
            store.run(f"REFRESH MATERIALIZED VIEW {name}_later")
        assert set(store.verified().values()) == {True}


def test_verify_and_repair_find_nothing_wrong_beside_running_writers(seed: int) -> None:
    with opened() as store:
        store.run(*TABLES)
        create_views(store)
        crowd = Crowd(store, seed * 100, writers=2, transactions=40)
        names = sorted(view.name for view in store.db.catalog.views if not view.part)
        while crowd.busy:
            for name in names[:: 1 + len(names) // 4]:
                assert store.run(f"VERIFY MATERIALIZED VIEW {name}")[0][-1] is True, name
                assert store.db.views.repair_view(store.view(name)) == 0, name
            names = names[1:] + names[:1]
        crowd.join()
        assert set(store.verified().values()) == {True}


def test_views_made_beside_running_writers_miss_nothing(seed: int) -> None:
    with opened() as store:
        store.run(*TABLES)
        crowd = Crowd(store, seed * 100, writers=3, transactions=60)
        create_views(store)
        crowd.join()
        check_snapshot(store.session())
        assert set(store.verified().values()) == {True}


@pytest.mark.parametrize("bug", ["view_flip_without_log", "view_snapshot_early"])
def test_a_backfill_that_loses_changes_would_be_noticed(bug: str) -> None:
    """A writer commits between the snapshot and the flip."""
    with mutated(bug):
        with opened() as store:
            store.run(*TABLES, "INSERT INTO children VALUES (1, 1, 1)")
            make_with_a_write_between(store)
            assert not store.verified()["totals"]


def test_what_is_written_during_a_backfill_is_in_the_view() -> None:
    with opened() as store:
        store.run(*TABLES, "INSERT INTO children VALUES (1, 1, 1)")
        try:
            make_with_a_write_between(store)
        finally:
            failpoints.disarm_all()
        assert store.run("SELECT * FROM totals") == [(1, 2, 4)]
        assert store.verified() == {"totals": True}


def make_with_a_write_between(store: Store) -> None:
    """An insert and a delete arrive when the backfill has read its snapshot, and again before the
    flip."""
    other = store.session()
    steps = [
        ["INSERT INTO children VALUES (2, 1, 3)", "DELETE FROM children WHERE id = 1"],
        ["INSERT INTO children VALUES (3, 1, 1)"],
    ]
    filling, deferred = store.db.views.backfills.store, store.db.views.deferred
    assert isinstance(filling, BatchAtomicBackfill)
    backfill, refresh = filling.backfill_views, deferred.catch_up_unit_of_view

    def slow_backfill(*given: Any) -> None:
        for statement in steps[0]:
            other.execute(statement)
        backfill(*given)

    def slow_refresh(view: object) -> int:
        reached = refresh(view)  # type: ignore[arg-type]
        for statement in steps[1]:
            other.execute(statement)
        return reached

    filling.backfill_views = slow_backfill  # type: ignore[method-assign]
    deferred.catch_up_unit_of_view = slow_refresh  # type: ignore[method-assign]
    try:
        store.run(f"CREATE MATERIALIZED VIEW totals AS {DEFINITIONS['totals']}")
    finally:
        filling.backfill_views = backfill  # type: ignore[method-assign]
        deferred.catch_up_unit_of_view = refresh  # type: ignore[method-assign]
