"""Plan nodes that change data: Insert, Update and Delete.

The row of a table inside a plan is its columns that are not dropped, in slot order, hidden ones
included. These nodes refer to that row by ordinal (0 is the first of them).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from belvedere.plan.expressions import Expression
from belvedere.plan.fields import Fields

if TYPE_CHECKING:
    from belvedere.plan.nodes import Node


class Assignment(NamedTuple):
    """Table row ordinal := value."""

    ordinal: int
    value: Expression


class RowCheck(NamedTuple):
    """A CHECK constraint over the table row; only FALSE violates it."""

    name: str
    condition: Expression


@dataclass(frozen=True, slots=True)
class RowRules:
    """The rules applied to every new row of a table, in this order: `generated` columns computed
    over the table row, NOT NULL of these ordinals, then checks."""

    generated: tuple[Assignment, ...] = ()
    not_null: tuple[int, ...] = ()
    checks: tuple[RowCheck, ...] = ()


@dataclass(frozen=True, slots=True)
class OnConflict:
    """`target` is the id of a unique index, None with `primary` for the primary key, None without
    for any. `assignments` None is DO NOTHING; they and `where` are over the existing row, then the
    proposed row (excluded)."""

    target: int | None = None
    primary: bool = False
    assignments: tuple[Assignment, ...] | None = None
    where: Expression | None = None


@dataclass(frozen=True, slots=True)
class Insert:
    """Each input row gives the columns `ordinals` of a table row, defaults already filled in. Only
    the hidden row id and generated columns are left out. `returning` is over the new row."""

    relation: int
    name: str
    input: Node
    ordinals: tuple[int, ...]
    rules: RowRules
    on_conflict: OnConflict | None
    returning: tuple[Expression, ...]
    fields: Fields


@dataclass(frozen=True, slots=True)
class Update:
    """Input rows start with the complete old table row; values are over the input row. Of several
    input rows for one table row only the first changes it. `returning` is over the input row with
    the new table row in place of the old one."""

    relation: int
    name: str
    input: Node
    width: int
    assignments: tuple[Assignment, ...]
    rules: RowRules
    returning: tuple[Expression, ...]
    fields: Fields


@dataclass(frozen=True, slots=True)
class Delete:
    """Input rows start with the complete table row, `width` columns; `returning` is over the input
    row."""

    relation: int
    name: str
    input: Node
    width: int
    returning: tuple[Expression, ...]
    fields: Fields
