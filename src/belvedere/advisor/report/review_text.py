"""The review of views that exist, as text."""

from __future__ import annotations

from collections.abc import Sequence

from belvedere.advisor.report.text_report import format_us
from belvedere.advisor.review import ViewReview


def write_review(reviews: Sequence[ViewReview]) -> str:
    if not reviews:
        return "there are no views"
    width = max(len(one.name) for one in reviews)
    lines = [f"{'view':<{width}}  {'reads':>8}  {'saved':>9}  {'cost':>9}"]
    for one in reviews:
        verdict = _name_verdict(one)
        saved, cost = format_us(one.saved_us), format_us(one.upkeep_us)
        lines.append(f"{one.name:<{width}}  {one.calls:>8.0f}  {saved:>9}  {cost:>9}  {verdict}")
    idle = [one.name for one in reviews if one.is_idle]
    if idle:
        lines += ["", "views that the statements seen so far do not pay for:"]
        lines += [f"  DROP MATERIALIZED VIEW {name};" for name in idle]
    return "\n".join(lines)


def _name_verdict(review: ViewReview) -> str:
    if review.named:
        return "read by name"
    if not review.tried:
        return "no statement about its tables has run since it was made"
    return "pays" if review.pays else "does not pay"
