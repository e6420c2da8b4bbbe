"""Operators of each left row by itself: what a sub-query is given, and what it makes of it."""

from __future__ import annotations

import pytest

from belvedere.views.operators.apply import ApplyOperator
from tests.views.sql import opened

VIEWS = {
    "newest": "SELECT p.id, (SELECT l.x FROM l WHERE l.k = p.k ORDER BY l.x DESC LIMIT 1) AS x"
    " FROM p",
    "several": "SELECT p.id, (SELECT max(l.x) FROM l WHERE l.k = p.k AND l.x > p.id) AS a,"
    " (SELECT count(*) FROM m WHERE m.name = p.name AND m.x < p.id) AS b FROM p",
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_sub_query_is_given_the_rows_of_one_key_at_a_time(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int] = []
    run_once = ApplyOperator._run_plan_once

    def noted(self: ApplyOperator, reader: object, rows: list[object], rights: list[list[object]]):  # type: ignore[no-untyped-def]
        given.extend(len(right) for right in rights)
        return run_once(self, reader, rows, rights)  # type: ignore[arg-type]

    monkeypatch.setattr(ApplyOperator, "_run_plan_once", noted)
    with opened() as store:
        store.run(
            "CREATE TABLE p (id int PRIMARY KEY, k int, name text)",
            "CREATE TABLE l (id int PRIMARY KEY, k int, x int)",
            "CREATE TABLE m (id int PRIMARY KEY, name char(3), x int)",
            "INSERT INTO p SELECT i, CASE WHEN i % 7 > 0 THEN i % 20 END, 'n' || i % 5"
            " FROM generate_series(1, 60) g(i)",
            "INSERT INTO l SELECT i, CASE WHEN i % 11 > 0 THEN i % 25 END, i % 13"
            " FROM generate_series(1, 200) g(i)",
            "INSERT INTO m SELECT i, 'n' || i % 6, i % 40 FROM generate_series(1, 90) g(i)",
            f"CREATE MATERIALIZED VIEW v AS {VIEWS[name]}",
        )
        assert given, "the view is kept in another way now"
        assert max(given) <= 20  # of 200 and 90
        store.run(
            "UPDATE l SET x = x + 20 WHERE id % 9 = 0",
            "DELETE FROM p WHERE id % 10 = 3",
            "UPDATE l SET k = k + 1 WHERE id % 8 = 1",
            "UPDATE m SET name = 'n1' WHERE id % 4 = 1",
            "INSERT INTO p VALUES (100, 3, 'n1'), (101, 3, NULL), (102, NULL, 'n1 ')",
        )
        assert max(given) <= 60
        assert all(store.verified().values())
