"""What is chosen is used: EXPLAIN names every view and index of a set, once they are made."""

from __future__ import annotations

import re

from belvedere.advisor.pricing.cost_units import CostUnits
from belvedere.database import open_sql_database
from belvedere.interfaces.advice import AdviceOptions, compute_advice
from belvedere.session.session import Session

SCHEMA = """
CREATE TABLE customers (id int PRIMARY KEY, name text, city text);
CREATE TABLE orders (id int PRIMARY KEY, customer int REFERENCES customers,
                     total numeric(10, 2), status text);
INSERT INTO customers SELECT g, 'name' || g, 'city' || g % 50 FROM generate_series(1, 2000) AS g;
INSERT INTO orders SELECT g, 1 + g % 2000, g % 100, 's' || g % 5
FROM generate_series(1, 20000) AS g;
"""
QUERIES = {
    "by_city": "SELECT o.id, c.name FROM orders o, customers c"
    " WHERE o.customer = c.id AND c.city = ?",
    "totals": "SELECT status, count(*), sum(total) FROM orders GROUP BY status",
}
WORKLOAD = "\n".join(
    [f"-- name: {name} calls: 1000\n{text};" for name, text in QUERIES.items()]
    + ["-- name: new_order calls: 200\nINSERT INTO orders VALUES (?, ?, ?, ?);"]
)


def _explain(session: Session, text: str) -> list[tuple[str]]:
    return session.execute(f"EXPLAIN {text}", ("city3",) if "?" in text else ()).rows


def test_each_thing_of_the_set_is_used_as_the_report_says() -> None:
    database, shared = open_sql_database(":memory:")
    with database:
        session = Session(shared, autocommit=True)
        session.execute(SCHEMA)
        advice = compute_advice(shared, AdviceOptions(WORKLOAD))
        # An index of the city and a view by city both save half of the time, each alone.
        assert [view.candidate.is_index for view in advice.views] == [False, False]
        for statement in advice.list_ddl():
            session.execute(statement.removesuffix(";"))
        plans = {
            name: "\n".join(line for (line,) in _explain(session, text))
            for name, text in QUERIES.items()
        }
        for one in advice.views:
            name = one.candidate.name
            assert any(f"rewritten to view {name}" in plan for plan in plans.values()), plans
        for query in advice.forecast.queries:
            (cost,) = re.findall(r"rewriting: cost ([\d.]+),", plans[query.name])
            after_us = CostUnits().convert_query_cost(float(cost))
            assert abs(after_us - query.after_us) < 0.1 * query.after_us
