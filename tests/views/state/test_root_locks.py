"""Root locks and views: one lock a rooted transaction, and who waits for whom."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from belvedere.errors import Retry
from tests.views.sql import Store, opened, rows_of

TABLES = (
    "CREATE TABLE parents (id int PRIMARY KEY, name text)",
    "CREATE TABLE children (id int PRIMARY KEY, parent int NOT NULL REFERENCES parents, n int)",
    "CREATE TABLE toys (id int PRIMARY KEY, child int NOT NULL REFERENCES children)",
    "INSERT INTO parents VALUES (1, 'old'), (2, 'two')",
)
VIEWS = (
    "SELECT p.name, c.id FROM parents p JOIN children c ON c.parent = p.id",
    "SELECT parent, count(*) AS c, sum(n) AS s FROM children GROUP BY parent",
    "SELECT parent, min(n) AS m, count(*) AS c FROM children GROUP BY parent",
    "SELECT p.id, c.n FROM parents p LEFT JOIN children c ON c.parent = p.id",
    "SELECT p.id FROM parents p WHERE NOT EXISTS (SELECT 1 FROM children c WHERE c.parent = p.id)",
    "SELECT id, n FROM children ORDER BY n LIMIT 3",
    "SELECT t.id, p.name FROM toys t JOIN children c ON t.child = c.id"
    " JOIN parents p ON c.parent = p.id",
)


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as made:
        made.run(*TABLES)
        for number, text in enumerate(VIEWS):
            made.run(f"CREATE MATERIALIZED VIEW v{number} AS {text}")
        yield made


def test_a_rooted_transaction_takes_one_root_lock_whatever_the_views(store: Store) -> None:
    before = store.db.locks.acquired_counts
    session = store.session()
    for statement in (
        "BEGIN",
        "INSERT INTO children VALUES (1, 1, 5), (2, 1, 7)",
        "INSERT INTO toys VALUES (1, 1), (2, 2)",
        "UPDATE parents SET name = 'new' WHERE id = 1",
        "UPDATE children SET n = n + 1 WHERE parent = 1",
        "COMMIT",
    ):
        session.execute(statement)
    taken = store.db.locks.acquired_counts - before
    assert taken == {"root": 1}
    assert set(store.verified().values()) == {True}


def test_a_parent_is_renamed_while_a_child_under_it_is_inserted(store: Store) -> None:
    """The insert holds the root's lock, so the rename waits for it, and then sees the child."""
    child = store.session()
    child.execute("BEGIN")
    child.execute("INSERT INTO children VALUES (1, 1, 0)")
    renamed = threading.Event()
    failures: list[BaseException] = []

    def rename() -> None:
        session = store.session()
        try:
            while not renamed.is_set():
                try:
                    session.execute("UPDATE parents SET name = 'new' WHERE id = 1")
                    renamed.set()
                except Retry:
                    pass  # it lost to the insert it waited for
        except Exception as error:  # noqa: BLE001 (told to the test)
            failures.append(error)
            renamed.set()

    other = threading.Thread(target=rename)
    waited = store.db.locks.waited["root"]
    other.start()
    wake_times = threading.Event()
    for _ in range(6000):
        if store.db.locks.waited["root"] > waited or renamed.is_set():
            break
        wake_times.wait(0.01)
    assert not renamed.is_set(), "the root's lock was not held"
    child.execute("COMMIT")
    other.join(timeout=60)
    assert not failures
    assert store.run("SELECT * FROM v0") == [("new", 1)]
    assert set(store.verified().values()) == {True}


def test_writers_under_different_roots_do_not_wait_for_each_other(store: Store) -> None:
    """They meet in every view, and in one group of none."""
    waited = dict(store.db.locks.waited)
    sessions = [store.session() for _ in range(2)]
    for number, session in enumerate(sessions, 1):
        session.execute("BEGIN")
        session.execute(f"INSERT INTO children VALUES ({number}, {number}, {number})")
    for session in sessions:
        session.execute("COMMIT")
    assert dict(store.db.locks.waited) == waited
    assert sorted(rows_of(sessions[0], "SELECT * FROM v5")) == [(1, 1), (2, 2)]
    assert set(store.verified().values()) == {True}
