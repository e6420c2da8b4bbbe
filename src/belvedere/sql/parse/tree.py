"""Syntax trees: queries and expressions as written, before any name is resolved.

Every node that an error may point at has `at`, its offset in the text. DDL and utility statements
have trees of their own in `sql.definitions` and `sql.statements`, which need no binding of names
inside.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from belvedere.types import SqlType

# -- expressions -----------------------------------------------------------------------------------


class Name(msgspec.Struct, frozen=True):
    """A column, perhaps qualified: `a`, `t.a`, `s.t.a`."""

    parts: tuple[str, ...]
    at: int


class Star(msgspec.Struct, frozen=True):
    """`*` or `t.*`; `end` is the offset after it."""

    qualifier: tuple[str, ...]
    at: int
    end: int


class Constant(msgspec.Struct, frozen=True):
    """`value` is None, a bool, the text of a string, or the digits of a number by `kind`."""

    kind: str  # 'null', 'bool', 'string', 'integer', 'number'
    value: str | bool | None
    at: int


class ParameterRef(msgspec.Struct, frozen=True):
    index: int
    at: int


class Default(msgspec.Struct, frozen=True):
    """DEFAULT in VALUES or SET."""

    at: int


class Operation(msgspec.Struct, frozen=True):
    """An operator; a prefix operator has no left side."""

    name: str
    left: Expr | None
    right: Expr
    at: int


class Logic(msgspec.Struct, frozen=True):
    """AND or OR of two and more."""

    word: str
    operands: tuple[Expr, ...]
    at: int


class NotExpr(msgspec.Struct, frozen=True):
    operand: Expr
    at: int


class IsExpr(msgspec.Struct, frozen=True):
    """`word` is 'null', 'true', 'false' or 'unknown'."""

    operand: Expr
    word: str
    negated: bool
    at: int


class DistinctFrom(msgspec.Struct, frozen=True):
    left: Expr
    right: Expr
    negated: bool
    at: int


class Between(msgspec.Struct, frozen=True):
    operand: Expr
    low: Expr
    high: Expr
    negated: bool
    symmetric: bool
    at: int


class InItems(msgspec.Struct, frozen=True):
    operand: Expr
    items: tuple[Expr, ...]
    negated: bool
    at: int


class InQuery(msgspec.Struct, frozen=True):
    operand: Expr
    query: QueryTree
    negated: bool
    at: int


class Like(msgspec.Struct, frozen=True):
    """`word` is 'like', 'ilike' or 'similar to'."""

    word: str
    operand: Expr
    pattern: Expr
    escape: Expr | None
    negated: bool
    at: int


class Quantify(msgspec.Struct, frozen=True):
    """`operand <operator> ANY | ALL (..)`; `operator` may be 'like', 'not ilike' and so on."""

    quantifier: str
    operator: str
    operand: Expr
    right: Expr | QueryTree
    at: int


class CaseExpr(msgspec.Struct, frozen=True):
    subject: Expr | None
    whens: tuple[tuple[Expr, Expr], ...]
    default: Expr | None
    at: int


class CastExpr(msgspec.Struct, frozen=True):
    operand: Expr
    type: SqlType
    at: int


class OrderItem(NamedTuple):
    expression: Expr
    descending: bool
    nulls_first: bool | None


class FrameEdge(NamedTuple):
    """`word` as `nodes.FrameSide` spells it."""

    word: str
    offset: Expr | None


class WindowSpec(msgspec.Struct, frozen=True):
    """An OVER clause or a WINDOW definition; `base` is the window it refines."""

    base: str | None
    partition: tuple[Expr, ...]
    order: tuple[OrderItem, ...]
    mode: str | None
    start: FrameEdge | None
    end: FrameEdge | None
    exclude: str
    at: int


class FunctionCall(msgspec.Struct, frozen=True):
    """`over` is a window's name or specification; `names` are those of the last arguments."""

    name: tuple[str, ...]
    arguments: tuple[Expr, ...]
    at: int
    star: bool = False
    distinct: bool = False
    variadic: bool = False
    order_by: tuple[OrderItem, ...] = ()
    within: tuple[OrderItem, ...] | None = None
    filter: Expr | None = None
    over: str | WindowSpec | None = None
    names: tuple[str, ...] = ()


class ArrayItems(msgspec.Struct, frozen=True):
    items: tuple[Expr, ...]
    at: int


class ArrayQuery(msgspec.Struct, frozen=True):
    query: QueryTree
    at: int


class RowItems(msgspec.Struct, frozen=True):
    items: tuple[Expr, ...]
    at: int


class ScalarQuery(msgspec.Struct, frozen=True):
    query: QueryTree
    at: int


class ExistsQuery(msgspec.Struct, frozen=True):
    query: QueryTree
    at: int


class Subscript(msgspec.Struct, frozen=True):
    operand: Expr
    index: Expr
    at: int


class Slice(msgspec.Struct, frozen=True):
    """`operand[low:high]`; a bound that is left out is None."""

    operand: Expr
    low: Expr | None
    high: Expr | None
    at: int


class FieldOf(msgspec.Struct, frozen=True):
    """`(operand).name`."""

    operand: Expr
    name: str
    at: int


class Collate(msgspec.Struct, frozen=True):
    operand: Expr
    collation: str
    at: int


Expr = (
    Name
    | Star
    | Constant
    | ParameterRef
    | Default
    | Operation
    | Logic
    | NotExpr
    | IsExpr
    | DistinctFrom
    | Between
    | InItems
    | InQuery
    | Like
    | Quantify
    | CaseExpr
    | CastExpr
    | FunctionCall
    | ArrayItems
    | ArrayQuery
    | RowItems
    | ScalarQuery
    | ExistsQuery
    | Subscript
    | Slice
    | FieldOf
    | Collate
)

# -- FROM ------------------------------------------------------------------------------------------


class TableRef(msgspec.Struct, frozen=True):
    name: tuple[str, ...]
    alias: str | None
    columns: tuple[str, ...]
    at: int


class QueryRef(msgspec.Struct, frozen=True):
    query: QueryTree
    alias: str | None
    columns: tuple[str, ...]
    lateral: bool
    at: int


class FunctionRef(msgspec.Struct, frozen=True):
    """One function, or those of ROWS FROM."""

    calls: tuple[FunctionCall, ...]
    ordinality: bool
    alias: str | None
    columns: tuple[str, ...]
    lateral: bool
    at: int


class JoinRef(msgspec.Struct, frozen=True):
    """`kind` is 'inner', 'left', 'right', 'full' or 'cross'."""

    kind: str
    left: FromItem
    right: FromItem
    natural: bool
    using: tuple[str, ...]
    on: Expr | None
    alias: str | None
    at: int


FromItem = TableRef | QueryRef | FunctionRef | JoinRef

# -- queries ---------------------------------------------------------------------------------------


class SelectItem(NamedTuple):
    expression: Expr
    alias: str | None


class GroupingSets(msgspec.Struct, frozen=True):
    """`word` is 'sets', 'rollup' or 'cube'; an item is a list of expressions or a nested one."""

    word: str
    items: tuple[tuple[Expr, ...] | GroupingSets, ...]
    at: int


GroupItem = Expr | GroupingSets


class Select(msgspec.Struct, frozen=True):
    targets: tuple[SelectItem, ...]
    at: int
    distinct: bool = False
    distinct_on: tuple[Expr, ...] = ()
    sources: tuple[FromItem, ...] = ()
    where: Expr | None = None
    groups: tuple[GroupItem, ...] | None = None
    group_distinct: bool = False
    having: Expr | None = None
    windows: tuple[tuple[str, WindowSpec], ...] = ()


class ValuesList(msgspec.Struct, frozen=True):
    rows: tuple[tuple[Expr, ...], ...]
    at: int


class SetOperationTree(msgspec.Struct, frozen=True):
    """`kind` is 'union', 'intersect' or 'except'."""

    kind: str
    all: bool
    left: QueryBody
    right: QueryBody
    at: int


class CteTree(msgspec.Struct, frozen=True):
    """`materialized` None: not said."""

    name: str
    columns: tuple[str, ...]
    statement: QueryTree | InsertTree | UpdateTree | DeleteTree
    materialized: bool | None
    at: int


class LockClause(NamedTuple):
    strength: str
    of: tuple[str, ...]
    wait: str
    at: int


class QueryTree(msgspec.Struct, frozen=True):
    """A body with what may stand around it."""

    body: QueryBody
    at: int
    ctes: tuple[CteTree, ...] = ()
    recursive: bool = False
    order_by: tuple[OrderItem, ...] = ()
    limit: Expr | None = None
    offset: Expr | None = None
    with_ties: bool = False
    locks: tuple[LockClause, ...] = ()


QueryBody = Select | ValuesList | SetOperationTree | QueryTree

# -- changes of data -------------------------------------------------------------------------------


class SetClause(NamedTuple):
    """`columns = value`; several columns take a row or a sub-query."""

    columns: tuple[str, ...]
    value: Expr
    at: int
    row: bool


class ConflictTree(msgspec.Struct, frozen=True):
    """`updates` None is DO NOTHING. Target: a constraint, columns and expressions, or none."""

    constraint: str | None
    targets: tuple[Expr, ...]
    target_where: Expr | None
    updates: tuple[SetClause, ...] | None
    where: Expr | None
    at: int


class InsertTree(msgspec.Struct, frozen=True):
    """`query` None is DEFAULT VALUES. `overriding` is '', 'system' or 'user'."""

    table: tuple[str, ...]
    alias: str | None
    columns: tuple[tuple[str, int], ...]
    query: QueryTree | None
    overriding: str
    conflict: ConflictTree | None
    returning: tuple[SelectItem, ...]
    at: int
    ctes: tuple[CteTree, ...] = ()
    recursive: bool = False


class UpdateTree(msgspec.Struct, frozen=True):
    table: tuple[str, ...]
    alias: str | None
    sets: tuple[SetClause, ...]
    sources: tuple[FromItem, ...]
    where: Expr | None
    returning: tuple[SelectItem, ...]
    at: int
    ctes: tuple[CteTree, ...] = ()
    recursive: bool = False


class DeleteTree(msgspec.Struct, frozen=True):
    table: tuple[str, ...]
    alias: str | None
    sources: tuple[FromItem, ...]
    where: Expr | None
    returning: tuple[SelectItem, ...]
    at: int
    ctes: tuple[CteTree, ...] = ()
    recursive: bool = False


DataStatement = QueryTree | InsertTree | UpdateTree | DeleteTree
