"""The review names views that the statements seen do not pay for, and no others."""

from __future__ import annotations

from belvedere.interfaces.advice import AdviceOptions, compute_advice, give_review
from tests.advisor.shop import BY_CITY, WORKLOAD, open_shop

UNUSED = "CREATE MATERIALIZED VIEW unused AS SELECT status, total, id FROM orders"
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
