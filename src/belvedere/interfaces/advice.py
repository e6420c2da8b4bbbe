"""The advisor on an open store: what `belvedere advise` runs, in the process that has it open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from belvedere.advisor.advise import Advice, AdviceRequest, advise
from belvedere.advisor.pricing.host import AdvisedDatabase
from belvedere.advisor.report.html_report import write_html_report
from belvedere.advisor.report.json_report import write_json_report
from belvedere.advisor.report.review_text import write_review
from belvedere.advisor.report.text_report import write_text_report
from belvedere.advisor.review import EarlierCalls, review_views
from belvedere.advisor.workload.statements import (
    WorkloadStatement,
    read_statistics_rows,
    read_workload_text,
)
from belvedere.session.context.shared_state import SharedState
from belvedere.session.materialized.create import bind_simplified_definition
from belvedere.session.session import Session

_SEEN = """
    SELECT text, calls, mean_ms FROM belvedere.statements WHERE calls > 0
    ORDER BY calls * mean_ms DESC LIMIT 500"""
_MEASURED = """
    SELECT v.name, v.cost_us FROM belvedere.views v WHERE v.cost_us IS NOT NULL"""


@dataclass(frozen=True, slots=True)
class AdviceOptions:
    """`workload` is the text of a file; None: what `belvedere.statements` has seen."""

    workload: str | None = None
    budget_bytes: int | None = None
    roots: tuple[str, ...] = ()
    form: str = "text"
    explain: bool = False
    schema_only: bool = False
    workload_only: bool = False


def give_advice(shared: SharedState, options: AdviceOptions) -> dict[str, Any]:
    """The report in the form asked for, the DDL of the views, and what went wrong."""
    advice = compute_advice(shared, options)
    return {
        "report": write_report(advice, options),
        "views": advice.list_ddl(),
        "names": [view.candidate.name for view in advice.views],
        "locks": advice.list_lock_ddl(),
        "skipped": len(advice.workload.rejected),
        "needed_bytes": advice.needed_bytes,
    }


def give_review(shared: SharedState) -> dict[str, Any]:
    """What the views that exist have saved and cost, by the statements that ran."""
    session = Session(shared)
    try:
        statements = _read_statements(session, None)
        found = review_views(describe_database(session), statements, _list_earlier_calls(shared))
    finally:
        session.close()
    idle = [one.name for one in found if one.is_idle]
    return {"report": write_review(found), "idle": idle}


def _list_earlier_calls(shared: SharedState) -> EarlierCalls:
    found: dict[int, dict[str, tuple[float, float]]] = {}
    for record in shared.statistics.list_records():
        for view, counts in record.before.items():
            found.setdefault(view, {})[record.text] = counts
    return found


def compute_advice(shared: SharedState, options: AdviceOptions) -> Advice:
    session = Session(shared)
    try:
        statements = _read_statements(session, options.workload)
        request = AdviceRequest(
            statements,
            options.roots,
            options.budget_bytes,
            schema_only=options.schema_only,
            workload_only=options.workload_only,
        )
        measured = any(one.mean_us is not None for one in statements)
        return advise(describe_database(session, measured=measured), request)
    finally:
        session.close()


def write_report(advice: Advice, options: AdviceOptions) -> str:
    if options.form == "json":
        return write_json_report(advice)
    if options.form == "html":
        return write_html_report(advice)
    return write_text_report(advice, explain=options.explain)


def _read_statements(session: Session, workload: str | None) -> list[WorkloadStatement]:
    if workload is not None:
        return read_workload_text(workload)
    rows = session.execute(_SEEN).rows
    wanted = [(text, calls, mean) for text, calls, mean in rows if "belvedere." not in text]
    return read_statistics_rows(wanted)


def describe_database(session: Session, *, measured: bool = True) -> AdvisedDatabase:
    """`measured`: also what changes have cost the views that exist."""
    shared, catalog = session.shared, session.catalog
    return AdvisedDatabase(
        catalog,
        shared.table_statistics,
        bind_simplified_definition,
        _measure_changes(session) if measured and catalog.views else {},
    )


def _measure_changes(session: Session) -> dict[int, float]:
    ids = {view.name: view.id for view in session.catalog.views}
    return {ids[name]: cost for name, cost in session.execute(_MEASURED).rows if name in ids}
