"""Join order: of three and more inner joins, the one that keeps rows few comes first.

Greedy: start with the pair that gives the fewest rows, then always add the input that gives the
fewest next, one that is connected by a condition before one that is not. The columns are put back
in their order at the end, so nothing above notices.
"""

from __future__ import annotations

from dataclasses import replace

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.transform import (
    columns_of,
    conjunction,
    conjuncts,
    map_columns,
    rebuild_inputs,
    shift_columns,
)
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.equality import make_equality
from belvedere.sql.rules.estimates import estimate_rows
from belvedere.sql.rules.push_predicates import match_join_key

INPUTS_MAX = 100


def order_joins(plan: n.Node, context: OptimizerContext) -> n.Node:
    if not _is_inner_join(plan):
        return rebuild_inputs(plan, lambda one: order_joins(one, context))
    leaves: list[n.Node] = []
    conditions: list[e.Expression] = []
    _flatten_joins(plan, 0, leaves, conditions)
    leaves = [order_joins(one, context) for one in leaves]
    if not 3 <= len(leaves) <= INPUTS_MAX:
        return rebuild_inputs(plan, lambda one: order_joins(one, context))
    return _JoinOrderSearch(leaves, conditions, context).build_plan(plan.fields)


def _is_inner_join(node: n.Node) -> bool:
    return isinstance(node, n.Join) and node.kind is n.JoinKind.INNER and not node.lateral


def _flatten_joins(
    node: n.Node, offset: int, leaves: list[n.Node], conditions: list[e.Expression]
) -> int:
    """Collects inputs and conditions, the latter over all columns; the offset after the node."""
    if not isinstance(node, n.Join) or not _is_inner_join(node):
        leaves.append(node)
        return offset + len(node.fields)
    middle = _flatten_joins(node.left, offset, leaves, conditions)
    end = _flatten_joins(node.right, middle, leaves, conditions)
    for key in node.keys:
        left, right = shift_columns(key.left, offset), shift_columns(key.right, middle)
        conditions.append(make_equality(left, right, key.null_safe))
    conditions += [shift_columns(one, offset) for one in conjuncts(node.residual)]
    return end


class _JoinOrderSearch:
    def __init__(
        self, leaves: list[n.Node], conditions: list[e.Expression], context: OptimizerContext
    ) -> None:
        self.leaves = leaves
        self.context = context
        self.starts: list[int] = []
        start = 0
        for leaf in leaves:
            self.starts.append(start)
            start += len(leaf.fields)
        # Each condition with the leaves it reads.
        self.conditions = [(one, self.find_leaves(one)) for one in conditions]

    def find_leaves(self, condition: e.Expression) -> frozenset[int]:
        used = columns_of(condition)
        return frozenset(
            i
            for i, leaf in enumerate(self.leaves)
            if any(self.starts[i] <= c < self.starts[i] + len(leaf.fields) for c in used)
        )

    def build_plan(self, fields: n.Fields) -> n.Node:
        first = min(range(len(self.leaves)), key=self.rank_first)
        order = [first]
        node = self.leaves[first]
        done: set[int] = {k for k, (_, used) in enumerate(self.conditions) if used <= {first}}
        node = self.filter_first(node, order, sorted(done))
        while len(order) < len(self.leaves):
            node = self.join_next(node, order, done)
        return self.restore_order(node, order, fields)

    def rank_first(self, i: int) -> tuple[bool, float]:
        connected = any(i in used and len(used) > 1 for _, used in self.conditions)
        return not connected, estimate_rows(self.leaves[i], self.context)

    def join_next(self, node: n.Node, order: list[int], done: set[int]) -> n.Node:
        """The node joined with the best of the inputs that are left."""
        left = [i for i in range(len(self.leaves)) if i not in order]
        ready = {i: self.find_ready_conditions(order, done, i) for i in left}
        connected = [i for i in left if self.is_connected(i, ready[i])]
        best: tuple[float, int, n.Join] | None = None
        for i in connected or left:
            joined = self.join_leaf(node, order, i, ready[i])
            rank = (estimate_rows(joined, self.context), i)
            if best is None or rank < best[:2]:
                best = (*rank, joined)
        assert best is not None
        chosen = best[1]
        done.update(ready[chosen])
        order.append(chosen)
        return best[2]

    def is_connected(self, i: int, ready: list[int]) -> bool:
        reads = [self.conditions[k][1] for k in ready]
        return any(i in used and len(used) > 1 for used in reads)

    def find_ready_conditions(self, order: list[int], done: set[int], i: int) -> list[int]:
        have = {*order, i}
        return [k for k, (_, used) in enumerate(self.conditions) if k not in done and used <= have]

    def join_leaf(self, node: n.Node, order: list[int], i: int, ready: list[int]) -> n.Join:
        places = self.number_columns([*order, i])
        width = len(node.fields)
        keys, rest = [], []
        for k in ready:
            condition = _move_columns(self.conditions[k][0], places)
            key = match_join_key(condition, width)
            if key is not None:
                keys.append(key)
            else:
                rest.append(condition)
        return n.Join(n.JoinKind.INNER, node, self.leaves[i], tuple(keys), conjunction(rest))

    def filter_first(self, node: n.Node, order: list[int], which: list[int]) -> n.Node:
        places = self.number_columns(order)
        condition = conjunction([_move_columns(self.conditions[k][0], places) for k in which])
        return node if condition is None else n.Filter(node, condition)

    def number_columns(self, order: list[int]) -> dict[int, int]:
        found: dict[int, int] = {}
        place = 0
        for i in order:
            for c in range(len(self.leaves[i].fields)):
                found[self.starts[i] + c] = place
                place += 1
        return found

    def restore_order(self, node: n.Node, order: list[int], fields: n.Fields) -> n.Node:
        places = self.number_columns(order)
        if all(places[i] == i for i in range(len(fields))):
            return node
        columns = tuple(
            [e.Column(places[i], field.type, field.name) for i, field in enumerate(fields)]
        )
        return n.Project(node, columns, fields)


def _move_columns(expression: e.Expression, places: dict[int, int]) -> e.Expression:
    return map_columns(expression, lambda one: replace(one, index=places[one.index]))
