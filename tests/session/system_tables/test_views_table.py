"""belvedere.views: every column says what is so."""

from __future__ import annotations

from typing import Any

from belvedere.views.state import claims
from tests.views.deferred.test_batch import until
from tests.views.sql import Store, opened

TOTALS = "SELECT g, count(*) AS c FROM t GROUP BY g HAVING count(*) > 1"


def made(store: Store) -> None:
    store.run("CREATE TABLE t (id int PRIMARY KEY, g int, v int)")
    store.run(f"CREATE MATERIALIZED VIEW now AS {TOTALS}")
    store.run(f"CREATE MATERIALIZED VIEW later WITH (maintenance = 'deferred') AS {TOTALS}")
    store.run(
        "CREATE MATERIALIZED VIEW daily WITH (maintenance = 'deferred', refresh_every = '1 d')"
        " AS SELECT a.id FROM t a JOIN t b ON a.g = b.v"
    )


def column(store: Store, name: str) -> dict[str, Any]:
    return dict(store.run(f"SELECT name, {name} FROM belvedere.views"))


def test_where_views_are_and_how_many_commits_they_lack() -> None:
    with opened() as store:
        made(store)
        store.run("REFRESH MATERIALIZED VIEW daily")
        at = store.db.views.read_view_watermark(store.view("daily"))
        store.run("INSERT INTO t VALUES (1, 1, 1), (2, 1, 1), (3, 2, 1)")
        store.run("INSERT INTO t VALUES (4, 2, 1)")
        assert column(store, "state").keys() == {"now", "later", "daily"}
        assert column(store, "schedule") == {
            "now": None,
            "later": "close",
            "daily": "refresh_every 1 d",
        }
        assert column(store, "position")["daily"] == at
        assert column(store, "backlog")["daily"] == 2
        assert column(store, "backlog")["now"] == 0
        assert column(store, "lag_ms")["daily"] > 0
        assert column(store, "lag_ms")["now"] == 0
        store.run("REFRESH MATERIALIZED VIEW daily")
        assert column(store, "backlog")["daily"] == 0
        assert column(store, "lag_ms")["daily"] == 0
        assert column(store, "lag_p99_ms")["daily"] >= column(store, "lag_p50_ms")["daily"] >= 0


def test_what_views_hold_and_what_changes_cost() -> None:
    with opened() as store:
        made(store)
        store.run("INSERT INTO t VALUES (1, 1, 1), (2, 1, 1), (3, 2, 1)")
        store.run("REFRESH MATERIALIZED VIEW later", "REFRESH MATERIALIZED VIEW daily")
        until(lambda: column(store, "changes")["later"] > 0)
        assert column(store, "rows") == {"now": 1, "later": 1, "daily": 6}
        assert column(store, "entries")["now"] == 2
        assert min(column(store, "bytes").values()) > 0
        assert all(cost > 0 for cost in column(store, "cost_us").values())
        assert column(store, "changes")["daily"] == 3
        assert column(store, "auxiliaries")["now"] is None
        assert "t (g)" in column(store, "auxiliaries")["daily"]


def test_what_verify_said_and_who_maintains() -> None:
    with opened() as store:
        made(store)
        assert column(store, "last_verify")["now"] is None
        (verified,) = store.run("VERIFY MATERIALIZED VIEW now")
        assert column(store, "last_verify")["now"] == f"ok at {verified[1]}"
        assert column(store, "owner")["daily"] is None
        claims.take_claim(store.db.commits, store.view("daily").group, "spark")
        assert column(store, "owner")["daily"] == "spark"
        assert set(column(store, "error").values()) == {None}


def test_hidden_indexes_take_no_names_from_the_user() -> None:
    with opened() as store:
        check_names_of_hidden_indexes(store)


def check_names_of_hidden_indexes(store: Store) -> None:
    store.run("CREATE TABLE parents (id int PRIMARY KEY)")
    store.run("CREATE TABLE children (id int PRIMARY KEY, parent int REFERENCES parents, g int)")
    store.run("CREATE TABLE others (id int PRIMARY KEY, g int)")
    store.run(
        "CREATE MATERIALIZED VIEW joined AS SELECT c.id, o.id AS other"
        " FROM children c JOIN others o ON c.g = o.g"
    )
    hidden = [i for i in store.db.catalog.objects.values() if getattr(i, "hidden", False)]
    assert len(hidden) == 3
    for name, column in (("children_parent_idx", "parent"), ("children_g_idx", "g")):
        store.run(f"CREATE INDEX {name} ON children ({column})")
        store.run(f"CREATE INDEX ON children ({column})")
        assert store.db.catalog.find_relation(f"{name}1") is not None
        assert store.db.catalog.find_relation(f"{name}2") is None
