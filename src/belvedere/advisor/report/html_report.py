"""The advice as one HTML file that stands alone: figures, views, statements, drawings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from belvedere.advisor.advise import Advice, AdvisedView
from belvedere.advisor.choice.dismissals import format_bytes
from belvedere.advisor.forecast import StatementForecast
from belvedere.advisor.report.html_style import STYLE
from belvedere.advisor.report.svg_graph import draw_stages
from belvedere.advisor.report.text_report import (
    describe_bounds,
    describe_no_view,
    describe_write_cost,
    format_us,
    list_view_names,
)


def write_html_report(advice: Advice) -> str:
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Belvedere advisor</title><style>{STYLE}</style></head><body><main>",
        *_write_head(advice),
        *_write_views(advice),
        *_write_forecasts("Queries", advice.forecast.queries),
        *_write_forecasts("Writes", advice.forecast.writes),
        *_write_drawings(advice),
        *_write_dismissed(advice),
        *_write_skipped(advice),
        "</main></body></html>",
    ]
    return "".join(parts)


def _write_head(advice: Advice) -> Iterator[str]:
    forecast = advice.forecast
    before, after = forecast.before_us, forecast.after_us
    yield "<header><p class='kicker'>Belvedere advisor</p>"
    if not advice.views:
        yield f"<h1>No view</h1><p class='lead'>{escape(describe_no_view(advice))}</p></header>"
        return
    count = len(advice.views)
    ratio = before / after if after else 1.0
    views = "1 view" if count == 1 else f"{count} views"
    yield f"<h1>{views} would make this workload {ratio:.1f}x faster</h1>"
    yield "<p class='lead'>Estimated by planning every statement as if the views were there.</p>"
    yield "</header><section class='figures'>"
    figures = (
        ("workload now", format_us(before)),
        ("with the views", format_us(after)),
        ("stored", format_bytes(advice.stored_bytes)),
        ("candidates", str(advice.candidates)),
    )
    for name, value in figures:
        yield f"<div><b>{escape(value)}</b><span>{escape(name)}</span></div>"
    yield "</section>"
    for line in (*describe_bounds(forecast), describe_write_cost(forecast)):
        yield f"<p class='fact'>{escape(line[0].upper() + line[1:])}.</p>"
    if advice.needed_bytes is not None:
        needed = format_bytes(advice.needed_bytes)
        yield f"<p class='note'>The budget decided: without it the views would take {needed}.</p>"
    if advice.stages.graph.from_workload:
        text = "No foreign key is declared: joins of the workload were taken as relationships."
        yield f"<p class='note'>{text}</p>"


def _write_views(advice: Advice) -> Iterator[str]:
    if advice.views:
        yield "<h2>Views</h2>"
    for view in advice.views:
        yield from _write_view(view)


def _write_view(view: AdvisedView) -> Iterator[str]:
    yield f"<article><h3>{escape(view.candidate.name)}</h3><p>{escape(view.reason)}</p><dl>"
    figures = (
        ("saves", format_us(view.saved_us)),
        ("costs writes", format_us(view.upkeep_us)),
        ("stores", format_bytes(view.price.stored_bytes)),
        ("rows", f"{view.price.rows:,.0f}"),
    )
    for name, value in figures:
        yield f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>"
    yield f"</dl><pre>{escape(view.candidate.write_ddl())}</pre></article>"


def _write_forecasts(title: str, forecasts: Sequence[StatementForecast]) -> Iterator[str]:
    if not forecasts:
        return
    longest = max(max(one.before_us, one.after_us) for one in forecasts) or 1.0
    names = ("statement", "calls", "before", "after", "", "time of one run", "views")
    heads = "".join(f"<th>{name}</th>" for name in names)
    yield f"<h2>{title}</h2><div class='scroll'><table><thead><tr>{heads}</tr></thead><tbody>"
    for one in forecasts:
        ratio = one.before_us / one.after_us if one.after_us else 1.0
        text, kind = _compare_times(ratio)
        yield (
            f"<tr><td title='{escape(one.text, quote=True)}'><code>{escape(one.name)}</code></td>"
            f"<td class='n'>{one.calls:,.0f}</td><td class='n'>{format_us(one.before_us)}</td>"
            f"<td class='n'>{format_us(one.after_us)}</td><td class='n {kind}'>{text}</td>"
            f"<td class='bars'>{_write_bar(one.before_us / longest, 'before')}"
            f"{_write_bar(one.after_us / longest, 'after')}</td>"
            f"<td class='views'>{escape(', '.join(list_view_names(one)))}</td></tr>"
        )
    yield "</tbody></table></div>"


def _compare_times(ratio: float) -> tuple[str, str]:
    if ratio >= 1.05:
        return f"{ratio:.1f}x", "good"
    return (f"{1 / ratio:.1f}x slower", "bad") if ratio < 0.95 else ("=", "same")


def _write_bar(share: float, kind: str) -> str:
    return f"<i class='{kind}' style='width:{max(share * 100, 0.6):.1f}%'></i>"


def _write_drawings(advice: Advice) -> Iterator[str]:
    yield "<h2>How the schema was read</h2>"
    for drawing in draw_stages(advice.stages):
        yield f"<figure><figcaption>{escape(drawing.title)}</figcaption>"
        yield f"<div class='scroll'>{drawing.svg}</div></figure>"


def _write_dismissed(advice: Advice) -> Iterator[str]:
    if not advice.dismissed:
        return
    yield f"<h2>Not chosen</h2><details><summary>{len(advice.dismissed)} candidates</summary><ul>"
    for one in advice.dismissed:
        yield f"<li><code title='{escape(one.definition, quote=True)}'>{escape(one.name)}</code>"
        yield f" {escape(one.reason)}</li>"
    yield "</ul></details>"


def _write_skipped(advice: Advice) -> Iterator[str]:
    if not advice.workload.rejected:
        return
    yield "<h2>Skipped statements</h2><ul>"
    for one in advice.workload.rejected:
        text = " ".join(one.statement.text.split())
        yield f"<li><code>{escape(one.statement.name)}</code> {escape(one.reason)}"
        yield f"<pre>{escape(text[:300])}</pre></li>"
    yield "</ul>"
