"""Measured costs of the maintenance tiers, as factors of their estimates.

The estimates of a change or a row are seconds of one machine (`views.cost.cost_model`). Every batch
that is large enough is measured against them, as a factor for each view and tier; the factor is a
moving geometric average, so that an outlier counts little and is forgotten. A view that was never
measured in a tier has the factor of that tier for other views, or, where there is none, the factor
of all measurements: as long as only one tier was measured, the constants decide.

A tier that is not taken is not measured either. So its factor decays towards the general one, a
little with each batch for which it was not taken, and it is tried again.

The factors are kept with the store, so that a process begins with what the last one has learned.
How far estimates have been off is a moving average too, for EXPLAIN.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable

from belvedere.codec.keyspace import meta_key
from belvedere.errors import Corruption
from belvedere.kv.batch import Write
from belvedere.txn.contracts import Reader
from belvedere.views.cost.maintenance_tier import MaintenanceTier

CHANGES_MIN = 500
"""A batch of fewer changes is too short to measure."""

NEW_SHARE = 0.4
"""The weight of a new measurement in the moving average."""

DECAY_SHARE = 0.03
"""How far the factor of a tier that was not taken decays each time."""

KEPT_COSTS = meta_key("maintenance costs")

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
        self._misses: dict[tuple[int, MaintenanceTier], float] = {}  # logarithms
        self._is_kept = True

    def scale_to_measured_seconds(self, view: int, way: MaintenanceTier, seconds: float) -> float:
        """The seconds expected here of what takes `seconds` on the machine of the constants."""
        known = self._factors
        return seconds * known.get((view, way), self._get_tier_or_overall_factor(way))

    def is_measured(self, view: int, way: MaintenanceTier) -> bool:
        """Whether a batch of this view was measured in this tier."""
        return (view, way) in self._factors

    def record_batch_cost(
        self, view: int, way: MaintenanceTier, seconds: float, taken_s: float, changes: float
    ) -> None:
        """Record that a batch of so many changes, estimated at `seconds`, took `taken_s`."""
        if changes < CHANGES_MIN or not 0 < seconds < math.inf:
            return
        found = min(max(taken_s / seconds, 1 / FACTOR_MAX), FACTOR_MAX)
        miss = abs(math.log(found / self.scale_to_measured_seconds(view, way, 1.0)))
        before = self._misses.get((view, way), miss)
        self._misses[view, way] = before + NEW_SHARE * (miss - before)
        self._is_kept = False
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

    def describe_errors(self, view: int) -> str | None:
        """How many times more or less than expected batches have taken; None: never measured."""
        misses = [(way, self._misses.get((view, way))) for way in MaintenanceTier]
        shown = [f"{way} {math.exp(miss):.1f}x" for way, miss in misses if miss is not None]
        return f"estimates were off by: {', '.join(shown)}" if shown else None

    def build_kept_writes(self) -> list[Write]:
        """What is to be kept with the store, where something was measured since the last call."""
        if self._is_kept:
            return []
        self._is_kept = True
        factors = [[*_list_key_parts(key), factor] for key, factor in self._factors.items()]
        misses = [[*key, miss] for key, miss in self._misses.items()]
        return [(KEPT_COSTS, json.dumps({"factors": factors, "misses": misses}).encode())]

    def restore_kept_costs(self, reader: Reader) -> None:
        """Begin with what the last process has kept, of the views that are still there."""
        data = reader.get(KEPT_COSTS)
        if data is None:
            return
        views = {view.id for view in reader.catalog.views}
        try:
            kept = json.loads(data)
            factors = {
                _join_key_parts(view, way): float(factor)
                for view, way, factor in kept["factors"]
                if view is None or view in views
            }
            misses = {
                (int(view), MaintenanceTier(way)): float(miss)
                for view, way, miss in kept["misses"]
                if view in views
            }
        except (ValueError, KeyError, TypeError) as error:
            raise Corruption("costs of maintenance are damaged", detail=str(error)) from error
        self._factors, self._misses = factors, misses

    def _get_tier_or_overall_factor(self, way: MaintenanceTier) -> float:
        known = self._factors
        return known.get(way, known.get(None, 1.0))


_Key = tuple[int, MaintenanceTier] | MaintenanceTier | None


def _list_key_parts(key: _Key) -> tuple[int | None, MaintenanceTier | None]:
    return key if isinstance(key, tuple) else (None, key)


def _join_key_parts(view: int | None, way: str | None) -> _Key:
    tier = None if way is None else MaintenanceTier(way)
    return tier if view is None or tier is None else (view, tier)
