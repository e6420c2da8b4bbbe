"""Relational nodes over weighted rows: the other half of the plan language.

A node yields rows (tuples laid out as its `fields`), each with an integer weight. A statement's
rows have weight 1 or more (a bag); in a delta plan, whose leaves are `Changes` and `State`,
weights may be negative. Nodes are immutable; rules build new ones.

| node | rows out |
|---|---|
| Scan, VirtualScan, ForeignScan, Values, TableFunction, CteScan | leaves |
| Changes, State | leaves of delta plans |
| Filter, Project, Sort, Limit, TopN, Distinct, Lock | of one input |
| Aggregate | groups, then aggregates, then grouping() values |
| Window | the input's columns, then one per call |
| Join | left columns, then right columns; semi and anti: left columns only |
| SetOperation, RecursiveUnion | columns of the left side |
| With | of its body |
| Insert, Update, Delete (`plan.dml`) | RETURNING; no rows without it |
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

from belvedere.plan.access import FULL, Access
from belvedere.plan.dml import (
    Assignment,
    Delete,
    Insert,
    OnConflict,
    RowCheck,
    RowRules,
    Update,
)
from belvedere.plan.expressions import (
    AggregateCall,
    Expression,
    SortKey,
    WindowCall,
)
from belvedere.plan.fields import Field, Fields
from belvedere.plan.frames import Frame, FrameBound, FrameMode, FrameSide
from belvedere.plan.functions.core.function import Function
from belvedere.types import BIGINT, INTEGER

# -- leaves ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scan:
    """Rows of a base table or view; `slots` are the columns to read, in output order.

    `filter` is the full condition on the scanned row, `residual` the part of it that `access` does
    not already imply. An executor that follows `access` checks `residual`; one that does not,
    `filter`.
    """

    relation: int
    name: str
    slots: tuple[int, ...]
    fields: Fields
    access: Access = FULL
    filter: Expression | None = None
    residual: Expression | None = None


@dataclass(frozen=True, slots=True)
class VirtualScan:
    """Rows of a table computed by the system, such as those of information_schema."""

    schema: str
    name: str
    fields: Fields


@dataclass(frozen=True, slots=True)
class ForeignScan:
    """Rows of a foreign table; `slots` are the columns to read, `filter` is the condition on the
    scanned row."""

    relation: int
    name: str
    slots: tuple[int, ...]
    fields: Fields
    filter: Expression | None = None


@dataclass(frozen=True, slots=True)
class Values:
    """Constant rows; `rows = ((),)` with no fields is the one empty row of a SELECT without
    FROM."""

    rows: tuple[tuple[Expression, ...], ...]
    fields: Fields


class TableCall(NamedTuple):
    """One set-returning function (generate_series, unnest, ...) and the columns it yields."""

    function: Function
    arguments: tuple[Expression, ...]
    fields: Fields


@dataclass(frozen=True, slots=True)
class TableFunction:
    """`ROWS FROM (calls)` in lockstep, shorter ones padded with NULLs; then the ordinality.

    Arguments have no input row: they see outer rows only (the left side of a lateral join).
    """

    calls: tuple[TableCall, ...]
    fields: Fields
    ordinality: bool = False


@dataclass(frozen=True, slots=True)
class CteScan:
    """Rows of the CTE with this number, bound by a `With` above, or of the working table of the
    `RecursiveUnion` with this number when inside its `step`."""

    cte: int
    name: str
    fields: Fields


@dataclass(frozen=True, slots=True)
class Changes:
    """Delta of a relation between two positions: +new and -old rows of (start, end]."""

    relation: int
    name: str
    slots: tuple[int, ...]
    fields: Fields
    start: str = "from"
    end: str = "to"
    filter: Expression | None = None


@dataclass(frozen=True, slots=True)
class State:
    """Rows of a relation as of a position; otherwise like `Scan`."""

    relation: int
    name: str
    slots: tuple[int, ...]
    fields: Fields
    at: str = "from"
    access: Access = FULL
    filter: Expression | None = None
    residual: Expression | None = None


# -- one input -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Filter:
    """Rows for which the condition is true."""

    input: Node
    condition: Expression

    @property
    def fields(self) -> Fields:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class Project:
    input: Node
    expressions: tuple[Expression, ...]
    fields: Fields


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Groups of the input. Without groups and grouping sets: always exactly one row.

    `grouping_sets` are sets of group ordinals; a group not in the set is NULL. `groupings` are the
    arguments of grouping() calls as group ordinals; each is an INTEGER with the first argument in
    the highest bit, 1 where the group is not in the set.
    """

    input: Node
    groups: tuple[Expression, ...]
    aggregates: tuple[AggregateCall, ...]
    fields: Fields
    grouping_sets: tuple[tuple[int, ...], ...] | None = None
    groupings: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Window:
    """Window functions that share one partition, order and frame."""

    input: Node
    partition: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    frame: Frame
    calls: tuple[WindowCall, ...]
    names: tuple[str, ...]

    @property
    def fields(self) -> Fields:
        added = tuple(Field(name, call.type) for name, call in zip(self.names, self.calls))
        return self.input.fields + added


@dataclass(frozen=True, slots=True)
class Sort:
    input: Node
    keys: tuple[SortKey, ...]

    @property
    def fields(self) -> Fields:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class Limit:
    """`count` and `offset` are BIGINT without columns; NULL count is no limit, NULL offset is 0.

    With ties the input is a Sort, whose keys decide what a tie is.
    """

    input: Node
    count: Expression | None
    offset: Expression | None = None
    with_ties: bool = False

    @property
    def fields(self) -> Fields:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class TopN:
    """Limit of Sort in one step."""

    input: Node
    keys: tuple[SortKey, ...]
    count: Expression
    offset: Expression | None = None
    with_ties: bool = False

    @property
    def fields(self) -> Fields:
        return self.input.fields


@dataclass(frozen=True, slots=True)
class Distinct:
    """Distinct rows; with `on`, the first row (in input order) of each value of these
    expressions."""

    input: Node
    on: tuple[Expression, ...] | None = None

    @property
    def fields(self) -> Fields:
        return self.input.fields


class LockTarget(NamedTuple):
    """Rows to lock: the relation, and the columns of its primary key in the input row."""

    relation: int
    name: str
    key: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lock:
    """FOR UPDATE and the like: locks the rows that pass. `wait` is '', 'nowait' or 'skip
    locked'."""

    input: Node
    targets: tuple[LockTarget, ...]
    strength: str = "update"
    wait: str = ""

    @property
    def fields(self) -> Fields:
        return self.input.fields


# -- two inputs and more ---------------------------------------------------------------------------


class JoinKind(enum.StrEnum):
    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"  # left rows with a match
    ANTI = "anti"  # left rows without a match


class JoinMethod(enum.StrEnum):
    """The method that the optimizer suggests; any executor may use another one."""

    LOOP = "loop"
    HASH = "hash"
    MERGE = "merge"
    LOOKUP = "lookup"


class JoinKey(NamedTuple):
    """`left = right`, each over its own side's row; with `null_safe` two NULLs match."""

    left: Expression
    right: Expression
    null_safe: bool = False


class Lookup(NamedTuple):
    """How to fetch the matches of one left row from the Scan on the right (index nested loop).

    Expressions of `access` are over the left row. A fetched row, laid out as the Scan's fields, is
    a match when `condition` (over the left row, then the right row) is true.
    """

    access: Access
    condition: Expression | None


@dataclass(frozen=True, slots=True)
class Join:
    """Two rows match when all `keys` are equal and `residual`, over both rows, is true.

    A cross join is INNER without either. `lateral`: the right side sees the left row as its outer
    row (depth 1), so it is run per left row. `lookup` is set with method LOOKUP only; the join
    means the same without it.
    """

    kind: JoinKind
    left: Node
    right: Node
    keys: tuple[JoinKey, ...] = ()
    residual: Expression | None = None
    lateral: bool = False
    method: JoinMethod = JoinMethod.LOOP
    lookup: Lookup | None = None

    @property
    def fields(self) -> Fields:
        if self.kind in (JoinKind.SEMI, JoinKind.ANTI):
            return self.left.fields
        return self.left.fields + self.right.fields


class SetKind(enum.StrEnum):
    UNION = "union"
    INTERSECT = "intersect"
    EXCEPT = "except"


@dataclass(frozen=True, slots=True)
class SetOperation:
    """Both sides have the same types; names are the left side's."""

    kind: SetKind
    all: bool
    left: Node
    right: Node

    @property
    def fields(self) -> Fields:
        return self.left.fields


@dataclass(frozen=True, slots=True)
class RecursiveUnion:
    """`base UNION [ALL] step`; in `step`, CteScan(cte) is the rows that the last round added."""

    cte: int
    name: str
    base: Node
    step: Node
    all: bool

    @property
    def fields(self) -> Fields:
        return self.base.fields


class Cte(NamedTuple):
    """`materialized`: run once and to the end, as written or because it changes data."""

    number: int
    name: str
    plan: Node
    materialized: bool = False


@dataclass(frozen=True, slots=True)
class With:
    """CTEs of a query. All parts see one snapshot; those that change data run even if not read."""

    ctes: tuple[Cte, ...]
    body: Node

    @property
    def fields(self) -> Fields:
        return self.body.fields


Node = (
    Scan
    | VirtualScan
    | ForeignScan
    | Values
    | TableFunction
    | CteScan
    | Changes
    | State
    | Filter
    | Project
    | Aggregate
    | Window
    | Sort
    | Limit
    | TopN
    | Distinct
    | Lock
    | Join
    | SetOperation
    | RecursiveUnion
    | With
    | Insert
    | Update
    | Delete
)

ORDINALITY = Field("ordinality", BIGINT)
GROUPING_TYPE = INTEGER
EMPTY_ROW = Values(((),), ())

__all__ = [
    "EMPTY_ROW",
    "FULL",
    "GROUPING_TYPE",
    "ORDINALITY",
    "Access",
    "Aggregate",
    "Assignment",
    "Changes",
    "Cte",
    "CteScan",
    "Delete",
    "Distinct",
    "Field",
    "Fields",
    "Filter",
    "Frame",
    "FrameBound",
    "FrameMode",
    "FrameSide",
    "Insert",
    "Join",
    "JoinKey",
    "JoinKind",
    "JoinMethod",
    "Limit",
    "Lock",
    "LockTarget",
    "Lookup",
    "Node",
    "OnConflict",
    "Project",
    "RecursiveUnion",
    "RowCheck",
    "RowRules",
    "Scan",
    "SetKind",
    "SetOperation",
    "Sort",
    "State",
    "TableCall",
    "TableFunction",
    "TopN",
    "Update",
    "Values",
    "VirtualScan",
    "Window",
    "With",
]
