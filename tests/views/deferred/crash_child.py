"""Writes to a store with views until it is killed: python -m tests.views.deferred.crash_child DIR
ACKS."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.views.sql import Store

TEXTS = {
    "totals": "SELECT g, count(*) AS c, sum(v) AS s FROM t GROUP BY g",
    "extremes": "SELECT g, max(v) AS m FROM t GROUP BY g",
    "pairs": "SELECT a.id AS x, b.id AS y FROM t a JOIN t b ON a.g = b.g AND a.id < b.id",
    "lonely": "SELECT a.id FROM t a LEFT JOIN t b ON a.id = b.v WHERE b.id IS NULL",
}
ROWS = 60
OTHERS = {
    "kept": "maintenance = 'deferred', keep_changes = '1000000'",
    "kept_now": "keep_changes = '1000000'",
    "moving": "maintenance = 'deferred', refresh_every = '1 h'",
}
"""Views of `totals` with other options; the last one changes its schedule all the time."""

SCHEDULES = (
    "maintenance = 'deferred', max_lag = '5 s'",
    "maintenance = 'immediate'",
    "maintenance = 'deferred'",
    "maintenance = 'deferred', refresh_every = '1 h'",
)
"""Each whole, since a kill may leave out the one before it."""

TIERS = ("python", "duckdb", "refill")
"""Who works out the batches, in turn."""


def create(store: Store) -> None:
    if store.db.catalog.find_relation("t") is None:
        store.run("CREATE TABLE t (id int PRIMARY KEY, g int, v int)")
    for name, options in OTHERS.items():
        if store.db.catalog.find_relation(name) is None:
            store.run(f"CREATE MATERIALIZED VIEW {name} WITH ({options}) AS {TEXTS['totals']}")
    for name, text in TEXTS.items():
        later = f"CREATE MATERIALIZED VIEW {name}_later WITH (maintenance = 'deferred') AS {text}"
        now = f"CREATE MATERIALIZED VIEW {name} AS {text}"
        for view, ddl in ((name, now), (f"{name}_later", later)):
            if store.db.catalog.find_relation(view) is None:
                store.run(ddl)


def work(path: Path, acknowledged: Path) -> None:
    store = Store(path)
    create(store)
    (first,) = store.run("SELECT coalesce(max(id), 0) + 1 FROM t")[0]
    with acknowledged.open("a") as file:
        for number in range(first, first + ROWS):
            store.run(f"INSERT INTO t VALUES ({number}, {number % 7}, {number % 13})")
            store.run(f"SET maintenance_tier = {TIERS[number // 4 % len(TIERS)]}")
            if number % 5 == 0:
                store.run(f"UPDATE t SET g = {number % 3} WHERE id % 11 = {number % 11}")
            if (
                number % 4
            ):  # so that there are more batches than kills count, however quick rows are
                store.run("REFRESH MATERIALIZED VIEW totals_later")
            if number % 7 == 0:
                options = SCHEDULES[number // 7 % len(SCHEDULES)]
                store.run(f"ALTER MATERIALIZED VIEW moving SET ({options})")
            file.write(f"{number}\n")
            file.flush()
    store.close()


if __name__ == "__main__":
    work(Path(sys.argv[1]), Path(sys.argv[2]))
