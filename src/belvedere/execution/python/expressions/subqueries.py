"""Expressions over sets of values: IN lists, ANY and ALL over arrays, sub-queries.

The result of a sub-query is cached in the Run on which it depends: the outermost one when it does
not depend on any outer row, so that it runs once per statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from belvedere.execution.python.expressions.comparison import KeyForm, key_form
from belvedere.execution.python.expressions.outer_references import (
    Dependence,
    dependence_of,
    nearest_columns,
)
from belvedere.execution.run import Rows, Run, scalar_value
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.types import Row

Compare = Callable[[Any, Any], Any]
OfRow = Callable[[Run, Row], Any]


def compile_in_set(
    keys: frozenset[Any], has_null: bool, form: KeyForm | None, negated: bool
) -> Callable[[Any], bool | None]:
    absent = None if has_null else negated
    present = not negated
    if form is None:
        return lambda value: None if value is None else present if value in keys else absent

    def test_key(value: Any) -> bool | None:
        if value is None:
            return None
        return present if form(value) in keys else absent

    return test_key


def compile_in_items(equal: Compare, negated: bool) -> Callable[[Any, Iterable[Any]], bool | None]:
    def test_items(value: Any, items: Iterable[Any]) -> bool | None:
        if value is None:
            return None
        unknown = False
        for item in items:
            if item is None:
                unknown = True
            elif equal(value, item):
                return not negated
        return None if unknown else negated

    return test_items


def compile_quantified(
    compare: Compare, every: bool
) -> Callable[[Any, list[Any] | None], bool | None]:
    """`value op ANY | ALL (array)`."""

    def compare_array(value: Any, array: list[Any] | None) -> bool | None:
        if array is None:
            return None
        unknown = False
        for item in _flatten_array(array):
            found = None if value is None or item is None else compare(value, item)
            if found is None:
                unknown = True
            elif found is not every:
                return not every
        return None if unknown else every

    return compare_array


def _flatten_array(array: list[Any]) -> Iterable[Any]:
    for item in array:
        if isinstance(item, list):
            yield from _flatten_array(item)
        else:
            yield item


# -- plans -----------------------------------------------------------------------------------------


def compile_subquery(
    expression: e.ScalarSubquery | e.Exists | e.ArraySubquery, rows: Rows
) -> OfRow:
    match expression:
        case e.ScalarSubquery():
            return _cache_result(expression.plan, lambda run: scalar_value(rows(run)))
        case e.Exists():
            negated = expression.negated
            return _cache_result(
                expression.plan, lambda run: (next(rows(run), None) is not None) is not negated
            )
        case e.ArraySubquery():
            return _cache_result(expression.plan, lambda run: [row[0] for row in rows(run)])


def compile_quantified_plan(
    expression: e.QuantifiedSubquery, compares: tuple[Compare, ...], rows: Rows
) -> Callable[[Run, Row, Row], bool | None]:
    every = expression.quantifier is e.Quantifier.ALL
    names = {function.name for function in expression.operators}
    if (names == {"="} and not every) or (names == {"<>"} and every):
        same_types = all(
            operand.type.kind is field.type.kind
            for operand, field in zip(expression.operands, expression.plan.fields)
        )
        if same_types:
            return _compile_membership(expression, rows, negated=every)
    fetch = _cache_result(expression.plan, lambda run: list(rows(run)))
    one_is_enough = names == {"<>"}

    def compare_result_rows(run: Run, row: Row, values: Row) -> bool | None:
        unknown = False
        for found in fetch(run, row):
            match = _compare_rows(values, found, compares, one_is_enough)
            if match is None:
                unknown = True
            elif match is not every:
                return not every
        return None if unknown else every

    return compare_result_rows


def _compile_membership(
    expression: e.QuantifiedSubquery, rows: Rows, *, negated: bool
) -> Callable[[Run, Row, Row], bool | None]:
    """IN and NOT IN by a hash of the sub-query's rows; those with NULLs are compared one by one."""
    forms = [key_form(operand.type) for operand in expression.operands]

    def collect_keys(run: Run) -> tuple[set[Row], list[Row]]:
        whole: set[Row] = set()
        partial: dict[Row, None] = {}
        for found in rows(run):
            key = _row_key(found, forms)
            if None in key:
                partial[key] = None
            else:
                whole.add(key)
        return whole, list(partial)

    fetch = _cache_result(expression.plan, collect_keys)

    def test_membership(run: Run, row: Row, values: Row) -> bool | None:
        whole, partial = fetch(run, row)
        key = _row_key(values, forms)
        if None not in key:
            if key in whole:
                return not negated
            candidates: Iterable[Row] = partial
        else:
            candidates = [*whole, *partial]
        for other in candidates:
            if all(a is None or b is None or a == b for a, b in zip(key, other)):
                return None
        return negated

    return test_membership


def _row_key(values: Row, forms: list[KeyForm | None]) -> Row:
    return tuple([v if v is None or form is None else form(v) for v, form in zip(values, forms)])


def _compare_rows(
    left: Row, right: Row, compares: tuple[Compare, ...], one_is_enough: bool
) -> bool | None:
    unknown = False
    for a, b, compare in zip(left, right, compares):
        found: bool | None = None if a is None or b is None else compare(a, b)
        if found is None:
            unknown = True
        elif found is one_is_enough:
            return one_is_enough
    return None if unknown else not one_is_enough


def _cache_result(plan: n.Node, compute: Callable[[Run], Any]) -> OfRow:
    """`compute`, evaluated again only when what it depends on has changed."""
    depends = dependence_of(plan)
    if depends.nearest == 1:
        return _cache_for_same_row(plan, compute)
    levels = _levels_out(depends)
    number = id(compute)

    def cached_result(run: Run, row: Row) -> Any:
        cache = run.outer_run(levels).cache
        if number not in cache:
            cache[number] = compute(run.nested_run(row))
        return cache[number]

    return cached_result


def _cache_for_same_row(plan: n.Node, compute: Callable[[Run], Any]) -> OfRow:
    """Reuses the last result while rows have the same values in the columns used: a join returns
    all matches of one left row consecutively."""
    columns = nearest_columns(plan)
    if columns is None:
        return lambda run, row: compute(run.nested_run(row))
    number = id(compute)

    def cached_result(run: Run, row: Row) -> Any:
        key = [row[column] for column in columns]
        last = run.cache.get(number)
        if last is None or last[0] != key:
            last = run.cache[number] = (key, compute(run.nested_run(row)))
        return last[1]

    return cached_result


def _levels_out(depends: Dependence) -> int:
    """How many Runs further out the result stays valid."""
    if depends.ctes:
        return 0
    return 1_000_000 if depends.nearest is None else depends.nearest - 2
