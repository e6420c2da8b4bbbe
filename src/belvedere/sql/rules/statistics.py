"""Statistics of stored data for the optimizer: they may be old or missing, plans stay correct."""

from __future__ import annotations

from typing import Any, Protocol

from belvedere.sql.rules.column_summary import ColumnSummary

DEFAULT_ROWS = 1000.0


class Statistics(Protocol):
    """Kept approximately and without coordination; None: not known."""

    def row_count(self, relation: int) -> float | None:
        """How many rows a table, index or view has."""

    def distinct_count(self, relation: int, slot: int) -> float | None:
        """How many different values a column has."""

    def value_range(self, relation: int, slot: int) -> tuple[Any, Any] | None:
        """The smallest and the largest value of a column."""

    def column_summary(self, relation: int, slot: int) -> ColumnSummary | None:
        """How the values of a column are spread."""


class NoStatistics:
    """Nothing is known."""

    def row_count(self, relation: int) -> float | None:
        return None

    def distinct_count(self, relation: int, slot: int) -> float | None:
        return None

    def value_range(self, relation: int, slot: int) -> tuple[Any, Any] | None:
        return None

    def column_summary(self, relation: int, slot: int) -> ColumnSummary | None:
        return None
