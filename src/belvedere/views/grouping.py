"""From the rows that come and go to what is added to a view's state: groups and amounts."""

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
    """What a row adds; None: itself, once. Expressions of a definition ask nothing of a run but the
    row (`compile.require_deterministic`), so they are bound once, to a run of nothing."""
    if group is None:
        return None
    source = Source()
    texts = Texts(source, lambda node: compile_plan(catalog, node))
    bound = source.row_function(entry_text(source, texts, group, None))
    entry: EntryOf = bound(nothing_run())
    return entry
