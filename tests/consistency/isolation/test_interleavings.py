"""Every path of Belvedere and PostgreSQL do the same, at every level, statement by statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pytest

from belvedere.txn.batch_atomic.commit import BatchCommit
from belvedere.txn.transaction.transaction import Transaction
from tests.consistency.isolation.compare import Findings, compare, is_by_design, open_engines
from tests.consistency.isolation.engines import SESSIONS, BelvedereEngine, open_belvedere
from tests.consistency.isolation.named_anomalies import CASES, make_named_script
from tests.consistency.isolation.scripts import LEVELS, READS, SINGLE_WRITES
from tests.consistency.isolation.stage import WAITS, Engine, Event, Stage, Step
from tests.oracle.postgres import server
from tests.txn.deadline import until

Open = Callable[..., tuple[dict[str, Engine], Engine]]

FAST = tuple(one.text for one in (READS[0], READS[1], READS[6], SINGLE_WRITES[0], SINGLE_WRITES[4]))


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    with ExitStack() as stack:
        yield lambda postgres, *paths: open_engines(
            stack, tmp_path, server() if postgres else None, paths
        )


def require_same(findings: Findings, scripts: int) -> None:
    assert not findings.differences, findings.differences[0]
    assert findings.scripts >= scripts
    print(findings.summary)


def test_two_thousand_interleavings_are_those_of_postgresql(opened: Open, seed: int) -> None:
    engines, judge = opened(True, "fast", "plain")
    findings = Findings()
    compare(engines, judge, [f"{seed}/{n}" for n in range(667)], findings)
    require_same(findings, 2_000)
    assert findings.waits > 300
    assert findings.retries > 100
    assert findings.deadlocks > 5
    assert findings.by_design < findings.scripts / 20
    assert findings.free_orders < findings.scripts / 100
    fast, plain = engines["fast"], engines["plain"]
    assert isinstance(fast, BelvedereEngine)
    assert isinstance(plain, BelvedereEngine)
    assert all(map(fast.uses_fast_path, FAST))
    assert not any(map(plain.uses_fast_path, FAST))


def test_queries_by_duckdb_see_what_the_others_see(opened: Open, seed: int) -> None:
    engines, judge = opened(False, "fast", "duckdb")
    findings = Findings()
    compare(engines, judge, [f"duckdb/{seed}/{n}" for n in range(12)], findings)
    require_same(findings, 36)


def test_a_store_that_syncs_every_commit_does_the_same(
    opened: Open, seed: int, tmp_path: Path
) -> None:
    engines, judge = opened(False, "fast")
    findings = Findings()
    with open_belvedere(tmp_path / "full", "fast", "full") as full:
        engines["full"] = full
        compare(engines, judge, [f"full/{seed}/{n}" for n in range(20)], findings)
    require_same(findings, 60)


def test_the_named_anomalies_are_those_of_postgresql(opened: Open) -> None:
    engines, _ = opened(True, "fast", "plain")
    with ThreadPoolExecutor(SESSIONS) as pool:
        for name in CASES:
            for level in LEVELS:
                script = make_named_script(name, level)
                told = {key: Stage(one, pool, script).act() for key, one in engines.items()}
                assert told["fast"] == told["plain"], (name, level)
                if level != "SERIALIZABLE":
                    assert told["fast"] == told["postgres"], (name, level)
                elif "skew (G2" in name or "Fekete" in name or "predicate (G2" in name:
                    assert all(_gives_way(script, events) for events in told.values()), name


def _gives_way(script: list[Step], events: list[Event]) -> bool:
    return any(event.answer == "40001" for event in events)


def test_postgresql_goes_on_with_the_rows_it_had_found(opened: Open) -> None:
    """The documented difference: a row that comes to match while a statement waits. PostgreSQL
    leaves it out, because its old version did not match; Belvedere sees it."""
    engines, _ = opened(True, "fast", "plain")
    script = [
        Step(0, "BEGIN ISOLATION LEVEL READ COMMITTED"),
        Step(0, "UPDATE t SET v = v + 10 WHERE grp > 0"),
        Step(1, "BEGIN ISOLATION LEVEL READ COMMITTED"),
        Step(1, "DELETE FROM t WHERE v = 20"),
        Step(0, "COMMIT"),
        Step(1, "COMMIT"),
        Step(2, "SELECT id, v FROM t ORDER BY id"),
    ]
    left = {}
    with ThreadPoolExecutor(SESSIONS) as pool:
        for name, engine in engines.items():
            left[name] = Stage(engine, pool, script).act()[-1].answer
    assert left["postgres"] == ((1, 20), (2, 30), (3, 40), (4, 50))
    assert left["fast"] == left["plain"] == ((2, 30), (3, 40), (4, 50))


def test_an_update_does_not_wait_for_a_row_that_is_not_there_yet(opened: Open) -> None:
    engines, _ = opened(True, "fast", "plain")
    update = Step(2, "UPDATE u SET v = v + ? WHERE id = ?", (1, 2))
    script = [
        update,  # its plan is kept
        Step(0, "BEGIN"),
        Step(0, "INSERT INTO u VALUES (?, ?)", (2, 7)),
        update,
        Step(0, "COMMIT"),
        Step(2, "SELECT v FROM u WHERE id = ?", (2,)),
    ]
    with ThreadPoolExecutor(SESSIONS) as pool:
        for name, engine in engines.items():
            told = [event.answer for event in Stage(engine, pool, script).act()]
            assert told == [(0,), (), (1,), (0,), (), ((7,),)], name


def test_waiting_for_a_stranger_is_not_waiting(opened: Open) -> None:
    engines, _ = opened(True)
    postgres = server()
    query = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted"
    with ThreadPoolExecutor(1) as pool:
        with postgres.connect() as stranger:
            stranger.execute("LOCK TABLE u")
            update = pool.submit(engines["postgres"].execute, 0, "UPDATE u SET v = v", ())
            until(lambda: postgres.run(query).rows == [(True,)])
            assert not engines["postgres"].is_waiting([0])
        assert update.result() == (1,)


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET v = v + 1 WHERE id >= 1 AND id < 3",
        "DELETE FROM t WHERE id >= 1 AND id < 3",
        "UPDATE t SET id = id + 10 WHERE id >= 1 AND id < 3",
    ],
)
def test_a_statement_that_lost_a_row_does_not_wait_for_the_next(opened: Open, text: str) -> None:
    engines, _ = opened(True, "fast", "plain")
    script = [
        Step(1, "BEGIN ISOLATION LEVEL REPEATABLE READ"),
        Step(1, "SELECT v FROM t WHERE id = ?", (3,)),
        Step(2, "UPDATE t SET v = v + ? WHERE id = ?", (1, 1)),
        Step(0, "BEGIN"),
        Step(0, "SELECT v FROM t WHERE id = ? FOR UPDATE", (2,)),
        Step(1, text),
        Step(0, "UPDATE t SET v = v + ? WHERE id = ?", (1, 1)),
    ]
    with ThreadPoolExecutor(SESSIONS) as pool:
        for name, engine in engines.items():
            told = [event.answer for event in Stage(engine, pool, script).act()]
            assert told == [(), ((30,),), (1,), (), ((20,),), "40001", (1,)], name


@pytest.mark.parametrize(
    "theirs",
    [
        [Event(2, 1, (1,)), Event(2, 2, "40P01")],
        [Event(2, 1, "40P01"), Event(2, 2, (0,))],
    ],
    ids=["it is the victim", "the other is"],
)
def test_what_waits_in_postgresql_only_may_close_a_circle_there(theirs: list[Event]) -> None:
    """Whoever is the victim, and though the survivor may answer first."""
    script = [
        Step(0, "UPDATE u SET v = v + ? WHERE id = ?", (1, 1)),
        Step(0, "UPDATE t SET v = v + ? WHERE grp = ?", (1, 1)),
        Step(1, "INSERT INTO u VALUES (?, ?) ON CONFLICT DO NOTHING", (1, 4)),
    ]
    before = [Event(0, 0, (1,)), Event(1, 1, WAITS)]
    mine = [*before, Event(2, 2, (0,))]
    assert is_by_design("REPEATABLE READ", script, mine, [*before, *theirs], 2)
    other = [*script[:2], Step(1, "UPDATE u SET v = v + ? WHERE id = ?", (1, 1))]
    assert not is_by_design("REPEATABLE READ", other, mine, [*before, *theirs], 2)


BUGS = {
    "snapshots are never renewed": (Transaction, "renew_snapshot"),
    "reads are not validated": (BatchCommit, "_validate_reads"),
    "changed rows are overwritten": (BatchCommit, "require_unchanged"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(opened: Open, seed: int, bug: str) -> None:
    engines, judge = opened(True, "fast")
    findings = Findings()
    where, name = BUGS[bug]
    with patch.object(where, name, lambda *_: None):
        for number in range(40):
            compare(engines, judge, [f"bug/{seed}/{number}"], findings)
            if findings.differences:
                return
    raise AssertionError(f"not found: {bug}")
