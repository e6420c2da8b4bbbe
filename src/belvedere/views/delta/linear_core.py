"""The linear core of a view: selections, projections, inner joins and UNION ALL, laid flat.

A core is a bag union of branches. A branch is a product of table occurrences (leaves), conditions
on the product's row, and the columns computed from it. Nested projections are substituted away, so
every expression is over the branch's row: the concatenation of the leaves' rows.

    SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.id WHERE o.total > 10

    leaves      orders o (0..2), customers c (3..4)
    conditions  o.customer = c.id, o.total > 10
    columns     o.id, c.name
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from belvedere.errors import Unsupported
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.fields import Field, Fields
from belvedere.sql.rules.equality import make_equality

Expressions = tuple[e.Expression, ...]


@dataclass(frozen=True, slots=True)
class CoreLeaf:
    """One occurrence of a table, or rows that never change (`constant`); its row starts at `offset`
    of the branch's row."""

    relation: int
    name: str
    slots: tuple[int, ...]
    fields: Fields
    offset: int
    constant: n.Node | None = None

    @property
    def column_range(self) -> range:
        return range(self.offset, self.offset + len(self.fields))


@dataclass(frozen=True, slots=True)
class CoreBranch:
    leaves: tuple[CoreLeaf, ...]
    conditions: Expressions
    columns: Expressions

    @property
    def row_width(self) -> int:
        return sum(len(leaf.fields) for leaf in self.leaves)


def flatten_to_branches(node: n.Node) -> tuple[CoreBranch, ...]:
    """The branches of a plan; Unsupported names the node that is not linear."""
    match node:
        case n.Scan():
            return (_scan_to_branch(node),)
        case n.Values() | n.TableFunction():
            return (_constants_to_branch(node),)
        case n.Filter():
            return tuple(
                _add_filter_to_branch(b, node.condition) for b in flatten_to_branches(node.input)
            )
        case n.Project():
            return tuple(
                _replace_branch_columns(b, node.expressions)
                for b in flatten_to_branches(node.input)
            )
        case n.Join(kind=n.JoinKind.INNER, lateral=False):
            return tuple(
                _join_branches(left, right, node)
                for left in flatten_to_branches(node.left)
                for right in flatten_to_branches(node.right)
            )
        case n.SetOperation(kind=n.SetKind.UNION, all=True):
            return flatten_to_branches(node.left) + flatten_to_branches(node.right)
        case _:
            raise unsupported_construct_error(describe_node(node), "it is not linear")


def build_branch_plan(
    branch: CoreBranch, build_leaf_plan: Callable[[int, CoreLeaf], n.Node]
) -> n.Node:
    """The plan of a branch over these plans of its leaves, which get the leaf and its number."""
    node: n.Node | None = None
    for number, leaf in enumerate(branch.leaves):
        one = build_leaf_plan(number, leaf)
        node = one if node is None else n.Join(n.JoinKind.INNER, node, one)
    assert node is not None
    condition = transform.conjunction(list(branch.conditions))
    if condition is not None:
        node = n.Filter(node, condition)
    fields = tuple(Field(f"column {i}", one.type) for i, one in enumerate(branch.columns))
    return n.Project(node, branch.columns, fields)


def build_leaf_scan(leaf: CoreLeaf) -> n.Node:
    """A leaf as it is: its table, or its constant rows."""
    return leaf.constant or n.Scan(leaf.relation, leaf.name, leaf.slots, leaf.fields)


def unsupported_construct_error(construct: str, reason: str) -> Unsupported:
    return Unsupported(
        "materialized view cannot be maintained incrementally",
        detail=f"{construct}: {reason}",
        hint="leave it out, or let it be computed again as a whole: WITH (strict = false)",
        construct=construct,
    )


def _scan_to_branch(node: n.Scan) -> CoreBranch:
    leaf = CoreLeaf(node.relation, node.name, node.slots, node.fields, 0)
    columns = tuple(e.Column(i, f.type, f.name) for i, f in enumerate(node.fields))
    return CoreBranch((leaf,), _split_plain_conjuncts(node.filter), columns)


def _constants_to_branch(node: n.Values | n.TableFunction) -> CoreBranch:
    for expression in transform.own_expressions(node):
        _require_no_subquery(expression)
    leaf = CoreLeaf(0, "constants", (), node.fields, 0, node)
    return CoreBranch(
        (leaf,), (), tuple(e.Column(i, f.type, f.name) for i, f in enumerate(node.fields))
    )


def _add_filter_to_branch(branch: CoreBranch, condition: e.Expression) -> CoreBranch:
    added = _split_plain_conjuncts(_substitute_columns(condition, branch.columns))
    return replace(branch, conditions=branch.conditions + added)


def _replace_branch_columns(branch: CoreBranch, expressions: Expressions) -> CoreBranch:
    columns = tuple(_substitute_columns(expression, branch.columns) for expression in expressions)
    return replace(branch, columns=columns)


def _join_branches(left: CoreBranch, right: CoreBranch, node: n.Join) -> CoreBranch:
    offset = left.row_width
    moved = replace(
        right,
        leaves=tuple(replace(leaf, offset=leaf.offset + offset) for leaf in right.leaves),
        conditions=transform.shift_all(right.conditions, offset),
        columns=transform.shift_all(right.columns, offset),
    )
    keys = tuple(
        make_equality(
            _substitute_columns(key.left, left.columns),
            _substitute_columns(key.right, moved.columns),
            key.null_safe,
        )
        for key in node.keys
    )
    columns = left.columns + moved.columns
    residual = (
        ()
        if node.residual is None
        else _split_plain_conjuncts(_substitute_columns(node.residual, columns))
    )
    conditions = left.conditions + moved.conditions + keys + residual
    return CoreBranch(left.leaves + moved.leaves, conditions, columns)


def _split_plain_conjuncts(condition: e.Expression | None) -> Expressions:
    found = tuple(transform.conjuncts(condition))
    for one in found:
        _require_no_subquery(one)
    return found


def _substitute_columns(expression: e.Expression, columns: Expressions) -> e.Expression:
    """An expression over a node's row as one over the branch's row."""
    _require_no_subquery(expression)
    return transform.substitute_columns(expression, columns)


def _require_no_subquery(expression: e.Expression) -> None:
    if transform.has_subplan(expression):
        raise unsupported_construct_error("sub-query", "it is not linear")
    if transform.has_outer_column(expression):
        raise unsupported_construct_error("sub-query", "it depends on rows further out")


def describe_node(node: n.Node) -> str:
    """The name of the node's construct, as a user knows it."""
    match node:
        case n.Join():
            return f"{'lateral ' if node.lateral else ''}{node.kind} join"
        case n.SetOperation():
            return f"{node.kind}{' all' if node.all else ''}"
        case n.Distinct():
            return "distinct" if node.on is None else "distinct on"
        case n.TopN() | n.Limit():
            return "limit"
        case n.RecursiveUnion() | n.CteScan() | n.With():
            return "recursive query"
        case n.VirtualScan():
            return "system table"
        case n.ForeignScan():
            return f"foreign table {node.name}"
        case _:
            return type(node).__name__.lower()
