"""Web interactions, the statements that each issues, and the three mixes.

A mix gives the share of each interaction in percent; together with the statements of an interaction
it says how often each statement runs: the workload file of the advisor. Single-row look-ups by key,
which no view makes faster, are left out of it.
"""

from __future__ import annotations

from belvedere.benchmarks.tpcw.statements import STATEMENTS

INTERACTIONS: dict[str, dict[str, float]] = {
    "home": {"Q9": 1},
    "new_products": {"Q5": 1},
    "best_sellers": {"Q10": 1},
    "product_detail": {"Q6": 1},
    "search_request": {"Q9": 1},
    "search_results": {"Q4": 1 / 3, "title_search": 1 / 3, "author_search": 1 / 3},
    "shopping_cart": {"W6": 0.4, "W7": 0.7, "W12": 0.4, "W8": 0.2, "W11": 1, "Q8": 1, "Q9": 1},
    "customer_registration": {},
    "buy_request": {"Q3": 0.8, "W13": 0.8, "W5": 0.2, "W4": 0.2, "Q8": 1},
    "buy_confirm": {"Q8": 1, "W5": 0.05, "W1": 1, "W3": 3, "W9": 3, "W2": 1, "clear_cart": 1},
    "order_inquiry": {},
    "order_display": {"Q2": 1, "Q7": 1, "Q1": 1},
    "admin_request": {"Q6": 1},
    "admin_confirm": {"W10": 1, "Q11": 1, "Q6": 1},
}

MIXES: dict[str, tuple[float, ...]] = {
    "browsing": (29, 11, 11, 21, 12, 11, 2, 0.82, 0.75, 0.69, 0.3, 0.25, 0.1, 0.09),
    "shopping": (16, 5, 5, 17, 20, 17, 11.6, 3, 2.6, 1.2, 0.75, 0.66, 0.1, 0.09),
    "ordering": (
        *(9.12, 0.46, 0.46, 12.35, 14.53, 13.08),
        *(13.53, 12.86, 12.73, 10.18, 0.25, 0.22, 0.12, 0.11),
    ),
}
"""Percent of each interaction, in the order of INTERACTIONS."""


ONCE = "once"
"""Each statement as often as any other: what the Synergy paper measures."""


def count_statements(mix: str, interactions: float = 10_000) -> dict[str, float]:
    """How often each statement runs in so many interactions of a mix."""
    if mix == ONCE:
        return dict.fromkeys(STATEMENTS, 100.0)
    counts = dict.fromkeys(STATEMENTS, 0.0)
    for share, issued in zip(MIXES[mix], INTERACTIONS.values(), strict=True):
        for name, times in issued.items():
            counts[name] += interactions * share / 100 * times
    return counts


def write_workload(mix: str) -> str:
    """The mix as a workload file of `belvedere advise`."""
    counts = count_statements(mix)
    return "\n".join(
        f"-- name: {name} calls: {counts[name]:g}\n{' '.join(statement.sql.split())};"
        for name, statement in STATEMENTS.items()
    )
