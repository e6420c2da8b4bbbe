"""The cost estimate of a view: reads and writes for one changed row of each table.

Counted from the delta plan, not measured: `gets` are reads of one key, `ranges` reads of the rows
with one key or of the first rows in an order, `scans` full table scans; `writes` are entries of the
view, of its auxiliary views and of the indexes that would be created for it. Every entry written is
also read once, except for rows that contain the key of the one row they are made of: they are
written unread. Look-ups of several rows count as one range.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from belvedere.catalog.catalog import Catalog
from belvedere.codec import keyspace
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.types import Kind, SqlType
from belvedere.views.auxiliary import counts_of, ordered_rows, parts_of
from belvedere.views.compile import Compiled
from belvedere.views.delta import Term, Wish, terms_of
from belvedere.views.extremum import extrema_of
from belvedere.views.quick import Quick
from belvedere.views.tree import (
    Apply,
    Core,
    Map,
    Recompute,
    Tree,
    Union,
    Whole,
    children,
    inputs_of,
    walk_tree,
)

ROWS_PER_SECOND = 200_000
"""The expected speed of a backfill."""

_WIDTHS = {
    Kind.BOOLEAN: 1,
    Kind.SMALLINT: 2,
    Kind.INTEGER: 4,
    Kind.REAL: 4,
    Kind.DATE: 4,
    Kind.NUMERIC: 12,
    Kind.UUID: 16,
    Kind.INTERVAL: 16,
    Kind.BIGINT: 8,
    Kind.DOUBLE: 8,
    Kind.TIME: 8,
    Kind.TIMESTAMP: 8,
    Kind.TIMESTAMPTZ: 8,
}
_TEXT_WIDTH = 20
_ENTRY_BYTES = 20
"""Prefix of the key, tags, head of the state."""


@dataclass(frozen=True, slots=True)
class Price:
    gets: int = 0
    ranges: int = 0
    scans: int = 0
    writes: int = 0

    def __add__(self, other: Price) -> Price:
        return Price(
            self.gets + other.gets,
            self.ranges + other.ranges,
            self.scans + other.scans,
            self.writes + other.writes,
        )

    def times(self, count: int) -> Price:
        return Price(self.gets * count, self.ranges * count, self.scans * count, self.writes)

    def __str__(self) -> str:
        parts = [
            counted(self.gets, "key read") if self.gets else "",
            counted(self.ranges, "range") if self.ranges else "",
            counted(self.scans, "full scan") if self.scans else "",
            counted(self.writes, "entry", "entries") + " written" if self.writes else "",
        ]
        return ", ".join(filter(None, parts)) or "nothing"


def counted(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def prices(catalog: Catalog, compiled: Compiled, wishes: tuple[Wish, ...]) -> dict[int, Price]:
    """The cost of one new row of each table, for the view, its auxiliary views and its indexes."""
    found: dict[int, Price] = {}
    for relation in inputs_of(compiled.tree):
        price = change_price(catalog, compiled, relation)
        for kept in compiled.auxiliaries:
            if relation in inputs_of(kept.tree):
                price += tree_price(catalog, kept.tree, relation) + Price(gets=1, writes=1)
        made = len([wish for wish in wishes if wish.relation == relation])
        found[relation] = price + Price(writes=made)
    return found


def change_price(
    catalog: Catalog, compiled: Compiled, relation: int, *, comes: bool = True
) -> Price:
    """The cost of one row for the view's own state: an inserted row, or an updated or deleted one,
    for which no term is pruned."""
    tree = compiled.tree
    if comes and isinstance(tree, Core) and _all_pruned(catalog, tree, relation):
        return Price()
    price = tree_price(catalog, tree, relation, comes=comes)
    written = 2 if _replaces(compiled.tree) else 1
    read = 0 if _written_unread(catalog, compiled, relation) else written
    return price + Price(gets=read, writes=written)


def _written_unread(catalog: Catalog, compiled: Compiled, relation: int) -> bool:
    """Whether a changed row makes rows of the view that no other row makes."""
    legs = Quick(catalog, compiled.tree, compiled.group).legs.get(keyspace.row_prefix(relation), ())
    return len(legs) == 1 and legs[0].sole


def _replaces(tree: Tree) -> bool:
    """Whether a change usually replaces a row of the view by another."""
    return isinstance(tree, Recompute) or (isinstance(tree, Map) and _replaces(tree.input))


def tree_price(catalog: Catalog, tree: Tree, relation: int, *, comes: bool = True) -> Price:
    match tree:
        case Core():
            return _core(catalog, tree, relation, comes=comes)
        case Apply():
            return _apply(catalog, tree, relation)
        case Whole():
            return Price(scans=1 + len(tree.relations))
        case Map() | Union() | Recompute():
            own = _again(tree).times(2) if isinstance(tree, Recompute) else Price()
            below = [tree_price(catalog, one, relation, comes=comes) for one in children(tree)]
            return sum(below, own)


def _single(catalog: Catalog, tree: Core, relation: int) -> list[Term]:
    """The terms of a change of this table only."""
    return [
        term
        for term in terms_of(tree.branches, tree.plan.fields, catalog)[0]
        if len(term.changed) == 1
        and tree.branches[term.branch].leaves[term.changed[0]].relation == relation
    ]


def _all_pruned(catalog: Catalog, tree: Core, relation: int) -> bool:
    return all(term.prunes(term.changed[0]) for term in _single(catalog, tree, relation))


def _core(catalog: Catalog, tree: Core, relation: int, *, comes: bool) -> Price:
    price = Price()
    for term in _single(catalog, tree, relation):
        if comes and term.prunes(term.changed[0]):
            continue
        price += Price(scans=term.scans)
        for node in transform.walk(term.plan):
            if isinstance(node, n.Join) and node.lookup is not None:
                whole = node.lookup.access.whole
                price += Price(gets=int(whole), ranges=int(not whole))
    return price


def _apply(catalog: Catalog, tree: Apply, relation: int) -> Price:
    price = Price()
    if relation in inputs_of(tree.left):
        price += tree_price(catalog, tree.left, relation)
        price += Price(ranges=len([right for right in tree.rights if right.read]))
    for right in tree.rights:
        if relation in inputs_of(right.tree):
            price += tree_price(catalog, right.tree, relation)
            keyed = bool(right.left_keys)
            price += Price(ranges=3 if keyed else 0, scans=0 if keyed else 1)
    return price


def _again(tree: Recompute) -> Price:
    """What the operator reads to recompute one touched key, once."""
    if isinstance(tree.plan, n.SetOperation):
        return Price(gets=2) if len(counts_of(tree)) == 2 else Price(ranges=2)
    extrema = extrema_of(tree)
    if extrema is not None:
        return Price(ranges=len(extrema.calls))
    parts = parts_of(tree)
    if parts is not None:
        ends = len([number for _, number in parts.calls if number is None])
        others = len([one for one, k in parts.calls if k is not None and one != parts.presence])
        return Price(gets=1 + others, ranges=ends)
    if ordered_rows(tree) is not None or tree.inputs[0].keys:
        return Price(ranges=1)
    return Price(scans=1)


# -- storage and time ------------------------------------------------------------------------------


def how(tree: Tree) -> str:
    """Whether the view is incremental, and how."""
    if isinstance(tree, Whole):
        return "not incremental: computed again as a whole at every change"
    worst = max((_way(one) for one in walk_tree(tree)), default=0)
    return (
        "incremental",
        "incremental, by touched groups or partitions",
        "incremental, but an operator without a partition is done again over all its rows",
    )[worst]


def _way(tree: Tree) -> int:
    if not isinstance(tree, Recompute):
        return 0
    price = _again(tree)
    assembled = parts_of(tree) or extrema_of(tree) or ordered_rows(tree)
    counted = isinstance(tree.plan, n.SetOperation) and price.gets
    return 2 if price.scans else int(not assembled and not counted)


def storage(compiled: Compiled, rows_of: Callable[[n.Node], float]) -> tuple[int, int]:
    """About how many entries the view has, and their bytes."""
    plan = compiled.tree.plan
    if compiled.group is not None:
        group = compiled.group
        plan = n.Aggregate(plan, group.groups, (), compiled.stored)
    entries = max(1, round(rows_of(plan)))
    row = sum(_width(field.type) for field in compiled.stored)
    return entries, entries * (2 * row + 8 * compiled.amounts + _ENTRY_BYTES)


def _width(type_: SqlType) -> int:
    return _WIDTHS.get(type_.kind, _TEXT_WIDTH)
