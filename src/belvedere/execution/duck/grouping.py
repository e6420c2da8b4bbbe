"""Aggregates and window functions in DuckDB SQL.

The arguments, filters and keys are projected first, so that what is aggregated are plain columns.
The registry marks the call inside a form with [[ ]]: DISTINCT, ORDER BY, FILTER and OVER go there.
An aggregate whose last step DuckDB cannot do exactly (avg of NUMERIC) is computed in parts, and
Python finishes: see `Partials`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from belvedere.execution.duck.expressions import lower
from belvedere.execution.duck.query import (
    Outer,
    Query,
    Typed,
    Types,
    named,
    places,
    require_groupable,
)
from belvedere.execution.duck.types import NotExact, literal_text, type_text
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.function import Function
from belvedere.plan.functions.sqlform import sql_template
from belvedere.types import INTEGER, Kind, Row, SqlType

if TYPE_CHECKING:
    from belvedere.execution.duck.lower import Lowering

_ARGUMENT = re.compile(r"(?<![\w'])_(\d+)\b")
_LISTS = frozenset({"array_agg", "string_agg", "json_agg"})
_MARKED = re.compile(r"\[\[(.*?)\((.*)\)\]\]", re.DOTALL)


class Partials(NamedTuple):
    """An aggregate query whose rows Python still has to finish: for every output column how many
    columns of the query it takes, and what makes one value of them (None: it is the value)."""

    query: Query
    columns: tuple[tuple[int, Callable[..., Any] | None], ...]

    def finish(self, row: Row) -> Row:
        values, at = [], 0
        for width, form in self.columns:
            taken = row[at : at + width]
            values.append(taken[0] if form is None else form(*taken))
            at += width
        return tuple(values)


class _Inputs:
    """The projection below an aggregation: each expression once."""

    def __init__(self, lowering: Lowering, below: n.Node, outer: Outer) -> None:
        self.query = lowering.query(below, outer)
        self.inner, self.alias = lowering.name(), lowering.name()
        self._scope = lowering.scope(places(self.inner, self.query.types), outer)
        self._columns: list[Typed] = []
        self._known: dict[e.Expression, int] = {}

    def column(self, expression: e.Expression, *, new: bool = False) -> tuple[str, SqlType]:
        """The text and type of an expression's column; `new`: of one that nobody else uses."""
        at = self._known.get(expression)
        if at is None or new:
            self._columns.append(lower(self._scope, expression))
            at = self._known[expression] = len(self._columns) - 1
        return f"{self.alias}.c{at}", self._columns[at].type

    def source(self) -> str:
        text = f"SELECT {named(self._columns)} FROM ({self.query.text}) AS {self.inner}"
        return f"({text}) AS {self.alias}"

    def keys(self, keys: tuple[e.SortKey, ...]) -> str:
        parts = []
        for key in keys:
            text, _ = self.column(key.expression)
            nulls = "FIRST" if key.nulls_first else "LAST"
            parts.append(f"{text} {'DESC' if key.descending else 'ASC'} NULLS {nulls}")
        return ", ".join(parts)


def lower_aggregate(lowering: Lowering, node: n.Aggregate, outer: Outer) -> Query:
    if any(call.function.partial is not None for call in node.aggregates):
        raise NotExact("the last step of an aggregate runs in Python")
    return lower_partials(lowering, node, outer).query


def lower_partials(lowering: Lowering, node: n.Aggregate, outer: Outer) -> Partials:
    inputs = _Inputs(lowering, node.input, outer)
    # Equal groups of several grouping sets are not one: each is NULL where its set leaves it out.
    alone = node.grouping_sets is not None
    groups = [inputs.column(group, new=alone) for group in node.groups]
    require_groupable(sql_type for _, sql_type in groups)
    texts = [text for text, _ in groups]
    types = [sql_type for _, sql_type in groups]
    columns: list[tuple[int, Callable[..., Any] | None]] = [(1, None) for _ in groups]
    for call in node.aggregates:
        found, form = _aggregate(inputs, call)
        columns.append((len(found), form))
        texts += [text for text, _ in found]
        types += [sql_type for _, sql_type in found]
    for grouping in node.groupings:
        texts.append(f"CAST(GROUPING({', '.join(groups[i][0] for i in grouping)}) AS INTEGER)")
        types.append(INTEGER)
        columns.append((1, None))
    listed = ", ".join(f"{text} AS c{i}" for i, text in enumerate(texts)) or "count(*) AS nothing"
    text = f"SELECT {listed} FROM {inputs.source()}{_group_by(node, [t for t, _ in groups])}"
    return Partials(Query(text, tuple(types)), tuple(columns))


def _group_by(node: n.Aggregate, groups: list[str]) -> str:
    if node.grouping_sets is None:
        return f" GROUP BY {', '.join(groups)}" if groups else ""
    sets = ", ".join(f"({', '.join(groups[i] for i in one)})" for one in node.grouping_sets)
    return f" GROUP BY GROUPING SETS ({sets})"


def _aggregate(
    inputs: _Inputs, call: e.AggregateCall
) -> tuple[list[tuple[str, SqlType]], Callable[..., Any] | None]:
    """The columns of one aggregate, and how they become its value."""
    if call.function.direct is not None:
        raise NotExact(f"{call.function.name} WITHIN GROUP runs in Python")
    arguments = [inputs.column(argument) for argument in call.arguments]
    if call.distinct:
        require_groupable(sql_type for _, sql_type in arguments)
    keys = call.order_by
    if call.distinct and not keys and call.function.name in _LISTS:
        keys = (e.SortKey(call.arguments[0]),)  # PostgreSQL sorts to find what is distinct
    order = f" ORDER BY {inputs.keys(keys)}" if keys else ""
    after = ""
    if call.filter is not None:
        after = f" FILTER (WHERE {inputs.column(call.filter)[0]})"
    types = tuple(sql_type for _, sql_type in arguments)
    given = [text for text, _ in arguments]
    partial = call.function.partial
    if partial is None:
        text, sql_type = _marked(call.function, types, given, call.type)
        return [(_put(text, call.distinct, order, after), sql_type)], None
    if any(one.kind is Kind.NUMERIC and one.precision is None for one in types):
        raise NotExact("NUMERIC without bounds")
    parts = [_filled(f"[[{column}]]", given) for column in partial.columns]
    whole = [(_put(part, call.distinct, order, after), SqlType(Kind.NUMERIC)) for part in parts]
    return whole, partial.finish


def _marked(
    function: Function, types: Types, arguments: list[str], result: SqlType
) -> tuple[str, SqlType]:
    template = sql_template(function, types)
    if template is None:
        raise NotExact(f"{function.signature} has no exact form in DuckDB")
    if result.kind is Kind.NUMERIC and function.bounds is not None:
        result = function.bounds(types) or result
    type_text(result)
    return _filled(template, arguments), result


def _filled(template: str, arguments: list[str]) -> str:
    every = template.replace("_*", ", ".join(arguments))
    return _ARGUMENT.sub(lambda found: arguments[int(found[1])], every)


def _put(text: str, distinct: bool, inside: str, after: str) -> str:
    """Modifiers put on the marked call."""
    if _MARKED.search(text) is None:
        raise NotExact("the form of an aggregate has no mark")
    word = "DISTINCT " if distinct else ""
    return _MARKED.sub(lambda m: f"{m[1]}({word}{m[2]}{inside}){after}", text)


# -- windows ---------------------------------------------------------------------------------------


def lower_window(lowering: Lowering, node: n.Window, outer: Outer) -> Query:
    inputs = _Inputs(lowering, node.input, outer)
    kept = [inputs.column(_whole(node.input, i)) for i in range(len(node.input.fields))]
    over = _over(lowering, inputs, node)
    texts = [text for text, _ in kept]
    types = [sql_type for _, sql_type in kept]
    for call in node.calls:
        if call.function.partial is not None:
            raise NotExact("the last step of an aggregate runs in Python")
        arguments = [inputs.column(argument) for argument in call.arguments]
        given, of_types = [t for t, _ in arguments], tuple(t for _, t in arguments)
        text, sql_type = _marked(call.function, of_types, given, call.type)
        after = ""
        if call.filter is not None:
            after = f" FILTER (WHERE {inputs.column(call.filter)[0]})"
        texts.append(_put(text, False, "", f"{after} OVER ({over})"))
        types.append(sql_type)
    listed = ", ".join(f"{text} AS c{i}" for i, text in enumerate(texts))
    return Query(f"SELECT {listed} FROM {inputs.source()}", tuple(types))


def _whole(node: n.Node, index: int) -> e.Column:
    return e.Column(index, node.fields[index].type)


def _over(lowering: Lowering, inputs: _Inputs, node: n.Window) -> str:
    parts = []
    if node.partition:
        columns = [inputs.column(one) for one in node.partition]
        require_groupable(sql_type for _, sql_type in columns)
        parts.append(f"PARTITION BY {', '.join(text for text, _ in columns)}")
    if node.order:
        require_groupable(inputs.column(key.expression)[1] for key in node.order)
        parts.append(f"ORDER BY {inputs.keys(node.order)}")
    frame = node.frame
    start, end = (_bound(lowering, bound) for bound in (frame.start, frame.end))
    text = f"{frame.mode.value.upper()} BETWEEN {start} AND {end}"
    if frame.exclude:
        text += f" EXCLUDE {frame.exclude.upper()}"
    return " ".join([*parts, text])


def _bound(lowering: Lowering, bound: n.FrameBound) -> str:
    if bound.offset is None:
        return bound.side.value.upper()
    value = lowering.evaluate(bound.offset)
    if value is None:
        raise NotExact("a frame offset that is NULL")
    return f"{literal_text(value, bound.offset.type)} {bound.side.value.upper()}"
