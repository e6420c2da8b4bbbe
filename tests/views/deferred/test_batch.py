"""Maintenance groups: views of one schedule move together, and one does not stop the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from belvedere.codec import keyspace
from belvedere.codec.single_change_record import SingleChange, single_change
from belvedere.errors import Error, InvalidInput
from belvedere.txn.contracts import Reader
from belvedere.views.deferred import driver
from belvedere.views.maintain import log_window
from belvedere.views.maintain.maintainer import ViewMaintainer
from belvedere.views.state.watermarks import list_attached_group_views, read_watermark
from tests.views.sql import Store, opened, rows_of

TOTALS = "SELECT g, count(*) AS c, sum(v) AS s FROM t GROUP BY g"
QUOTIENTS = "SELECT id, 10 / v AS x FROM t"
DEADLINE_S = 60.0


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as made:
        made.run(
            "CREATE TABLE t (id int PRIMARY KEY, g text, v int)",
            "INSERT INTO t VALUES (1, 'a', 1), (2, 'a', 2), (3, NULL, 3)",
        )
        yield made


def deferred(store: Store, name: str, query: str, options: str = "") -> None:
    given = f"maintenance = 'deferred'{options}"
    store.run(f"CREATE MATERIALIZED VIEW {name} WITH ({given}) AS {query}")


def until(condition: Callable[[], bool]) -> None:
    """Wait for what a thread brings about."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.002)


def settled(store: Store) -> bool:
    """Whether every deferred view moves with its group."""
    with store.db.begin() as reader:
        views = store.db.views.list_deferred_views()
        return all(view in list_attached_group_views(reader, view.group) for view in views)


def marks(reader: Reader) -> list[bytes]:
    return [key for batch in reader.scan(*keyspace.watermark_range()) for key, _ in batch]


# -- together --------------------------------------------------------------------------------------


def test_views_of_one_schedule_have_one_watermark(store: Store) -> None:
    for number in range(5):
        deferred(store, f"v{number}", TOTALS)
    until(lambda: settled(store))
    groups = {view.group for view in store.db.views.list_deferred_views()}
    assert len(groups) == 1
    with store.db.begin() as reader:
        assert len(marks(reader)) == 1
    store.run("INSERT INTO t VALUES (4, 'b', 4)", "REFRESH MATERIALIZED VIEW v0")
    positions = {
        store.db.views.read_view_watermark(view) for view in store.db.views.list_deferred_views()
    }
    assert len(positions) == 1
    assert set(store.verified().values()) == {True}


def test_another_schedule_is_another_group(store: Store) -> None:
    deferred(store, "close", TOTALS)
    deferred(store, "loose", TOTALS, ", max_lag = '500 ms'")
    deferred(store, "also_loose", TOTALS, ", max_lag = '0.5 s'")
    deferred(store, "hourly", TOTALS, ", refresh_every = '1 h'")
    groups = {view.name: view.group for view in store.db.views.list_deferred_views()}
    assert groups["loose"] == groups["also_loose"]
    assert len(set(groups.values())) == 3


def test_a_schedule_is_written_like_an_interval_too(store: Store) -> None:
    lags = ("1 hour", "60 min", "1:00", "PT1H", "59 minutes 60 seconds")
    for number, lag in enumerate(lags):
        deferred(store, f"v{number}", TOTALS, f", max_lag = '{lag}'")
    deferred(store, "daily", TOTALS, ", refresh_every = '1 day'")
    groups = [view.group for view in store.db.views.list_deferred_views() if view.name != "daily"]
    assert len(set(groups)) == 1
    shown = store.run("SELECT schedule FROM belvedere.views WHERE name IN ('v0', 'daily')")
    assert sorted(shown) == [("max_lag 1 hour",), ("refresh_every 1 day",)]


@pytest.mark.parametrize("lag", ["5", "soon", "-1 hour", "1 hour ago", "0 s", "infinity"])
def test_a_schedule_that_is_no_length_of_time_is_refused(store: Store, lag: str) -> None:
    with pytest.raises(InvalidInput, match="invalid duration"):
        deferred(store, "v", TOTALS, f", max_lag = '{lag}'")


def test_a_schedule_longer_than_a_thread_can_wait_stops_nobody(store: Store) -> None:
    deferred(store, "never", TOTALS, ", refresh_every = '1000 years'")
    store.run("INSERT INTO t VALUES (4, 'b', 4)")
    deferred(store, "close", TOTALS)
    store.run("INSERT INTO t VALUES (5, 'b', 5)")
    until(lambda: store.db.views.read_view_watermark(store.view("close")) == store.db.position)


def test_a_group_with_a_period_moves_only_then_or_when_told(store: Store) -> None:
    deferred(store, "hourly", TOTALS, ", refresh_every = '1 h'")
    deferred(store, "close", TOTALS)
    before = store.db.views.read_view_watermark(store.view("hourly"))
    store.run("INSERT INTO t VALUES (4, 'b', 4)")
    until(lambda: store.db.views.read_view_watermark(store.view("close")) == store.db.position)
    assert store.db.views.read_view_watermark(store.view("hourly")) == before
    assert ("b", 1, 4) in store.run("SELECT * FROM hourly")
    assert ("b", 1, 4) not in rows_of(store.session(), "SELECT * FROM hourly", "any")
    store.run("REFRESH MATERIALIZED VIEW hourly")
    assert ("b", 1, 4) in rows_of(store.session(), "SELECT * FROM hourly", "any")


@pytest.mark.slow
def test_a_hundred_views_share_one_read_of_the_log(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(100):
        deferred(store, f"v{number}", TOTALS, ", refresh_every = '1 h'")
    group = store.view("v0").group
    store.db.views.deferred.advance_groups([group])
    for number in range(10, 20):
        store.run(f"INSERT INTO t VALUES ({number}, 'n', 1)")
    decoded: list[bytes] = []

    def counted(data: bytes) -> SingleChange | None:
        decoded.append(data)
        return single_change(data)

    monkeypatch.setattr(log_window, "single_change", counted)
    store.db.views.deferred.advance_groups([group])
    assert len(decoded) == len(set(decoded)) == 10
    assert {
        store.db.views.read_view_watermark(view) for view in store.db.views.list_deferred_views()
    } == {store.db.position}


def test_the_last_view_takes_the_watermark_with_it(store: Store) -> None:
    deferred(store, "a", TOTALS)
    deferred(store, "b", TOTALS)
    store.run("DROP MATERIALIZED VIEW a")
    with store.db.begin() as reader:
        assert marks(reader)
    store.run("DROP MATERIALIZED VIEW b")
    with store.db.begin() as reader:
        assert not marks(reader)


# -- one that fails --------------------------------------------------------------------------------


def test_a_failing_view_does_not_stop_its_group(store: Store) -> None:
    deferred(store, "bad", QUOTIENTS)
    deferred(store, "good", TOTALS)
    store.run("INSERT INTO t VALUES (4, 'b', 0)")
    until(lambda: store.db.views.read_view_watermark(store.view("good")) == store.db.position)
    until(lambda: store.view("bad").id in store.db.views.errors)
    assert store.db.views.read_view_watermark(store.view("bad")) < store.db.position
    with pytest.raises(Error) as found:
        store.run("SELECT * FROM bad")
    assert found.value.sqlstate == "22012"
    (shown,) = store.run("SELECT error FROM belvedere.views WHERE name = 'bad'")
    assert "division by zero" in shown[0]
    store.run("INSERT INTO t VALUES (5, 'b', 5)")
    until(lambda: store.db.views.read_view_watermark(store.view("good")) == store.db.position)


def test_a_view_that_failed_comes_back_when_the_row_is_gone(store: Store) -> None:
    deferred(store, "bad", QUOTIENTS)
    deferred(store, "good", TOTALS)
    store.run("INSERT INTO t VALUES (4, 'b', 0)")
    until(lambda: store.view("bad").id in store.db.views.errors)
    store.run("DELETE FROM t WHERE id = 4")
    until(lambda: not store.db.views.errors and settled(store))
    store.run("INSERT INTO t VALUES (5, 'b', 5)")
    assert (5, 2) in store.run("SELECT * FROM bad")
    assert set(store.verified().values()) == {True}


# -- one that is slow ------------------------------------------------------------------------------


def test_a_slow_view_does_not_hold_up_its_group(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stopped altogether; the others go on, and it comes back when it is let go."""
    deferred(store, "slow", "SELECT id, v FROM t")
    deferred(store, "quick", TOTALS)
    until(lambda: settled(store))
    stuck, let_go = threading.Event(), threading.Event()
    slow, writes = store.view("slow"), ViewMaintainer.writes
    key = keyspace.row_prefix(slow.id)

    def held(self: ViewMaintainer, changes: Any, reader: Any, writer: Any, **more: Any) -> None:
        if self._stored.start == key:
            stuck.set()
            assert let_go.wait(DEADLINE_S)
        writes(self, changes, reader, writer, **more)

    store.db.views.deferred.detach_slow_view(slow)
    monkeypatch.setattr(ViewMaintainer, "writes", held)
    store.run("INSERT INTO t VALUES (4, 'b', 4)")
    assert stuck.wait(DEADLINE_S)
    for number in range(5, 8):
        store.run(f"INSERT INTO t VALUES ({number}, 'b', 4)")
        until(lambda: arrived(store, "quick"))
    assert not arrived(store, "slow")
    let_go.set()
    until(lambda: arrived(store, "slow"))
    numbers = iter(range(100, 1_000_000))

    def comes_back() -> bool:
        """With the next changes, which it is quick with."""
        store.run(f"INSERT INTO t VALUES ({next(numbers)}, 'c', 1)")
        return not store.db.views.deferred.slow and settled(store)

    until(comes_back)
    assert set(store.verified().values()) == {True}


def arrived(store: Store, name: str) -> bool:
    """Whether a view shows every row of its table."""
    shown = rows_of(store.session(), f"SELECT * FROM {name}", "any")
    expected = len(store.run("SELECT * FROM t"))
    return (len(shown) if name == "slow" else sum(row[1] for row in shown)) == expected


def test_a_view_that_takes_most_of_a_long_batch_is_put_aside(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "SLOW_S", 0.0)
    for name in ("a", "b"):
        deferred(store, name, TOTALS, ", refresh_every = '1 h'")
    group = store.view("a").group
    store.db.views.deferred.advance_groups([group])
    store.run("INSERT INTO t VALUES (4, 'b', 4)")
    store.db.views.deferred.advance_groups([group])
    assert len(store.db.views.deferred.slow) == 1  # one of the two took more than the other
    store.run("INSERT INTO t VALUES (5, 'b', 5)")
    store.db.views.deferred.advance_groups([group])
    store.db.views.deferred.advance_slow_views()
    assert set(store.verified().values()) == {True}
    monkeypatch.setattr(driver, "SLOW_S", DEADLINE_S)
    store.run("INSERT INTO t VALUES (6, 'b', 5)")
    store.db.views.deferred.advance_slow_views()
    assert not store.db.views.deferred.slow
    store.db.views.deferred.advance_groups([group])
    assert settled(store)
    assert set(store.verified().values()) == {True}


# -- live switch -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "steps",
    [
        ("maintenance = 'immediate'", "maintenance = 'deferred'"),
        ("max_lag = '5 s'", "refresh_every = '1 h'", "max_lag = '10 ms'"),
        ("maintenance = 'immediate'", "maintenance = 'deferred', max_lag = '1 s'"),
    ],
)
def test_a_view_changes_its_schedule_without_a_gap(store: Store, steps: tuple[str, ...]) -> None:
    deferred(store, "v", TOTALS)
    deferred(store, "stays", TOTALS)
    expected = Counted()
    for number, step in enumerate(steps):
        store.run(f"INSERT INTO t VALUES ({10 + number}, 'n', 1)")
        store.run(f"ALTER MATERIALIZED VIEW v SET ({step})")
        store.run(f"INSERT INTO t VALUES ({20 + number}, 'n', 1)")
        expected.rows += 2
        assert ("n", expected.rows, expected.rows) in store.run("SELECT * FROM v")
        assert set(store.verified().values()) == {True}
    store.run("REFRESH MATERIALIZED VIEW v", "REFRESH MATERIALIZED VIEW stays")
    assert set(store.verified().values()) == {True}


class Counted:
    rows = 0


def test_a_view_joins_a_group_that_is_elsewhere(store: Store) -> None:
    """Two groups at different positions: the view is beside its new one until they meet."""
    deferred(store, "hourly", TOTALS, ", refresh_every = '1 h'")
    store.run("INSERT INTO t VALUES (4, 'b', 4)")
    deferred(store, "v", TOTALS)
    store.run("ALTER MATERIALIZED VIEW v SET (refresh_every = '1 h')")
    view = store.view("v")
    with store.db.begin() as reader:
        assert read_watermark(reader, view.id) is not None
    store.run("INSERT INTO t VALUES (5, 'b', 5)")
    assert ("b", 2, 9) in store.run("SELECT * FROM v")
    store.db.views.deferred.advance_groups([view.group])
    assert settled(store)
    assert set(store.verified().values()) == {True}


# -- options ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        "maintenance = 'deferred', max_lag = 'soon'",
        "maintenance = 'deferred', refresh_every = '0 s'",
        "maintenance = 'deferred', max_lag = '1 s', refresh_every = '1 s'",
        "max_lag = '1 s'",
        "keep_changes = 'many'",
    ],
)
def test_what_cannot_be_a_schedule_is_refused(store: Store, options: str) -> None:
    with pytest.raises(InvalidInput):
        store.run(f"CREATE MATERIALIZED VIEW v WITH ({options}) AS {TOTALS}")
    assert store.db.catalog.views == ()


def test_the_share_of_maintenance_is_a_setting_of_the_store(store: Store) -> None:
    store.run("SET maintenance_share = 0.25")
    deferred(store, "v", TOTALS)
    assert store.db.views.maintenance_share == 0.25
    store.run("INSERT INTO t VALUES (4, 'b', 4)")
    until(lambda: store.db.views.read_view_watermark(store.view("v")) == store.db.position)
    store.run("RESET maintenance_share")
    assert store.db.views.maintenance_share == 1.0
    with pytest.raises(InvalidInput):
        store.run("SET maintenance_share = 0")
