"""How many rows the partitions have that changes touch.

A change of a window without a bound computes all rows of its partition again, so that its cost is
the size of the partition, not a constant. The size is the rows of the table by the different values
of the partition's columns, as the statistics of the optimizer have them.
"""

from __future__ import annotations

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.views.cost.cost_model import PARTITION_ROWS
from belvedere.views.cost.row_counts import RowCounts
from belvedere.views.delta.delta_tree import (
    DeltaTree,
    LinearCore,
    Recompute,
    walk_tree,
)


def recomputes_partitions(tree: DeltaTree) -> bool:
    """Whether a change computes all rows of its partition again."""
    return _find_unbounded_window(tree) is not None


def estimate_partition_rows(tree: DeltaTree, rows: float, counts: RowCounts) -> float:
    """About how many of so many table rows one partition has."""
    part = next((one for one in walk_tree(tree) if isinstance(one, Recompute)), None)
    columns = None if part is None else _find_partition_columns(part)
    if columns is None:
        return float(PARTITION_ROWS)
    relation, slots = columns
    partitions = 1.0
    for slot in slots:
        different = counts.count_distinct(relation, slot)
        if different is None:
            return float(PARTITION_ROWS)
        partitions *= max(different, 1.0)
    return max(rows / partitions, 1.0)


def _find_unbounded_window(tree: DeltaTree) -> Recompute | None:
    found = (
        part
        for part in walk_tree(tree)
        if isinstance(part, Recompute)
        and isinstance(part.plan, n.Window)
        and part.first_rows is None
    )
    return next(found, None)


def _find_partition_columns(window: Recompute) -> tuple[int, list[int]] | None:
    """The table and its columns by which a window is partitioned; None where these are not columns
    of one table."""
    (given,) = window.inputs if len(window.inputs) == 1 else (None,)
    if given is None or not isinstance(given.tree, LinearCore) or len(given.tree.branches) != 1:
        return None
    branch = given.tree.branches[0]
    slots = []
    for key in given.keys:
        source = branch.columns[key.index] if isinstance(key, e.Column) else None
        if len(branch.leaves) != 1 or not isinstance(source, e.Column):
            return None
        slots.append(branch.leaves[0].slots[source.index])
    return branch.leaves[0].relation, slots
