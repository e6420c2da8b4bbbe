"""The rewrite rule for indexes that are views: of a view's columns, or deferred or local indexes.

`CREATE INDEX .. ON v` makes a materialized view of all columns of v, those of the index first.

`CREATE INDEX .. WITH (maintenance, placement)` other than immediate and remote makes a materialized
view of the key columns, the primary key and the included columns; `View.index` has
their slots. This rule lets it answer conditions that fix its first column:

    covering    it has all columns needed: only the view is read, also for a range of values
    thin        the view gives primary keys, by which the table is read; the condition is tested on
                the table's row

One that has all columns also gives the first rows in its order: ORDER BY its first columns, all of
them ascending or all descending, under a LIMIT, without a condition.

Like every view that is read, it is as fresh as the reader asks: with freshness 'any' an index that
lags may miss rows, and a covering one may show their old values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import ObjectState, View, ViewKind
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.fields import Field
from belvedere.sql.bind.statements.statement import STORED_EXPRESSIONS
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.prune_columns import prune_columns
from belvedere.sql.rules.push_predicates import push_predicates

_RANGES = frozenset(("<", "<=", ">", ">="))


def rewrite_to_index_views(plan: n.Node, catalog: Catalog) -> n.Node:
    if not any(view.index is not None for view in catalog.views):
        return plan
    context = OptimizerContext(catalog, STORED_EXPRESSIONS)
    return _rewrite_filtered_scans(prune_columns(push_predicates(plan, context), context), catalog)


def _rewrite_filtered_scans(node: n.Node, catalog: Catalog) -> n.Node:
    match node:
        case n.Filter(input=n.Scan(filter=None) as scan):
            return _build_index_plan_for_scan(scan, node.condition, catalog) or node
        case n.Scan(filter=condition) if condition is not None:
            bare = n.Scan(node.relation, node.name, node.slots, node.fields)
            return _build_index_plan_for_scan(bare, condition, catalog) or node
        case n.Limit(input=n.Sort() as sort):
            ordered = _build_plan_in_index_order(sort, catalog)
            if ordered is not None:
                return replace(node, input=ordered)
            return replace(node, input=_rewrite_filtered_scans(sort, catalog))
        case n.Insert() | n.Update() | n.Delete():
            return node  # rows to be written are found in the table itself
        case _:
            return transform.rebuild_inputs(
                node, lambda below: _rewrite_filtered_scans(below, catalog)
            )


def _build_index_plan_for_scan(
    scan: n.Scan, condition: e.Expression, catalog: Catalog
) -> n.Node | None:
    indexes = list(_list_ready_index_views(catalog, scan.relation))
    if not indexes or _is_served_by_view_order(scan, condition, catalog.get(scan.relation)):
        return None
    for view, slots in indexes:
        fixed = [
            c
            for c in transform.conjuncts(condition)
            if _fixes_column_by_equality(c, scan, slots[0])
        ]
        if fixed and set(scan.slots) <= set(slots):
            return n.Filter(_build_covering_index_scan(scan, view, slots), condition)
        if fixed:
            return n.Filter(_build_primary_key_join(scan, fixed, view, slots, catalog), condition)
    for view, slots in indexes:
        bounded = any(
            _bounds_column_by_range(c, scan, slots[0]) for c in transform.conjuncts(condition)
        )
        if bounded and set(scan.slots) <= set(slots) and not view.options.local:
            return n.Filter(_build_covering_index_scan(scan, view, slots), condition)
    return None


def _build_plan_in_index_order(sort: n.Sort, catalog: Catalog) -> n.Node | None:
    """The sort over an index whose order it asks for, in place of the relation it sorts."""
    keys, below = [key.expression for key in sort.keys], sort.input
    while isinstance(below, n.Project):
        keys = [transform.substitute_columns(key, below.expressions) for key in keys]
        below = below.input
    if not isinstance(below, n.Scan) or below.filter is not None:
        return None
    if len({key.descending for key in sort.keys}) != 1:
        return None
    if not all(isinstance(key, e.Column) for key in keys):
        return None
    wanted = tuple([below.slots[key.index] for key in keys if isinstance(key, e.Column)])
    for view, slots in _list_ready_index_views(catalog, below.relation):
        all_columns = set(below.slots) <= set(slots) and not view.options.local
        if all_columns and slots[: len(wanted)] == wanted:
            return _replace_scan(sort, below, _build_covering_index_scan(below, view, slots))
    return None


def _replace_scan(plan: n.Node, old: n.Scan, new: n.Node) -> n.Node:
    return transform.rewrite_nodes(plan, n.Scan, lambda scan: new if scan is old else scan)


def _is_served_by_view_order(scan: n.Scan, condition: e.Expression, view: object) -> bool:
    """Whether a view's own order begins with a column that the condition fixes."""
    if not isinstance(view, View) or not view.stored:
        return False
    first = view.stored[0].name
    slots = [i for i, column in enumerate(view.columns) if first == f"0 {column.name}"]
    conditions = transform.conjuncts(condition)
    return any(_fixes_column_by_equality(one, scan, slot) for one in conditions for slot in slots)


def _build_covering_index_scan(scan: n.Scan, view: View, slots: tuple[int, ...]) -> n.Node:
    columns = tuple(slots.index(slot) for slot in scan.slots)
    return n.Scan(view.id, view.name, columns, scan.fields)


def _list_ready_index_views(
    catalog: Catalog, relation: int
) -> Iterator[tuple[View, tuple[int, ...]]]:
    """The ready index views of a table or of a view, each with the slots of its columns."""
    of_view = isinstance(catalog.get(relation), View)
    for view in catalog.dependent_views(relation):
        if view.kind is ViewKind.INDEX and view.state is ObjectState.READY:
            assert view.index is not None
            if view.reads == ((relation,) if of_view else ()):
                yield view, view.index.slots


def _fixes_column_by_equality(condition: e.Expression, scan: n.Scan, slot: int) -> bool:
    """Whether the condition sets the column equal to a value that does not depend on a row."""
    match condition:
        case e.Call(function, (left, right), _) if function.name == "=":
            return _compares_column_with_value(left, right, scan, slot)
    return False


def _bounds_column_by_range(condition: e.Expression, scan: n.Scan, slot: int) -> bool:
    """Whether the condition is a range of the column, or a list of values."""
    match condition:
        case e.Call(function, (left, right), _) if function.name in _RANGES:
            return _compares_column_with_value(left, right, scan, slot)
        case e.InList(operand=e.Column() as mine, items=items, negated=False):
            return scan.slots[mine.index] == slot and all(map(_is_row_independent, items))
    return False


def _compares_column_with_value(
    left: e.Expression, right: e.Expression, scan: n.Scan, slot: int
) -> bool:
    return any(
        isinstance(mine, e.Column) and scan.slots[mine.index] == slot and _is_row_independent(other)
        for mine, other in ((left, right), (right, left))
    )


def _is_row_independent(expression: e.Expression) -> bool:
    plain = not transform.columns_of(expression) and not transform.has_subplan(expression)
    return plain and not transform.has_outer_column(expression)


def _build_primary_key_join(
    scan: n.Scan,
    fixed: list[e.Expression],
    view: View,
    slots: tuple[int, ...],
    catalog: Catalog,
) -> n.Node:
    """Join the index's entries for the value with the table, by the primary key."""
    table = catalog.table(scan.relation)
    wanted = (slots[0], *table.primary_key)
    fields = tuple(Field(table.columns[s].name, table.columns[s].type) for s in wanted)
    entries = n.Scan(view.id, view.name, tuple(slots.index(s) for s in wanted), fields)

    def to_first_column(column: e.Column) -> e.Column:
        return e.Column(0, column.type, column.name)

    condition = transform.conjunction([transform.map_columns(c, to_first_column) for c in fixed])
    assert condition is not None
    more = [slot for slot in table.primary_key if slot not in scan.slots]
    added = tuple(Field(table.columns[s].name, table.columns[s].type) for s in more)
    whole = (*scan.slots, *more)
    rows = n.Scan(scan.relation, scan.name, whole, scan.fields + added)
    keys = tuple(
        n.JoinKey(
            e.Column(1 + i, table.columns[s].type), e.Column(whole.index(s), table.columns[s].type)
        )
        for i, s in enumerate(table.primary_key)
    )
    join = n.Join(n.JoinKind.INNER, n.Filter(entries, condition), rows, keys)
    start = len(wanted)
    columns = tuple(e.Column(start + i, f.type, f.name) for i, f in enumerate(scan.fields))
    return n.Project(join, columns, scan.fields)
