"""Windows are taken by columns as the view after a batch minus the view before it, which gives the
state that rows give."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from belvedere.views.maintain import duckdb_batch
from tests.views.backfill.test_column_backfill import load_tables
from tests.views.cost.test_batches_by_columns import create_two, refresh_both
from tests.views.cost.test_tier_selector import last_batch
from tests.views.sql import Store, opened

WINDOWS = {
    "row_number": "SELECT id, g, row_number() OVER (PARTITION BY g ORDER BY v, id) AS p FROM t",
    "ties": "SELECT id, row_number() OVER (PARTITION BY g ORDER BY v) AS p FROM t",
    "equal rows": "SELECT g, rank() OVER (PARTITION BY g ORDER BY v) AS p FROM t",
    "text": "SELECT id, s, count(*) OVER (PARTITION BY s) AS c FROM t",
    "running sum": "SELECT id, count(v) OVER (PARTITION BY g ORDER BY id) AS c FROM t WHERE v > 1",
    "by expression": "SELECT id, rank() OVER (PARTITION BY g % 3 ORDER BY v, id) AS p FROM t",
    "by two": "SELECT id, rank() OVER (PARTITION BY g, s ORDER BY v, id) AS p FROM t",
    "no partition": "SELECT id, row_number() OVER (ORDER BY v, id) AS p FROM t",
    "no key": "SELECT v, dense_rank() OVER (PARTITION BY g ORDER BY v) AS p FROM t",
    "of a join": "SELECT t.id, d.name, rank() OVER (PARTITION BY d.name ORDER BY t.v, t.id) AS p"
    " FROM t JOIN d ON d.id = t.g",
    "of a union": "SELECT x, rank() OVER (PARTITION BY x % 2 ORDER BY x) AS p"
    " FROM (SELECT g AS x FROM t UNION ALL SELECT id FROM d) u",
    "kept rows": "SELECT id, p + 1 AS q FROM (SELECT id, row_number() OVER"
    " (PARTITION BY g ORDER BY v, id) AS p FROM t) x WHERE p > 3",
    "counted places": "SELECT p, count(*) AS c FROM (SELECT row_number() OVER"
    " (PARTITION BY g ORDER BY v, id) AS p FROM t) x GROUP BY p",
}
CHANGES = (
    "UPDATE t SET v = v + 1, g = 2 WHERE id % 5 = 0",
    "DELETE FROM t WHERE id < 20",
    "INSERT INTO t (id, g, v, s) VALUES (1000, 2, 6, 'new'), (1001, 77, 1, NULL),"
    " (1002, NULL, 1, 'x')",
    "UPDATE t SET g = NULL WHERE id % 7 = 0",
    "UPDATE d SET name = 'x' WHERE id = 2",
    "DELETE FROM t",
    "INSERT INTO t (id, g, v) VALUES (1, 1, 1)",
)


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as made:
        load_tables(made, 120)
        yield made


def refresh_by_difference(store: Store, name: str = "b") -> None:
    refresh_both(store)
    assert last_batch(store, name).endswith("by columns")


@pytest.mark.parametrize("shape", WINDOWS)
def test_the_state_is_that_of_changes_by_rows(store: Store, shape: str) -> None:
    create_two(store, WINDOWS[shape])
    for change in CHANGES:
        store.run(change)
        refresh_by_difference(store)
    assert set(store.verified().values()) == {True}


@pytest.mark.parametrize("shape", ["row_number", "equal rows", "no key"])
def test_rows_that_change_several_times_count_once(store: Store, shape: str) -> None:
    create_two(store, WINDOWS[shape])
    store.run(
        "UPDATE t SET v = v + 1 WHERE id < 50",
        "UPDATE t SET g = 1, v = v - 1 WHERE id < 60",
        "DELETE FROM t WHERE id < 9",
        "INSERT INTO t (id, g, v) VALUES (3, 1, 4), (2000, 1, 1)",
        "DELETE FROM t WHERE id = 2000",
        "UPDATE t SET v = v + 1 WHERE id = 70",
        "UPDATE t SET v = v - 1 WHERE id = 70",
    )
    refresh_by_difference(store)
    assert set(store.verified().values()) == {True}


def test_two_tables_that_change_together(store: Store) -> None:
    create_two(store, WINDOWS["of a join"])
    store.run("UPDATE t SET g = 3 WHERE id < 9", "UPDATE d SET name = 'z' WHERE id = 3")
    refresh_by_difference(store)
    assert set(store.verified().values()) == {True}


def test_other_partitions_are_neither_computed_nor_written(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    compute = duckdb_batch.DuckdbBatchEvaluator.compute_delta_columns

    def watch(*given: object) -> object:
        found = compute(*given)  # type: ignore[arg-type]
        seen.append(found.num_rows)  # type: ignore[union-attr]
        return found

    monkeypatch.setattr(duckdb_batch.DuckdbBatchEvaluator, "compute_delta_columns", watch)
    create_two(store, WINDOWS["row_number"])
    (last,) = store.run("SELECT id FROM t WHERE g = 2 ORDER BY v DESC, id DESC LIMIT 1")
    store.run(f"DELETE FROM t WHERE id = {last[0]}")
    refresh_by_difference(store)
    assert seen == [1]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, n, rank() OVER (PARTITION BY g ORDER BY n) AS p FROM t",
        "SELECT id, rank() OVER (PARTITION BY f ORDER BY v) AS p FROM t",
        "SELECT id, lag(v) OVER (PARTITION BY g ORDER BY f, id) AS p FROM t",
    ],
    ids=["shown", "partition", "order"],
)
def test_values_with_several_representations_go_by_rows(store: Store, query: str) -> None:
    create_two(store, query)
    store.run(CHANGES[0])
    refresh_both(store)
    assert not last_batch(store, "b").endswith("by columns")


def make_window(rng: random.Random) -> str:
    """A random window over the columns that a difference takes."""
    call = rng.choice(
        [
            *("row_number()", "rank()", "dense_rank()", "count(*)", "count(v)", "sum(v)"),
            *("min(v)", "max(day)", "lag(v)", "lead(s)", "lag(id, 2)"),
        ]
    )
    columns = ["id", "g", "v", "s", "day"]
    by = rng.sample(["g", "s", "day", "g % 3", "v"], rng.randrange(3))
    order = [one + rng.choice(["", " DESC"]) for one in rng.sample(columns, rng.randrange(1, 4))]
    over = f"PARTITION BY {', '.join(by)} " if by else ""
    over += f"ORDER BY {', '.join(order)}"
    if call.startswith(("count", "sum", "min", "max")) and rng.random() < 0.5:
        over += f" ROWS BETWEEN {rng.randrange(4)} PRECEDING AND UNBOUNDED FOLLOWING"
    shown = ", ".join(rng.sample(columns, rng.randrange(3)))
    where = rng.choice(["", "", " WHERE v > 2", " WHERE g IS NOT NULL AND id > 5"])
    query = f"SELECT {shown + ', ' if shown else ''}{call} OVER ({over}) AS p FROM t{where}"
    kinds = [query, query, f"SELECT * FROM ({query}) x WHERE p IS NOT NULL"]
    if call not in ("lead(s)", "max(day)"):
        kinds.append(f"SELECT p, count(*) AS c, sum(p) AS a FROM ({query}) x GROUP BY p")
    return rng.choice(kinds)


def make_change(rng: random.Random) -> str:
    first = rng.randrange(130)
    last = first + rng.choice([0, 3, 60])
    return rng.choice(
        [
            f"DELETE FROM t WHERE id BETWEEN {first} AND {last}",
            f"UPDATE t SET v = {rng.randrange(9)} WHERE id BETWEEN {first} AND {last}",
            f"UPDATE t SET g = {rng.randrange(12)} WHERE id BETWEEN {first} AND {last}",
            f"UPDATE t SET s = nullif('t{rng.randrange(5)}', 't1'), day = NULL WHERE id = {first}",
            f"INSERT INTO t (id, g, v, s) SELECT i, i % 9, i % 4, 'n' FROM generate_series({first},"
            f" {last}) s (i) ON CONFLICT (id) DO UPDATE SET v = t.v + 1",
        ]
    )


def test_random_windows_after_random_histories(seed: int) -> None:
    rng = random.Random(seed)
    query = ""
    try:
        with opened() as store:
            load_tables(store, 120)
            query = make_window(rng)
            create_two(store, query)
            for _ in range(4):
                for _ in range(rng.randrange(1, 4)):
                    store.run(make_change(rng))
                refresh_both(store)
            assert set(store.verified().values()) == {True}
    except Exception as error:
        error.add_note(f"seed {seed}: {query}")
        raise
