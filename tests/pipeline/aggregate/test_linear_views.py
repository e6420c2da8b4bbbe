"""Changes added up in Arrow columns give what the one maintenance function gives, bit by bit."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from belvedere.catalog.model import View
from belvedere.errors import Unsupported
from belvedere.execution.spark.operators import TaskFailure
from belvedere.interfaces.dbapi import Connection
from belvedere.pipeline.aggregate.additions import Sums, sum_encoded_additions
from belvedere.pipeline.aggregate.linear_views import LinearDeltaTask, try_compile_linear_view
from belvedere.pipeline.maintain.batch import EngineDeltaTask
from belvedere.pipeline.store.client import Store
from belvedere.pipeline.store.compiled_views import get_compiled_views
from belvedere.pipeline.store.tables import fetch_encoded_catalog
from tests.pipeline.definitions import DEFINITIONS

TABLE = """
CREATE TABLE t (
    id bigint PRIMARY KEY, small smallint, word text, flag boolean, big bigint,
    price numeric(12, 3), exact numeric(30, 2), free numeric, d double precision, r real,
    day date, moment timestamp, tag uuid)
"""
IN_COLUMNS = {
    "all_rows": "SELECT count(*) AS n, sum(big) AS b, sum(d) AS d FROM t",
    "by_word": "SELECT word, count(*) AS n, count(price) AS p, sum(price) AS s, avg(price) AS a"
    " FROM t GROUP BY word",
    "floats": "SELECT small, sum(d) AS d, avg(d) AS a, sum(r) AS r, count(d) AS n"
    " FROM t GROUP BY small",
    "integers": "SELECT flag, word, sum(big) AS b, avg(small) AS s FROM t GROUP BY flag, word",
    "chosen": "SELECT day, count(*) FILTER (WHERE flag) AS n, sum(price) FILTER (WHERE big > 0) AS"
    " p FROM t WHERE small > -5 AND word <> 'none' GROUP BY day",
    "bag": "SELECT word, tag, moment, price FROM t WHERE flag",
    "computed": "SELECT upper(word) AS w, big % 3 AS m, sum(abs(small)) AS s FROM t GROUP BY 1, 2",
    "twice": "SELECT word, small FROM t UNION ALL SELECT upper(word), small + 1 FROM t WHERE flag",
}
BY_ROW = {
    "digits": "SELECT free, count(*) AS n FROM t GROUP BY free",
    "wide": "SELECT word, sum(exact) AS e FROM t GROUP BY word",
    "spread": "SELECT word, variance(small) AS v FROM t GROUP BY word",
    "float_groups": "SELECT d, count(*) AS n FROM t GROUP BY d",
    "largest": "SELECT word, max(big) AS m FROM t GROUP BY word",
}
NUMBERS = (0.0, -0.0, 0.1, -3.5, 5e-324, -2.5e-310, 1.7e308, 1e16, float("inf"), float("nan"))
WORDS = (None, "none", "", "a", "ab", "\u00fc")


@pytest.fixture
def table(connection: Connection) -> Connection:
    connection.execute(TABLE)
    for name, query in (IN_COLUMNS | BY_ROW).items():
        connection.execute(
            f"CREATE MATERIALIZED VIEW {name}"
            f" WITH (maintenance = 'deferred', max_lag = '1 h') AS {query}"
        )
    return connection


def random_row(rng: random.Random, key: int) -> tuple[Any, ...]:
    maybe = lambda value: None if rng.random() < 0.15 else value  # noqa: E731
    return (
        key,
        maybe(rng.randint(-6, 6)),
        rng.choice(WORDS),
        maybe(rng.random() < 0.5),
        maybe(rng.choice([0, 1, -1, 2**63 - 1, -(2**63), 7])),
        maybe(str(rng.choice([0, 1, -999999999, 999999999]) + rng.randint(0, 999) / 1000)),
        maybe(str(rng.randint(-(10**27), 10**27))),
        maybe(rng.choice(["1.0", "1.00", "-2", "0"])),
        maybe(rng.choice(NUMBERS)),
        maybe(rng.choice([0.1, -1.5, 3e38])),
        maybe(f"2026-01-{rng.randint(1, 4):02}"),
        maybe(f"2026-01-01 00:00:{rng.randint(10, 12)}.000001"),
        maybe(f"00000000-0000-0000-0000-00000000000{rng.randint(0, 3)}"),
    )


def change(connection: Connection, rng: random.Random, steps: int) -> None:
    held: set[int] = set()
    for key in range(steps):
        row = random_row(rng, key)
        marks = ", ".join("?" * len(row))
        connection.execute(f"INSERT INTO t VALUES ({marks})", row)
        held.add(key)
        if key % 3 == 1:
            gone = rng.choice(sorted(held))
            connection.execute("DELETE FROM t WHERE id = ?", (gone,))
            held.discard(gone)
        if key % 4 == 1 and held:
            other = random_row(rng, rng.choice(sorted(held)))
            connection.execute(
                "UPDATE t SET small = ?, word = ?, flag = ?, big = ?, price = ?, exact = ?,"
                " free = ?, d = ?, r = ?, day = ?, moment = ?, tag = ? WHERE id = ?",
                (*other[1:], other[0]),
            )


def numbered(count: int) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_arrays([pa.array([i])], names=["id"]) for i in range(count)]


def both_ways(shop: Path, name: str, start: int, tasks: int = 3) -> tuple[Sums, Sums]:
    """What the log after `start` adds to a view, in columns and by the maintenance function."""
    store = Store.from_url(str(shop))
    lease = store.take_position_lease()
    objects, end = fetch_encoded_catalog(store, lease), lease.position
    store.release_position_lease(lease)
    known = get_compiled_views(objects, DEFINITIONS)
    view = known.catalog.require_relation(View, name)
    assert try_compile_linear_view(known, view) is not None, name
    columns = LinearDeltaTask(store, objects, DEFINITIONS, start, end, tasks, (view.id,))
    rows = EngineDeltaTask(store, start, end, (view.id,), objects, DEFINITIONS, tasks, None)
    found = [sum_encoded_additions(step(iter(numbered(tasks)))).sums for step in (columns, rows)]
    kept = [{key: one for key, one in sums.items() if any(one[1])} for sums in found]
    return kept[0], kept[1]


@pytest.mark.parametrize("seed", [1, 2])
def test_columns_add_what_the_maintenance_function_adds(
    shop: Path, table: Connection, seed: int
) -> None:
    start = Store.from_url(str(shop)).position()
    change(table, random.Random(seed), 120)
    for name in IN_COLUMNS:
        columns, rows = both_ways(shop, name, start)
        assert columns == rows, f"seed {seed}: {name}"
        assert columns, name


def test_what_must_be_seen_row_by_row_is_not_added_in_columns(
    shop: Path, table: Connection
) -> None:
    store = Store.from_url(str(shop))
    lease = store.take_position_lease()
    known = get_compiled_views(fetch_encoded_catalog(store, lease), DEFINITIONS)
    store.release_position_lease(lease)
    for name in BY_ROW:
        view = known.catalog.require_relation(View, name)
        assert try_compile_linear_view(known, view) is None, name


def test_a_number_that_has_no_column_is_refused_by_name(shop: Path, table: Connection) -> None:
    """The batch is then made by the maintenance function."""
    start = Store.from_url(str(shop)).position()
    table.execute("INSERT INTO t (id, price) VALUES (1, 'NaN')")
    with pytest.raises(TaskFailure, match=r"belvedere 0A000.*NaN"):
        both_ways(shop, "by_word", start)
    assert Unsupported("x").sqlstate == "0A000"
