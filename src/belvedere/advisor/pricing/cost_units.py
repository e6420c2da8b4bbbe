"""Microseconds for what plans and maintenance are counted in.

The optimizer counts in rows read by key. The constants are those of an embedded store on one core;
measurements of the database at hand scale them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from belvedere.views.explain.cost_estimate import ChangeCost

STATEMENT_US = 12.0
KEY_READ_US = 6.0
RANGE_US = 12.0
SCANNED_ROW_US = 0.6
ENTRY_US = 7.0
WRITE_US = 45.0
"""A single-row write without views: plan, lock, checks, log record, the row."""

INDEX_US = 5.0
DEFERRED_SHARE = 0.5
"""What maintenance in batches costs of that inside commits."""

HOT_ENTRY_US = 20.0
"""What a write of a partitioned table pays for an entry that all its writes change: the partitions
spread the rows over the store, such an entry brings all writes to one place."""

FACTOR_MAX = 10.0


@dataclass(frozen=True, slots=True)
class CostUnits:
    """`write_factor` is how measured changes compare with their estimates."""

    write_factor: float = 1.0

    def convert_query_cost(self, cost: float) -> float:
        """Microseconds of a statement by its optimizer cost."""
        return STATEMENT_US + cost * KEY_READ_US

    def convert_change_cost(self, change: ChangeCost, rows: float, entries: float) -> float:
        """Microseconds of one changed row: what it reads, with `rows` in the tables of each full
        scan, and `entries` of the view that it changes."""
        reads = change.gets * KEY_READ_US + change.ranges * RANGE_US
        scans = change.scans * rows * SCANNED_ROW_US
        writes = change.writes * max(entries, 1.0) * ENTRY_US
        return (reads + scans + writes) * self.write_factor


def measure_write_factor(pairs: Iterable[tuple[float, float]]) -> float:
    """How measured costs compare with estimated ones: the middle one of their ratios."""
    ratios = sorted(
        min(max(measured / estimated, 1 / FACTOR_MAX), FACTOR_MAX)
        for estimated, measured in pairs
        if estimated > 0
    )
    return ratios[len(ratios) // 2] if ratios else 1.0
