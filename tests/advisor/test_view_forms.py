"""Forms of views that cost writes less: co-located joins, and groups kept in each partition."""

from __future__ import annotations

from belvedere.advisor.advise import Advice
from belvedere.database import open_sql_database
from belvedere.interfaces.advice import AdviceOptions, compute_advice
from belvedere.session.session import Session
from tests.advisor.shop import WORKLOAD, open_shop

OF_CUSTOMER = """SELECT o.id, o.total, o.status, c.name, c.city FROM orders o, customers c
WHERE o.customer = c.id AND c.id = ?"""
RENAME = "UPDATE customers SET name = ?, city = ? WHERE id = ?"
HIT_COUNTS = "SELECT page, count(*), sum(bytes) FROM hits GROUP BY page"


def _advise(session: Session, workload: str) -> Advice:
    return compute_advice(session.shared, AdviceOptions(workload))


def _list_forms(advice: Advice) -> list[dict[str, str]]:
    return [dict(view.candidate.options) for view in advice.views]


def _write_customer_workload(renames: int) -> str:
    return f"-- calls: 1000\n{OF_CUSTOMER};\n-- calls: {renames}\n{RENAME};"


def test_a_join_whose_parent_is_updated_is_co_located() -> None:
    database, session = open_shop()
    with database:
        advice = _advise(session, _write_customer_workload(renames=2000))
        assert _list_forms(advice) == [{"join": "colocated"}]
        for statement in advice.list_ddl():
            session.execute(statement)
        (view,) = advice.views
        found = session.execute(f"EXPLAIN {OF_CUSTOMER}", (7,)).rows
        assert view.candidate.name in "\n".join(str(row[0]) for row in found)
        session.execute(RENAME, ("new", "Vienna", 7))
        rows = sorted(session.execute(OF_CUSTOMER, (7,)).rows)
        session.execute("SET rewrite = off")
        assert rows == sorted(session.execute(OF_CUSTOMER, (7,)).rows)
        assert {row[3] for row in rows} == {"new"}


def test_a_join_of_tables_that_are_not_updated_is_materialized() -> None:
    database, session = open_shop()
    with database:
        advice = _advise(session, WORKLOAD)
        assert advice.views
        assert all(form == {} for form in _list_forms(advice))


def _open_hits(partitions: int) -> tuple[object, Session]:
    database, shared = open_sql_database(":memory:")
    session = Session(shared)
    session.execute(
        f"""CREATE TABLE hits (id int PRIMARY KEY, page int NOT NULL, bytes int NOT NULL)
            WITH (partitions = {partitions});
        INSERT INTO hits SELECT x, x % 3, x % 100 FROM generate_series(1, 4000) g(x)"""
    )
    return database, session


def _write_hit_workload(inserts: int) -> str:
    return f"-- calls: 200\n{HIT_COUNTS};\n-- calls: {inserts}\nINSERT INTO hits VALUES (?, ?, ?);"


def test_groups_of_a_partitioned_table_that_is_often_written_are_local() -> None:
    database, session = _open_hits(partitions=8)
    with database:  # type: ignore[attr-defined]
        advice = _advise(session, _write_hit_workload(inserts=5000))
        assert _list_forms(advice) == [{"placement": "local"}]
        before = sorted(session.execute(HIT_COUNTS).rows)
        for statement in advice.list_ddl():
            session.execute(statement)
        (view,) = advice.views
        found = session.execute(f"EXPLAIN {HIT_COUNTS}").rows
        assert view.candidate.name in "\n".join(str(row[0]) for row in found)
        assert sorted(session.execute(HIT_COUNTS).rows) == before


def test_groups_are_in_one_place_where_reads_are_most_or_rows_are_not_spread() -> None:
    for partitions, inserts in ((8, 1), (1, 5000)):
        database, session = _open_hits(partitions)
        with database:  # type: ignore[attr-defined]
            assert _list_forms(_advise(session, _write_hit_workload(inserts))) == [{}]


def test_a_view_that_may_lag_keeps_the_options_of_its_form() -> None:
    database, session = open_shop()
    with database:
        slow = "-- calls: 1\nUPDATE customers SET name = ? WHERE id = ?;"
        advice = _advise(session, WORKLOAD + slow)
        lagging = [form for form in _list_forms(advice) if form.get("maintenance") == "deferred"]
        assert lagging
        assert all(form["max_lag"] == "1 s" for form in lagging)
