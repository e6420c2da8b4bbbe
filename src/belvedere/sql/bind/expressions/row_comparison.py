"""Row comparisons, spelled out as comparisons of columns.

`(a, b) = (x, y)` is `a = x AND b = y`; `(a, b) < (x, y)` is `a <= x AND (a < x OR b < y)`, with the
same value for every mix of NULLs and with a range on the first column that an index can use.
"""

from __future__ import annotations

from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan import expressions as e
from belvedere.sql.bind.binder import Env
from belvedere.sql.bind.expressions import subqueries
from belvedere.sql.bind.expressions.coerce import make_call
from belvedere.sql.parse import tree as t

_WEAK = {"<": "<=", "<=": "<=", ">": ">=", ">=": ">="}
_STRICT = {"<": "<", "<=": "<", ">": ">", ">=": ">"}


def compare_rows(env: Env, tree: t.Operation) -> e.Expression:
    """The left side is a row; the right side must be one too, or a sub-query."""
    left, right = tree.left, tree.right
    assert isinstance(left, t.RowItems)
    if isinstance(right, t.ScalarQuery):
        return subqueries.compare_with_row(env, tree.name, left, right.query, tree.at)
    if not isinstance(right, t.RowItems):
        raise Unsupported("comparison of a row with a value", position=tree.at + 1)
    if len(left.items) != len(right.items):
        raise InvalidInput(
            "unequal number of entries in row expressions", sqlstate="42601", position=tree.at + 1
        )
    if not left.items:
        raise InvalidInput("cannot compare rows of zero length", sqlstate="0A000")
    lefts = [env.binder.rules.expression(env, one) for one in left.items]
    rights = [env.binder.rules.expression(env, one) for one in right.items]
    pairs = list(zip(lefts, rights))
    if tree.name in ("=", "<>"):
        tests = tuple([make_call(env.binder, tree.name, pair, tree.at) for pair in pairs])
        if len(tests) == 1:
            return tests[0]
        return e.And(tests) if tree.name == "=" else e.Or(tests)
    if tree.name not in _WEAK:
        raise Unsupported("row operator", position=tree.at + 1, operator=tree.name)
    return _compare_in_order(env, tree.name, pairs, tree.at)


def _compare_in_order(
    env: Env, name: str, pairs: list[tuple[e.Expression, e.Expression]], at: int
) -> e.Expression:
    found: e.Expression = make_call(env.binder, name, pairs[-1], at)
    for pair in reversed(pairs[:-1]):
        weak = make_call(env.binder, _WEAK[name], pair, at)
        strict = make_call(env.binder, _STRICT[name], pair, at)
        found = e.And((weak, e.Or((strict, found))))
    return found
