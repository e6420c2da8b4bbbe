"""What the parser makes: queries and expressions as written, before any name is looked up.

Every node that an error may point at has `at`, its offset in the text. DDL and utility statements
have trees of their own in `sql.definitions` and `sql.statements`, which need no binding of names
inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from belvedere.types import SqlType

# -- expressions -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name:
    """A column, perhaps qualified: `a`, `t.a`, `s.t.a`."""

    parts: tuple[str, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Star:
    """`*` or `t.*`; `end` is the offset after it."""

    qualifier: tuple[str, ...]
    at: int
    end: int


@dataclass(frozen=True, slots=True)
class Constant:
    """`value` is None, a bool, the text of a string, or the digits of a number by `kind`."""

    kind: str  # 'null', 'bool', 'string', 'integer', 'number'
    value: str | bool | None
    at: int


@dataclass(frozen=True, slots=True)
class ParameterRef:
    index: int
    at: int


@dataclass(frozen=True, slots=True)
class Default:
    """DEFAULT in VALUES or SET."""

    at: int


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator; a prefix operator has no left side."""

    name: str
    left: Expr | None
    right: Expr
    at: int


@dataclass(frozen=True, slots=True)
class Logic:
    """AND or OR of two and more."""

    word: str
    operands: tuple[Expr, ...]
    at: int


@dataclass(frozen=True, slots=True)
class NotExpr:
    operand: Expr
    at: int


@dataclass(frozen=True, slots=True)
class IsExpr:
    """`word` is 'null', 'true', 'false' or 'unknown'."""

    operand: Expr
    word: str
    negated: bool
    at: int


@dataclass(frozen=True, slots=True)
class DistinctFrom:
    left: Expr
    right: Expr
    negated: bool
    at: int


@dataclass(frozen=True, slots=True)
class Between:
    operand: Expr
    low: Expr
    high: Expr
    negated: bool
    symmetric: bool
    at: int


@dataclass(frozen=True, slots=True)
class InItems:
    operand: Expr
    items: tuple[Expr, ...]
    negated: bool
    at: int


@dataclass(frozen=True, slots=True)
class InQuery:
    operand: Expr
    query: Query
    negated: bool
    at: int


@dataclass(frozen=True, slots=True)
class Like:
    """`word` is 'like', 'ilike' or 'similar to'."""

    word: str
    operand: Expr
    pattern: Expr
    escape: Expr | None
    negated: bool
    at: int


@dataclass(frozen=True, slots=True)
class Quantify:
    """`operand <operator> ANY | ALL (..)`; `operator` may be 'like', 'not ilike' and so on."""

    quantifier: str
    operator: str
    operand: Expr
    right: Expr | Query
    at: int


@dataclass(frozen=True, slots=True)
class CaseExpr:
    subject: Expr | None
    whens: tuple[tuple[Expr, Expr], ...]
    default: Expr | None
    at: int


@dataclass(frozen=True, slots=True)
class CastExpr:
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


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """An OVER clause or a WINDOW definition; `base` is the window it refines."""

    base: str | None
    partition: tuple[Expr, ...]
    order: tuple[OrderItem, ...]
    mode: str | None
    start: FrameEdge | None
    end: FrameEdge | None
    exclude: str
    at: int


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """`over` is a window's name or specification. `keyword`: written in a special syntax."""

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


@dataclass(frozen=True, slots=True)
class ArrayItems:
    items: tuple[Expr, ...]
    at: int


@dataclass(frozen=True, slots=True)
class ArrayQuery:
    query: Query
    at: int


@dataclass(frozen=True, slots=True)
class RowItems:
    items: tuple[Expr, ...]
    at: int


@dataclass(frozen=True, slots=True)
class ScalarQuery:
    query: Query
    at: int


@dataclass(frozen=True, slots=True)
class ExistsQuery:
    query: Query
    at: int


@dataclass(frozen=True, slots=True)
class Subscript:
    operand: Expr
    index: Expr
    at: int


@dataclass(frozen=True, slots=True)
class Collate:
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
    | Collate
)

# -- FROM ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableRef:
    name: tuple[str, ...]
    alias: str | None
    columns: tuple[str, ...]
    at: int


@dataclass(frozen=True, slots=True)
class QueryRef:
    query: Query
    alias: str | None
    columns: tuple[str, ...]
    lateral: bool
    at: int


@dataclass(frozen=True, slots=True)
class FunctionRef:
    """One function, or those of ROWS FROM."""

    calls: tuple[FunctionCall, ...]
    ordinality: bool
    alias: str | None
    columns: tuple[str, ...]
    lateral: bool
    at: int


@dataclass(frozen=True, slots=True)
class JoinRef:
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


class Target(NamedTuple):
    expression: Expr
    alias: str | None


@dataclass(frozen=True, slots=True)
class GroupingSets:
    """`word` is 'sets', 'rollup' or 'cube'; an item is a list of expressions or a nested one."""

    word: str
    items: tuple[tuple[Expr, ...] | GroupingSets, ...]
    at: int


GroupItem = Expr | GroupingSets


@dataclass(frozen=True, slots=True)
class Select:
    targets: tuple[Target, ...]
    at: int
    distinct: bool = False
    distinct_on: tuple[Expr, ...] = ()
    sources: tuple[FromItem, ...] = ()
    where: Expr | None = None
    groups: tuple[GroupItem, ...] | None = None
    group_distinct: bool = False
    having: Expr | None = None
    windows: tuple[tuple[str, WindowSpec], ...] = ()


@dataclass(frozen=True, slots=True)
class ValuesList:
    rows: tuple[tuple[Expr, ...], ...]
    at: int


@dataclass(frozen=True, slots=True)
class SetOperationTree:
    """`kind` is 'union', 'intersect' or 'except'."""

    kind: str
    all: bool
    left: QueryBody
    right: QueryBody
    at: int


@dataclass(frozen=True, slots=True)
class CteTree:
    """`materialized` None: not said."""

    name: str
    columns: tuple[str, ...]
    statement: Query | InsertTree | UpdateTree | DeleteTree
    materialized: bool | None
    at: int


class LockClause(NamedTuple):
    strength: str
    of: tuple[str, ...]
    wait: str
    at: int


@dataclass(frozen=True, slots=True)
class Query:
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


QueryBody = Select | ValuesList | SetOperationTree | Query

# -- changes of data -------------------------------------------------------------------------------


class SetClause(NamedTuple):
    """`columns = value`; several columns take a row or a sub-query."""

    columns: tuple[str, ...]
    value: Expr
    at: int
    row: bool


@dataclass(frozen=True, slots=True)
class ConflictTree:
    """`updates` None is DO NOTHING. Target: a constraint, columns and expressions, or none."""

    constraint: str | None
    targets: tuple[Expr, ...]
    target_where: Expr | None
    updates: tuple[SetClause, ...] | None
    where: Expr | None
    at: int


@dataclass(frozen=True, slots=True)
class InsertTree:
    """`query` None is DEFAULT VALUES. `overriding` is '', 'system' or 'user'."""

    table: tuple[str, ...]
    alias: str | None
    columns: tuple[tuple[str, int], ...]
    query: Query | None
    overriding: str
    conflict: ConflictTree | None
    returning: tuple[Target, ...]
    at: int
    ctes: tuple[CteTree, ...] = ()
    recursive: bool = False


@dataclass(frozen=True, slots=True)
class UpdateTree:
    table: tuple[str, ...]
    alias: str | None
    sets: tuple[SetClause, ...]
    sources: tuple[FromItem, ...]
    where: Expr | None
    returning: tuple[Target, ...]
    at: int
    ctes: tuple[CteTree, ...] = ()
    recursive: bool = False


@dataclass(frozen=True, slots=True)
class DeleteTree:
    table: tuple[str, ...]
    alias: str | None
    sources: tuple[FromItem, ...]
    where: Expr | None
    returning: tuple[Target, ...]
    at: int
    ctes: tuple[CteTree, ...] = ()
    recursive: bool = False


DataStatement = Query | InsertTree | UpdateTree | DeleteTree
