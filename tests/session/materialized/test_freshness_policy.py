"""How fresh a deferred view is read: as it is, caught up, after a wait, or through its tables."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from belvedere.errors import InvalidInput
from belvedere.session.materialized import freshness_policy
from belvedere.session.materialized.freshness_policy import ReadStrategy
from belvedere.session.session import Session
from belvedere.views.cost import cost_model
from tests.views.sql import Store, opened, rows_of

TOTALS = "SELECT g, count(*) AS c, sum(v) AS s FROM t GROUP BY g"
BOUND = "250 ms"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> Iterator[Store]:
    """A view that moves only when it is told, and time that moves only when it is told."""
    with opened() as made:
        made.db.views.deferred.clock = clock
        made.run(
            "CREATE TABLE t (id int PRIMARY KEY, g int, v int)", "INSERT INTO t VALUES (1, 1, 1)"
        )
        made.run(
            "CREATE MATERIALIZED VIEW totals WITH"
            f" (maintenance = 'deferred', refresh_every = '1 d') AS {TOTALS}"
        )
        made.run("REFRESH MATERIALIZED VIEW totals")
        yield made


def explained(session: Session, query: str, freshness: str) -> list[str]:
    lines = [line for (line,) in rows_of(session, f"EXPLAIN {query}", freshness)]
    return [line for line in lines if line.startswith(("deferred", "cost"))]


def test_a_view_that_is_young_enough_is_read_as_it_is(store: Store, clock: Clock) -> None:
    session = store.session()
    assert rows_of(session, "SELECT * FROM totals", BOUND) == [(1, 1, 1)]
    store.run("INSERT INTO t VALUES (2, 1, 1)")
    clock.now += 0.2
    (line,) = explained(session, "SELECT * FROM totals", BOUND)
    assert line.startswith("deferred totals: read as it is")
    assert line.endswith("behind), nothing it lacks is older than 200.0 ms")
    assert rows_of(session, "SELECT * FROM totals", BOUND) == [(1, 1, 1)]


def test_a_view_that_is_too_old_is_caught_up(store: Store, clock: Clock) -> None:
    session = store.session()
    rows_of(session, "SELECT * FROM totals", BOUND)
    store.run("INSERT INTO t VALUES (2, 1, 1)")
    clock.now += 0.3
    line, costs = explained(session, "SELECT * FROM totals", BOUND)
    assert line.startswith("deferred totals: catch up (")
    assert "catch up" in costs
    assert "bypass" in costs
    assert rows_of(session, "SELECT * FROM totals", BOUND) == [(1, 2, 2)]


def test_an_age_that_nobody_knows_is_too_old(store: Store) -> None:
    session, view = store.session(), store.view("totals")
    session.execute(f"SET freshness = '{BOUND}'")
    before_all = {view.id: -1}
    decision = freshness_policy.choose_read_strategy(
        session, store.db.catalog, (view,), before_all, store.db.position, alone=True
    )
    assert (decision.strategy, decision.age_s) == (ReadStrategy.CATCH_UP, None)


def test_a_statement_over_several_reads_one_position(store: Store, clock: Clock) -> None:
    """Within the bound the view alone is read as it is, beside its table it is brought along."""
    session = store.session()
    rows_of(session, "SELECT * FROM totals", BOUND)
    store.run("INSERT INTO t VALUES (2, 1, 1)")
    both = "SELECT totals.c, (SELECT count(*) FROM t) FROM totals"
    assert rows_of(session, both, BOUND) == [(2, 2)]
    assert rows_of(store.session(), "SELECT c FROM totals", BOUND) == [(1,)]
    assert clock.now == 100.0


def test_a_session_never_goes_back_within_the_bound(store: Store, clock: Clock) -> None:
    """What was caught up for a read is not yet stored: a view that is young enough may be older."""
    session, view = store.session(), store.view("totals")
    session.execute(f"SET freshness = '{BOUND}'")
    rows_of(session, "SELECT * FROM totals")
    store.run("INSERT INTO t VALUES (2, 1, 1)")
    between = store.db.position
    store.run("INSERT INTO t VALUES (3, 1, 1)")
    clock.now += 0.3
    assert rows_of(session, "SELECT c FROM totals") == [(3,)]
    clock.now -= 0.2
    assert rows_of(store.session(), "SELECT c FROM totals", BOUND) == [(1,)]
    (line, _) = explained(session, "SELECT c FROM totals", BOUND)
    assert line.startswith("deferred totals: catch up (2 commits behind), nothing it lacks is")
    assert rows_of(session, "SELECT c FROM totals") == [(3,)]
    catalog, last = store.db.catalog, store.db.position
    for mark, way in ((between, ReadStrategy.CATCH_UP), (last, ReadStrategy.READ)):
        decision = freshness_policy.choose_read_strategy(
            session, catalog, (view,), {view.id: mark}, last + 1, alone=True
        )
        assert decision.strategy is way


@pytest.mark.parametrize("written", [False, True])
def test_whoever_takes_any_state_of_several_takes_one_position_too(
    store: Store, written: bool
) -> None:
    hourly = "WITH (maintenance = 'deferred', refresh_every = '7 h') AS SELECT count(*) AS n FROM t"
    store.run("INSERT INTO t VALUES (2, 1, 1)", f"CREATE MATERIALIZED VIEW others {hourly}")
    store.run("INSERT INTO t VALUES (3, 1, 1)")
    session, mine = store.session(), 0
    if written:
        session.execute("BEGIN")
        session.execute("INSERT INTO t VALUES (4, 1, 1)")
        mine = 1
    assert rows_of(session, "SELECT c FROM totals", "any") == [(1,)]
    assert rows_of(session, "SELECT n FROM others", "any") == [(2,)]
    twice = "SELECT a.c, b.c FROM totals a, totals b"
    assert rows_of(session, twice, "any") == [(1, 1)]
    both = "SELECT c, n FROM totals, others"
    assert rows_of(session, both, "any") == [(3 + mine, 3 + mine)]
    beside = "SELECT totals.c, (SELECT count(*) FROM t) FROM totals"
    assert rows_of(session, beside, "any") == [(3 + mine, 3 + mine)]
    if not written:
        assert explained(session, both, "any")[0].startswith("deferred totals, others: catch up (")


def test_own_changes_are_seen_within_the_bound(store: Store) -> None:
    session = store.session()
    rows_of(session, "SELECT * FROM totals", BOUND)
    session.execute("BEGIN")
    session.execute("INSERT INTO t VALUES (2, 1, 1)")
    assert rows_of(session, "SELECT * FROM totals", BOUND) == [(1, 2, 2)]
    session.execute("ROLLBACK")


def test_latest_shows_everything_committed_and_any_what_is_stored(store: Store) -> None:
    store.run("INSERT INTO t VALUES (2, 1, 1)")
    assert rows_of(store.session(), "SELECT * FROM totals", "latest") == [(1, 2, 2)]
    assert rows_of(store.session(), "SELECT * FROM totals", "any") == [(1, 1, 1)]


def test_a_session_that_has_seen_nothing_new_reads_the_view_as_it_is(store: Store) -> None:
    store.run("INSERT INTO t VALUES (2, 1, 1)")
    session = store.session()
    (line,) = explained(session, "SELECT * FROM totals", "session")
    assert line == "deferred totals: read as it is (1 commit behind)"
    for _ in range(2):
        assert rows_of(session, "SELECT * FROM totals") == [(1, 1, 1)]
    store.run("REFRESH MATERIALIZED VIEW totals", "INSERT INTO t VALUES (3, 1, 1)")
    assert rows_of(session, "SELECT * FROM totals") == [(1, 2, 2)]


SEEN = {
    "a write": ("INSERT INTO t VALUES (9, 9, 9)", None),
    "a read of the table": ("SELECT count(*) FROM t WHERE v > 0", None),
    "a read of one row": ("SELECT v FROM t WHERE id = 2", None),
    "a fresher read of the view": ("SELECT count(*) FROM totals", "latest"),
    "a read of view and table": ("SELECT count(*) FROM totals, t", None),
    "a definition": ("CREATE INDEX IF NOT EXISTS by_v ON t (v)", None),
    "a transaction": ("BEGIN; SELECT 1 FROM t; COMMIT", None),
}


@pytest.mark.parametrize("what", SEEN)
def test_a_session_never_goes_back_behind_what_it_has_seen(store: Store, what: str) -> None:
    session, (statement, freshness) = store.session(), SEEN[what]
    if statement.startswith("SELECT"):  # its plan is there then, and taken the short way
        session.execute(statement, freshness=freshness).convert_arrow_to_rows()
    store.run("INSERT INTO t VALUES (2, 1, 1)")
    assert rows_of(session, "SELECT * FROM totals WHERE g = 1") == [(1, 1, 1)]
    session.execute(statement, freshness=freshness).convert_arrow_to_rows()
    assert rows_of(session, "SELECT * FROM totals WHERE g = 1") == [(1, 2, 2)]
    other = store.session()
    rows = rows_of(other, "SELECT * FROM totals WHERE g = 1", session.freshness_token)
    assert rows == [(1, 2, 2)]  # who is shown its token sees no less


def test_inside_a_transaction_a_session_reads_its_snapshot(store: Store) -> None:
    store.run("INSERT INTO t VALUES (2, 1, 1)")
    session = store.session()
    session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    assert rows_of(session, "SELECT * FROM totals") == [(1, 2, 2)]
    store.run("INSERT INTO t VALUES (3, 1, 1)", "REFRESH MATERIALIZED VIEW totals")
    assert rows_of(session, "SELECT * FROM totals") == [(1, 2, 2)]
    session.execute("COMMIT")


def test_a_view_far_behind_a_small_table_is_bypassed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness_policy, "BYPASS_PENDING_MIN", 5)
    monkeypatch.setattr(cost_model, "UNMEASURED_CHANGE_S", 1.0)
    for number in range(10, 20):
        store.run(f"INSERT INTO t VALUES ({number}, 1, 1)", f"DELETE FROM t WHERE id = {number}")
    session = store.session()
    line, _ = explained(session, "SELECT * FROM totals", "latest")
    assert line.startswith("deferred totals: bypass (2")
    monkeypatch.setattr(store.db.views, "open_caught_up_reader", None)
    assert rows_of(session, "SELECT * FROM totals", "latest") == [(1, 1, 1)]
    filtered = "SELECT c FROM totals WHERE g = 1 AND s < 5"
    assert rows_of(session, filtered, "latest") == [(1,)]
    session.execute("BEGIN")
    session.execute("INSERT INTO t VALUES (2, 1, 1)")
    assert rows_of(session, filtered, "latest") == [(2,)]
    session.execute("ROLLBACK")


def test_a_view_the_worker_is_at_is_waited_for(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker is about to end: waiting for it is less than doing all of its work again."""
    monkeypatch.setattr(freshness_policy, "BYPASS_PENDING_MIN", 5)
    monkeypatch.setattr(cost_model, "UNMEASURED_CHANGE_S", 1.0)
    monkeypatch.setattr(cost_model, "STATEMENT_S", 100.0)
    for number in range(10, 20):
        store.run(f"INSERT INTO t VALUES ({number}, 1, 1)")
    deferred, group = store.db.views.deferred, store.view("totals").group
    monkeypatch.setattr(
        deferred, "estimate_busy_seconds_left", lambda g: 30.0 if g == group else None
    )
    monkeypatch.setattr(cost_model, "UNMEASURED_CHANGE_S", 60.0)
    session, waits = store.session(), threading.Event()
    wait_moved = deferred.wait_for_batch

    def waited(seen: int, timeout_s: float) -> None:
        waits.set()
        monkeypatch.undo()
        threading.Thread(target=lambda: deferred.advance_groups([group])).start()
        wait_moved(seen, timeout_s)

    monkeypatch.setattr(deferred, "wait_for_batch", waited)
    line, costs = explained(session, "SELECT * FROM totals", "latest")
    assert line.startswith("deferred totals: wait")
    assert "wait 30000.000 ms" in costs
    assert rows_of(session, "SELECT * FROM totals", "latest") == [(1, 11, 11)]
    assert waits.is_set()


def test_without_any_reader_far_behind_nothing_is_bypassed(store: Store) -> None:
    store.run("INSERT INTO t VALUES (2, 1, 1)")
    decision = freshness_policy.choose_read_strategy(
        store.session(),
        store.db.catalog,
        (store.view("totals"),),
        {store.view("totals").id: store.db.position - 1},
        store.db.position,
        alone=True,
    )
    assert decision.strategy is ReadStrategy.CATCH_UP


def test_explain_says_why_a_cheaper_way_is_not_taken(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost_model, "UNMEASURED_CHANGE_S", 10.0)
    store.run("INSERT INTO t VALUES (2, 1, 1)")
    line, costs = explained(store.session(), "SELECT * FROM totals", "latest")
    assert line == "deferred totals: catch up (1 commit behind)"
    assert costs.endswith("; fewer than 1000 commits are caught up with, whatever it costs")
    monkeypatch.setattr(cost_model, "UNMEASURED_CHANGE_S", 0.0)
    _, costs = explained(store.session(), "SELECT * FROM totals", "latest")
    assert "fewer" not in costs


@pytest.mark.parametrize("freshness", ["any", BOUND])
def test_a_view_that_fails_on_a_row_says_so_to_every_reader_until_the_row_is_gone(
    store: Store, freshness: str
) -> None:
    store.run(
        "CREATE MATERIALIZED VIEW shares WITH (maintenance = 'deferred', refresh_every = '1 d')"
        " AS SELECT id, 100 / v AS share FROM t",
        "REFRESH MATERIALIZED VIEW shares",
    )
    reader = store.session()
    query = "SELECT * FROM shares WHERE id = 1"
    assert rows_of(reader, query, freshness) == [(1, 100)]
    store.run("INSERT INTO t VALUES (2, 1, 0)")
    assert rows_of(reader, query, freshness) == [(1, 100)]  # nobody has met it yet
    for _ in range(2):
        with pytest.raises(InvalidInput, match="division by zero"):
            store.run("REFRESH MATERIALIZED VIEW shares")
        with pytest.raises(InvalidInput, match="division by zero") as found:
            rows_of(reader, query, freshness)
        assert found.value.sqlstate == "22012"
        assert found.value.facts["view"] == "shares"
        assert rows_of(reader, "SELECT * FROM totals", freshness) == [(1, 1, 1)]
    store.run("DELETE FROM t WHERE id = 2", "REFRESH MATERIALIZED VIEW shares")
    assert rows_of(reader, query, freshness) == [(1, 100)]


SITUATIONS = {
    "alone": [],
    "in a transaction": ["BEGIN"],
    "in a transaction that has read": ["BEGIN", "SELECT * FROM t"],
    "with own changes": ["BEGIN", "INSERT INTO t VALUES (9, 1, 1)"],
    "with own changes of another table": ["BEGIN", "INSERT INTO other VALUES (1)"],
}


@pytest.mark.parametrize("freshness", ["session", "latest", "any", BOUND])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT c FROM totals",
        "SELECT c, (SELECT count(*) FROM t) FROM totals",
        "INSERT INTO other SELECT c + 100 FROM totals",
    ],
)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_explain_decides_as_the_statement_does(
    store: Store, monkeypatch: pytest.MonkeyPatch, situation: str, query: str, freshness: str
) -> None:
    store.run("CREATE TABLE other (id int PRIMARY KEY)", "INSERT INTO t VALUES (2, 1, 1)")
    session = store.session()
    for statement in SITUATIONS[situation]:
        session.execute(statement).convert_arrow_to_rows()
    store.run("INSERT INTO t VALUES (3, 1, 1)")
    decided: list[tuple[object, ...]] = []
    decide = freshness_policy.choose_read_strategy

    def noted(*arguments: Any, **options: Any) -> freshness_policy.ReadDecision:
        decided.append((arguments[3:], options))
        return decide(*arguments, **options)

    monkeypatch.setattr(freshness_policy, "choose_read_strategy", noted)
    explained(session, query, freshness)
    (would,) = decided
    session.execute(query, freshness=freshness).convert_arrow_to_rows()
    assert decided in ([would], [would, would])  # one view at any state takes no decision


def test_explain_says_that_own_changes_are_caught_up_with(store: Store) -> None:
    store.run("REFRESH MATERIALIZED VIEW totals")
    session = store.session()
    session.execute("BEGIN")
    session.execute("INSERT INTO t VALUES (9, 1, 1)")
    (line,) = explained(session, "SELECT c FROM totals", "session")
    assert line == "deferred totals: catch up (0 commits behind)"
    assert rows_of(session, "SELECT c FROM totals", "session") == [(2,)]
