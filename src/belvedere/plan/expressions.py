"""Typed expressions over rows: the scalar half of the plan language.

An expression is evaluated on one input row. `Column(i)` is value i of that row. A plan inside an
expression (a sub-query) or on the right of a lateral join is evaluated once per row around it, and
reaches that row by `OuterColumn(1, i)`, the row around that one by `OuterColumn(2, i)`, and so on.

Invariants
- Every expression knows its exact type; the binder has inserted every cast, so an executor never
  converts a value on its own.
- Logic is three-valued: None is unknown.
- Immutable, compared by value, so equal expressions can be found (GROUP BY, indexes, sharing).
- Functions are objects of `plan.functions`; operators are functions named by their sign.

Row comparisons, BETWEEN, simple CASE and NULLIF have no node: the binder spells them out.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from belvedere.plan.functions.core.function import Function
from belvedere.types import BIGINT, BOOLEAN, SqlType

if TYPE_CHECKING:
    from belvedere.plan.nodes import Node


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: a value of its type, or None."""

    value: Any
    type: SqlType

    def __hash__(self) -> int:
        """Arrays are lists, which have no hash of their own."""
        value = tuple(self.value) if isinstance(self.value, list) else self.value
        return hash((value, self.type))


@dataclass(frozen=True, slots=True)
class Parameter:
    """Statement parameter `$index` (1 is the first), already of this type."""

    index: int
    type: SqlType


@dataclass(frozen=True, slots=True)
class Column:
    """Value `index` of the input row. `name` is for people only."""

    index: int
    type: SqlType
    name: str = ""


@dataclass(frozen=True, slots=True)
class OuterColumn:
    """Value `index` of the row `depth` queries further out (1: the nearest)."""

    depth: int
    index: int
    type: SqlType
    name: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a scalar function or operator. Arguments already have the types the function was
    resolved for."""

    function: Function
    arguments: tuple[Expression, ...]
    type: SqlType


@dataclass(frozen=True, slots=True)
class Cast:
    """`operand` as `type`, by `function`. `explicit`: written in the statement, not inserted."""

    operand: Expression
    type: SqlType
    function: Function
    explicit: bool = False


@dataclass(frozen=True, slots=True)
class And:
    operands: tuple[Expression, ...]

    @property
    def type(self) -> SqlType:
        return BOOLEAN


@dataclass(frozen=True, slots=True)
class Or:
    operands: tuple[Expression, ...]

    @property
    def type(self) -> SqlType:
        return BOOLEAN


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expression

    @property
    def type(self) -> SqlType:
        return BOOLEAN


class Truth(enum.StrEnum):
    """The value that `Test` compares with."""

    NULL = "null"  # of any type; the others are of booleans
    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Test:
    """`operand IS [NOT] NULL | TRUE | FALSE | UNKNOWN`: never unknown itself."""

    operand: Expression
    truth: Truth
    negated: bool = False

    @property
    def type(self) -> SqlType:
        return BOOLEAN


@dataclass(frozen=True, slots=True)
class IsDistinct:
    """`left IS [NOT] DISTINCT FROM right`; `equal` compares two values that are not NULL."""

    left: Expression
    right: Expression
    equal: Function
    negated: bool = False

    @property
    def type(self) -> SqlType:
        return BOOLEAN


@dataclass(frozen=True, slots=True)
class Case:
    """The result of the first condition that is true; `default` (maybe a NULL literal)
    otherwise."""

    whens: tuple[tuple[Expression, Expression], ...]
    default: Expression
    type: SqlType


@dataclass(frozen=True, slots=True)
class Coalesce:
    """The first argument that is not NULL; later ones are not evaluated."""

    arguments: tuple[Expression, ...]
    type: SqlType


@dataclass(frozen=True, slots=True)
class InList:
    """`operand IN (items)`: true on a match, else unknown if a NULL was compared, else false."""

    operand: Expression
    items: tuple[Expression, ...]
    equal: Function
    negated: bool = False

    @property
    def type(self) -> SqlType:
        return BOOLEAN


class Quantifier(enum.StrEnum):
    ANY = "any"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Quantified:
    """`operand <operator> ANY | ALL (array)` over the elements of an array."""

    quantifier: Quantifier
    operator: Function
    operand: Expression
    array: Expression

    @property
    def type(self) -> SqlType:
        return BOOLEAN


@dataclass(frozen=True, slots=True)
class Array:
    """`ARRAY[items]`; every item has the element type."""

    items: tuple[Expression, ...]
    type: SqlType


@dataclass(frozen=True, slots=True)
class SequenceCall:
    """`nextval`, `currval`, `setval` or `lastval`; `sequence` is the object's id (0 for
    lastval)."""

    verb: str
    sequence: int
    name: str
    arguments: tuple[Expression, ...] = ()

    @property
    def type(self) -> SqlType:
        return BIGINT


@dataclass(frozen=True, slots=True)
class ScalarSubquery:
    """The one value of a plan with one column; NULL for no row; 21000 for more than one row."""

    plan: Node
    type: SqlType


@dataclass(frozen=True, slots=True)
class Exists:
    plan: Node
    negated: bool = False

    @property
    def type(self) -> SqlType:
        return BOOLEAN


@dataclass(frozen=True, slots=True)
class QuantifiedSubquery:
    """`(operands) <operators> ANY | ALL (plan)`; IN is `= ANY`, NOT IN is `<> ALL`.

    Operand i is compared with column i of the plan by operator i. Of several pairs the row matches
    when all are true, except for `<>`, where one is enough (the binder allows rows for = and <>
    only).
    """

    quantifier: Quantifier
    operators: tuple[Function, ...]
    operands: tuple[Expression, ...]
    plan: Node

    @property
    def type(self) -> SqlType:
        return BOOLEAN


@dataclass(frozen=True, slots=True)
class ArraySubquery:
    """`ARRAY(SELECT ..)`: the values of the plan's one column, in its order."""

    plan: Node
    type: SqlType


@dataclass(frozen=True, slots=True)
class SortKey:
    expression: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate of a group's rows; occurs in `nodes.Aggregate` and in `WindowCall` only.

    `filter` keeps the rows for which it is true. `order_by` is the order of the values, or WITHIN
    GROUP of an ordered-set aggregate, whose direct arguments are then `arguments`. COUNT(*) has
    none.
    """

    function: Function
    arguments: tuple[Expression, ...]
    type: SqlType
    distinct: bool = False
    filter: Expression | None = None
    order_by: tuple[SortKey, ...] = ()


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A window function, or an aggregate used as one; occurs in `nodes.Window` only."""

    function: Function
    arguments: tuple[Expression, ...]
    type: SqlType
    filter: Expression | None = None


Expression = (
    Literal
    | Parameter
    | Column
    | OuterColumn
    | Call
    | Cast
    | And
    | Or
    | Not
    | Test
    | IsDistinct
    | Case
    | Coalesce
    | InList
    | Quantified
    | Array
    | SequenceCall
    | ScalarSubquery
    | Exists
    | QuantifiedSubquery
    | ArraySubquery
)
