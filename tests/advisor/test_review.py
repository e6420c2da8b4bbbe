"""The review names views that the statements seen do not pay for, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

import belvedere
from belvedere.advisor import review
from belvedere.interfaces.advice import AdviceOptions, compute_advice, give_review
from belvedere.session.context.shared_state import SharedState
from tests.advisor.shop import BY_CITY, WORKLOAD, open_shop

UNUSED = "CREATE MATERIALIZED VIEW unused AS SELECT status, total, id FROM orders"
WRITE_US = 2_000.0
NAMED = "CREATE MATERIALIZED VIEW named AS SELECT status, count(*) AS n FROM orders GROUP BY status"


def test_only_views_that_nothing_reads_are_named() -> None:
    database, session = open_shop()
    with database:
        advice = compute_advice(session.shared, AdviceOptions(WORKLOAD))
        for statement in (*advice.list_ddl(), UNUSED, NAMED):
            session.execute(statement)
        for number in range(40):
            session.execute(BY_CITY, (f"city {number % 20}",))
            session.execute("INSERT INTO orders VALUES (?, 1, 'new', 7)", (10_000 + number,))
            session.execute("SELECT n FROM named WHERE status = 'open'")
        found = give_review(session.shared)
        assert "unused" in found["idle"]
        assert "named" not in found["idle"]
        used = {view.candidate.name for view in advice.views if "by_city" in view.price.savings}
        assert used
        assert not used & set(found["idle"])
        assert "DROP MATERIALIZED VIEW unused;" in found["report"]


def test_a_database_without_views_says_so() -> None:
    database, session = open_shop()
    with database:
        assert give_review(session.shared)["report"] == "there are no views"


def test_only_statements_since_a_view_was_made_count_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(review, "estimate_view_write", lambda *_: WRITE_US)  # else it is measured
    database, session = open_shop()
    with database:
        for number in range(60):
            session.execute("INSERT INTO orders VALUES (?, 1, 'new', 7)", (10_000 + number,))
        session.execute(UNUSED)
        found = give_review(session.shared)
        assert found["idle"] == []
        assert "unused" in found["report"]
        assert "no statement about its tables has run since it was made" in found["report"]
        session.execute("INSERT INTO orders VALUES (?, 1, 'new', 7)", (20_000,))
        assert _review_costs(session.shared)["unused"] == WRITE_US
        assert give_review(session.shared)["idle"] == ["unused"]
        for number in range(9):
            session.execute("INSERT INTO orders VALUES (?, 1, 'new', 7)", (30_000 + number,))
        assert _review_costs(session.shared)["unused"] == 10 * WRITE_US
        session.execute(NAMED)
        assert _review_costs(session.shared)["named"] == 0
        assert _review_costs(session.shared)["unused"] > 0


def test_what_ran_before_a_view_is_known_after_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / "store")
    with belvedere.connect(path, autocommit=True) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY, a int)")
        for number in range(30):
            con.execute("INSERT INTO t VALUES (?, 1)", (number,))
        con.execute("CREATE MATERIALIZED VIEW gone AS SELECT count(*) AS n FROM t")
        con.execute("DROP MATERIALIZED VIEW gone")
        con.execute("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
        (v,) = con.session.catalog.views
    with belvedere.connect(path, autocommit=True) as con:
        assert "no statement about its tables" in give_review(con.session.shared)["report"]
        records = con.session.shared.statistics.list_records()
        (insert,) = [one for one in records if one.text.startswith("insert")]
        assert insert.before.keys() == {v.id}
        assert insert.before[v.id][0] == insert.calls == 30


def _review_costs(shared: SharedState) -> dict[str, float]:
    lines = give_review(shared)["report"].split("\n\n")[0].splitlines()[1:]
    scale = {"us": 1, "ms": 1_000, "s": 1_000_000}
    return {
        name: float(cost) * scale[unit]
        for name, _, _, _, cost, unit, *_ in (line.split() for line in lines)
    }
