"""Aggregates and window functions in DuckDB SQL.

The arguments, filters and keys are projected first, so that what is aggregated are plain columns.
The registry marks the call inside a form with [[ ]]: DISTINCT, ORDER BY, FILTER and OVER go there.
An average of exact numbers is a sum, a count and a quotient above them. An aggregate whose last
step DuckDB cannot do exactly (a variance of NUMERIC) is computed in parts, and Python finishes: see
`PartialAggregates`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from belvedere.execution.duckdb.expressions import lower
from belvedere.execution.duckdb.numeric_division import average_integer_digits
from belvedere.execution.duckdb.query import (
    DuckQuery,
    Outer,
    TypedSql,
    Types,
    build_select,
    close_query,
    require_groupable,
    select_list,
)
from belvedere.execution.duckdb.types import NotExact, RaggedNumeric, literal_text, type_text
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.core.function import Function
from belvedere.plan.functions.core.sql_form import DECIMAL_DIGITS_MAX, sql_template
from belvedere.types import BIGINT, INTEGER, Kind, Row, SqlType, numeric_type

if TYPE_CHECKING:
    from belvedere.execution.duckdb.lower import DuckLowering

_ARGUMENT = re.compile(r"(?<![\w'])_(\d+)\b")
_LISTS = frozenset({"array_agg", "string_agg", "json_agg"})
_MARKED = re.compile(r"\[\[(.*?)\((.*)\)\]\]", re.DOTALL)


class PartialAggregates(NamedTuple):
    """An aggregate query whose rows Python still has to finish: for every output column how many
    columns of the query it takes, and what makes one value of them (None: it is the value)."""

    query: DuckQuery
    columns: tuple[tuple[int, Callable[..., Any] | None], ...]

    def finish_row(self, row: Row) -> Row:
        values, at = [], 0
        for width, form in self.columns:
            taken = row[at : at + width]
            values.append(taken[0] if form is None else form(*taken))
            at += width
        return tuple(values)


class _InputProjection:
    """The projection below an aggregation, with each distinct expression once."""

    def __init__(self, lowering: DuckLowering, below: n.Node, outer: Outer) -> None:
        self._parts = lowering.open_parts(lowering.lower_node(below, outer))
        self.alias = lowering.new_alias()
        self._scope = lowering.expression_scope(self._parts.column_lookup(), outer)
        self._columns: list[TypedSql] = []
        self._known: dict[e.Expression, int] = {}

    def add_column(self, expression: e.Expression, *, new: bool = False) -> tuple[str, SqlType]:
        """The text and type of an expression's column; `new`: a column not shared with
        others."""
        at = self._known.get(expression)
        if at is None or new:
            self._columns.append(lower(self._scope, expression))
            at = self._known[expression] = len(self._columns) - 1
        return f"{self.alias}.c{at}", self._columns[at].type

    def source_text(self) -> str:
        text = f"SELECT {select_list(self._columns)}{self._parts.from_where}"
        return f"({text}) AS {self.alias}"

    def order_by_text(self, keys: tuple[e.SortKey, ...]) -> str:
        parts = []
        for key in keys:
            text, _ = self.add_column(key.expression)
            nulls = "FIRST" if key.nulls_first else "LAST"
            parts.append(f"{text} {'DESC' if key.descending else 'ASC'} NULLS {nulls}")
        return ", ".join(parts)


def lower_aggregate(lowering: DuckLowering, node: n.Aggregate, outer: Outer) -> DuckQuery:
    """With averages as quotients on top; `NotExact` for other aggregates with a last step in
    Python."""
    if any(call.function.partial is not None and not _is_average(call) for call in node.aggregates):
        raise NotExact("the last step of an aggregate runs in Python")
    inputs = _InputProjection(lowering, node.input, outer)
    grouped = _lower_groups(inputs, node, averages=True)
    if not any(map(_is_average, node.aggregates)):
        return grouped.query
    parts, at, columns = close_query(grouped.query, lowering.new_alias()), 0, []
    for (width, _), call in zip(grouped.columns, _column_aggregates(node)):
        taken = parts.columns[at : at + width]
        at += width
        if call is not None and _is_average(call):
            before = average_integer_digits(inputs.add_column(call.arguments[0])[1])
            columns.append(lowering.divide_numeric(taken[0], taken[1], before, few=not node.groups))
        else:
            columns += taken
    return build_select(parts._replace(columns=tuple(columns)))


def _is_average(call: e.AggregateCall) -> bool:
    return call.function.name == "avg" and call.function.partial is not None


def _column_aggregates(node: n.Aggregate) -> list[e.AggregateCall | None]:
    """For every column of the node the aggregate it is."""
    return [*(None for _ in node.groups), *node.aggregates, *(None for _ in node.groupings)]


def lower_partials(lowering: DuckLowering, node: n.Aggregate, outer: Outer) -> PartialAggregates:
    """Averages and similar aggregates as columns that Python combines to one value."""
    found = _lower_groups(_InputProjection(lowering, node.input, outer), node, averages=False)
    if any(isinstance(one, RaggedNumeric) for one in found.query.types):
        raise NotExact("NUMERIC values of different scales are aggregated")
    return found


def _lower_groups(
    inputs: _InputProjection, node: n.Aggregate, *, averages: bool
) -> PartialAggregates:
    # Equal groups of several grouping sets are not one: each is NULL where its set leaves it out.
    alone = node.grouping_sets is not None
    groups = [inputs.add_column(group, new=alone) for group in node.groups]
    require_groupable(sql_type for _, sql_type in groups)
    texts = [text for text, _ in groups]
    columns: list[tuple[str, SqlType, str | None]] = [(*group, None) for group in groups]
    widths: list[tuple[int, Callable[..., Any] | None]] = [(1, None) for _ in groups]
    for call in node.aggregates:
        found, form = _lower_aggregate_call(inputs, call, averages=averages)
        widths.append((len(found), form))
        columns += found
    for grouping in node.groupings:
        text = f"CAST(GROUPING({', '.join(texts[i] for i in grouping)}) AS INTEGER)"
        columns.append((text, INTEGER, None))
        widths.append((1, None))
    listed = []
    for i, (text, _, scale) in enumerate(columns):
        listed.append(f"{text} AS c{i}")
        if scale is not None:
            listed.append(f"{scale} AS c{i}s")
    chosen = ", ".join(listed) or "count(*) AS nothing"
    text = f"SELECT {chosen} FROM {inputs.source_text()}{_group_by(node, texts)}"
    return PartialAggregates(DuckQuery(text, tuple(one for _, one, _ in columns)), tuple(widths))


def _group_by(node: n.Aggregate, groups: list[str]) -> str:
    if node.grouping_sets is None:
        return f" GROUP BY {', '.join(groups)}" if groups else ""
    sets = ", ".join(f"({', '.join(groups[i] for i in one)})" for one in node.grouping_sets)
    return f" GROUP BY GROUPING SETS ({sets})"


def _lower_aggregate_call(
    inputs: _InputProjection, call: e.AggregateCall, *, averages: bool
) -> tuple[list[tuple[str, SqlType, str | None]], Callable[..., Any] | None]:
    """The columns of one aggregate, with their scales, and how they become its value."""
    if call.function.direct is not None:
        raise NotExact(f"{call.function.name} WITHIN GROUP runs in Python")
    arguments = [inputs.add_column(argument) for argument in call.arguments]
    if call.distinct:
        require_groupable(sql_type for _, sql_type in arguments)
    keys = call.order_by
    if call.distinct and not keys and call.function.name in _LISTS:
        keys = (e.SortKey(call.arguments[0]),)  # PostgreSQL sorts to find what is distinct
    order = f" ORDER BY {inputs.order_by_text(keys)}" if keys else ""
    after = ""
    if call.filter is not None:
        after = f" FILTER (WHERE {inputs.add_column(call.filter)[0]})"
    types = tuple(sql_type for _, sql_type in arguments)
    given = [text for text, _ in arguments]
    partial = call.function.partial
    if partial is None:
        text, sql_type = _call_template(call.function, types, given, call.type)
        whole = _apply_modifiers(text, call.distinct, order, after)
        return [_with_scale(call, whole, sql_type, types, given, after)], None
    if any(one.kind is Kind.NUMERIC and one.precision is None for one in types):
        raise NotExact("NUMERIC without bounds")
    parts = [
        _apply_modifiers(_substitute_arguments(f"[[{column}]]", given), call.distinct, order, after)
        for column in partial.columns
    ]
    if not (averages and _is_average(call)):
        if any(isinstance(one, RaggedNumeric) for one in types):
            raise NotExact(f"{call.function.name} of NUMERIC values of different scales")
        return [(part, SqlType(Kind.NUMERIC), None) for part in parts], partial.finish
    total = numeric_type(DECIMAL_DIGITS_MAX, types[0].scale or 0 if types[0].precision else 0)
    first = _with_scale(call, parts[0], total, types, given, after)
    return [first, (parts[1], BIGINT, None)], None


def _with_scale(
    call: e.AggregateCall, text: str, result: SqlType, types: Types, given: list[str], after: str
) -> tuple[str, SqlType, str | None]:
    """Adds the display scale of a sum: that of the value with the most digits after the point."""
    if not any(isinstance(one, RaggedNumeric) for one in types) or call.function.name == "count":
        return text, result, None
    if call.function.name not in ("sum", "avg"):
        raise NotExact(f"{call.function.name} of NUMERIC values of different scales")
    scale = f"max(CASE WHEN {given[0]} IS NOT NULL THEN {given[0]}s END){after}"
    wide = RaggedNumeric(Kind.NUMERIC, precision=result.precision, scale=result.scale)
    return text, wide, scale


def _call_template(
    function: Function, types: Types, arguments: list[str], result: SqlType
) -> tuple[str, SqlType]:
    template = sql_template(function, types)
    if template is None:
        raise NotExact(f"{function.signature} has no exact form in DuckDB")
    if result.kind is Kind.NUMERIC and function.bounds is not None:
        result = function.bounds(types) or result
    type_text(result)
    return _substitute_arguments(template, arguments), result


def _substitute_arguments(template: str, arguments: list[str]) -> str:
    every = template.replace("_*", ", ".join(arguments))
    return _ARGUMENT.sub(lambda found: arguments[int(found[1])], every)


def _apply_modifiers(text: str, distinct: bool, inside: str, after: str) -> str:
    """Inserts the modifiers into the marked call."""
    if _MARKED.search(text) is None:
        raise NotExact("the form of an aggregate has no mark")
    word = "DISTINCT " if distinct else ""
    return _MARKED.sub(lambda m: f"{m[1]}({word}{m[2]}{inside}){after}", text)


# -- windows ---------------------------------------------------------------------------------------


def lower_window(lowering: DuckLowering, node: n.Window, outer: Outer) -> DuckQuery:
    inputs = _InputProjection(lowering, node.input, outer)
    kept = [inputs.add_column(_input_column(node.input, i)) for i in range(len(node.input.fields))]
    over = _over_clause(lowering, inputs, node)
    texts = [text for text, _ in kept]
    types = [sql_type for _, sql_type in kept]
    for call in node.calls:
        if any(isinstance(inputs.add_column(one)[1], RaggedNumeric) for one in call.arguments):
            raise NotExact("a window over NUMERIC values of different scales")
        if call.function.partial is not None:
            raise NotExact("the last step of an aggregate runs in Python")
        arguments = [inputs.add_column(argument) for argument in call.arguments]
        given, of_types = [t for t, _ in arguments], tuple(t for _, t in arguments)
        text, sql_type = _call_template(call.function, of_types, given, call.type)
        after = ""
        if call.filter is not None:
            after = f" FILTER (WHERE {inputs.add_column(call.filter)[0]})"
        texts.append(_apply_modifiers(text, False, "", f"{after} OVER ({over})"))
        types.append(sql_type)
    listed = [f"{text} AS c{i}" for i, text in enumerate(texts)]
    listed += [
        f"{texts[i]}s AS c{i}s" for i, one in enumerate(types) if isinstance(one, RaggedNumeric)
    ]
    return DuckQuery(f"SELECT {', '.join(listed)} FROM {inputs.source_text()}", tuple(types))


def _input_column(node: n.Node, index: int) -> e.Column:
    return e.Column(index, node.fields[index].type)


def _over_clause(lowering: DuckLowering, inputs: _InputProjection, node: n.Window) -> str:
    parts = []
    if node.partition:
        columns = [inputs.add_column(one) for one in node.partition]
        require_groupable(sql_type for _, sql_type in columns)
        parts.append(f"PARTITION BY {', '.join(text for text, _ in columns)}")
    if node.order:
        keys = [inputs.add_column(key.expression)[1] for key in node.order]
        require_groupable(
            one for one in keys if not isinstance(one, RaggedNumeric)
        )  # those sort by value
        parts.append(f"ORDER BY {inputs.order_by_text(node.order)}")
    frame = node.frame
    start, end = (_frame_bound(lowering, bound) for bound in (frame.start, frame.end))
    text = f"{frame.mode.value.upper()} BETWEEN {start} AND {end}"
    if frame.exclude:
        text += f" EXCLUDE {frame.exclude.upper()}"
    return " ".join([*parts, text])


def _frame_bound(lowering: DuckLowering, bound: n.FrameBound) -> str:
    if bound.offset is None:
        return bound.side.value.upper()
    value = lowering.evaluate(bound.offset)
    if value is None:
        raise NotExact("a frame offset that is NULL")
    return f"{literal_text(value, bound.offset.type)} {bound.side.value.upper()}"
