"""The advisor as a whole: what it chooses pays, is applied, and answers the unchanged queries."""

from __future__ import annotations

import json

from belvedere.advisor.advise import Advice
from belvedere.interfaces.advice import AdviceOptions, compute_advice, give_advice
from belvedere.session.session import Session
from tests.advisor.shop import BY_CITY, TOTALS, WORKLOAD, open_shop


def _advise(session: Session, workload: str = WORKLOAD, **options: object) -> Advice:
    return compute_advice(session.shared, AdviceOptions(workload, **options))  # type: ignore[arg-type]


def _explain(session: Session, sql: str, parameters: tuple[object, ...] = ()) -> str:
    return "\n".join(str(row[0]) for row in session.execute(f"EXPLAIN {sql}", parameters).rows)


def _read_rows(session: Session, text: str, *parameters: str) -> list[tuple[object, ...]]:
    result = session.execute(text, parameters)
    result.convert_arrow_to_rows()
    return list(result.rows or [])


def test_unchanged_queries_are_answered_from_applied_views() -> None:
    database, session = open_shop()
    with database:
        before = [_read_rows(session, BY_CITY, "city 3"), _read_rows(session, TOTALS)]
        advice = _advise(session)
        assert advice.views
        for statement in advice.list_ddl():
            session.execute(statement)
        used = {name for query in advice.forecast.queries for name in query.views}
        assert used == {view.candidate.name for view in advice.views}
        text = _explain(session, BY_CITY, ("city 3",)) + _explain(session, TOTALS)
        assert all(name in text for name in used)
        after = [_read_rows(session, BY_CITY, "city 3"), _read_rows(session, TOTALS)]
        assert [sorted(row[2:] for row in rows) for rows in before[:1]] == [
            sorted(row[2:] for row in rows) for rows in after[:1]
        ]
        assert sorted(before[1]) == sorted(after[1])


def test_a_second_run_finds_nothing_more_to_do() -> None:
    database, session = open_shop()
    with database:
        for statement in _advise(session).list_ddl():
            session.execute(statement)
        assert _advise(session).views == ()


def test_writes_alone_need_no_view() -> None:
    database, session = open_shop()
    with database:
        advice = _advise(session, "INSERT INTO orders VALUES (?, ?, ?, ?);")
        assert not advice.views
        report = give_advice(session.shared, AdviceOptions("DELETE FROM orders WHERE id = ?;"))
        assert "no view: the workload has no query" in report["report"]


def test_a_view_that_writes_pay_too_much_for_is_not_chosen() -> None:
    database, session = open_shop()
    with database:
        workload = WORKLOAD.replace("calls: 1000", "calls: 1").replace("calls: 50", "calls: 0")
        workload = workload.replace("name: new_order calls: 100", "name: new_order calls: 900000")
        advice = _advise(session, workload)
        assert not advice.views
        assert any("writes would pay" in one.reason for one in advice.dismissed)


def test_nothing_is_chosen_that_does_not_fit_the_budget() -> None:
    database, session = open_shop()
    with database:
        advice = _advise(session, budget_bytes=100)
        assert not advice.views
        assert advice.needed_bytes is not None
        assert advice.needed_bytes > 100
        report = give_advice(session.shared, AdviceOptions(WORKLOAD, budget_bytes=100))["report"]
        assert "nothing fits into 100 bytes: the views that pay take" in report


def test_the_budget_is_kept() -> None:
    database, session = open_shop()
    with database:
        whole = _advise(session).stored_bytes
        advice = _advise(session, budget_bytes=whole - 1)
        assert advice.stored_bytes <= whole - 1


def test_statements_that_cannot_be_bound_are_listed_and_skipped() -> None:
    database, session = open_shop()
    with database:
        bad = "SELEC 1;\n-- name: lost\nSELECT * FROM nowhere;\nSELECT 'open FROM orders;\n"
        answer = give_advice(session.shared, AdviceOptions(WORKLOAD + bad))
        assert answer["skipped"] == 3
        assert answer["views"]
        assert "lost: relation does not exist: nowhere (42P01)" in answer["report"]


def test_joins_stand_for_foreign_keys_that_are_not_declared() -> None:
    database, session = open_shop()
    with database:
        session.execute("ALTER TABLE orders DROP CONSTRAINT orders_customer_fkey")
        advice = _advise(session)
        assert advice.stages.graph.from_workload
        report = give_advice(session.shared, AdviceOptions(WORKLOAD))["report"]
        assert "no foreign key is declared" in report


def test_an_index_is_advised_where_nothing_else_is_missing() -> None:
    database, session = open_shop()
    with database:
        workload = "-- calls: 500\nSELECT id, customer, status, total FROM orders WHERE total = ?;"
        (view,) = _advise(session, workload).views
        assert view.candidate.write_ddl().startswith("CREATE INDEX")
        session.execute(view.candidate.write_ddl())
        query = "SELECT id, customer, status, total FROM orders WHERE total = 5"
        assert view.candidate.name in _explain(session, query)


def test_a_slow_write_makes_its_view_deferred() -> None:
    database, session = open_shop()
    with database:
        workload = WORKLOAD + "-- calls: 5\nUPDATE customers SET name = ? WHERE id = ?;"
        forms = [dict(view.candidate.options) for view in _advise(session, workload).views]
        assert {"maintenance": "deferred", "max_lag": "1 s"} in forms


def test_the_statements_that_ran_are_the_workload_without_a_file() -> None:
    database, session = open_shop()
    with database:
        for number in range(30):
            session.execute(BY_CITY, (f"city {number % 20}",))
        advice = compute_advice(session.shared, AdviceOptions())
        assert any("order by o.total" in one.text.lower() for one in advice.forecast.queries)


def test_json_has_what_the_text_says() -> None:
    database, session = open_shop()
    with database:
        answer = give_advice(session.shared, AdviceOptions(WORKLOAD, form="json"))
        found = json.loads(answer["report"])
        assert [view["ddl"] for view in found["views"]] == answer["views"]
        assert found["before_us"] > found["after_us"] > 0


def test_html_stands_alone_and_escapes_what_statements_say() -> None:
    database, session = open_shop()
    with database:
        workload = WORKLOAD + "SELECT '<script>' FROM nowhere;"
        page = give_advice(session.shared, AdviceOptions(workload, form="html"))["report"]
        assert page.startswith("<!doctype html>")
        assert page.endswith("</html>")
        assert "<svg" in page
        assert "<script" not in page
        assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


BEST = "SELECT id, total FROM orders ORDER BY total DESC, id LIMIT 10"
BUSY = "SELECT id FROM customers c WHERE NOT EXISTS \
(SELECT 1 FROM orders o WHERE o.customer = c.id AND o.total > 90)"


def test_whole_queries_and_their_first_rows_are_proposed() -> None:
    database, session = open_shop()
    with database:
        before = [_read_rows(session, text) for text in (BEST, BUSY)]
        advice = _advise(session, f"-- name: best calls: 10\n{BEST};\n-- name: busy\n{BUSY};\n")
        kinds = {str(view.candidate.kind) for view in advice.views}
        assert kinds == {"top-k", "whole query"}
        for statement in advice.list_ddl():
            session.execute(statement)
        for text, rows in zip((BEST, BUSY), before, strict=True):
            assert "rewritten" in _explain(session, text)
            assert sorted(_read_rows(session, text)) == sorted(rows)


def test_a_query_with_parameters_is_no_view() -> None:
    database, session = open_shop()
    with database:
        advice = _advise(session, BUSY.replace("90", "?") + ";")
        names = [one.name for one in advice.dismissed] + [v.candidate.name for v in advice.views]
        assert not any("_answer_" in name or "_top_" in name for name in names)
