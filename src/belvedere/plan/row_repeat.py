"""Rows repeated as often as one of their columns says: how stored rows become a bag.

The plan is a lateral join with `generate_series(1, column)`, which means the same to every
executor; one that recognizes it need not run a plan for every row.
"""

from __future__ import annotations

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n


def find_repeat_column(join: n.Join) -> int | None:
    """The column of the left row that says how often the row is there; None for another join."""
    right = join.right
    plain = join.lateral and join.kind is n.JoinKind.INNER and not join.keys
    if not plain or join.residual is not None or not isinstance(right, n.TableFunction):
        return None
    if right.ordinality or len(right.calls) != 1:
        return None
    call = right.calls[0]
    match call.arguments:
        case (e.Literal(value=1), e.OuterColumn(depth=1) as count):
            return count.index if call.function.name == "generate_series" else None
    return None
