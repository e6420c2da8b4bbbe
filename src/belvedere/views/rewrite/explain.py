"""What EXPLAIN tells about rewriting: views taken, what is done to their rows, views refused."""

from __future__ import annotations

from belvedere.views.rewrite.planner import RewriteChoice


def describe_rewriting(rewriting: RewriteChoice) -> list[str]:
    """One line for each view that shares tables with the statement."""
    lines = []
    for answer in rewriting.answers:
        steps = "; ".join(answer.compensation.steps) or "its rows as they are"
        lines.append(f"rewritten to view {answer.view.rows.name}: {steps}")
    if rewriting.answers:
        costs = f"cost {rewriting.cost:.1f}, without views {rewriting.cost_without:.1f}"
        lines.append(f"rewriting: {costs}")
    lines += [f"view {one.name} not used: {one.reason}" for one in rewriting.refusals]
    return lines
