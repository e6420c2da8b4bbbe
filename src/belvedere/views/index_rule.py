"""Deferred and local indexes: views that answer look-ups in their table.

`CREATE INDEX .. WITH (maintenance, placement)` other than immediate and remote makes a materialized
view of the key columns, the primary key and the included columns; the option `index` of the view
names their slots. This rule lets it answer conditions that fix its first column:

    covering    all columns wanted are in it: the view alone is read
    thin        the view gives primary keys, by which the table is read; the condition is tested on
                the table's row

As every view that is read, it is as fresh as the reader asks: with freshness 'any' an index that
lags may miss rows, and a covering one may show them as they were.
"""

from __future__ import annotations

from collections.abc import Iterator

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import State, View
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.fields import Field
from belvedere.sql.bind.statement import TEXTS
from belvedere.sql.rules.context import Context
from belvedere.sql.rules.prune_columns import prune_columns
from belvedere.sql.rules.push_predicates import push_predicates

OPTION = "index"


def by_index(plan: n.Node, catalog: Catalog) -> n.Node:
    if not any(OPTION in view.options for view in catalog.views):
        return plan
    context = Context(catalog, TEXTS)
    return _on_node(prune_columns(push_predicates(plan, context), context), catalog)


def _on_node(node: n.Node, catalog: Catalog) -> n.Node:
    match node:
        case n.Filter(input=n.Scan(filter=None) as scan):
            return _answered(scan, node.condition, catalog) or node
        case n.Scan(filter=condition) if condition is not None:
            bare = n.Scan(node.relation, node.name, node.slots, node.fields)
            return _answered(bare, condition, catalog) or node
        case n.Insert() | n.Update() | n.Delete():
            return node  # what is written is found by the table itself
        case _:
            return transform.rebuild_inputs(node, lambda below: _on_node(below, catalog))


def _answered(scan: n.Scan, condition: e.Expression, catalog: Catalog) -> n.Node | None:
    for view, slots in _indexes(catalog, scan.relation):
        fixed = [c for c in transform.conjuncts(condition) if _fixes(c, scan, slots[0])]
        if fixed:
            if set(scan.slots) <= set(slots):
                columns = tuple(slots.index(slot) for slot in scan.slots)
                rows: n.Node = n.Scan(view.id, view.name, columns, scan.fields)
            else:
                rows = _by_key(scan, fixed, view, slots, catalog)
            return n.Filter(rows, condition)
    return None


def _indexes(catalog: Catalog, relation: int) -> Iterator[tuple[View, tuple[int, ...]]]:
    for view in catalog.views_over(relation):
        if OPTION in view.options and view.state is State.READY and not view.part:
            yield view, tuple(map(int, view.options[OPTION].split(",")))


def _fixes(condition: e.Expression, scan: n.Scan, slot: int) -> bool:
    """Whether the condition sets the column equal to a value that no row decides."""
    match condition:
        case e.Call(function, (left, right), _) if function.name == "=":
            for mine, other in ((left, right), (right, left)):
                if isinstance(mine, e.Column) and scan.slots[mine.index] == slot:
                    plain = not transform.columns_of(other) and not transform.has_subplan(other)
                    return plain and not transform.has_outer(other)
    return False


def _by_key(
    scan: n.Scan,
    fixed: list[e.Expression],
    view: View,
    slots: tuple[int, ...],
    catalog: Catalog,
) -> n.Node:
    """The table's rows whose keys the index has for the value."""
    table = catalog.table(scan.relation)
    wanted = (slots[0], *table.primary_key)
    fields = tuple(Field(table.columns[s].name, table.columns[s].type) for s in wanted)
    entries = n.Scan(view.id, view.name, tuple(slots.index(s) for s in wanted), fields)

    def first(column: e.Column) -> e.Column:
        return e.Column(0, column.type, column.name)

    condition = transform.conjunction([transform.map_columns(c, first) for c in fixed])
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
