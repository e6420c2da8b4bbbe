"""The cost model: seconds of maintaining and of reading views, estimated only here.

The constants were measured on one machine. The batches measured on a store correct the cost of
a batch (`views.cost.measured_costs`), the seconds that the worker has measured correct the cost of
a change for a reader.

- a batch (`views.cost.tier_selector`): by Python, added up by DuckDB, or refilled
- a read of a deferred view that is behind (`session.materialized.freshness_policy`): caught up, or
  bypassed
"""

from __future__ import annotations

from belvedere.views.delta.delta_tree import (
    DeltaTree,
    FullRecompute,
    LinearCore,
    Recompute,
    child_trees,
)

RECORD_S, DECODE_S, STATE_ROW_S = 4e-6, 0.5e-6, 2.5e-6
"""A record of the log that a reader catches up with; a change that a batch decodes; a stored row
that a batch by rows reads and writes, of a view without groups, where each change has its own.
The last two are no part of what is measured of a batch, so no measurement corrects them."""

CHANGE_S, ROW_S, PARTNER_S, OPERATOR_S, RECOMPUTE_S = 0.8e-6, 2e-6, 0.4e-6, 10e-6, 30e-6
"""In Python: a change that is only added up; what a row of a view without groups takes beyond it; a
partner it has to find; an operator it goes through; a key whose rows are computed again."""

PARTITION_ROWS, PARTITION_ROW_S = 100, 8e-6
"""Of a window whose rows are computed again by partition: the rows of one, where they
are not known; such a row, before the change and after it."""

STATEMENT_S = 4e-3
"""In DuckDB: a statement, planned by us before and by DuckDB each time."""

GROUPED_S, STORED_ROW_S, COMPARED_S = 0.3e-6, 1.2e-6, 1.2e-6
"""In DuckDB: a row whose columns are in memory, as those that batches read most often are; a row of
a table that has to be read from the store first; a row of stored state that is compared."""

ADDED_CHANGE_S, COPIED_CHANGE_S = 0.8e-6, 0.5e-6
"""A change that DuckDB adds up: there is an old row of it and a new one; a change that the columns
of its table in memory take in, before they are read."""

COLUMN_CHANGE_S, COLUMN_ROW_S = 0.3e-6, 0.9e-6
"""A change that is added up by columns, from the log; what a row of a view without groups takes
beyond it, to the written entry."""

FAMILY_VIEW_S = 1.5e-3
"""A view that is added up by columns together with another one: its aggregates are planned, its
groups are read and written."""

DIFFERENCE_ROW_S = 3e-6
"""In DuckDB, of a difference of two definitions: a row of a touched partition, computed before and
after, encoded and written."""

UNMEASURED_CHANGE_S = RECOMPUTE_S
"""A change of a view that was never measured is taken for the dearest kind."""


def estimate_python_change_s(tree: DeltaTree, *, grouped: bool) -> float:
    """A change of a view, by Python."""
    match tree:
        case LinearCore():
            leaves = max(len(branch.leaves) for branch in tree.branches)
            return CHANGE_S + (leaves - 1) * PARTNER_S + (0 if grouped else ROW_S)
        case Recompute() | FullRecompute():
            return RECOMPUTE_S
        case _:
            below = [estimate_python_change_s(one, grouped=grouped) for one in child_trees(tree)]
            return max([OPERATOR_S, *below])


def estimate_column_change_s(*, grouped: bool) -> float:
    """A change that is added up by columns."""
    return COLUMN_CHANGE_S + (0 if grouped else COLUMN_ROW_S)


def estimate_duckdb_sums_s(changes: float, partner_rows: float) -> float:
    """A batch added up by DuckDB: a statement for old rows, one for new."""
    return 2 * STATEMENT_S + (changes + partner_rows) * ADDED_CHANGE_S


def estimate_duckdb_columns_s(changes: float, partner_rows: float, *, grouped: bool) -> float:
    """A batch added up by columns: one statement, and no change decoded in Python."""
    each = estimate_column_change_s(grouped=grouped)
    return STATEMENT_S + changes * each + partner_rows * GROUPED_S


def estimate_family_s(seconds: float, views: int) -> float:
    """So many views added up by columns together, one of which takes so many seconds by itself."""
    return seconds + (views - 1) * FAMILY_VIEW_S


def estimate_difference_s(changes: float, touched_rows: float, rows: float) -> float:
    """A batch that computes the touched partitions of tables of so many rows before and after."""
    read = rows * GROUPED_S / 10  # only compared with the touched keys
    return 2 * STATEMENT_S + changes * COLUMN_CHANGE_S + touched_rows * DIFFERENCE_ROW_S + read


def estimate_duckdb_refill_s(rows: float, stored: float) -> float:
    """A batch that runs the definition over so many rows, and compares the stored state with it."""
    return STATEMENT_S + rows * GROUPED_S + stored * COMPARED_S


def estimate_read_catch_up_s(commits: int, change_s: float) -> float:
    """A reader that puts so many commits on top of stored rows."""
    return commits * (RECORD_S + change_s)


def estimate_view_bypass_s(rows: float) -> float:
    """A reader that runs the definition over so many rows of the tables."""
    return STATEMENT_S + rows * STORED_ROW_S
