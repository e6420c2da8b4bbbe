"""The ways in which a batch of a deferred view is worked out (`views.tiers`)."""

from __future__ import annotations

import enum


class Way(enum.StrEnum):
    PYTHON = "python"
    DUCKDB = "duckdb"
    REFILL = "refill"
