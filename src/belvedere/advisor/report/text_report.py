"""The advice as text."""

from __future__ import annotations

from collections.abc import Iterator

from belvedere.advisor.advise import Advice, AdvisedView
from belvedere.advisor.choice.dismissals import format_bytes
from belvedere.advisor.choice.objective import DEFERRED_SAVING
from belvedere.advisor.forecast import StatementForecast, WorkloadForecast
from belvedere.advisor.report.stages_text import describe_stages

DISMISSED_MAX = 12


def write_text_report(advice: Advice, *, explain: bool = False) -> str:
    lines = [
        *(describe_stages(advice.stages) if explain else ()),
        *([""] if explain else ()),
        *_describe_head(advice),
        *_describe_views(advice),
        *_describe_forecasts("queries", advice.forecast.queries),
        *_describe_forecasts("writes", advice.forecast.writes),
        *_describe_dismissed(advice, all_=explain),
        *_describe_rejected(advice),
    ]
    return "\n".join(lines)


def _describe_head(advice: Advice) -> Iterator[str]:
    workload = advice.workload
    yield (
        f"{len(workload.queries)} queries and {len(workload.writes)} writes,"
        f" {advice.candidates} candidates"
    )
    if advice.stages.graph.from_workload:
        yield "no foreign key is declared: the joins of the workload were taken as relationships"
    forecast = advice.forecast
    before, after = forecast.before_us, forecast.after_us
    if advice.views and before:
        yield (
            f"the workload would take {format_us(after)} instead of {format_us(before)},"
            f" {(1 - after / before) * 100:.1f} % less"
        )
        yield from describe_bounds(forecast)
        yield describe_write_cost(forecast)
    elif not advice.views:
        yield describe_no_view(advice)


def describe_no_view(advice: Advice) -> str:
    if advice.needed_bytes is not None:
        return (
            f"nothing fits into {format_bytes(advice.budget_bytes or 0)}:"
            f" the views that pay take {format_bytes(advice.needed_bytes)}"
        )
    if not advice.workload.queries:
        return "no view: the workload has no query"
    if not advice.candidates:
        return "no view: no query joins, groups or filters by a column without an index"
    return "no view pays: every candidate and the reason is listed below"


def describe_bounds(forecast: WorkloadForecast) -> Iterator[str]:
    """What the figure for the workload counts, where it depends on how fresh readers want it."""
    if forecast.reads_deferred_views:
        yield (
            f"{DEFERRED_SAVING:.0%} of the reads of deferred views are taken to find them as fresh"
            f" as the tables; {format_us(forecast.fresh_us)} if all do, or with SET freshness ="
            f" 'any', {format_us(forecast.stale_us)} if none does"
        )
    if forecast.maintenance_us:
        yield (
            f"{format_us(forecast.maintenance_us)} of that is maintenance of deferred views,"
            " outside of commits"
        )


def describe_write_cost(forecast: WorkloadForecast) -> str:
    """What writes pay for the views."""
    writes = forecast.writes
    if not writes:
        return (
            "the workload has no writes, so what the views cost writes has no part in the choice:"
            " give the writes too"
        )
    before = sum(one.before_us * one.calls for one in writes)
    after = sum(one.after_us * one.calls for one in writes)
    slowest = max(writes, key=lambda one: one.after_us / one.before_us)
    ratio = slowest.after_us / slowest.before_us
    if ratio <= 1:
        return "no write would take longer"
    return (
        f"writes would take {format_us(after)} instead of {format_us(before)};"
        f" {slowest.name} most, {ratio:.1f}x as long"
    )


def _describe_views(advice: Advice) -> Iterator[str]:
    for number, view in enumerate(advice.views, 1):
        yield ""
        yield f"{number}. {describe_figures(view)}"
        yield f"   {view.reason}"
        yield from (f"   {line}" for line in view.candidate.write_ddl().splitlines())
    if advice.views:
        yield ""
        yield f"together: {format_bytes(advice.stored_bytes)} stored"
        if advice.needed_bytes is not None:
            yield f"without the budget: {format_bytes(advice.needed_bytes)}"


def describe_figures(view: AdvisedView) -> str:
    return (
        f"saves {format_us(view.saved_us)}, costs writes {format_us(view.upkeep_us)},"
        f" stores {format_bytes(view.price.stored_bytes)} in {view.price.rows:.0f} rows"
    )


def _describe_forecasts(title: str, forecasts: tuple[StatementForecast, ...]) -> Iterator[str]:
    if not forecasts:
        return
    width = max(len(one.name) for one in forecasts)
    yield ""
    yield f"{title:<{width + 2}}  {'calls':>9}  {'before':>9}  {'after':>9}"
    for one in forecasts:
        views = f"  {', '.join(list_view_names(one))}" if one.views else ""
        yield (
            f"  {one.name:<{width}}  {one.calls:>9.0f}  {format_us(one.before_us):>9}"
            f"  {format_us(one.after_us):>9}{views}"
        )


def list_view_names(one: StatementForecast) -> list[str]:
    """The views of a statement; of those that are deferred it is said."""
    return [f"{view} (deferred)" if view in one.deferred else view for view in one.views]


def _describe_dismissed(advice: Advice, *, all_: bool) -> Iterator[str]:
    if not advice.dismissed:
        return
    shown = advice.dismissed if all_ else advice.dismissed[:DISMISSED_MAX]
    yield ""
    yield "not chosen"
    for one in shown:
        yield f"  {one.name}: {one.reason}"
    if len(shown) < len(advice.dismissed):
        yield f"  and {len(advice.dismissed) - len(shown)} more (--explain lists all)"


def _describe_rejected(advice: Advice) -> Iterator[str]:
    if advice.workload.rejected:
        yield ""
        yield "skipped statements"
        for one in advice.workload.rejected:
            text = " ".join(one.statement.text.split())
            yield f"  {one.statement.name}: {one.reason}: {text[:100]}"


def format_us(us: float) -> str:
    if us < 1000:
        return f"{us:.0f} us"
    return f"{us / 1000:.1f} ms" if us < 1_000_000 else f"{us / 1e6:.1f} s"
