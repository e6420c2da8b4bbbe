"""Roll-up: the aggregates of a query's groups from those of a view's finer groups.

| query | from the columns of the view |
|---|---|
| count(*), count(x) | the sum of the counts; of a column that is never NULL both are the same |
| sum(x) | the sum of the sums; not of floats, whose sum in a view is exact and rounded once |
| avg(x) | the sum of the sums by the sum of the counts |
| min, max, bool_and, bool_or, bit_and, bit_or | of the same aggregates, or of a group column |
| count(x) of a group column | the sum of the counts of groups where it is not NULL |
| any aggregate of DISTINCT x | of the group column x |

FILTER is taken over where it can be decided for a whole group. An aggregate of the same groups is
read as it is, unless its value depends on an order that nobody has given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from belvedere.plan import expressions as e
from belvedere.plan import transform
from belvedere.plan.functions.cast.casts import CastContext, cast_function
from belvedere.plan.functions.registry import resolve
from belvedere.types import BIGINT, BOOLEAN, NUMERIC, Kind, SqlType
from belvedere.views.rewrite.block import map_call_expressions
from belvedere.views.rewrite.derive_columns import NotDerivable

INTEGERS = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)
EXACT = (*INTEGERS, Kind.NUMERIC)
SELF_ROLLING = frozenset(("min", "max", "bool_and", "bool_or", "every", "bit_and", "bit_or"))
ORDER_DEPENDENT = frozenset(("array_agg", "string_agg", "any_value", "json_agg", "jsonb_agg"))
COUNT_ALL = resolve("count", ()).function

Derive = Callable[[e.Expression], e.Expression]
IsNeverNull = Callable[[e.Expression], bool]
Finish = Callable[[tuple[e.Expression, ...]], e.Expression]


class AggregateNotDerivable(Exception):
    """An aggregate of the query that the view's cannot give."""

    def __init__(self, call: e.AggregateCall) -> None:
        super().__init__(call.function.name)
        self.call = call


class RolledUpCall(NamedTuple):
    """The aggregates over the view's rows, and the value from theirs."""

    calls: tuple[e.AggregateCall, ...]
    finish: Finish


class AggregateColumns:
    """The aggregates that a view has as columns. `canonical` gives the canonical form of an
    expression of the query, `derive` the expression over the view's rows."""

    def __init__(
        self,
        columns: dict[e.AggregateCall, e.Column],
        canonical: Derive,
        derive: Derive,
        never_null: IsNeverNull,
    ) -> None:
        self._canonical = canonical
        self._derive = derive
        self._never_null = never_null
        self._columns = {self._normalize_call(call): column for call, column in columns.items()}

    def _normalize_call(self, call: e.AggregateCall) -> e.AggregateCall:
        call = map_call_expressions(call, self._canonical)
        name = call.function.name
        if name in ("min", "max") and call.distinct:
            call = replace(call, distinct=False)
        if name == "count" and call.arguments and not call.distinct:
            if self._never_null(call.arguments[0]):
                return replace(call, function=COUNT_ALL, arguments=())
        return call

    # -- the same groups ----------------------------------------------------------------------

    def read_same_group_aggregate(self, call: e.AggregateCall) -> e.Expression:
        """The aggregate of a group that is a row of the view."""
        wanted = self._normalize_call(call)
        if call.function.name in ORDER_DEPENDENT and not call.order_by:
            raise AggregateNotDerivable(call)
        found = self._columns.get(wanted)
        if found is not None:
            return found
        if call.function.name == "avg":
            total, count = self._find_average_parts(wanted)
            return _make_average(total, count)
        raise AggregateNotDerivable(call)

    def _find_average_parts(self, call: e.AggregateCall) -> tuple[e.Column, e.Column]:
        """The columns of sum(x) and count(x) for avg(x)."""
        argument = call.arguments[0]
        if call.distinct or argument.type.kind not in EXACT:
            raise AggregateNotDerivable(call)
        total = self._columns.get(_make_aggregate_call("sum", argument, call.filter))
        count = self._columns.get(
            self._normalize_call(_make_aggregate_call("count", argument, call.filter))
        )
        if total is None or count is None:
            raise AggregateNotDerivable(call)
        return total, count

    # -- coarser groups -----------------------------------------------------------------------

    def roll_up_call(self, call: e.AggregateCall) -> RolledUpCall:
        """The aggregate of a group that is made of several rows of the view."""
        wanted = self._normalize_call(call)
        if wanted.order_by:
            raise AggregateNotDerivable(call)
        if wanted.distinct:
            return self._roll_up_distinct(wanted)
        match wanted.function.name:
            case "count":
                return self._roll_up_count(wanted)
            case "sum":
                return self._roll_up_sum(wanted)
            case "avg":
                return self._roll_up_average(wanted)
            case name if name in SELF_ROLLING:
                return self._roll_up_by_same_function(wanted)
        raise AggregateNotDerivable(call)

    def _find_aggregate_column(
        self, call: e.AggregateCall
    ) -> tuple[e.Column, e.Expression | None] | None:
        """The column that holds the aggregate, and the filter of groups that remains."""
        found = self._columns.get(call)
        if found is not None:
            return found, None
        found = self._columns.get(replace(call, filter=None))
        if found is None or call.filter is None:
            return None
        return found, self._derive(call.filter)

    def _roll_up_distinct(self, call: e.AggregateCall) -> RolledUpCall:
        return RolledUpCall((map_call_expressions(call, self._derive),), _take_first)

    def _roll_up_by_same_function(self, call: e.AggregateCall) -> RolledUpCall:
        found = self._find_aggregate_column(call)
        if found is None:
            return RolledUpCall((map_call_expressions(call, self._derive),), _take_first)
        column, condition = found
        return RolledUpCall((replace(call, arguments=(column,), filter=condition),), _take_first)

    def _roll_up_count(self, call: e.AggregateCall) -> RolledUpCall:
        found = self._find_aggregate_column(call)
        if found is None:
            if not call.arguments:
                raise AggregateNotDerivable(call)
            found = self._find_aggregate_column(replace(call, function=COUNT_ALL, arguments=()))
            if found is None:
                raise AggregateNotDerivable(call)
            known = e.Test(self._derive_argument(call), e.Truth.NULL, negated=True)
            found = found[0], _join_conditions(found[1], known)
        return RolledUpCall((_make_sum_call(*found),), _null_count_to_zero)

    def _derive_argument(self, call: e.AggregateCall) -> e.Expression:
        try:
            return self._derive(call.arguments[0])
        except NotDerivable:
            raise AggregateNotDerivable(call) from None

    def _roll_up_sum(self, call: e.AggregateCall) -> RolledUpCall:
        found = self._find_aggregate_column(call)
        if found is None or call.arguments[0].type.kind not in EXACT:
            raise AggregateNotDerivable(call)
        return RolledUpCall(
            (_make_sum_call(*found),), lambda values: _cast_to(values[0], call.type)
        )

    def _roll_up_average(self, call: e.AggregateCall) -> RolledUpCall:
        argument, condition = call.arguments[0], call.filter
        if argument.type.kind not in EXACT:
            raise AggregateNotDerivable(call)
        total = self._find_aggregate_column(_make_aggregate_call("sum", argument, condition))
        if total is None:
            raise AggregateNotDerivable(call)
        count = self.roll_up_call(_make_aggregate_call("count", argument, condition))
        return RolledUpCall(
            (_make_sum_call(*total), *count.calls),
            lambda values: _make_average(values[0], values[1]),
        )


def _take_first(values: tuple[e.Expression, ...]) -> e.Expression:
    return values[0]


def _null_count_to_zero(values: tuple[e.Expression, ...]) -> e.Expression:
    """A sum of counts as a count: 0 for no groups."""
    return e.Coalesce((_cast_to(values[0], BIGINT), e.Literal(0, BIGINT)), BIGINT)


def _make_aggregate_call(
    name: str, argument: e.Expression, condition: e.Expression | None
) -> e.AggregateCall:
    found = resolve(name, (argument.type,))
    return e.AggregateCall(found.function, (argument,), found.result_type, filter=condition)


def _make_sum_call(column: e.Column, condition: e.Expression | None) -> e.AggregateCall:
    return _make_aggregate_call("sum", column, condition)


def _join_conditions(one: e.Expression | None, other: e.Expression) -> e.Expression:
    return transform.conjunction([*transform.conjuncts(one), other]) or e.Literal(True, BOOLEAN)


def _cast_to(value: e.Expression, type_: SqlType) -> e.Expression:
    if value.type == type_:
        return value
    function = cast_function(value.type, type_, CastContext.EXPLICIT)
    return e.Cast(value, type_, function, explicit=True)


def _make_average(total: e.Expression, count: e.Expression) -> e.Expression:
    """The average; NULL without values, because then the total is NULL. The count is never 0 where
    there is a total."""
    function = resolve("/", (NUMERIC, NUMERIC)).function
    return e.Call(function, (_cast_to(total, NUMERIC), _cast_to(count, NUMERIC)), NUMERIC)
