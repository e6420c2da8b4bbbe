"""The stream of a view's own changes: adding it up gives the view, from any position on."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

import belvedere
from belvedere.catalog.model import Maintenance
from belvedere.catalog.view_options import parse_options
from belvedere.errors import InvalidInput, Unavailable
from belvedere.session.materialized.change_stream import Subscription, ViewChange
from belvedere.session.materialized.subscription import open_view_subscription
from belvedere.views.registry.transitions import edit_view_maintenance
from tests.views.sql import Store, opened, rows_of

TOTALS = "SELECT g, count(*) AS c, sum(v) AS s FROM t GROUP BY g"
VIEWS = {
    "totals": TOTALS,
    "often": "SELECT g FROM t GROUP BY g HAVING count(*) > 1",
    "bag": "SELECT g, v FROM t WHERE v > 1",
    "whole": "SELECT count(*) AS c, max(v) AS m FROM t",
    "pairs": "SELECT a.id AS x, b.id AS y FROM t a JOIN t b ON a.g = b.g",
}


def made(store: Store, maintenance: str, names: Iterable[str] = ("totals",)) -> None:
    store.run("CREATE TABLE t (id int PRIMARY KEY, g int, v int)", "INSERT INTO t VALUES (1, 1, 1)")
    for name in names:
        store.run(
            f"CREATE MATERIALIZED VIEW {name} WITH (maintenance = '{maintenance}',"
            f" keep_changes = '1000') AS {VIEWS[name]}"
        )


def refreshed(store: Store) -> None:
    for view in store.db.views.list_deferred_views():
        store.db.views.catch_up_view(view)


def plain(changes: Iterable[ViewChange]) -> list[tuple[object, int]]:
    return [(row, weight) for _, row, weight in changes]


def change(rng: random.Random, store: Store) -> None:
    id_, g, v = rng.randrange(1, 9), rng.randrange(3), rng.randrange(4)
    store.run(f"DELETE FROM t WHERE id = {id_}")
    if rng.random() < 0.7:
        store.run(f"INSERT INTO t VALUES ({id_}, {g}, {v})")


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
def test_rows_come_and_go_with_weights_and_positions(maintenance: str) -> None:
    with opened() as store:
        made(store, maintenance)
        changes = open_view_subscription(store.session(), "totals", timeout_s=0)
        store.run("INSERT INTO t VALUES (2, 1, 5)")
        refreshed(store)
        at = store.db.position
        assert list(changes) == [(at, (1, 1, 1), -1), (at, (1, 2, 6), 1)]
        store.run("UPDATE t SET v = v WHERE id = 1", "DELETE FROM t")
        refreshed(store)
        assert plain(changes) == [((1, 2, 6), -1)]
        assert changes.position == store.db.position


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
@pytest.mark.parametrize("name", VIEWS)
def test_the_view_then_is_the_view_now_less_its_changes(
    name: str, maintenance: str, rng: random.Random
) -> None:
    """From every position that was noted, the changes since make the view of then that of now."""
    with opened() as store:
        made(store, maintenance, (name,))
        seen: list[tuple[int, Counter[object]]] = []
        for number in range(40):
            change(rng, store)
            if number % 5 == 0:
                refreshed(store)
                at = store.db.views.read_view_watermark(store.view(name))
                seen.append((at, Counter(store.run(f"SELECT * FROM {name}"))))
        refreshed(store)
        now = Counter(store.run(f"SELECT * FROM {name}"))
        for position, then in seen:
            for _, row, weight in open_view_subscription(store.session(), name, position, 0):
                then[row] += weight
            assert +then == now
            assert not -then


def test_a_subscriber_goes_on_after_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path / "shop.db") as store:
        made(store, "immediate", ("totals", "bag"))
        first = open_view_subscription(store.session(), "bag", timeout_s=0)
        store.run("INSERT INTO t VALUES (2, 1, 5)")
        assert plain(first) == [((1, 5), 1)]
        position = first.position
        store.run("INSERT INTO t VALUES (3, 1, 7)")
    with opened(tmp_path / "shop.db") as store:
        store.run("INSERT INTO t VALUES (4, 1, 9)")
        later = open_view_subscription(store.session(), "bag", position, 0)
        assert plain(later) == [((1, 7), 1), ((1, 9), 1)]


def test_a_position_that_is_forgotten_is_refused() -> None:
    with opened() as store:
        made(store, "immediate")
        store.run("ALTER MATERIALIZED VIEW totals SET (keep_changes = '3')")
        old = open_view_subscription(store.session(), "totals", timeout_s=0)
        for number in range(10, 20):
            store.run(f"INSERT INTO t VALUES ({number}, 1, 1)")
        store.db.views.trim_changefeeds()
        with pytest.raises(InvalidInput) as found:
            list(old)
        assert found.value.facts["first"] == store.db.position - 3
        with pytest.raises(InvalidInput):
            open_view_subscription(store.session(), "totals", 1)
        kept = open_view_subscription(store.session(), "totals", store.db.position - 3, 0)
        assert len({change.position for change in kept}) == 3


def test_changes_are_kept_from_the_first_subscription_on() -> None:
    with opened() as store:
        store.run("CREATE TABLE t (id int PRIMARY KEY, g int, v int)")
        store.run(f"CREATE MATERIALIZED VIEW totals AS {TOTALS}", "INSERT INTO t VALUES (1, 1, 1)")
        changes = open_view_subscription(store.session(), "totals", timeout_s=0)
        store.run("INSERT INTO t VALUES (2, 2, 2)")
        assert plain(changes) == [((2, 1, 2), 1)]
        store.run("ALTER MATERIALIZED VIEW totals SET (keep_changes = 'off')")
        with pytest.raises(Unavailable):
            changes.poll()


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
def test_a_switch_and_a_repair_are_in_the_stream(maintenance: str, rng: random.Random) -> None:
    other = {"immediate": "deferred", "deferred": "immediate"}[maintenance]
    with opened() as store:
        made(store, maintenance)
        changes = open_view_subscription(store.session(), "totals", timeout_s=0)
        then = Counter(store.run("SELECT * FROM totals"))
        for step in (other, maintenance, other):
            change(rng, store)
            store.run(f"ALTER MATERIALIZED VIEW totals SET (maintenance = '{step}')")
            change(rng, store)
        store.run("REPAIR MATERIALIZED VIEW totals")
        refreshed(store)
        for _, row, weight in changes:
            then[row] += weight
        assert +then == Counter(store.run("SELECT * FROM totals"))


def test_what_a_switch_applies_is_in_the_stream() -> None:
    """The commit that makes the view immediate finds changes in the log that nobody applied."""
    with opened() as store:
        made(store, "deferred")
        store.run("ALTER MATERIALIZED VIEW totals SET (refresh_every = '1 d')")
        store.run("REFRESH MATERIALIZED VIEW totals")
        changes, view = (
            open_view_subscription(store.session(), "totals", timeout_s=0),
            store.view("totals"),
        )
        store.run("INSERT INTO t VALUES (2, 2, 2)")
        options = parse_options({"keep_changes": "1000"})
        store.db.change_schema(
            lambda edit: edit_view_maintenance(edit, view, Maintenance.IMMEDIATE, options)
        )
        assert plain(changes) == [((2, 1, 2), 1)]


def test_a_dropped_view_keeps_no_changes() -> None:
    with opened() as store:
        made(store, "immediate")
        changes = open_view_subscription(store.session(), "totals", timeout_s=0)
        store.run("INSERT INTO t VALUES (2, 2, 2)", "DROP MATERIALIZED VIEW totals")
        with pytest.raises(Unavailable):
            changes.poll()
        with store.db.begin() as reader:
            assert not list(reader.scan(b"\x04", b"\x05"))


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
def test_a_waiting_subscriber_is_woken(maintenance: str) -> None:
    with opened() as store:
        made(store, maintenance)
        changes = open_view_subscription(store.session(), "totals", timeout_s=60)
        found: list[ViewChange] = []
        thread = threading.Thread(target=lambda: found.append(next(changes)))
        thread.start()
        store.run("INSERT INTO t VALUES (2, 2, 2)")
        thread.join(60)
        assert plain(found) == [((2, 1, 2), 1)]


def test_closing_ends_the_wait() -> None:
    with opened() as store:
        made(store, "immediate")
        changes: Subscription = open_view_subscription(store.session(), "totals")
        thread = threading.Thread(target=lambda: list(changes))
        thread.start()
        changes.close()
        thread.join(60)
        assert not thread.is_alive()


def test_the_door_shows_its_own_errors() -> None:
    with belvedere.connect(":memory:") as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY, g int, v int)")
        con.commit()
        con.execute(f"CREATE MATERIALIZED VIEW totals AS {TOTALS}")
        with con.subscribe("totals", timeout_s=0) as changes:
            con.execute("INSERT INTO t VALUES (1, 1, 1)")
            assert list(changes) == []
            con.commit()
            assert [tuple(change)[1:] for change in changes] == [((1, 1, 1), 1)]
        with pytest.raises(belvedere.ProgrammingError):
            con.subscribe("nothing")
        with pytest.raises(belvedere.Error):
            con.subscribe("totals", 0)


def test_reading_beside_the_stream_is_at_one_position() -> None:
    """The usual start: read the view, then its changes from that position on."""
    with opened() as store:
        made(store, "immediate")
        session = store.session()
        session.execute("BEGIN")
        then = Counter(rows_of(session, "SELECT * FROM totals"))
        assert session.transactions.open is not None
        position = session.transactions.open.position
        session.execute("ROLLBACK")
        store.run("INSERT INTO t VALUES (2, 1, 5)")
        for _, row, weight in open_view_subscription(session, "totals", position, 0):
            then[row] += weight
        assert +then == Counter(store.run("SELECT * FROM totals"))


FORMS = {
    "local groups": ("placement = 'local'", TOTALS),
    "a local whole": ("placement = 'local'", "SELECT count(*) AS c, sum(v) AS s FROM t"),
    "local rows": ("placement = 'local'", "SELECT g, v FROM t WHERE v > 0"),
    "a co-located join": (
        "join = 'colocated'",
        "SELECT t.id, t.v, u.name FROM t JOIN u ON t.g = u.id",
    ),
    "a co-located self-join": ("join = 'colocated'", VIEWS["pairs"]),
}


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
@pytest.mark.parametrize("form", FORMS)
def test_rows_that_are_made_of_several_entries_come_and_go_as_wholes(
    rng: random.Random, form: str, maintenance: str
) -> None:
    option, query = FORMS[form]
    with opened() as store:
        store.run(
            "CREATE TABLE t (id int PRIMARY KEY, g int, v int)"
            " WITH (partitions = 3, keys = 'hashed')",
            "CREATE TABLE u (id int PRIMARY KEY, name text)",
            "INSERT INTO t VALUES (1, 1, 1), (2, 1, 2), (3, 2, 3)",
            "INSERT INTO u VALUES (0, 'none'), (1, 'one')",
            f"CREATE MATERIALIZED VIEW formed WITH (maintenance = '{maintenance}',"
            f" keep_changes = '1000', {option}) AS {query}",
        )
        refreshed(store)
        shown = Counter(store.run("SELECT * FROM formed"))
        changes = open_view_subscription(store.session(), "formed", timeout_s=0)
        for step in range(12):
            if step % 4 == 3:
                store.run(f"UPDATE u SET name = 'name {step}' WHERE id = {rng.randrange(3)}")
            else:
                change(rng, store)
            refreshed(store)
            if rng.random() < 0.6:
                for _, row, weight in changes.poll():
                    shown[row] += weight
                assert not min(shown.values(), default=0) < 0
                assert +shown == Counter(store.run("SELECT * FROM formed"))
