"""Measured costs of the maintenance tiers, as factors of their estimates.

The estimates of a change or a row are seconds of one machine (`views.cost.cost_model`). Every batch
that is large enough is measured against them, as a factor for each view and tier; the factor is a
moving geometric average, so that an outlier counts little and is forgotten. A view that was never
measured in a tier has the factor of that tier for other views, or, where there is none, the factor
of all measurements: as long as only one tier was measured, the constants decide.

A tier that is not taken is not measured either. So its factor decays towards the general one, a
little with each batch for which it was not taken, and it is tried again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from belvedere.views.cost.maintenance_tier import MaintenanceTier

CHANGES_MIN = 500
"""A batch of fewer changes is too short to measure."""

NEW_SHARE = 0.4
"""The weight of a new measurement in the moving average."""

DECAY_SHARE = 0.03
"""How far the factor of a tier that was not taken decays each time."""

FACTOR_MAX = 1_000.0
"""A change of a view whose partitions are large takes that much longer than one of small ones."""


def start_timer(counts_waits: bool) -> Callable[[], float]:
    """A function that gives the seconds since now: all of them, or those of the processor where
    these are fewer, so that what else the machine does is not taken for the cost of a batch."""
    wall, processor = time.perf_counter(), time.process_time()

    def read_seconds() -> float:
        taken = time.perf_counter() - wall
        return taken if counts_waits else min(taken, time.process_time() - processor)

    return read_seconds


class CostFactors:
    """Measured factors per view and tier, per tier, and of all measurements."""

    def __init__(self) -> None:
        self._factors: dict[tuple[int, MaintenanceTier] | MaintenanceTier | None, float] = {}

    def scale_to_measured_seconds(self, view: int, way: MaintenanceTier, seconds: float) -> float:
        """The seconds expected here of what takes `seconds` on the machine of the constants."""
        known = self._factors
        return seconds * known.get((view, way), self._get_tier_or_overall_factor(way))

    def record_batch_cost(
        self, view: int, way: MaintenanceTier, seconds: float, taken_s: float, changes: float
    ) -> None:
        """Record that a batch of so many changes, estimated at `seconds`, took `taken_s`."""
        if changes < CHANGES_MIN or not 0 < seconds < math.inf:
            return
        found = min(max(taken_s / seconds, 1 / FACTOR_MAX), FACTOR_MAX)
        for key in ((view, way), way, None):
            known = self._factors.get(key)
            self._factors[key] = found if known is None else known * (found / known) ** NEW_SHARE

    def decay_unused_factor(self, view: int, way: MaintenanceTier) -> None:
        """Decay the factor of a tier that a batch could have taken, and did not."""
        known = self._factors.get((view, way))
        if known is not None:
            self._factors[view, way] = known + DECAY_SHARE * (
                self._get_tier_or_overall_factor(way) - known
            )

    def _get_tier_or_overall_factor(self, way: MaintenanceTier) -> float:
        known = self._factors
        return known.get(way, known.get(None, 1.0))
