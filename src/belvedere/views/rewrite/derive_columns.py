"""What the rows of a view can give: expressions over a query's row, rewritten over the view's.

The result row has the view's columns first, then those of the query's leaves that the view lacks.
An expression is derived from the largest parts of it that are columns there.
"""

from __future__ import annotations

from collections.abc import Iterable

from belvedere.plan import expressions as e
from belvedere.plan import transform
from belvedere.sql.rules.equality import make_equality
from belvedere.views.rewrite.match import ViewAlignment


class NotDerivable(Exception):
    """The view lacks a column; `column` is one of the query's row."""

    def __init__(self, column: int) -> None:
        super().__init__(column)
        self.column = column


class RowDerivation:
    """Rewrites expressions over the query's row to expressions over the result row.

    `remaining` has the columns of the result row that hold columns of remaining leaves. `usable`
    are the view's columns that may be read as values of their expressions.
    """

    def __init__(
        self,
        alignment: ViewAlignment,
        names: tuple[str, ...],
        usable: Iterable[int],
        remaining: dict[int, e.Column],
    ) -> None:
        self._alignment = alignment
        self._by_form: dict[e.Expression, e.Column] = {}
        self._by_kept_class: dict[int, e.Column] = {}
        self._remaining = remaining
        given, kept = alignment.given, alignment.kept
        for i in usable:
            expression = alignment.columns[i]
            if expression is None or isinstance(expression, e.AggregateCall):
                continue
            column = e.Column(i, expression.type, names[i])
            if isinstance(expression, e.Column):
                self._by_kept_class.setdefault(kept.find_representative(expression.index), column)
            if transform.columns_of(expression):
                self._by_form.setdefault(given.canonical_form(expression), column)
        for index, column in remaining.items():
            form = given.canonical_form(e.Column(index, column.type))
            self._by_form.setdefault(form, column)

    def derive_expression(self, expression: e.Expression) -> e.Expression:
        """The expression over the result row; NotDerivable when a column is missing."""
        return self._derive_from_canonical_form(self._alignment.given.canonical_form(expression))

    def _derive_from_canonical_form(self, form: e.Expression) -> e.Expression:
        found = self._by_form.get(form)
        if found is not None:
            return found
        if isinstance(form, e.Column):
            raise NotDerivable(form.index)
        if transform.subplan(form) is not None:
            return transform.map_columns(form, self._derive_from_canonical_form)
        return transform.rebuild_operands(form, self._derive_from_canonical_form)

    def find_result_column(self, expression: e.Expression) -> e.Column | None:
        """The column of the result row that the expression is."""
        return self._by_form.get(self._alignment.given.canonical_form(expression))

    def derive_missing_equalities(self) -> list[e.Expression]:
        """The equalities of the query's columns that the view does not guarantee."""
        found: list[e.Expression] = []
        for columns in self._alignment.given.list_classes():
            groups = dict.fromkeys([self._find_equality_class(column) for column in columns])
            if len(groups) > 1:
                first, *others = [self._get_class_column(group) for group in groups]
                found += [make_equality(first, other) for other in others]
        return found

    def _find_equality_class(self, column: int) -> tuple[bool, int]:
        """What the column is known to be equal to: a class of the view, or itself."""
        if column in self._remaining:
            return (True, column)
        return (False, self._alignment.kept.find_representative(column))

    def _get_class_column(self, group: tuple[bool, int]) -> e.Column:
        alone, column = group
        found = (self._remaining if alone else self._by_kept_class).get(column)
        if found is None:
            raise NotDerivable(column)
        return found
