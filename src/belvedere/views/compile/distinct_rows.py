"""Whether no two rows of a definition can be equal, so that a stored row never stands for two.

A row of a join is made of one row of each leaf. When the columns of the view determine all of them,
equal rows come from the same rows, and there is only one such combination:

    a column is determined   it is a column of the view, or equal to a constant, or to such a column
    a row is determined      all columns of its primary key are; then so are all its columns
"""

from __future__ import annotations

from collections.abc import Iterator

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Table
from belvedere.errors import Unsupported
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.views.delta.linear_core import CoreBranch, CoreLeaf, flatten_to_branches


def has_distinct_rows(plan: n.Node, catalog: Catalog) -> bool:
    while isinstance(plan, n.Sort):
        plan = plan.input
    try:
        branches = flatten_to_branches(plan)
    except Unsupported:
        return False  # not a join of tables alone: nothing is known of its rows
    return len(branches) == 1 and _determines_all_leaf_rows(branches[0], catalog)


def has_distinct_rows_below_windows(plan: n.Node, catalog: Catalog) -> bool:
    """The same of rows to which window functions only add columns: they stay apart by the columns
    below the windows."""
    kept = list(range(len(plan.fields)))
    windows = 0
    while True:
        match plan:
            case n.Sort() | n.Filter():
                plan = plan.input
            case n.Project():
                passed = (plan.expressions[at] for at in kept)
                kept = [one.index for one in passed if isinstance(one, e.Column)]
                plan = plan.input
            case n.Window():
                windows += 1
                plan = plan.input
                kept = [at for at in kept if at < len(plan.fields)]
            case _:
                break
        if windows and not _has_window(plan):
            break
    if not windows:
        return False
    columns = tuple(e.Column(at, plan.fields[at].type, plan.fields[at].name) for at in kept)
    return has_distinct_rows(
        n.Project(plan, columns, tuple(plan.fields[at] for at in kept)), catalog
    )


def _has_window(plan: n.Node) -> bool:
    return any(isinstance(node, n.Window) for node in transform.walk_plan(plan))


def _determines_all_leaf_rows(branch: CoreBranch, catalog: Catalog) -> bool:
    known = {column.index for column in branch.columns if isinstance(column, e.Column)}
    pairs = list(_list_equal_columns(branch))
    known |= set(_list_constant_columns(branch))
    waiting = list(branch.leaves)
    while waiting:
        for _ in pairs:
            known |= {b for a, b in pairs if a in known} | {a for a, b in pairs if b in known}
        found = next(
            (leaf for leaf in waiting if _has_determined_primary_key(leaf, known, catalog)), None
        )
        if found is None:
            return False
        known |= set(found.column_range)
        waiting.remove(found)
    return True


def _has_determined_primary_key(leaf: CoreLeaf, known: set[int], catalog: Catalog) -> bool:
    table = None if leaf.constant is not None else catalog.get(leaf.relation)
    if not isinstance(table, Table) or not set(table.primary_key) <= set(leaf.slots):
        return False
    places = [leaf.offset + leaf.slots.index(slot) for slot in table.primary_key]
    return known.issuperset(places)


def _list_equal_columns(branch: CoreBranch) -> Iterator[tuple[int, int]]:
    for condition in branch.conditions:
        match condition:
            case e.Call(function, (e.Column() as left, e.Column() as right), _):
                if function.name == "=":
                    yield left.index, right.index


def _list_constant_columns(branch: CoreBranch) -> Iterator[int]:
    for condition in branch.conditions:
        match condition:
            case e.Call(function, (e.Column() as column, other), _) | e.Call(
                function, (other, e.Column() as column), _
            ):
                if function.name == "=" and not transform.columns_of(other):
                    yield column.index
