"""The front of the database: text in, runnable statements out.

    for parsed in parse(text):
        statement = compile_statement(parsed.tree, catalog, statistics=..)

A text may have several statements. Each must be compiled after the one before it has run, because
that may have changed the catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from msgspec import structs

from belvedere.catalog.catalog import Catalog
from belvedere.plan import nodes as n
from belvedere.sql import statements as s
from belvedere.sql.bind.binder import VirtualTables, no_virtual_tables
from belvedere.sql.bind.statement import TEXTS, bind_statement
from belvedere.sql.definitions import CreateTableAs
from belvedere.sql.parse.cursor import too_complex
from belvedere.sql.parse.forms import Tree
from belvedere.sql.parse.script import Parsed, parse_script
from belvedere.sql.rules.context import Context
from belvedere.sql.rules.optimize import optimize
from belvedere.sql.rules.statistics import NoStatistics, Statistics
from belvedere.types import SqlType


@dataclass(frozen=True, slots=True)
class Settings:
    """What compiling depends on beside the text and the catalog."""

    schema: str = "public"
    virtual: VirtualTables = no_virtual_tables
    statistics: Statistics = field(default_factory=NoStatistics)


DEFAULTS = Settings()


def parse(text: str) -> list[Parsed]:
    """The statements of a text, in order. Raises 42601 at the first syntax error."""
    return parse_script(text)


def compile_statement(
    tree: Tree,
    catalog: Catalog,
    settings: Settings = DEFAULTS,
    parameter_types: Sequence[SqlType | None] = (),
) -> s.Statement:
    """A parsed statement, bound and optimized."""
    context = Context(catalog, TEXTS, settings.statistics)

    def improve(plan: n.Node) -> n.Node:
        return optimize(plan, context)

    try:
        bound = bind_statement(
            tree,
            catalog,
            schema=settings.schema,
            virtual=settings.virtual,
            parameter_types=parameter_types,
        )
        return _improved(bound, improve)
    except RecursionError:
        raise too_complex() from None


def _improved(statement: s.Statement, improve: Callable[[n.Node], n.Node]) -> s.Statement:
    match statement:
        case s.DataPlan():
            return replace(statement, plan=improve(statement.plan))
        case s.Copy() | CreateTableAs():
            return structs.replace(statement, plan=improve(statement.plan))
        case s.Explain():
            return structs.replace(statement, statement=_improved(statement.statement, improve))
        case _:
            return statement
