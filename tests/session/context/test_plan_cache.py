"""What all sessions share stays within its bounds, whatever is asked."""

from __future__ import annotations

import belvedere
from belvedere.session.context.plan_cache import PlanCache
from belvedere.session.context.statement_statistics import (
    STATEMENT_CHARACTERS_MAX,
    STATEMENTS_MAX,
)


def test_plans_are_bounded_by_number_and_by_the_length_of_their_texts() -> None:
    plans = PlanCache(3, characters=20)
    for text in ("a", "b", "c", "d"):
        plans.put(text, text)
    assert [plans.get(text) for text in ("a", "b", "c", "d")] == [None, "b", "c", "d"]
    plans.put("x" * 19, 1)
    assert [plans.get(text) for text in ("b", "c", "d", "x" * 19)] == [None, None, "d", 1]
    plans.put(("UTC", "y" * 19), 2)
    assert len(plans) == 1
    plans.put("z" * 21, 3)
    assert len(plans) == 0
    for _ in range(5):
        plans.put("k" * 15, 4)
    assert plans.get("k" * 15) == 4
    plans.drop_entry(4)
    plans.put("m" * 20, 5)
    assert plans.get("m" * 20) == 5


def test_long_statements_do_not_fill_the_memory() -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE t (a int)")
        shared = con._session.shared
        shared.plans._characters = 50_000
        for i in range(5):
            values = ", ".join(str(i * 10_000 + j) for j in range(3_000))
            assert con.execute(f"SELECT count(*) FROM t WHERE a IN ({values})").fetchone() == (0,)
            assert 1 <= len(shared.plans) <= 3
        records = shared.statistics.list_records()
        assert len(records) <= STATEMENTS_MAX
        assert max(len(one.text) for one in records) <= STATEMENT_CHARACTERS_MAX
