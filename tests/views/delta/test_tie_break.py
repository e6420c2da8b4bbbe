"""Where a query leaves open which of several equal rows it takes, view and VERIFY take the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from belvedere.kv.batch import Write
from belvedere.txn.contracts import Reader
from belvedere.txn.history.derived_rows import DerivedRows
from tests.views.sql import Store, opened

PART = "OVER (PARTITION BY g ORDER BY v"
DEFINITIONS = {
    "least": "SELECT w, v FROM items ORDER BY v LIMIT 6",
    "later": "SELECT w, v FROM items ORDER BY v DESC LIMIT 6 OFFSET 3",
    "with_ties": "SELECT w, v FROM items ORDER BY v FETCH FIRST 4 ROWS WITH TIES",
    "first_of": "SELECT DISTINCT ON (g) g, w, v FROM items ORDER BY g, v DESC",
    "any_of": "SELECT DISTINCT ON (g) g, w, v FROM items",
    "numbered": f"SELECT w, row_number() {PART}) AS r FROM items",
    "mixed": f"SELECT w, row_number() {PART}) AS r, rank() {PART}) AS k, lag(w) {PART}) AS l,"
    f" sum(w) {PART}) AS s, sum(w) {PART} ROWS 1 PRECEDING) AS t FROM items",
    "ends": f"SELECT w, first_value(w) {PART}) AS a, last_value(w) {PART}) AS b,"
    f" sum(w) {PART}) AS s FROM items",
    "last_of": f"SELECT w, last_value(id) {PART} DESC) AS b FROM items",
    "of_all": f"SELECT w, nth_value(w, 2) {PART} RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED"
    f" FOLLOWING) AS n, last_value(w) {PART} GROUPS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED"
    " FOLLOWING) AS b FROM items",
    "unordered": "SELECT w, first_value(w) OVER (PARTITION BY g) AS a, last_value(w) OVER () AS b"
    " FROM items",
    "all_numbered": "SELECT w, v, row_number() OVER () AS r FROM items",
    "listed": "SELECT g, string_agg(w::text, ',') AS s, count(*) AS n FROM items GROUP BY g",
    "in_order": "SELECT g, string_agg(w::text, ',' ORDER BY v) AS s FROM items GROUP BY g",
    "lateral_": "SELECT q.g, x.w FROM (SELECT DISTINCT g FROM items) q,"
    " LATERAL (SELECT w FROM items i WHERE i.g = q.g ORDER BY v LIMIT 2) x",
    "inside": "SELECT id FROM items WHERE v IN (SELECT v FROM items ORDER BY w LIMIT 3)",
}


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as made:
        made.run(
            "CREATE TABLE items (id int PRIMARY KEY, g int, v int, w int)",
            "INSERT INTO items SELECT x, x % 4, x % 3, (x * 7) % 5"
            " FROM generate_series(1, 40) t(x)",
        )
        yield made


def test_verify_finds_no_difference_in_ties(store: Store) -> None:
    for name, text in DEFINITIONS.items():
        store.run(
            f"CREATE MATERIALIZED VIEW {name} AS {text}",
            f"CREATE MATERIALIZED VIEW {name}_d WITH (maintenance = 'deferred') AS {text}",
        )
    for step in range(4):
        store.run(
            f"UPDATE items SET v = {step % 3}, w = w + 1 WHERE id % 5 = {step % 5}",
            f"DELETE FROM items WHERE id % 11 = {step}",
            f"INSERT INTO items VALUES ({100 + step}, {step % 4}, {step % 3}, 1)",
            f"INSERT INTO items VALUES ({200 + step}, {step % 4}, NULL, NULL)",
        )
        for name in DEFINITIONS:
            store.run(f"REFRESH MATERIALIZED VIEW {name}_d")
            now, later = store.run(f"SELECT * FROM {name}"), store.run(f"SELECT * FROM {name}_d")
            assert Counter(now) == Counter(later), name
        wrong = [name for name, right in store.verified().items() if not right]
        assert wrong == []


def test_verify_still_sees_another_choice_of_equal_rows(store: Store) -> None:
    """What a plain query would be free to choose, a view is not."""
    store.run(f"CREATE MATERIALIZED VIEW least AS {DEFINITIONS['least']}")
    view = store.view("least")
    with store.db.begin() as reader:
        maintainer = store.db.views.registry.get_view_maintainer(reader.catalog, view)
        shown = store.run("SELECT w, v FROM least")
        others = [
            row for row in store.run("SELECT w, v FROM items WHERE v = 0") if row not in shown
        ]
    assert others, "the choice is open"

    def exchange(newest: Reader) -> list[Write]:
        derived = DerivedRows(newest)
        maintainer.write_sums_as_additions({shown[0]: [-1], others[0]: [1]}, derived)
        return derived.writes()

    store.db.commits.derive(exchange)
    assert store.verified() == {"least": False, "least (auxiliary 1)": True}
