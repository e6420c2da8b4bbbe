"""Semi joins with few rows on the right become inner joins that start from these rows:

    WHERE customer IN (SELECT ..)    three customers: their orders are looked up by an index

A semi join reads all its left rows. As an inner join with the different keys of its right side it
takes part in the order of joins, and its left rows are found by key. This pays where the left side
has a key or an index that begins with the column compared.
"""

from __future__ import annotations

from belvedere.catalog.model import Table, View
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.fields import Field
from belvedere.plan.transform import rebuild_inputs
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.estimates import estimate_rows, find_origin

LEFT_ROWS_MIN = 20.0
"""Left rows for each right row from which on it pays to look them up."""


def turn_semi_joins(plan: n.Node, context: OptimizerContext) -> n.Node:
    node = rebuild_inputs(plan, lambda one: turn_semi_joins(one, context))
    if not isinstance(node, n.Join) or not _is_plain_semi_join(node):
        return node
    right = estimate_rows(node.right, context)
    if right * LEFT_ROWS_MIN > estimate_rows(node.left, context):
        return node
    if not any(_begins_key(key.left, node.left, context) for key in node.keys):
        return node
    return _start_from_right(node)


def _is_plain_semi_join(node: n.Join) -> bool:
    plain = node.kind is n.JoinKind.SEMI and not node.lateral and node.residual is None
    return plain and bool(node.keys) and not any(key.null_safe for key in node.keys)


def _begins_key(expression: e.Expression, node: n.Node, context: OptimizerContext) -> bool:
    """Whether rows are found by the value of this column alone."""
    origin = find_origin(expression, node)
    if origin is None:
        return False
    relation, slot = origin
    match context.catalog.get(relation):
        case Table() as table:
            indexes = context.catalog.table_indexes(relation)
            begins = [index.parts[0].slot for index in indexes if index.where is None]
            return slot in (*table.primary_key[:1], *begins)
        case View() as view:
            return slot == 0 and view.key_columns > 0
        case _:
            return False


def _start_from_right(node: n.Join) -> n.Node:
    values = tuple([key.right for key in node.keys])
    names = tuple([Field(f"key_{i}", one.type) for i, one in enumerate(values, 1)])
    different = n.Distinct(n.Project(node.right, values, names))
    keys = tuple(
        [
            n.JoinKey(e.Column(i, field.type, field.name), key.left)
            for i, (field, key) in enumerate(zip(names, node.keys, strict=True))
        ]
    )
    width, fields = len(names), node.left.fields
    joined = n.Join(n.JoinKind.INNER, different, node.left, keys)
    columns = tuple([e.Column(width + i, f.type, f.name) for i, f in enumerate(fields)])
    return n.Project(joined, columns, fields)
