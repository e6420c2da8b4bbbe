"""The open database as the advisor sees it: what exists, and how large and how costly it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from belvedere.catalog.catalog import Catalog
from belvedere.sql.rules.statistics import Statistics
from belvedere.views.registry.view_registry import Bind


@dataclass(frozen=True, slots=True)
class AdvisedDatabase:
    """`bind` turns a definition into its plan. `measured_change_us` is what one change of a table
    has been seen to cost each view that exists; `stored_bytes` what the tables take."""

    catalog: Catalog
    statistics: Statistics
    bind: Bind
    measured_change_us: Mapping[int, float] = field(default_factory=dict)
    stored_bytes: int | None = None
