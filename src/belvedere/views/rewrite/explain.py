"""What EXPLAIN tells about rewriting: views taken, what is done to their rows, views refused."""

from __future__ import annotations

from belvedere.views.rewrite.planner import RewriteChoice


def describe_rewriting(rewriting: RewriteChoice, *, bypassed: bool = False) -> list[str]:
    """One line for each view that shares tables with the statement. `bypassed`: it does not read
    them now, because they are not fresh enough."""
    lines = []
    for answer in rewriting.answers:
        name = answer.view.rows.name
        steps = "; ".join(answer.compensation.steps) or "its rows as they are"
        if bypassed:
            lines.append(f"view {name} not used: it is not fresh enough")
        else:
            lines.append(f"rewritten to view {name}: {steps}")
    if rewriting.answers:
        when = " when views are fresh" if bypassed else ""
        costs = f"cost {rewriting.cost:.1f}{when}, without views {rewriting.cost_without:.1f}"
        lines.append(f"rewriting: {costs}")
    lines += [f"view {one.name} not used: {one.reason}" for one in rewriting.refusals]
    return lines
