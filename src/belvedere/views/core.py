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

from dataclasses import dataclass, replace

from belvedere.errors import Unsupported
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.fields import Fields
from belvedere.sql.rules.equality import equality

Expressions = tuple[e.Expression, ...]


@dataclass(frozen=True, slots=True)
class Leaf:
    """One occurrence of a table, or rows that never change (`constant`); its row starts at `offset`
    of the branch's row."""

    relation: int
    name: str
    slots: tuple[int, ...]
    fields: Fields
    offset: int
    constant: n.Node | None = None

    @property
    def columns(self) -> range:
        return range(self.offset, self.offset + len(self.fields))


@dataclass(frozen=True, slots=True)
class Branch:
    leaves: tuple[Leaf, ...]
    conditions: Expressions
    columns: Expressions

    @property
    def width(self) -> int:
        return sum(len(leaf.fields) for leaf in self.leaves)


def branches_of(node: n.Node) -> tuple[Branch, ...]:
    """The branches of a plan; Unsupported names the node that is not linear."""
    match node:
        case n.Scan():
            return (_scan(node),)
        case n.Values() | n.TableFunction():
            return (_constant(node),)
        case n.Filter():
            return tuple(_filtered(b, node.condition) for b in branches_of(node.input))
        case n.Project():
            return tuple(_projected(b, node.expressions) for b in branches_of(node.input))
        case n.Join(kind=n.JoinKind.INNER, lateral=False):
            return tuple(
                _joined(left, right, node)
                for left in branches_of(node.left)
                for right in branches_of(node.right)
            )
        case n.SetOperation(kind=n.SetKind.UNION, all=True):
            return branches_of(node.left) + branches_of(node.right)
        case _:
            raise refused(name_of(node), "it is not linear")


def refused(construct: str, reason: str) -> Unsupported:
    return Unsupported(
        "materialized view cannot be maintained incrementally",
        detail=f"{construct}: {reason}",
        hint="leave it out, or let it be computed again as a whole: WITH (strict = false)",
        construct=construct,
    )


def _scan(node: n.Scan) -> Branch:
    leaf = Leaf(node.relation, node.name, node.slots, node.fields, 0)
    columns = tuple(e.Column(i, f.type, f.name) for i, f in enumerate(node.fields))
    return Branch((leaf,), _conditions(node.filter), columns)


def _constant(node: n.Values | n.TableFunction) -> Branch:
    for expression in transform.own_expressions(node):
        _require_plain(expression)
    leaf = Leaf(0, "constants", (), node.fields, 0, node)
    return Branch(
        (leaf,), (), tuple(e.Column(i, f.type, f.name) for i, f in enumerate(node.fields))
    )


def _filtered(branch: Branch, condition: e.Expression) -> Branch:
    added = _conditions(_on(condition, branch.columns))
    return replace(branch, conditions=branch.conditions + added)


def _projected(branch: Branch, expressions: Expressions) -> Branch:
    columns = tuple(_on(expression, branch.columns) for expression in expressions)
    return replace(branch, columns=columns)


def _joined(left: Branch, right: Branch, node: n.Join) -> Branch:
    offset = left.width
    moved = replace(
        right,
        leaves=tuple(replace(leaf, offset=leaf.offset + offset) for leaf in right.leaves),
        conditions=tuple(transform.shift(c, offset) for c in right.conditions),
        columns=tuple(transform.shift(c, offset) for c in right.columns),
    )
    keys = tuple(
        equality(_on(key.left, left.columns), _on(key.right, moved.columns), key.null_safe)
        for key in node.keys
    )
    columns = left.columns + moved.columns
    residual = () if node.residual is None else _conditions(_on(node.residual, columns))
    conditions = left.conditions + moved.conditions + keys + residual
    return Branch(left.leaves + moved.leaves, conditions, columns)


def _conditions(condition: e.Expression | None) -> Expressions:
    found = tuple(transform.conjuncts(condition))
    for one in found:
        _require_plain(one)
    return found


def _on(expression: e.Expression, columns: Expressions) -> e.Expression:
    """An expression over a node's row as one over the branch's row."""
    _require_plain(expression)
    return transform.map_columns(expression, lambda column: columns[column.index])


def _require_plain(expression: e.Expression) -> None:
    if transform.has_subplan(expression):
        raise refused("sub-query", "it is not linear")
    if transform.has_outer(expression):
        raise refused("sub-query", "it depends on rows further out")


def name_of(node: n.Node) -> str:
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
        case _:
            return type(node).__name__.lower()
