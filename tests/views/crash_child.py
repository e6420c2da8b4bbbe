"""Writes to a store with views until it is killed: python -m tests.views.crash_child DIR ACKS."""

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


def create(store: Store) -> None:
    if store.db.catalog.find("t") is None:
        store.run("CREATE TABLE t (id int PRIMARY KEY, g int, v int)")
    for name, text in TEXTS.items():
        later = f"CREATE MATERIALIZED VIEW {name}_later WITH (maintenance = 'deferred') AS {text}"
        now = f"CREATE MATERIALIZED VIEW {name} AS {text}"
        for view, ddl in ((name, now), (f"{name}_later", later)):
            if store.db.catalog.find(view) is None:
                store.run(ddl)


def work(path: Path, acknowledged: Path) -> None:
    store = Store(path)
    create(store)
    (first,) = store.run("SELECT coalesce(max(id), 0) + 1 FROM t")[0]
    with acknowledged.open("a") as file:
        for number in range(first, first + ROWS):
            store.run(f"INSERT INTO t VALUES ({number}, {number % 7}, {number % 13})")
            if number % 5 == 0:
                store.run(f"UPDATE t SET g = {number % 3} WHERE id % 11 = {number % 11}")
            file.write(f"{number}\n")
            file.flush()
    store.close()


if __name__ == "__main__":
    work(Path(sys.argv[1]), Path(sys.argv[2]))
