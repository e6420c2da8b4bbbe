"""Rows of an open store, as another process asks for them."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest

from belvedere.errors import InvalidInput
from belvedere.interfaces.dbapi import Connection
from belvedere.pipeline.store.client import PositionLease, PushedFilter, ReadRequest, Store


def scanned(
    store: Store,
    relation: ReadRequest,
    lease: PositionLease,
    count: int = 4,
    filters: tuple[PushedFilter, ...] = (),
) -> list[list[tuple[Any, ...]]]:
    """The rows of each part."""
    parts = store.plan_relation_splits(relation, lease, count, filters)
    return [
        [
            tuple(row.values())
            for batch in store.scan_relation_split(relation, lease, part)
            for row in batch.to_pylist()
        ]
        for part in parts
    ]


def numbers(connection: Connection, count: int) -> None:
    connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, name text, half numeric(10, 1))")
    connection.execute(
        f"INSERT INTO t SELECT g, 'n' || g, g * 0.5 FROM generate_series(1, {count}) AS g"
    )


def test_the_parts_of_a_table_are_all_of_it_and_of_even_size(
    store: Store, connection: Connection
) -> None:
    numbers(connection, 10_000)
    parts = scanned(store, ReadRequest("table", "t", ("id",)), store.take_position_lease(), 4)
    assert [len(part) for part in parts] == [2500] * 4
    assert [row for part in parts for row in part] == [(i,) for i in range(1, 10_001)]


KEYS = {
    "dense numbers": ("bigint", lambda random, i: i),
    "sparse numbers": ("bigint", lambda random, i: random.randrange(10**15)),
    "words": ("text", lambda random, i: f"{random.choice('abz')}-{random.randrange(10**9)}"),
    "skewed": ("bigint", lambda random, i: int(10 ** (random.random() * 15))),
    "time": ("text", lambda random, i: f"2026-11-{i % 30 + 1:02}/{i}"),
}


@pytest.mark.parametrize("kind", KEYS)
def test_sampled_parts_of_a_large_table_are_of_about_even_size(
    store: Store,
    connection: Connection,
    rng: random.Random,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    monkeypatch.setattr("belvedere.interfaces.verbs.read.key_splits.EXACT_ROWS_MAX", 100)
    sql_type, key = KEYS[kind]
    connection.execute(f"CREATE TABLE k (id {sql_type} PRIMARY KEY)")
    keys = {key(rng, i) for i in range(20_000)}
    connection.autocommit = False
    connection.cursor().executemany("INSERT INTO k VALUES (?)", [(one,) for one in sorted(keys)])
    connection.commit()
    parts = scanned(store, ReadRequest("table", "k"), store.take_position_lease(), 4)
    sizes = [len(part) for part in parts]
    assert sum(sizes) == len(keys)
    assert len({row for part in parts for row in part}) == len(keys)
    assert len(sizes) == 4
    assert max(sizes) < 2 * len(keys) / 4, sizes


def test_all_parts_are_read_at_the_position_of_the_lease(
    store: Store, connection: Connection
) -> None:
    numbers(connection, 100)
    lease = store.take_position_lease()
    connection.execute("DELETE FROM t WHERE id > 50")
    connection.execute("UPDATE t SET name = 'other'")
    rows = [row for part in scanned(store, ReadRequest("table", "t"), lease) for row in part]
    assert [(row[0], row[1]) for row in rows] == [(i, f"n{i}") for i in range(1, 101)]


def test_a_past_position_is_read_from_the_log(store: Store, connection: Connection) -> None:
    numbers(connection, 10)
    then = store.position()
    connection.execute("DELETE FROM t WHERE id <> 3")
    rows = [
        r
        for part in scanned(store, ReadRequest("table", "t"), store.take_position_lease(then))
        for r in part
    ]
    assert [row[0] for row in rows] == list(range(1, 11))
    query = store.run_query_at_lease(
        "SELECT count(*) AS n FROM t WHERE id < 6", store.take_position_lease(then)
    )
    assert [batch.to_pylist() for batch in query] == [[{"n": 5}]]


def test_a_lease_that_is_gone_is_made_anew_from_the_log(
    store: Store, connection: Connection
) -> None:
    numbers(connection, 10)
    lease = store.take_position_lease()
    store.release_position_lease(lease)
    connection.execute("DELETE FROM t")
    rows = [row for part in scanned(store, ReadRequest("table", "t"), lease) for row in part]
    assert len(rows) == 10


@pytest.mark.parametrize("position", [-1, 10**6])
def test_a_position_outside_of_the_log_is_refused(
    store: Store, connection: Connection, position: int
) -> None:
    with pytest.raises(InvalidInput, match="position is not in the log"):
        store.take_position_lease(position)


def test_unknown_names_are_refused_with_what_there_is(store: Store, connection: Connection) -> None:
    numbers(connection, 1)
    with pytest.raises(InvalidInput, match="table does not exist"):
        store.describe_relation(ReadRequest("table", "tt"))
    with pytest.raises(InvalidInput, match="view does not exist"):
        store.describe_relation(ReadRequest("view", "v"))
    with pytest.raises(InvalidInput, match="there are id, name, half"):
        store.describe_relation(ReadRequest("table", "t", ("id", "nothing")))


FILTERS: dict[str, tuple[tuple[PushedFilter, ...], list[int]]] = {
    "key": ((("=", "id", "7"),), [7]),
    "keys": ((("in", "id", "7", "9", "9"),), [7, 9]),
    "range": ((("<", "id", "4"), (">=", "id", "2")), [2, 3]),
    "index": ((("=", "name", "n5"),), [5]),
    "prefix": (
        (("prefix", "name", "n99"),),
        [99, 990, 991, 992, 993, 994, 995, 996, 997, 998, 999],
    ),
    "nothing": ((("=", "id", "5000"),), []),
}


@pytest.mark.parametrize("kind", FILTERS)
def test_filters_become_keys_ranges_and_index_look_ups(
    store: Store, connection: Connection, kind: str
) -> None:
    numbers(connection, 1000)
    connection.execute("CREATE INDEX by_name ON t (name)")
    filters, expected = FILTERS[kind]
    parts = scanned(store, ReadRequest("table", "t"), store.take_position_lease(), 4, filters)
    assert sorted(row[0] for part in parts for row in part) == expected


def test_filters_that_no_key_serves_leave_the_rows_to_the_reader(
    store: Store, connection: Connection
) -> None:
    numbers(connection, 100)
    parts = scanned(
        store, ReadRequest("table", "t"), store.take_position_lease(), 2, (("=", "half", "2.0"),)
    )
    assert sum(map(len, parts)) == 100


@pytest.mark.parametrize(
    "filters", [[["=", "id"]], [["~", "id", "1"]], [["=", "no column", "1"]], [7]]
)
def test_filters_that_are_none_are_refused(
    store: Store, connection: Connection, filters: Any
) -> None:
    numbers(connection, 1)
    lease = store.take_position_lease()
    with pytest.raises(InvalidInput, match="not a filter"):
        store.plan_relation_splits(ReadRequest("table", "t"), lease, 2, filters)


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
@pytest.mark.parametrize(
    "definition",
    [
        "SELECT name, sum(half) AS total, count(*) AS n FROM t GROUP BY name",
        "SELECT id, name FROM t WHERE id > 3",
        "SELECT name, max(id) AS top FROM t GROUP BY name",
    ],
)
def test_a_view_is_read_at_the_position_of_the_lease(
    store: Store, connection: Connection, maintenance: str, definition: str
) -> None:
    numbers(connection, 300)
    connection.execute("UPDATE t SET name = 'g' || id % 40")
    connection.execute(
        f"CREATE MATERIALIZED VIEW v WITH (maintenance = '{maintenance}') AS {definition}"
    )
    connection.execute("INSERT INTO t VALUES (1000, 'new', 1.5)")
    found = connection.execute("SELECT * FROM v").fetchall()
    expected = sorted(tuple(str(v) if isinstance(v, Decimal) else v for v in r) for r in found)
    lease = store.take_position_lease()
    connection.execute("DELETE FROM t WHERE id < 250")
    rows = [row for part in scanned(store, ReadRequest("view", "v"), lease) for row in part]
    assert sorted(rows) == expected


def test_a_view_at_a_past_position_is_computed_from_its_tables(
    store: Store, connection: Connection
) -> None:
    numbers(connection, 20)
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
    then = store.position()
    connection.execute("DELETE FROM t")
    rows = [
        row
        for part in scanned(store, ReadRequest("view", "v"), store.take_position_lease(then))
        for row in part
    ]
    assert rows == [(20,)]


def test_a_view_at_a_past_position_is_filtered_by_the_reader(
    store: Store, connection: Connection
) -> None:
    numbers(connection, 20)
    connection.execute("CREATE MATERIALIZED VIEW v AS SELECT name, id FROM t")
    then = store.position()
    connection.execute("DELETE FROM t")
    relation, filters = ReadRequest("view", "v"), (("=", "id", "3"),)
    parts = scanned(store, relation, store.take_position_lease(then), 4, filters)
    assert ("n3", 3) in [row for part in parts for row in part]


EVERY_TYPE = """
    SELECT 1::smallint AS s, 2::int AS i, 3::bigint AS b, true AS t, 1.25::numeric(8, 2) AS n,
           123.5::numeric AS u, 1.5::real AS r, 2.5::float8 AS d, 'c'::char(3) AS c,
           'v'::varchar(5) AS v, 'x'::text AS x, date '2026-11-16' AS da, time '01:02:03' AS ti,
           timestamp '2026-11-16 01:02:03' AS ts, timestamptz '2026-11-16 01:02:03+00' AS tz,
           interval '1 month 2 days 3 hours' AS iv,
           uuid '00000000-0000-0000-0000-00000000002a' AS uu, '{"a": 1}'::json AS j, NULL AS no
    FROM t
"""


@pytest.mark.parametrize("past", [False, True])
def test_queries_of_every_type_are_the_same_now_and_in_the_past(
    store: Store, connection: Connection, past: bool
) -> None:
    numbers(connection, 1)
    then = store.position()
    if past:
        connection.execute("UPDATE t SET name = 'x'")
    schema = store.describe_relation(ReadRequest("query", EVERY_TYPE)).schema
    (batch,) = store.run_query_at_lease(EVERY_TYPE, store.take_position_lease(then))
    assert batch.schema.types == schema.types
    (row,) = batch.to_pylist()
    assert [row[name] for name in ("s", "i", "b", "t", "u", "c", "no")] == [
        1,
        2,
        3,
        True,
        "123.5",
        "c  ",
        None,
    ]
    assert row["uu"] == bytes(15) + b"*"
    assert (row["iv"].months, row["iv"].days) == (1, 2)
