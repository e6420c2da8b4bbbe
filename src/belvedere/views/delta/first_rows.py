"""DISTINCT ON over a table: the first row of each group, from the end of an index.

An index on (group columns, order columns) holds each group's rows in their order, so the first one
is a seek, however large the group. Rows that are equal in the indexed columns are all read, because
later columns of the order, and then all columns of the row, choose among them.

State: the view's rows, and the index. Cost of a change: a seek before and after, and the rows that
share the first place.
"""

from __future__ import annotations

from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.views.delta.delta_tree import Recompute
from belvedere.views.delta.linear_core import CoreBranch
from belvedere.views.delta.min_max import find_table_slot, match_plain_table_branch


class FirstRowsQuery(NamedTuple):
    """The first rows of each group of a table. `columns` are the slots that the operator reads,
    `order` those that the rows are sorted by, in reverse if `descending`."""

    relation: int
    columns: tuple[int, ...]
    groups: tuple[int, ...]
    order: tuple[int, ...]
    descending: bool

    @property
    def required_index_columns(self) -> tuple[int, ...]:
        return self.groups + self.order


def match_first_rows_query(catalog: Catalog, tree: Recompute) -> FirstRowsQuery | None:
    """The tree as DISTINCT ON over one table, by an order that an index can have; None where it is
    anything else."""
    plan = tree.plan
    if not isinstance(plan, n.Distinct) or not plan.on or not isinstance(plan.input, n.Sort):
        return None
    branch = match_plain_table_branch(tree.inputs[0].tree)
    if branch is None:
        return None
    groups = [find_table_slot(branch, one) for one in plan.on]
    columns = [find_table_slot(branch, e.Column(i, x.type)) for i, x in enumerate(branch.columns)]
    if None in groups or None in columns or len(set(groups)) < len(groups):
        return None
    order, descending = find_indexable_order(catalog, branch, plan.on, plan.input.keys)
    if not order:
        return None
    return FirstRowsQuery(
        branch.leaves[0].relation,
        tuple(slot for slot in columns if slot is not None),
        tuple(slot for slot in groups if slot is not None),
        order,
        descending,
    )


def find_indexable_order(
    catalog: Catalog,
    branch: CoreBranch,
    groups: tuple[e.Expression, ...],
    keys: tuple[e.SortKey, ...],
) -> tuple[tuple[int, ...], bool]:
    """The slots of the first sort keys, after the group's own, that go in one direction with NULLs
    at the end where an index has them."""
    table = catalog.table(branch.leaves[0].relation)
    known = {column.slot: column for column in table.columns}
    slots: list[int] = []
    wanted = [key for key in keys if key.expression not in groups]
    for key in wanted:
        slot = find_table_slot(branch, key.expression)
        if slot is None or key.descending != wanted[0].descending:
            break
        if key.nulls_first != key.descending and not known[slot].not_null:
            break
        slots.append(slot)
    return tuple(slots), bool(wanted) and wanted[0].descending
