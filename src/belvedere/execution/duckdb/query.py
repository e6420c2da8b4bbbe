"""SQL text with the types of its columns, and the parts it is assembled from.

A query that is only SELECT .. FROM .. WHERE stays open: the nodes above it are merged into the same
SELECT, so that DuckDB has less text to parse and fewer nested queries to flatten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from sqlglot import exp

from belvedere.execution.duckdb.types import NotExact, RaggedNumeric, ragged_type
from belvedere.execution.duckdb.types import leaf_placeholder as leaf_placeholder
from belvedere.plan import expressions as e
from belvedere.types import Kind, SqlType

Types = tuple[SqlType, ...]

_OWN_EQUALITY = frozenset({Kind.INTERVAL, Kind.ARRAY, Kind.JSON})


class TypedSql(NamedTuple):
    """`scale` is how many digits after the point a value of a `RaggedNumeric` type shows; `literal`
    the constant behind a tree that is one."""

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

    def copy(self) -> TypedSql:
        scale = None if self.scale is None else self.scale.copy()
        return TypedSql(self.tree.copy(), self.type, self.null, scale, self.literal)


class OpenSelect(NamedTuple):
    """An open query: what its columns are in terms of its FROM."""

    columns: tuple[TypedSql, ...]
    source: str
    where: tuple[str, ...] = ()
    single: bool = True  # the FROM has one item

    @property
    def from_where(self) -> str:
        """The clauses after the list of columns."""
        condition = " AND ".join(f"({one})" for one in self.where)
        return f" FROM {self.source}" + (f" WHERE {condition}" if condition else "")

    def column_lookup(self) -> ColumnLookup:
        return lambda index: self.columns[index].copy()


class DuckQuery(NamedTuple):
    """SQL text that yields columns c0.. of these types, NUMERIC ones with bounds; a column of a
    `RaggedNumeric` type is accompanied by its scale, as c0s."""

    text: str
    types: Types
    parts: OpenSelect | None = None


def build_select(parts: OpenSelect) -> DuckQuery:
    types = tuple(column.type for column in parts.columns)
    return DuckQuery(f"SELECT {select_list(parts.columns)}{parts.from_where}", types, parts)


def close_query(query: DuckQuery, alias: str) -> OpenSelect:
    """The query as an item of a FROM."""
    return OpenSelect(columns_of(alias, query.types), f"({query.text}) AS {alias}")


def open_query(query: DuckQuery, alias: str) -> OpenSelect:
    """The query in a form that can be extended; one with computed columns is closed, so that they
    are computed once."""
    parts = query.parts
    if parts is not None and all(column.is_column for column in parts.columns):
        return parts
    return close_query(query, alias)


def display_text(text: str) -> str:
    """The text as EXPLAIN prints it."""
    return text.replace("\0", "")


ColumnLookup = Callable[[int], TypedSql]
Outer = tuple[ColumnLookup, ...]
"""The rows around a query, nearest first."""


def columns_of(alias: str, types: Types) -> tuple[TypedSql, ...]:
    """The columns of a FROM item."""
    return tuple(
        TypedSql(
            exp.column(f"c{i}", table=alias),
            one,
            scale=exp.column(f"c{i}s", table=alias) if isinstance(one, RaggedNumeric) else None,
        )
        for i, one in enumerate(types)
    )


def select_list(columns: Sequence[TypedSql]) -> str:
    parts = []
    for i, column in enumerate(columns):
        parts.append(f"{column.text} AS c{i}")
        if column.scale is not None:
            parts.append(f"{column.scale.sql('duckdb')} AS c{i}s")
    return ", ".join(parts) or "1 AS nothing"


def common_type(values: Sequence[TypedSql]) -> SqlType:
    """The common type of values. NUMERIC ones keep their own scales in PostgreSQL: if these
    differ, the type is a `RaggedNumeric` one."""
    known = [value.type for value in values if not value.null] or [values[0].type]
    if len({one.kind for one in known}) > 1:
        raise NotExact("values of different types meet")
    if len({one.scale or 0 for one in known}) > 1 or any(
        isinstance(t, RaggedNumeric) for t in known
    ):
        return ragged_type(known)
    return _widest_type(known)


def common_types(left: DuckQuery, right: DuckQuery) -> Types:
    types = []
    for one, other in zip(left.types, right.types):
        ragged_ones = isinstance(one, RaggedNumeric) or isinstance(other, RaggedNumeric)
        if ragged_ones or (one.kind, one.scale or 0) != (other.kind, other.scale or 0):
            raise NotExact("columns of different types or scales meet")
        types.append(_widest_type([one, other]))
    return tuple(types)


def _widest_type(types: Sequence[SqlType]) -> SqlType:
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
        if isinstance(one, RaggedNumeric):
            raise NotExact("equal NUMERIC values of different scales are grouped")
