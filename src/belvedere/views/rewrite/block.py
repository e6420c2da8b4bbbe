"""The normal form of a query block: select, project, join, group.

A block is what a tree of filters, projections and joins means, whatever its shape:

    row         the columns of all its leaves side by side, one after the other
    leaves      base tables with all their columns; any other plan is a leaf as it is (`plan`)
    conditions  the rows of the cross product that are kept, as conjuncts over the row
    outputs     the columns of the block, as expressions over the row; of a grouped block its groups
    calls       the aggregates of a grouped block, over the row

A left join with one table keeps its condition in the leaf (`on`): the rows of the leaves before it
that have no match are padded with NULLs, and `conditions` apply to what comes out. So the order of
such leaves matters, and that of the others does not.

Columns in a block have no names, so that equal expressions are equal objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Table
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.fields import Fields
from belvedere.sql.rules.equality import make_equality
from belvedere.sql.rules.fold_constants import fold_expression
from belvedere.sql.rules.push_predicates import is_volatile

Expressions = tuple[e.Expression, ...]


@dataclass(frozen=True, slots=True)
class BlockLeaf:
    """The columns `offset` to `offset + width` of a block's row: those of a base table by slot, or
    those of `plan`. `on`: it is joined by a left join with these conditions."""

    offset: int
    width: int
    relation: int | None = None
    plan: n.Node | None = None
    on: Expressions | None = None

    @property
    def columns(self) -> range:
        return range(self.offset, self.offset + self.width)


@dataclass(frozen=True, slots=True)
class QueryBlock:
    """A block in normal form; `fields` are those of its columns: outputs, then calls."""

    leaves: tuple[BlockLeaf, ...]
    conditions: Expressions
    outputs: Expressions
    fields: Fields
    calls: tuple[e.AggregateCall, ...] = ()
    grouped: bool = False

    @property
    def width(self) -> int:
        return sum(leaf.width for leaf in self.leaves)

    @property
    def tables(self) -> frozenset[int]:
        return frozenset([leaf.relation for leaf in self.leaves if leaf.relation is not None])


def build_query_block(node: n.Node, catalog: Catalog) -> QueryBlock | None:
    """The block whose topmost node this is; None when it is not the top of one."""
    match node:
        case n.Aggregate(grouping_sets=None, groupings=()):
            builder = _BlockBuilder(catalog)
            row = builder.add_node(node.input)
            groups = tuple([_substitute_columns(one, row) for one in node.groups])
            calls = tuple([_substitute_call_columns(one, row) for one in node.aggregates])
            return builder.make_query_block(groups, node.fields, calls, grouped=True)
        case n.Distinct(on=None):
            builder = _BlockBuilder(catalog)
            row = builder.add_node(node.input)
            return builder.make_query_block(row, node.fields, grouped=True)
        case n.Scan() | n.Filter() | n.Project() | n.Join():
            builder = _BlockBuilder(catalog)
            row = builder.add_node(node)
            return builder.make_query_block(row, node.fields)
        case _:
            return None


class _BlockBuilder:
    """Collects the leaves and the conditions of a tree of filters, projections and joins."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._leaves: list[BlockLeaf] = []
        self._conditions: list[e.Expression] = []
        self._width = 0

    def make_query_block(
        self,
        outputs: Sequence[e.Expression],
        fields: Fields,
        calls: tuple[e.AggregateCall, ...] = (),
        *,
        grouped: bool = False,
    ) -> QueryBlock:
        conditions = tuple(dict.fromkeys(self._conditions))
        return QueryBlock(tuple(self._leaves), conditions, tuple(outputs), fields, calls, grouped)

    def add_node(self, node: n.Node) -> list[e.Expression]:
        """The columns of the node, over the block's row."""
        match node:
            case n.Scan() if isinstance(table := self._catalog.get(node.relation), Table):
                return self._add_table_leaf(node, table)
            case n.Filter() if not is_volatile(node.condition):
                row = self.add_node(node.input)
                self._add_conditions([node.condition], row)
                return row
            case n.Project() if not any(map(is_volatile, node.expressions)):
                row = self.add_node(node.input)
                return [_substitute_columns(one, row) for one in node.expressions]
            case n.Join(kind=n.JoinKind.INNER, lateral=False):
                row = self.add_node(node.left) + self.add_node(node.right)
                self._add_conditions(_list_join_conditions(node), row)
                return row
            case n.Join(kind=n.JoinKind.LEFT, lateral=False, right=n.Scan() as scan):
                table = self._catalog.get(scan.relation)
                if isinstance(table, Table):
                    return self._add_left_join(node, scan, table)
        return self._add_opaque_leaf(node)

    def _add_table_leaf(self, scan: n.Scan, table: Table) -> list[e.Expression]:
        row = self._add_leaf(BlockLeaf(self._width, len(table.columns), scan.relation), scan)
        if scan.filter is not None:
            self._add_conditions([scan.filter], row)
        return row

    def _add_left_join(self, join: n.Join, scan: n.Scan, table: Table) -> list[e.Expression]:
        left = self.add_node(join.left)
        leaf = BlockLeaf(self._width, len(table.columns), scan.relation)
        right = self._add_leaf(leaf, scan)
        on = [(one, left + right) for one in _list_join_conditions(join)]
        on += [(one, right) for one in transform.conjuncts(scan.filter)]
        conditions = tuple([part for one, row in on for part in _list_conjuncts_over_row(one, row)])
        self._leaves[-1] = replace(leaf, on=conditions)
        return left + right

    def _add_leaf(self, leaf: BlockLeaf, scan: n.Scan) -> list[e.Expression]:
        self._leaves.append(leaf)
        self._width += leaf.width
        return [
            e.Column(leaf.offset + slot, field.type)
            for slot, field in zip(scan.slots, scan.fields, strict=True)
        ]

    def _add_opaque_leaf(self, node: n.Node) -> list[e.Expression]:
        leaf = BlockLeaf(self._width, len(node.fields), plan=node)
        self._leaves.append(leaf)
        self._width += leaf.width
        return [e.Column(leaf.offset + i, field.type) for i, field in enumerate(node.fields)]

    def _add_conditions(
        self, conditions: Iterable[e.Expression], row: Sequence[e.Expression]
    ) -> None:
        for condition in conditions:
            self._conditions += _list_conjuncts_over_row(condition, row)


def _list_conjuncts_over_row(
    condition: e.Expression, row: Sequence[e.Expression]
) -> list[e.Expression]:
    return transform.conjuncts(fold_expression(_substitute_columns(condition, row)))


def _list_join_conditions(join: n.Join) -> list[e.Expression]:
    """The conditions of a join, over its row."""
    width = len(join.left.fields)
    keys = [
        make_equality(key.left, transform.shift_columns(key.right, width), key.null_safe)
        for key in join.keys
    ]
    return keys + transform.conjuncts(join.residual)


def _substitute_columns(expression: e.Expression, row: Sequence[e.Expression]) -> e.Expression:
    return transform.map_columns(expression, lambda column: row[column.index])


def _substitute_call_columns(call: e.AggregateCall, row: Sequence[e.Expression]) -> e.AggregateCall:
    return map_call_expressions(call, lambda one: _substitute_columns(one, row))


def map_call_expressions(call: e.AggregateCall, change: transform.OnExpression) -> e.AggregateCall:
    """The call with `change` applied to its arguments, its filter and its order."""
    return replace(
        call,
        arguments=tuple([change(one) for one in call.arguments]),
        filter=None if call.filter is None else change(call.filter),
        order_by=tuple([replace(k, expression=change(k.expression)) for k in call.order_by]),
    )
