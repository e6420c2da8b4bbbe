"""Placement and form: local entries, co-located joins, full recompute."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from belvedere.codec import keyspace
from belvedere.errors import InvalidInput, Unsupported
from tests.views.sql import Store, opened

LOCAL = {
    "counts": "SELECT customer, count(*) AS c, sum(total) AS s, avg(price) AS a"
    " FROM orders WHERE total <> 3 GROUP BY customer HAVING count(*) > 1",
    "overall": "SELECT count(*) AS c, sum(total) FILTER (WHERE customer = 1) AS s FROM orders",
    "chosen": "SELECT customer, total FROM orders WHERE total > 2",
    "twice": "SELECT customer FROM orders UNION ALL SELECT total FROM orders WHERE customer = 2",
}
COLOCATED = {
    "pairs": "SELECT o.id, c.city, o.total FROM orders o JOIN customers c ON o.customer = c.id"
    " WHERE o.total > 1",
    "triples": "SELECT o.id, c.city, n.body FROM orders o JOIN customers c ON o.customer = c.id"
    " JOIN notes n ON n.customer = c.id AND n.id <> o.id",
}
WHOLE = {
    "reachable": "WITH RECURSIVE r(id) AS (SELECT 1 UNION SELECT o.total FROM orders o"
    " JOIN r ON o.customer = r.id) SELECT id FROM r",
    "plain": "SELECT customer, count(*) AS c FROM orders GROUP BY customer",
}


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as made:
        made.run(
            "CREATE TABLE customers (id int PRIMARY KEY, city text)",
            "CREATE TABLE orders (id int PRIMARY KEY, customer int, total int, price real)"
            " WITH (partitions = 4)",
            "CREATE TABLE notes (id int PRIMARY KEY, customer int, body text)",
            "INSERT INTO customers VALUES (1, 'Vienna'), (2, 'Graz')",
            "INSERT INTO orders VALUES (1, 1, 2, 0.1), (2, 1, 3, 0.2), (3, 2, 5, 0.3)",
        )
        yield made


def change(rng: random.Random, step: int) -> str:
    customer, total = rng.choice(("NULL", "1", "2", "3")), rng.choice(("NULL", "1", "2", "3", "5"))
    return rng.choice(
        (
            f"INSERT INTO orders VALUES ({step}, {customer}, {total}, {rng.random()})",
            f"INSERT INTO orders VALUES ({step}, {customer}, {total}, NULL)",
            f"INSERT INTO notes VALUES ({step}, {customer}, 'n{step}')",
            f"UPDATE orders SET customer = {customer} WHERE id % 3 = {step % 3}",
            f"UPDATE notes SET customer = {customer}, id = id + 1000 WHERE id = {step - 3}",
            f"DELETE FROM orders WHERE id % 5 = {step % 5}",
            f"UPDATE customers SET city = 'c{step}' WHERE id = {rng.randrange(1, 3)}",
            "DELETE FROM customers WHERE id = 2",
            "INSERT INTO customers VALUES (2, 'Linz') ON CONFLICT DO NOTHING",
        )
    )


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
@pytest.mark.parametrize(
    ("option", "definitions"),
    [
        ("placement = 'local'", LOCAL),
        ("join = 'colocated'", COLOCATED),
        ("strict = false", WHOLE),
    ],
    ids=["local", "colocated", "whole"],
)
def test_every_form_of_a_view_is_its_query(
    store: Store, rng: random.Random, maintenance: str, option: str, definitions: dict[str, str]
) -> None:
    for name, text in definitions.items():
        store.run(
            f"CREATE MATERIALIZED VIEW {name} WITH ({option}, maintenance = '{maintenance}')"
            f" AS {text}"
        )
    for step in range(10, 45):
        store.run(change(rng, step))
        for name, text in definitions.items():
            found, expected = store.run(f"SELECT * FROM {name}"), store.run(text)
            assert Counter(map(str, found)) == Counter(map(str, expected)), (step, name)
    assert set(store.verified().values()) == {True}


def entries(store: Store, name: str) -> int:
    low, high = keyspace.relation_range(store.view(name).id)
    with store.db.begin() as reader:
        return sum(len(batch) for batch in reader.scan(low, high))


def test_a_local_group_has_an_entry_in_each_partition_it_has_rows_in(store: Store) -> None:
    text = "SELECT customer, count(*) AS c FROM orders GROUP BY customer"
    store.run(
        f"CREATE MATERIALIZED VIEW near WITH (placement = 'local') AS {text}",
        f"CREATE MATERIALIZED VIEW far AS {text}",
        "INSERT INTO orders SELECT 100 + x, 9, 1, 0 FROM generate_series(1, 200) AS g(x)",
    )
    assert store.run("SELECT c FROM near WHERE customer = 9") == [(200,)]
    assert entries(store, "far") == 3
    assert 4 + 2 <= entries(store, "near") <= 4 + 3


@pytest.mark.parametrize("placement", ["local", "LOCAL"])
def test_a_local_group_is_found_by_its_key_however_the_option_is_written(
    store: Store, placement: str
) -> None:
    store.run(
        f"CREATE MATERIALIZED VIEW near WITH (placement = '{placement}') AS"
        " SELECT customer, count(*) AS c FROM orders GROUP BY customer"
    )
    plan = [line for (line,) in store.run("EXPLAIN SELECT c FROM near WHERE customer = 9")]
    assert any("Scan near" in line and "keys [in (" in line for line in plan)


def test_a_local_aggregate_over_a_view_has_one_entry_a_group(store: Store) -> None:
    """The rows of a view are partitioned by its key, so a group is in one place."""
    store.run(
        "CREATE MATERIALIZED VIEW by_customer AS SELECT customer, id FROM orders",
        "CREATE MATERIALIZED VIEW near WITH (placement = 'local') AS"
        " SELECT customer, count(*) AS c FROM by_customer GROUP BY customer",
        "INSERT INTO orders SELECT 100 + x, 9, 1, 0 FROM generate_series(1, 200) AS g(x)",
    )
    assert store.run("SELECT c FROM near WHERE customer = 9") == [(200,)]
    assert entries(store, "near") == 3


def test_a_local_total_over_a_view_has_one_entry(store: Store) -> None:
    store.run(
        "CREATE MATERIALIZED VIEW by_customer AS SELECT customer, id FROM orders",
        "CREATE MATERIALIZED VIEW near WITH (placement = 'local') AS"
        " SELECT count(*) AS c FROM by_customer",
        "INSERT INTO orders VALUES (9, 1, 1, 1)",
    )
    assert store.run("SELECT c FROM near") == [(4,)]
    assert entries(store, "near") == 1


def test_a_colocated_join_stores_rows_and_not_pairs(store: Store) -> None:
    store.run(
        f"CREATE MATERIALIZED VIEW v WITH (join = 'colocated') AS {COLOCATED['pairs']}",
        "INSERT INTO orders SELECT 100 + x, 1, 9, 0 FROM generate_series(1, 50) AS g(x)",
    )
    before = entries(store, "v")
    store.run("UPDATE customers SET city = 'Wien' WHERE id = 1")
    assert entries(store, "v") == before == 2 + 3 + 50
    assert store.run("SELECT count(*) FROM v WHERE city = 'Wien'") == [(52,)]


KEYED = (
    "SELECT o.id, c.id AS c, o.customer, n.customer AS third, o.total FROM orders o"
    " JOIN customers c ON o.customer = c.id JOIN notes n ON n.customer = c.id"
)


ACCESS = {
    "c = 2": "prefix [2, ",
    "customer = 2": "prefix [2, ",
    "2 = third": "prefix [2, ",
    "c = 2 AND total > 1": "prefix [2, ",
    "c >= 2 AND customer < 4": "range [>= 2 < 4]",
    "c BETWEEN 2 AND 3 OR c = 9": "",
    "c IN (1, 3)": "",
    "c + 0 = 2": "",
    "total = 5": "",
    "c = NULL": "",
    "c = (SELECT max(id) FROM customers)": "",
}


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
def test_a_colocated_join_read_by_its_key_reads_these_rows_of_every_table(
    store: Store, maintenance: str
) -> None:
    schedule = ", refresh_every = '1 h'" if maintenance == "deferred" else ""
    store.run(
        "CREATE MATERIALIZED VIEW v WITH"
        f" (join = 'colocated', maintenance = '{maintenance}'{schedule}) AS {KEYED}",
        "INSERT INTO customers SELECT x, 'c' FROM generate_series(3, 9) AS g(x)",
        "INSERT INTO orders SELECT 100 + x, x % 10, x % 7, 0 FROM generate_series(1, 40) AS g(x)",
        "INSERT INTO notes SELECT x, x % 10, 'n' FROM generate_series(1, 20) AS g(x)",
    )
    for where, access in ACCESS.items():
        query = f"SELECT * FROM ({KEYED}) q WHERE {where}"
        assert Counter(store.run(f"SELECT * FROM v WHERE {where}")) == Counter(store.run(query))
        plan = [line for (line,) in store.run(f"EXPLAIN SELECT * FROM v WHERE {where}")]
        scans = [line for line in plan if "Scan v (" in line]
        assert all(access in line for line in scans), (where, plan)
        assert not access or len(scans) == 3


def test_a_colocated_join_is_read_by_a_parameter_and_beside_other_tables(store: Store) -> None:
    store.run(f"CREATE MATERIALIZED VIEW v WITH (join = 'colocated') AS {COLOCATED['pairs']}")
    store.run(
        "CREATE MATERIALIZED VIEW w WITH (join = 'colocated') AS SELECT o.id, c.id AS c"
        " FROM orders o JOIN customers c ON o.customer = c.id"
    )
    session = store.session()
    result = session.execute("SELECT id FROM w WHERE c = $1 ORDER BY id", (1,))
    assert result.rows == [(1,), (2,)]
    assert session.execute("SELECT id FROM w WHERE c = $1 ORDER BY id", (2,)).rows == [(3,)]
    joined = "SELECT v.id, w.c FROM v JOIN w ON v.id = w.id WHERE w.c = 1 AND v.total > 2"
    assert store.run(joined) == [(2, 1)]
    padded = "SELECT c.id, w.id FROM customers c LEFT JOIN w ON w.c = c.id AND w.c = 2 ORDER BY 1"
    assert store.run(padded) == [(1, None), (2, 3)]


def test_equal_keys_that_look_different_are_found_together(store: Store) -> None:
    store.run(
        "CREATE TABLE l (k numeric, a int)",
        "CREATE TABLE r (k numeric, b int)",
        "INSERT INTO l VALUES (1.0, 1), (1.00, 2), (2, 3)",
        "INSERT INTO r VALUES (1, 10), (2.0, 20)",
        "CREATE MATERIALIZED VIEW v WITH (join = 'colocated') AS"
        " SELECT l.k AS x, r.k AS y, a, b FROM l JOIN r ON l.k = r.k",
    )
    for where in ("x = 1.000", "y = 1.000", "x < 2.00", "y > 0 AND x <= 1"):
        found = store.run(f"SELECT x::text, y::text, a, b FROM v WHERE {where} ORDER BY a")
        assert found == [("1.0", "1", 1, 10), ("1.00", "1", 2, 10)]


def test_a_volatile_function_takes_full_recompute(store: Store) -> None:
    text = "SELECT id, now() > '2001-01-01' AS late FROM orders"
    with pytest.raises(Unsupported, match="incrementally") as refused:
        store.run(f"CREATE MATERIALIZED VIEW v AS {text}")
    assert "now" in str(refused.value)
    assert "strict = false" in str(refused.value)
    store.run(f"CREATE MATERIALIZED VIEW v WITH (strict = false) AS {text}")
    store.run("INSERT INTO orders VALUES (9, 1, 1, 1)", "DELETE FROM orders WHERE id = 1")
    assert sorted(store.run("SELECT * FROM v")) == [(2, True), (3, True), (9, True)]
    assert "again as a whole" in "\n".join(r for (r,) in store.run("EXPLAIN MATERIALIZED VIEW v"))


@pytest.mark.parametrize(
    ("option", "text", "reason"),
    [
        ("placement = 'local'", COLOCATED["pairs"], "in no partition"),
        ("placement = 'local'", "SELECT max(total) AS m FROM orders", "not linear"),
        ("join = 'colocated'", LOCAL["chosen"], "two tables"),
        (
            "join = 'colocated'",
            "SELECT o.id FROM orders o JOIN customers c ON o.customer = c.id"
            " JOIN notes n ON n.id = o.id",
            "one attribute",
        ),
        (
            "join = 'colocated'",
            "SELECT o.id FROM orders o LEFT JOIN customers c ON o.customer = c.id",
            "inner joins",
        ),
    ],
)
def test_what_a_form_is_not_for_is_refused_with_the_reason(
    store: Store, option: str, text: str, reason: str
) -> None:
    with pytest.raises(Unsupported, match="incrementally") as refused:
        store.run(f"CREATE MATERIALIZED VIEW v WITH ({option}) AS {text}")
    assert reason in str(refused.value)


@pytest.mark.parametrize("option", ["placement = 'near'", "join = 'merge'", "strict = maybe"])
def test_a_form_that_is_none_is_an_error(store: Store, option: str) -> None:
    with pytest.raises(InvalidInput, match="invalid"):
        store.run(f"CREATE MATERIALIZED VIEW v WITH ({option}) AS {WHOLE['plain']}")


def test_the_form_of_a_view_is_not_altered(store: Store) -> None:
    store.run(f"CREATE MATERIALIZED VIEW v AS {WHOLE['plain']}")
    with pytest.raises(Unsupported, match="form"):
        store.run("ALTER MATERIALIZED VIEW v SET (placement = 'local')")
