"""The maintenance tiers, one of which computes a batch of a deferred view
(`views.cost.tier_selector`)."""

from __future__ import annotations

import enum


class MaintenanceTier(enum.StrEnum):
    PYTHON = "python"
    DUCKDB = "duckdb"
    REFILL = "refill"
