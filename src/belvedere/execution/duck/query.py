"""SQL text with the types of its columns, and the small pieces it is put together from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from sqlglot import exp

from belvedere.execution.duck.types import NotExact
from belvedere.execution.duck.types import leaf_place as leaf_place
from belvedere.types import Kind, SqlType

Types = tuple[SqlType, ...]

_OWN_EQUALITY = frozenset({Kind.INTERVAL, Kind.ARRAY, Kind.JSON})


class Query(NamedTuple):
    """SQL text that yields columns c0.. of these types, NUMERIC ones with bounds."""

    text: str
    types: Types


def shown(text: str) -> str:
    """The text as EXPLAIN prints it."""
    return text.replace("\0", "")


class Place(NamedTuple):
    """Where a column is and what type DuckDB sees there."""

    alias: str
    column: int
    type: SqlType

    def tree(self) -> exp.Expr:
        return exp.column(f"c{self.column}", table=self.alias)


class Typed(NamedTuple):
    tree: exp.Expr
    type: SqlType
    null: bool = False  # a NULL constant, which takes any type

    @property
    def text(self) -> str:
        return self.tree.sql("duckdb")


ColumnPlaces = Callable[[int], Place]
Outer = tuple[ColumnPlaces, ...]
"""The rows around a query, nearest first."""


def places(alias: str, types: Types) -> ColumnPlaces:
    return lambda index: Place(alias, index, types[index])


def named(columns: Sequence[Typed]) -> str:
    if not columns:
        return "1 AS nothing"
    return ", ".join(f"{column.text} AS c{i}" for i, column in enumerate(columns))


def renamed(left: str, left_types: Types, right: str, right_types: Types) -> str:
    width = len(left_types)
    parts = [f"{left}.c{i} AS c{i}" for i in range(width)]
    parts += [f"{right}.c{i} AS c{width + i}" for i in range(len(right_types))]
    return ", ".join(parts) or "1 AS nothing"


def one_type(values: Sequence[Typed]) -> SqlType:
    """The type of values that meet. NUMERIC ones keep their own scales in PostgreSQL, so they may
    only meet here when the scales are the same."""
    known = [value.type for value in values if not value.null] or [values[0].type]
    if len({(one.kind, one.scale or 0) for one in known}) > 1:
        raise NotExact("NUMERIC values of different scales meet")
    return max(known, key=lambda one: one.precision or 0)


def same_types(left: Query, right: Query) -> Types:
    types = []
    for one, other in zip(left.types, right.types):
        if (one.kind, one.scale or 0) != (other.kind, other.scale or 0):
            raise NotExact("columns of different types or scales meet")
        types.append(max(one, other, key=lambda t: t.precision or 0))
    return tuple(types)


def require_groupable(types: Iterable[SqlType]) -> None:
    """DuckDB must agree with PostgreSQL on which values are the same, and on which is shown."""
    for one in types:
        if one.kind in _OWN_EQUALITY:
            raise NotExact(f"equal values of {one} are not the same to DuckDB")
