"""The state that all binding rules of one statement share."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import PlainView
from belvedere.errors import InvalidInput
from belvedere.plan import expressions as e
from belvedere.plan.fields import Fields
from belvedere.plan.nodes import Frame, Node, TableCall
from belvedere.sql.bind.required_rights import RequiredRights
from belvedere.sql.bind.scope import CteName, NameScope
from belvedere.sql.parse import tree as t
from belvedere.types import UNKNOWN, SqlType

VirtualTables = Callable[[str, str], Fields | None]
"""The columns of a table computed by the system, by schema and name; None: there is no such one."""


def no_virtual_tables(schema: str, name: str) -> Fields | None:
    return None


class LiteralSource(NamedTuple):
    """Where a literal of a plan comes from: the constant that it was written as, and how the text
    of that is read."""

    literal: e.Literal
    constant: t.Constant
    read: Callable[[str], Any]


class BinderRules(NamedTuple):
    """Binding rules that other modules call; passed as values, so that imports have no cycle."""

    query: Callable[[Binder, t.QueryTree, NameScope | None, dict[str, CteName], bool], Node]
    change: Callable[
        [Binder, t.InsertTree | t.UpdateTree | t.DeleteTree, NameScope | None, dict[str, CteName]],
        Node,
    ]
    expression: Callable[[Env, t.Expr], e.Expression]


@dataclass(slots=True)
class Binder:
    """One per statement. `parameters` grow as they are bound; UNKNOWN: not inferred yet."""

    catalog: Catalog
    rules: BinderRules
    schema: str = "public"
    virtual: VirtualTables = no_virtual_tables
    parameters: list[SqlType] = field(default_factory=list)
    stars: dict[int, tuple[int, str]] = field(default_factory=dict)
    literals: dict[int, LiteralSource] = field(default_factory=dict)  # by id of the literal
    ctes: int = 0
    has_untyped_parameters: bool = (
        False  # a parameter was left without a type where none was needed
    )
    zone: datetime.tzinfo = datetime.UTC  # of the session
    views: tuple[int, ...] = ()  # plain views being expanded, to stop a cycle
    view_nodes: dict[int, tuple[Node, PlainView]] = field(default_factory=dict)  # by id of the node
    rights: RequiredRights | None = None  # None: the session may do everything

    def get_parameter(self, index: int) -> e.Parameter:
        while len(self.parameters) < index:
            self.parameters.append(UNKNOWN)
        return e.Parameter(index, self.parameters[index - 1])

    def add_literal(
        self, literal: e.Literal, constant: t.Constant, read: Callable[[str], Any]
    ) -> e.Literal:
        self.literals[id(literal)] = LiteralSource(literal, constant, read)
        return literal

    def next_cte_number(self) -> int:
        self.ctes += 1
        return self.ctes

    def resolve_parameter_types(self) -> tuple[SqlType, ...]:
        """The types of all parameters; 42P18 for one that is not used where a type is known."""
        for i, one in enumerate(self.parameters):
            if one == UNKNOWN:
                raise InvalidInput(
                    "could not determine data type of parameter", sqlstate="42P18", parameter=i + 1
                )
        return tuple(self.parameters)


# Columns of rows that do not exist yet while a select list is bound: its aggregates, grouping()
# calls, window functions and set-returning functions, numbered from these.
AGGREGATE = 1 << 20
GROUPING = 2 << 20
WINDOW = 3 << 20
SET = 4 << 20


class WindowUse(NamedTuple):
    """A window function of a select list with its own, not yet shared, window specification."""

    call: e.WindowCall
    partition: tuple[e.Expression, ...]
    order: tuple[e.SortKey, ...]
    frame: Frame
    name: str


@dataclass(slots=True)
class SelectCalls:
    """Aggregates, grouping() calls, windows and set-returning functions of one SELECT."""

    aggregates: list[e.AggregateCall] = field(default_factory=list)
    groupings: list[tuple[e.Expression, ...]] = field(default_factory=list)
    windows: list[WindowUse] = field(default_factory=list)
    sets: list[TableCall] = field(default_factory=list)
    specs: dict[str, t.WindowSpec] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Env:
    """Where an expression stands: its names, the clause it is in, and what is allowed there.

    `found` None: neither aggregates, windows nor sets. `inside` is 'aggregate' or 'window' within
    the arguments of one.
    """

    binder: Binder
    scope: NameScope
    clause: str
    found: SelectCalls | None = None
    windows: bool = False
    sets: bool = False
    inside: str = ""
