"""State entries: the groups and amounts that inserted and deleted rows add to a view's state."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from belvedere.catalog.catalog import Catalog
from belvedere.execution.direct.compile import compile_plan
from belvedere.execution.direct.expressions import Writer as Texts
from belvedere.execution.direct.source import Source
from belvedere.types import Row
from belvedere.views.entry import entry_text
from belvedere.views.linear import Amounts, Group
from belvedere.views.source import Weighted, nothing_run

Entry = tuple[Row, Amounts]
"""Stored columns, and the amounts that one row adds."""

EntryOf = Callable[[Row], Entry]
ONE: Amounts = (1,)


def entries(entry_of: EntryOf | None, rows: Weighted) -> Iterator[tuple[Row, Amounts, int]]:
    """Rows of a tree as (stored columns, amounts, weight)."""
    if entry_of is None:
        return ((row, ONE, weight) for row, weight in rows)
    return ((*entry_of(row), weight) for row, weight in rows)


def entry_function(catalog: Catalog, group: Group | None) -> EntryOf | None:
    """A function from a row to its entry; None: the row itself, once. Expressions of a definition
    depend on nothing but the row (`compile.require_deterministic`), so they are bound once, to a
    run without a reader."""
    if group is None:
        return None
    source = Source()
    texts = Texts(source, lambda node: compile_plan(catalog, node))
    bound = source.row_function(entry_text(source, texts, group, None))
    entry: EntryOf = bound(nothing_run())
    return entry
