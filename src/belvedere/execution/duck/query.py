"""SQL text with the types of its columns, and the parts it is assembled from.

A query that is only SELECT .. FROM .. WHERE stays open: the nodes above it are merged into the same
SELECT, so that DuckDB has less text to parse and fewer nested queries to flatten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from sqlglot import exp

from belvedere.execution.duck.types import NotExact, Ragged, ragged
from belvedere.execution.duck.types import leaf_place as leaf_place
from belvedere.plan import expressions as e
from belvedere.types import Kind, SqlType

Types = tuple[SqlType, ...]

_OWN_EQUALITY = frozenset({Kind.INTERVAL, Kind.ARRAY, Kind.JSON})


class Typed(NamedTuple):
    """`scale` is how many digits after the point a value of a `Ragged` type shows; `literal` the
    constant behind a tree that is one."""

    tree: exp.Expr
    type: SqlType
    null: bool = False  # a NULL constant, which takes any type
    scale: exp.Expr | None = None
    literal: e.Literal | None = None

    @property
    def text(self) -> str:
        return self.tree.sql("duckdb")

    @property
    def is_column(self) -> bool:
        return isinstance(self.tree, exp.Column)

    def copy(self) -> Typed:
        scale = None if self.scale is None else self.scale.copy()
        return Typed(self.tree.copy(), self.type, self.null, scale, self.literal)


class Parts(NamedTuple):
    """An open query: what its columns are in terms of its FROM."""

    columns: tuple[Typed, ...]
    source: str
    where: tuple[str, ...] = ()
    single: bool = True  # the FROM has one item

    @property
    def rest(self) -> str:
        """The clauses after the list of columns."""
        condition = " AND ".join(f"({one})" for one in self.where)
        return f" FROM {self.source}" + (f" WHERE {condition}" if condition else "")

    def places(self) -> ColumnPlaces:
        return lambda index: self.columns[index].copy()


class Query(NamedTuple):
    """SQL text that yields columns c0.. of these types, NUMERIC ones with bounds; a column of a
    `Ragged` type is accompanied by its scale, as c0s."""

    text: str
    types: Types
    parts: Parts | None = None


def selected(parts: Parts) -> Query:
    types = tuple(column.type for column in parts.columns)
    return Query(f"SELECT {named(parts.columns)}{parts.rest}", types, parts)


def closed(query: Query, alias: str) -> Parts:
    """The query as an item of a FROM."""
    return Parts(columns_of(alias, query.types), f"({query.text}) AS {alias}")


def opened(query: Query, alias: str) -> Parts:
    """The query in a form that can be extended; one with computed columns is closed, so that they
    are computed once."""
    parts = query.parts
    if parts is not None and all(column.is_column for column in parts.columns):
        return parts
    return closed(query, alias)


def shown(text: str) -> str:
    """The text as EXPLAIN prints it."""
    return text.replace("\0", "")


ColumnPlaces = Callable[[int], Typed]
Outer = tuple[ColumnPlaces, ...]
"""The rows around a query, nearest first."""


def columns_of(alias: str, types: Types) -> tuple[Typed, ...]:
    """The columns of a FROM item."""
    return tuple(
        Typed(
            exp.column(f"c{i}", table=alias),
            one,
            scale=exp.column(f"c{i}s", table=alias) if isinstance(one, Ragged) else None,
        )
        for i, one in enumerate(types)
    )


def named(columns: Sequence[Typed]) -> str:
    parts = []
    for i, column in enumerate(columns):
        parts.append(f"{column.text} AS c{i}")
        if column.scale is not None:
            parts.append(f"{column.scale.sql('duckdb')} AS c{i}s")
    return ", ".join(parts) or "1 AS nothing"


def one_type(values: Sequence[Typed]) -> SqlType:
    """The common type of values. NUMERIC ones keep their own scales in PostgreSQL: if these
    differ, the type is a `Ragged` one."""
    known = [value.type for value in values if not value.null] or [values[0].type]
    if len({one.kind for one in known}) > 1:
        raise NotExact("values of different types meet")
    if len({one.scale or 0 for one in known}) > 1 or any(isinstance(t, Ragged) for t in known):
        return ragged(known)
    return _widest(known)


def same_types(left: Query, right: Query) -> Types:
    types = []
    for one, other in zip(left.types, right.types):
        ragged_ones = isinstance(one, Ragged) or isinstance(other, Ragged)
        if ragged_ones or (one.kind, one.scale or 0) != (other.kind, other.scale or 0):
            raise NotExact("columns of different types or scales meet")
        types.append(_widest([one, other]))
    return tuple(types)


def _widest(types: Sequence[SqlType]) -> SqlType:
    """The widest type. The trailing blanks of CHAR are known only when all lengths are equal."""
    if types[0].kind is Kind.CHAR and len({one.length for one in types}) > 1:
        return SqlType(Kind.CHAR)
    return max(types, key=lambda one: one.precision or 0)


def require_groupable(types: Iterable[SqlType]) -> None:
    """DuckDB must agree with PostgreSQL on which values are the same, and on which is shown."""
    for one in types:
        if one.kind in _OWN_EQUALITY:
            raise NotExact(f"equal values of {one} are not the same to DuckDB")
        if one.kind is Kind.CHAR and one.length is None:
            raise NotExact("equal values of CHAR of different lengths are not the same to DuckDB")
        if isinstance(one, Ragged):
            raise NotExact("equal NUMERIC values of different scales are grouped")
