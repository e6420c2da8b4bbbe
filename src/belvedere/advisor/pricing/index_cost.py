"""What an index of a table costs the writes of a workload, and how much it stores."""

from __future__ import annotations

from belvedere.advisor.candidates.candidate import Candidate
from belvedere.advisor.pricing.cost_units import INDEX_US
from belvedere.advisor.pricing.hypothetical_catalog import HypotheticalCatalog
from belvedere.advisor.workload.bound_workload import BoundWorkload
from belvedere.catalog.model import Table

ENTRY_BYTES = 40


def estimate_index_upkeep(
    hypothesis: HypotheticalCatalog, candidate: Candidate, workload: BoundWorkload
) -> tuple[dict[str, float], float, int]:
    """Microseconds by write, rows, and bytes."""
    table = hypothesis.catalog.require_relation(Table, candidate.table)
    slots = {column.slot for column in table.columns if column.name in candidate.columns}
    writes = {
        write.name: INDEX_US * (2 if write.verb == "update" else 1)
        for write in workload.writes
        if write.relation == table.id and (write.slots is None or write.slots & slots)
    }
    rows = hypothesis.statistics.row_count(table.id) or 0.0
    return writes, rows, round(rows * ENTRY_BYTES)
