"""Join blocks: the parts of a query that join rows, laid flat, with what stands above each.

A block is a product of table occurrences (leaves), the conditions on the product's row, and the
columns made of it. Whatever is not a selection, projection or inner join ends a block: it is a leaf
without a relation, and has blocks of its own below. A query with sub-queries has several blocks.

    SELECT c.name, sum(o.total) FROM orders o, customers c
    WHERE o.customer = c.id AND c.city = $1 GROUP BY c.name

    leaves      orders, customers
    equalities  orders.customer = customers.id
    others      customers.city = $1
    above       Aggregate
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.fields import Fields
from belvedere.sql.rules.equality import make_equality


@dataclass(frozen=True, slots=True)
class JoinLeaf:
    """One occurrence of a table, whose row starts at `offset`; relation None: of something else."""

    relation: int | None
    name: str
    slots: tuple[int, ...]
    fields: Fields
    offset: int

    @property
    def column_range(self) -> range:
        return range(self.offset, self.offset + len(self.fields))


class LeafColumn(NamedTuple):
    """A column of a leaf: the number of the leaf in its block, and the slot of its table."""

    leaf: int
    slot: int


class Equality(NamedTuple):
    """A condition that sets columns of two leaves equal."""

    left: LeafColumn
    right: LeafColumn


@dataclass(slots=True)
class JoinBlock:
    leaves: list[JoinLeaf] = field(default_factory=list)
    conditions: list[e.Expression] = field(default_factory=list)
    columns: tuple[e.Expression, ...] = ()
    probes: list[e.Expression] = field(default_factory=list)
    """What a semi-join looks the block's rows up by, or looks up for them."""
    above: tuple[n.Node, ...] = ()
    """The nodes that stand on the block, the lowest first, up to a join or the query's end."""

    @property
    def equalities(self) -> list[Equality]:
        found = (self.find_equality(one) for one in self.conditions)
        return [one for one in found if one is not None]

    @property
    def other_conditions(self) -> list[e.Expression]:
        return [one for one in self.conditions if self.find_equality(one) is None]

    def find_equality(self, condition: e.Expression) -> Equality | None:
        match condition:
            case e.Call(function, (e.Column() as left, e.Column() as right), _):
                here, there = self.find_leaf_column(left.index), self.find_leaf_column(right.index)
                if function.name == "=" and here is not None and there is not None:
                    return Equality(here, there) if here.leaf != there.leaf else None
        return None

    def find_leaf_column(self, index: int) -> LeafColumn | None:
        """The table's column at this place of the block's row."""
        for number, leaf in enumerate(self.leaves):
            if index in leaf.column_range:
                if leaf.relation is None:
                    return None
                return LeafColumn(number, leaf.slots[index - leaf.offset])
        return None

    def find_fixed_column(self, condition: e.Expression) -> LeafColumn | None:
        """The column that the condition sets equal to a value which no row decides."""
        match condition:
            case e.Call(function, (left, right), _) if function.name == "=":
                for mine, other in ((left, right), (right, left)):
                    if isinstance(mine, e.Column) and is_row_independent(other):
                        return self.find_leaf_column(mine.index)
        return None


def is_row_independent(expression: e.Expression) -> bool:
    return not transform.columns_of(expression) and not transform.has_outer_column(expression)


def collect_join_blocks(plan: n.Node) -> list[JoinBlock]:
    """The blocks of a plan, the outermost first."""
    return list(_walk_blocks(plan, ()))


def _walk_blocks(node: n.Node, above: tuple[n.Node, ...]) -> Iterator[JoinBlock]:
    if isinstance(node, n.Scan | n.Filter | n.Project | n.Join):
        block = JoinBlock(above=above)
        waiting: list[n.Node] = []
        block.columns = _gather_node(node, block, waiting)
        yield block
        for condition in block.conditions:
            for plan in _list_subplans(condition):
                yield from _walk_blocks(plan, ())
        for column in block.columns:
            for plan in _list_subplans(column):
                yield from _walk_blocks(plan, ())
        for one in waiting:
            yield from _walk_blocks(one, ())
        return
    for expression in transform.own_expressions(node):
        for plan in _list_subplans(expression):
            yield from _walk_blocks(plan, ())
    below = transform.inputs(node)
    for one in below:
        yield from _walk_blocks(one, (node, *above) if len(below) == 1 else ())


def _list_subplans(expression: e.Expression) -> Iterator[n.Node]:
    plan = transform.subplan(expression)
    if plan is not None:
        yield plan
    for one in transform.operands(expression):
        yield from _list_subplans(one)


def _gather_node(node: n.Node, block: JoinBlock, waiting: list[n.Node]) -> tuple[e.Expression, ...]:
    """Put the node's leaves and conditions into the block; returns its columns over the block's
    row."""
    match node:
        case n.Scan():
            columns = _add_leaf(block, node.relation, node.name, node.slots, node.fields)
            block.conditions += _substitute_conjuncts(node.filter, columns)
            return columns
        case n.Filter():
            columns = _gather_node(node.input, block, waiting)
            block.conditions += _substitute_conjuncts(node.condition, columns)
            return columns
        case n.Project():
            columns = _gather_node(node.input, block, waiting)
            return tuple(_substitute(one, columns) for one in node.expressions)
        case n.Join(kind=n.JoinKind.INNER, lateral=False):
            left = _gather_node(node.left, block, waiting)
            right = _gather_node(node.right, block, waiting)
            block.conditions += [
                make_equality(
                    _substitute(key.left, left), _substitute(key.right, right), key.null_safe
                )
                for key in node.keys
            ]
            block.conditions += _substitute_conjuncts(node.residual, left + right)
            return left + right
        case n.Join(kind=n.JoinKind.SEMI | n.JoinKind.ANTI, lateral=False):
            waiting.append(node.right)
            columns = _gather_node(node.left, block, waiting)
            block.probes += [_substitute(key.left, columns) for key in node.keys]
            return columns
        case _:
            waiting.extend(transform.inputs(node) if isinstance(node, n.Join) else (node,))
            return _add_leaf(block, None, "", (), node.fields)


def _add_leaf(
    block: JoinBlock, relation: int | None, name: str, slots: tuple[int, ...], fields: Fields
) -> tuple[e.Expression, ...]:
    offset = sum(len(leaf.fields) for leaf in block.leaves)
    block.leaves.append(JoinLeaf(relation, name, slots, fields, offset))
    return tuple(e.Column(offset + i, f.type, f.name) for i, f in enumerate(fields))


def _substitute(expression: e.Expression, columns: tuple[e.Expression, ...]) -> e.Expression:
    return transform.map_columns(expression, lambda column: columns[column.index])


def _substitute_conjuncts(
    condition: e.Expression | None, columns: tuple[e.Expression, ...]
) -> list[e.Expression]:
    return [_substitute(one, columns) for one in transform.conjuncts(condition)]
