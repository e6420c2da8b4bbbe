"""The advice as JSON, for programs."""

from __future__ import annotations

import json
from typing import Any

from belvedere.advisor.advise import Advice, AdvisedView
from belvedere.advisor.forecast import StatementForecast


def write_json_report(advice: Advice) -> str:
    forecast = advice.forecast
    graph = advice.stages.graph
    found: dict[str, Any] = {
        "before_us": forecast.before_us,
        "after_us": forecast.after_us,
        "fresh_us": forecast.fresh_us,
        "stale_us": forecast.stale_us,
        "maintenance_us": forecast.maintenance_us,
        "candidates": advice.candidates,
        "budget_bytes": advice.budget_bytes,
        "stored_bytes": advice.stored_bytes,
        "needed_bytes": advice.needed_bytes,
        "roots": [graph.name_relation(root) for root in advice.stages.roots],
        "edges_from_workload": graph.from_workload,
        "views": [_describe_view(view) for view in advice.views],
        "queries": [_describe_forecast(one) for one in forecast.queries],
        "writes": [_describe_forecast(one) for one in forecast.writes],
        "locks": advice.list_lock_ddl(),
        "dismissed": [
            {"name": one.name, "ddl": one.definition, "reason": one.reason}
            for one in advice.dismissed
        ],
        "skipped": [
            {"name": one.statement.name, "text": one.statement.text, "reason": one.reason}
            for one in advice.workload.rejected
        ],
    }
    return json.dumps(found, indent=2)


def _describe_view(view: AdvisedView) -> dict[str, Any]:
    return {
        "name": view.candidate.name,
        "kind": view.candidate.kind.value,
        "ddl": view.candidate.write_ddl(),
        "saved_us": view.saved_us,
        "upkeep_us": view.upkeep_us,
        "stored_bytes": view.price.stored_bytes,
        "rows": view.price.rows,
        "reason": view.reason,
    }


def _describe_forecast(one: StatementForecast) -> dict[str, Any]:
    return {
        "name": one.name,
        "text": one.text,
        "calls": one.calls,
        "before_us": one.before_us,
        "after_us": one.after_us,
        "fresh_us": one.fresh_us,
        "stale_us": one.stale_us,
        "views": list(one.views),
        "deferred": list(one.deferred),
    }
