"""What scans need of their rows, in the form that stores understand (`txn.scan_request`).

Of a condition, comparisons of a column with a constant or a parameter are taken, IN lists, IS NOT
NULL and boolean columns, joined by AND and OR; of an AND what can be taken, of an OR all or
nothing. The condition itself is checked by the caller all the same.
"""

from __future__ import annotations

from collections.abc import Callable

from belvedere.execution.run import Run
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.txn.scan_request import (
    AllConditions,
    AnyCondition,
    NarrowReader,
    RowCondition,
    ScanRequest,
    SlotComparison,
    narrow_scans,
)
from belvedere.types import Kind

_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_INTEGERS = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)

ConditionOf = Callable[[Run], RowCondition | None]
"""The condition with the values of a run; None: everything may meet it."""

Narrow = Callable[[Run], NarrowReader | None]


def compile_narrowing(node: n.Scan, condition: e.Expression | None) -> Narrow:
    """The reader to scan with, None when it is simply that of the run."""
    build = None if condition is None else compile_condition(condition, node.slots)

    def narrow_reader(run: Run) -> NarrowReader | None:
        wanted = None if build is None else build(run)
        return narrow_scans(run.reader, ScanRequest(node.relation, node.slots, wanted))

    return narrow_reader


def has_store_condition(node: n.Scan, condition: e.Expression | None) -> bool:
    """Whether a store could leave out rows by this condition."""
    return condition is not None and compile_condition(condition, node.slots) is not None


def compile_condition(condition: e.Expression, slots: tuple[int, ...]) -> ConditionOf | None:
    """What a store can make of a condition; None: nothing."""
    match condition:
        case e.And(operands):
            return _compile_all(operands, slots)
        case e.Or(operands):
            return _compile_any([compile_condition(each, slots) for each in operands])
        case e.Column(index, sql_type) if sql_type.kind is Kind.BOOLEAN:
            return _always(SlotComparison(slots[index], "=", True))
        case e.Not(e.Column(index)):
            return _always(SlotComparison(slots[index], "=", False))
        case e.Test(e.Column(index), e.Truth.NULL, True):
            return _always(SlotComparison(slots[index], "not null"))
        case e.InList(operand, items, equal, False):
            parts = [_compile_comparison(equal.name, operand, item, slots) for item in items]
            return _compile_any(parts)
        case e.Call(function, (left, right)) if function.name in _MIRRORED:
            found = _compile_comparison(function.name, left, right, slots)
            return found or _compile_comparison(_MIRRORED[function.name], right, left, slots)
        case _:
            return None


def _always(condition: RowCondition) -> ConditionOf:
    return lambda run: condition


def _compile_all(operands: tuple[e.Expression, ...], slots: tuple[int, ...]) -> ConditionOf | None:
    found = [compile_condition(each, slots) for each in operands]
    parts = [each for each in found if each is not None]
    if not parts:
        return None

    def build_all(run: Run) -> RowCondition | None:
        built = [part(run) for part in parts]
        kept = tuple(each for each in built if each is not None)
        return AllConditions(kept) if kept else None

    return build_all


def _compile_any(parts: list[ConditionOf | None]) -> ConditionOf | None:
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None

    def build_any(run: Run) -> RowCondition | None:
        built = [part(run) for part in known]
        kept = tuple(each for each in built if each is not None)
        return AnyCondition(kept) if len(kept) == len(built) else None

    return build_any


def _compile_comparison(
    name: str, column: e.Expression, value: e.Expression, slots: tuple[int, ...]
) -> ConditionOf | None:
    """NULL is left to the caller, which finds no row then."""
    column, value = _strip_widening(column), _strip_widening(value)
    if not isinstance(column, e.Column) or not _are_alike(column, value):
        return None
    slot = slots[column.index]

    def build_comparison(run: Run) -> RowCondition | None:
        constant = _constant_value(value, run)
        return None if constant is None else SlotComparison(slot, name, constant)

    return build_comparison if isinstance(value, e.Literal | e.Parameter) else None


def _constant_value(value: e.Expression, run: Run) -> object:
    if isinstance(value, e.Parameter):
        return run.parameters[value.index - 1]
    assert isinstance(value, e.Literal)
    return value.value


def _strip_widening(expression: e.Expression) -> e.Expression:
    """Integers of one width compare like those of another, and text like VARCHAR."""
    if isinstance(expression, e.Cast) and not expression.explicit:
        kinds = (expression.operand.type.kind, expression.type.kind)
        if kinds[0] in _INTEGERS and kinds[1] in _INTEGERS:
            return expression.operand
        if kinds == (Kind.VARCHAR, Kind.TEXT):
            return expression.operand
    return expression


def _are_alike(column: e.Column, value: e.Expression) -> bool:
    kinds = {column.type.kind, value.type.kind}
    return len(kinds) == 1 or kinds <= {*_INTEGERS} or kinds == {Kind.TEXT, Kind.VARCHAR}
