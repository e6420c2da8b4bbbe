"""Operators assembled from auxiliary views, which read only the entries they need.

aggregates      linear ones from their amounts, MIN and MAX from an end of ordered rows,
                DISTINCT ones from amounts over each value once: a get or a seek a call
INTERSECT,      from the row's multiplicity on either side: two gets a row
EXCEPT [ALL]
LIMIT           the first rows of its input in its order: k rows, however many there are
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.txn.contracts import Reader
from belvedere.types import Row
from belvedere.views.compile.auxiliary_views import (
    AuxiliaryGroups,
    AuxiliaryRows,
    define_aggregate_auxiliaries,
    define_limit_auxiliary,
    define_set_operation_auxiliaries,
)
from belvedere.views.compile.auxiliary_views import compute_limit_row_count as rows_needed_by
from belvedere.views.delta.delta_tree import Recompute
from belvedere.views.delta.linear_aggregates import build_linear_aggregate
from belvedere.views.operators.auxiliary_readers import (
    AuxiliaryGroupsReader,
    AuxiliaryRowsReader,
    AuxiliaryViews,
)

AssembleRows = Callable[[Reader, list[Row]], Iterator[Row]]
"""The operator's rows for some keys at a state."""

_ReadValue = Callable[[Reader, Row, tuple[int, ...] | None], object]


def build_row_assembler(tree: Recompute, kept: AuxiliaryViews) -> AssembleRows | None:
    """A function that assembles the operator's rows; None where an auxiliary view is missing."""
    if isinstance(tree.plan, n.SetOperation):
        return _build_set_operation_assembler(tree, tree.plan, kept)
    return _build_aggregate_assembler(tree, kept)


def build_limit_rows_reader(
    tree: Recompute, kept: AuxiliaryViews
) -> Callable[[Reader], list[Row]] | None:
    """A reader of the rows that a LIMIT needs: the first ones of its input."""
    reader_of = kept.build_rows_reader(define_limit_auxiliary(tree))
    if reader_of is None:
        return None
    plan = tree.plan
    assert isinstance(plan, n.Limit | n.TopN)
    count, ties = rows_needed_by(plan), plan.with_ties
    assert count is not None
    return lambda reader: reader_of.read_first_rows(reader, count, ties=ties)


# -- aggregates ------------------------------------------------------------------------------------


def _build_aggregate_assembler(tree: Recompute, kept: AuxiliaryViews) -> AssembleRows | None:
    parts, plan = define_aggregate_auxiliaries(tree), tree.plan
    if parts is None or not isinstance(plan, n.Aggregate):
        return None
    presence = kept.build_groups_reader(parts.presence)
    if presence is None:
        return None
    values: list[_ReadValue] = []
    for call, (part, number) in zip(plan.aggregates, parts.calls, strict=True):
        value = _build_call_value_reader(call, part, number, parts.presence, kept)
        if value is None:
            return None
        values.append(value)
    groups = len(plan.groups)
    known = presence

    def assemble_group_rows(reader: Reader, keys: list[Row]) -> Iterator[Row]:
        for key in keys:
            found = known.read_group(reader, key)
            if found is not None:
                yield found[0] + tuple([value(reader, key, found[1]) for value in values])
            elif not groups:
                yield tuple([value(reader, key, None) for value in values])

    return assemble_group_rows


def _build_call_value_reader(
    call: e.AggregateCall,
    part: AuxiliaryGroups | AuxiliaryRows,
    number: int | None,
    presence: AuxiliaryGroups,
    kept: AuxiliaryViews,
) -> _ReadValue | None:
    if isinstance(part, AuxiliaryRows):
        rows = kept.build_rows_reader(part)
        return (
            None
            if rows is None
            else _build_extreme_reader(rows, largest=call.function.name == "max")
        )
    assert number is not None
    amounts = _build_final_value_function(part, number)
    if part is presence:
        return lambda reader, key, found: amounts(found)
    groups = kept.build_groups_reader(part)
    return None if groups is None else _build_group_value_reader(groups, amounts)


def _build_extreme_reader(rows: AuxiliaryRowsReader, *, largest: bool) -> _ReadValue:
    return lambda reader, key, found: rows.read_extreme_value(reader, key, largest=largest)


def _build_group_value_reader(
    groups: AuxiliaryGroupsReader, amounts: Callable[[tuple[int, ...] | None], object]
) -> _ReadValue:
    def read_group_value(reader: Reader, key: Row, found: tuple[int, ...] | None) -> object:
        there = groups.read_group(reader, key)
        return amounts(None if there is None else there[1])

    return read_group_value


def _build_final_value_function(
    part: AuxiliaryGroups, number: int
) -> Callable[[tuple[int, ...] | None], object]:
    """A function from the amounts of a group (None: an empty one) to the value of a call."""
    keeps = [build_linear_aggregate(call) for call in part.calls]
    before = sum(keep.width for keep in keeps[:number] if keep is not None)
    keep = keeps[number]
    assert keep is not None
    final, start, end = keep.final.python, 1 + before, 1 + before + keep.width
    nothing = (0,) * keep.width
    assert callable(final)
    return lambda amounts: final(*(nothing if amounts is None else amounts[start:end]))


# -- set operations --------------------------------------------------------------------------------


def _build_set_operation_assembler(
    tree: Recompute, plan: n.SetOperation, kept: AuxiliaryViews
) -> AssembleRows | None:
    found = [kept.build_groups_reader(one) for one in define_set_operation_auxiliaries(tree)]
    sides = [one for one in found if one is not None]
    if len(sides) != 2:
        return None
    left, right = sides
    every, intersects = plan.all, plan.kind is n.SetKind.INTERSECT

    def assemble_set_rows(reader: Reader, keys: list[Row]) -> Iterator[Row]:
        for key in keys:
            mine, other = left.read_group(reader, key), right.read_group(reader, key)
            here = 0 if mine is None else mine[1][0]
            there = 0 if other is None else other[1][0]
            if intersects:
                times = min(here, there) if every else int(here > 0 and there > 0)
            else:
                times = max(here - there, 0) if every else int(here > 0 and not there)
            if times and mine is not None:
                yield from (mine[0] for _ in range(times))

    return assemble_set_rows
