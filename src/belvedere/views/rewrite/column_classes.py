"""Equivalence classes of columns, and the canonical form of expressions under them.

Conditions `a = b` of columns of one type make classes: in every row that satisfies them the columns
of a class have the same value, so that any of them can stand for the others. Columns of types whose
equal values may differ in representation (1.0 and 1.00) are in no class; their equalities are
conditions like any other.
"""

from __future__ import annotations

from collections.abc import Iterable

from belvedere.plan import expressions as e
from belvedere.plan import transform
from belvedere.plan.representation import sql_equal_may_differ
from belvedere.sql.rules.access.implication import FLIPPED
from belvedere.sql.rules.equality import make_comparison


class ColumnClasses:
    """The classes of some conditions; `others` are the conditions that make no class, in canonical
    form."""

    def __init__(self, conditions: Iterable[e.Expression]) -> None:
        self._parents: dict[int, int] = {}
        others = []
        for condition in conditions:
            pair = match_column_equality(condition)
            if pair is None:
                others.append(condition)
            else:
                self._merge_classes(*pair)
        self.others = tuple([self.canonical_form(one) for one in others])

    def _merge_classes(self, one: int, other: int) -> None:
        one, other = sorted((self.find_representative(one), self.find_representative(other)))
        self._parents.setdefault(one, one)
        self._parents[other] = one

    def find_representative(self, column: int) -> int:
        """The first column of the class that the column is in."""
        parent = self._parents.get(column, column)
        while parent != column:
            column, parent = parent, self._parents[parent]
        return column

    def list_classes(self) -> list[list[int]]:
        """The columns of each class of two or more, in order."""
        found: dict[int, list[int]] = {}
        for column in sorted(self._parents):
            found.setdefault(self.find_representative(column), []).append(column)
        return list(found.values())

    def is_in_class(self, column: int) -> bool:
        """Whether the column is equal to another one, and so not NULL."""
        return column in self._parents

    def canonical_form(self, expression: e.Expression) -> e.Expression:
        """The expression with the first column of each class, and comparisons in one direction."""
        if isinstance(expression, e.Column):
            return move_column(expression, self.find_representative(expression.index))
        if transform.subplan(expression) is not None:
            return transform.map_columns(
                expression, lambda one: move_column(one, self.find_representative(one.index))
            )
        return _orient_comparison(transform.rebuild_operands(expression, self.canonical_form))


def move_column(column: e.Column, place: int) -> e.Column:
    """The column at another place of the row, without a name; itself where it is that already, so
    that the expressions around it need not be rebuilt."""
    if place == column.index and not column.name:
        return column
    return e.Column(place, column.type)


def match_column_equality(condition: e.Expression) -> tuple[int, int] | None:
    """The columns of `a = b`, if they can stand for each other."""
    match condition:
        case e.Call(function, (e.Column() as left, e.Column() as right), _):
            same = left.type == right.type and not sql_equal_may_differ(left.type)
            if function.name == "=" and same:
                return left.index, right.index
    return None


def _orient_comparison(expression: e.Expression) -> e.Expression:
    """A comparison with its sides in one order: `a < b` for `b > a`, columns before constants."""
    if not isinstance(expression, e.Call) or len(expression.arguments) != 2:
        return expression
    sign = FLIPPED.get(expression.function.name)
    left, right = expression.arguments
    if sign is None or left.type.kind is not right.type.kind:
        return expression
    if _comparison_side_rank(left) <= _comparison_side_rank(right):
        return expression
    return make_comparison(sign, right, left)


def _comparison_side_rank(expression: e.Expression) -> tuple[int, int, str]:
    match expression:
        case e.Column():
            return (0, expression.index, "")
        case e.Literal() | e.Parameter():
            return (2, 0, "")
        case _:
            return (1, 0, repr(expression))
