"""Completion in the shell: keywords, tables, columns, functions, backslash commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import ForeignTable, PlainView, Table, View
from belvedere.interfaces.shell.commands import COMMANDS
from belvedere.plan.functions import functions_by_name

KEYWORDS = """
    select from where group by having order limit offset fetch insert into values update set delete
    returning create table index unique primary key foreign references check default not null drop
    alter add column constraint rename to view materialized sequence schema truncate begin commit
    rollback savepoint release with recursive as on using join left right full inner cross lateral
    union intersect except all distinct case when then else end exists in any between like ilike is
    and or asc desc nulls first last explain analyze copy show reset prepare execute deallocate
""".split()


class CatalogHolder(Protocol):
    """A session, in this process or in the owner of the store."""

    @property
    def catalog(self) -> Catalog: ...


class SqlCompleter(Completer):
    def __init__(self, session: CatalogHolder) -> None:
        self._session = session
        self._functions = sorted(name for name in functions_by_name() if name[0].isalpha())

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if before.lstrip().startswith("\\") and " " not in before.strip():
            yield from _complete_prefix(before.strip(), COMMANDS, "command")
            return
        word = document.get_word_before_cursor(pattern=None)
        prefix = word.rsplit(".", 1)[-1]
        if not prefix and not word.endswith("."):
            return
        catalog = self._session.catalog
        yield from _complete_prefix(prefix, sorted(_relation_names(catalog)), "relation")
        yield from _complete_prefix(prefix, sorted(_column_names(catalog, before)), "column")
        yield from _complete_prefix(prefix, KEYWORDS, "keyword")
        yield from _complete_prefix(prefix, self._functions, "function")


def _complete_prefix(prefix: str, names: Iterable[str], kind: str) -> Iterator[Completion]:
    folded = prefix.lower()
    for name in names:
        if name.lower().startswith(folded):
            yield Completion(name, start_position=-len(prefix), display_meta=kind)


def _relation_names(catalog: Catalog) -> set[str]:
    return {
        item.name
        for item in catalog.objects.values()
        if isinstance(item, Table | View | PlainView | ForeignTable)
        and getattr(item, "state", "") != "dropped"
    }


def _column_names(catalog: Catalog, text: str) -> set[str]:
    """Columns of the tables that the text names; of all tables if it names none."""
    words = set(text.lower().replace(",", " ").replace("(", " ").replace(".", " ").split())
    tables = [table for table in catalog.tables if table.name.lower() in words]
    return {
        column.name
        for table in tables or catalog.tables
        for column in table.columns
        if not column.dropped and not column.hidden
    }
