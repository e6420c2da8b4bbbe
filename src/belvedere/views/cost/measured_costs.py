"""Measured costs of the maintenance tiers, as factors of their estimates.

What a change or a row is expected to take are seconds of one machine (`views.cost.cost_model`). How
much slower or faster a view goes here is measured with every batch that is large enough to tell, as
a factor for each view and way; it moves with what comes, so that a noisy moment is forgotten. What
was never measured is as far from what is expected as the same way of other views, or, where nobody
has gone it, as all that was measured: as long as only one way is known, the choice is that of the
constants.

A tier that is not taken is not measured either. So its factor decays towards the general one, a
little with each batch for which it was not taken, and it is tried again.
"""

from __future__ import annotations

import math

from belvedere.views.cost.maintenance_tier import MaintenanceTier

CHANGES_MIN = 500
"""A batch of fewer changes is too short to measure."""

NEW_SHARE = 0.4
"""The weight of a new measurement in the moving average."""

DECAY_SHARE = 0.03
"""How far the factor of a tier that was not taken decays each time."""

FACTOR_MAX = 30.0


class CostFactors:
    """Measured factors per view and tier, per tier, and of all measurements."""

    def __init__(self) -> None:
        self._factors: dict[tuple[int, MaintenanceTier] | MaintenanceTier | None, float] = {}

    def scale_to_measured_seconds(self, view: int, way: MaintenanceTier, seconds: float) -> float:
        """The seconds expected here of what takes `seconds` on the machine of the constants."""
        known = self._factors
        return seconds * known.get((view, way), self._tier_or_overall_factor(way))

    def record_batch_cost(
        self, view: int, way: MaintenanceTier, seconds: float, taken_s: float, changes: float
    ) -> None:
        """Record that a batch of so many changes, estimated at `seconds`, took `taken_s`."""
        if changes < CHANGES_MIN or not 0 < seconds < math.inf:
            return
        found = min(max(taken_s / seconds, 1 / FACTOR_MAX), FACTOR_MAX)
        for key in ((view, way), way, None):
            known = self._factors.get(key)
            self._factors[key] = found if known is None else known + NEW_SHARE * (found - known)

    def decay_unused_factor(self, view: int, way: MaintenanceTier) -> None:
        """Decay the factor of a tier that a batch could have taken, and did not."""
        known = self._factors.get((view, way))
        if known is not None:
            self._factors[view, way] = known + DECAY_SHARE * (
                self._tier_or_overall_factor(way) - known
            )

    def _tier_or_overall_factor(self, way: MaintenanceTier) -> float:
        known = self._factors
        return known.get(way, known.get(None, 1.0))
