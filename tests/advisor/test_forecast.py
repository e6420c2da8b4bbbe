"""The forecast: what readers get by default, where views are deferred, and what writes pay."""

from __future__ import annotations

import json

import pytest

from belvedere.advisor.choice.objective import DEFERRED_SAVING
from belvedere.advisor.forecast import WorkloadForecast
from belvedere.interfaces.advice import AdviceOptions, compute_advice, give_advice
from belvedere.session.session import Session
from tests.advisor.shop import TOTALS, WORKLOAD, open_shop

LAGGING = WORKLOAD + "-- name: rename calls: 5\nUPDATE customers SET name = ? WHERE id = ?;"
"""A change of one customer moves ten rows of a view for the query by city."""


def _forecast(session: Session, workload: str) -> WorkloadForecast:
    return compute_advice(session.shared, AdviceOptions(workload)).forecast


def test_reads_of_a_deferred_view_are_not_counted_whole() -> None:
    database, session = open_shop()
    with database:
        advice = compute_advice(session.shared, AdviceOptions(LAGGING))
        assert {"maintenance": "deferred", "max_lag": "1 s"} in [
            dict(view.candidate.options) for view in advice.views
        ]
        forecast = advice.forecast
        (late,) = [one for one in forecast.queries if one.deferred]
        assert late.fresh_us < late.after_us < late.stale_us == late.before_us
        expected = DEFERRED_SAVING * late.fresh_us + (1 - DEFERRED_SAVING) * late.stale_us
        assert late.after_us == pytest.approx(expected)
        assert forecast.fresh_us < forecast.after_us < forecast.stale_us
        saved = sum(view.saved_us for view in advice.views)
        assert forecast.before_us - forecast.after_us < saved * 1.01


def test_maintenance_outside_of_commits_is_part_of_the_forecast() -> None:
    database, session = open_shop()
    with database:
        forecast = _forecast(session, LAGGING)
        assert forecast.maintenance_us > 0
        runs = sum(one.after_us * one.calls for one in forecast.statements)
        assert forecast.after_us == pytest.approx(runs + forecast.maintenance_us)


def test_immediate_views_are_fresh_for_every_read() -> None:
    database, session = open_shop()
    with database:
        forecast = _forecast(session, WORKLOAD)
        assert not forecast.reads_deferred_views
        assert forecast.fresh_us == forecast.after_us == forecast.stale_us
        assert forecast.maintenance_us == 0


@pytest.mark.parametrize("form", ["text", "html"])
def test_reports_say_what_the_headline_counts(form: str) -> None:
    database, session = open_shop()
    with database:
        report = give_advice(session.shared, AdviceOptions(LAGGING, form=form))["report"]
        assert "50% of the reads of deferred views" in report
        assert "maintenance of deferred views, outside of commits" in report
        assert "x as long" in report
        assert "(deferred)" in report


def test_reports_say_that_a_workload_without_writes_weighs_none() -> None:
    database, session = open_shop()
    with database:
        report = give_advice(session.shared, AdviceOptions(f"{TOTALS};"))["report"]
        assert "the workload has no writes" in report
        with_writes = give_advice(session.shared, AdviceOptions(WORKLOAD))["report"]
        assert "the workload has no writes" not in with_writes
        assert "writes would take" in with_writes


def test_json_has_the_bounds_of_every_statement() -> None:
    database, session = open_shop()
    with database:
        found = json.loads(
            give_advice(session.shared, AdviceOptions(LAGGING, form="json"))["report"]
        )
        assert found["fresh_us"] < found["after_us"] < found["stale_us"]
        assert found["maintenance_us"] > 0
        (late,) = [one for one in found["queries"] if one["deferred"]]
        assert late["deferred"] == late["views"]
