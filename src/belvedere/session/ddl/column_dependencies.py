"""Dependents of a column: checks, generated columns and index parts that name it.

The catalog stores them as SQL text. Binding a text finds the columns it reads; renaming a column
also renames it in the text, and the new text must read the same columns as before.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from belvedere.catalog.definition_rules import require_column
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import CatalogColumn, Index, Table, TypeName
from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan.transform import columns_of
from belvedere.session.ddl.rename_in_views import drop_column_aliases
from belvedere.session.statement import bind
from belvedere.sql.bind.expressions.stored_expressions import live_columns
from belvedere.sql.parse.lexical.lexer import END, QUOTED, STRING, WORD, SqlToken, tokenize
from belvedere.sql.parse.lexical.render import quote, render_tokens

replace = msgspec.structs.replace


def find_expression_slots(edit: CatalogEdit, table: Table, text: str) -> frozenset[int]:
    """The slots of the columns that an expression over the table's row reads."""
    live = live_columns(table)
    return frozenset(
        live[i].slot for i in columns_of(bind.bind_row_expression(edit.catalog, table, text))
    )


def find_index_slots(edit: CatalogEdit, table: Table, index: Index) -> frozenset[int]:
    """All columns an index depends on: key parts, included ones, expressions, its condition."""
    slots = {part.slot for part in index.parts if part.slot is not None} | {*index.include}
    texts = [part.expression for part in index.parts if part.expression is not None]
    texts += [] if index.where is None else [index.where]
    return frozenset(slots).union(*(find_expression_slots(edit, table, text) for text in texts))


def find_generated_dependents(
    edit: CatalogEdit, table: Table, column: CatalogColumn
) -> list[CatalogColumn]:
    """The generated columns that read this one."""
    return [
        other
        for other in live_columns(table)
        if other.generated is not None
        and column.slot in find_expression_slots(edit, table, other.generated)
    ]


# -- DROP COLUMN -----------------------------------------------------------------------------------


def drop_column_with_dependents(
    edit: CatalogEdit, table: Table, name: str, *, cascade: bool
) -> None:
    """Drop a column with the constraints and indexes that involve it; other dependents raise
    2BP01, or are dropped too with CASCADE."""
    column = require_column(table, name)
    children = find_generated_dependents(edit, table, column)
    if children and not cascade:
        raise InvalidInput(
            "other objects depend on it",
            sqlstate="2BP01",
            detail=", ".join(f"column {one.name} of table {table.name}" for one in children),
            hint="drop them first, or use CASCADE",
            name=name,
        )
    for child in children:
        drop_column_with_dependents(edit, edit.catalog.table(table.id), child.name, cascade=True)
    table = edit.catalog.table(table.id)
    checks = tuple(
        check
        for check in table.checks
        if column.slot not in find_expression_slots(edit, table, check.expression)
    )
    indexes = [
        index
        for index in edit.catalog.table_indexes(table.id)
        if column.slot in find_index_slots(edit, table, index)
    ]
    edit.put(replace(table, checks=checks))
    for key in table.foreign_keys:
        if column.slot in key.columns:
            edit.drop_foreign_key(table.id, key.name)
    for index in indexes:
        if index.id in {one.id for one in edit.catalog.table_indexes(table.id)}:
            edit.drop_index(index.id, cascade=cascade)
    drop_column_aliases(edit, edit.catalog.table(table.id), column)
    edit.drop_column(table.id, name)


# -- RENAME COLUMN ---------------------------------------------------------------------------------


def rename_column_in_expressions(
    edit: CatalogEdit, table: Table, column: CatalogColumn, name: str
) -> None:
    """Rename the column, also in every expression text of the table that names it."""

    def rename_in_expression(text: str) -> str:
        if column.slot not in find_expression_slots(edit, table, text):
            return text
        return _replace_name_in_expression(text, table.name, column.name, name)

    columns = tuple(
        replace(
            one,
            name=name if one.slot == column.slot else one.name,
            generated=None if one.generated is None else rename_in_expression(one.generated),
        )
        for one in table.columns
    )
    checks = tuple(
        replace(one, expression=rename_in_expression(one.expression)) for one in table.checks
    )
    after = replace(table, columns=columns, checks=checks)
    indexes = [
        _rename_in_index(one, rename_in_expression) for one in edit.catalog.table_indexes(table.id)
    ]
    before = [
        find_expression_slots(edit, table, text) for text in _list_expression_texts(edit, table)
    ]
    edit.put(after)
    for index in indexes:
        if index != edit.catalog.get(index.id):
            edit.put(index)
    _require_same_read_slots(edit, edit.catalog.table(table.id), before, column)


def _rename_in_index(index: Index, renamed: Callable[[str], str]) -> Index:
    parts = tuple(
        part if part.expression is None else replace(part, expression=renamed(part.expression))
        for part in index.parts
    )
    where = None if index.where is None else renamed(index.where)
    return replace(index, parts=parts, where=where)


def _list_expression_texts(edit: CatalogEdit, table: Table) -> list[str]:
    """Every expression over the table's row, always in the same order."""
    texts = [check.expression for check in table.checks]
    texts += [one.generated for one in table.columns if one.generated is not None]
    for index in edit.catalog.table_indexes(table.id):
        texts += [part.expression for part in index.parts if part.expression is not None]
        texts += [] if index.where is None else [index.where]
    return texts


def _require_same_read_slots(
    edit: CatalogEdit, table: Table, before: list[frozenset[int]], column: CatalogColumn
) -> None:
    try:
        after = [
            find_expression_slots(edit, table, text) for text in _list_expression_texts(edit, table)
        ]
    except InvalidInput:
        after = []
    if after != before:
        raise Unsupported("renaming a column that this expression names", column=column.name)


_NO_COLUMN_AFTER = frozenset({"::", "as", "."})


def _replace_name_in_expression(text: str, table: str, old: str, new: str) -> str:
    """The text with the column's name replaced, except where the word is a function, a type, a
    typed constant, or a part of another name."""
    tokens = [token for token in tokenize(text) if token.kind != END]
    made: list[SqlToken] = []
    for i, token in enumerate(tokens):
        before = tokens[i - 1].text if i else ""
        after = tokens[i + 1] if i + 1 < len(tokens) else None
        own = before == "." and i > 1 and tokens[i - 2].text == table
        called = after is not None and (after.kind == STRING or after.text in ("(", "."))
        named = token.kind in (WORD, QUOTED) and token.text == old
        if named and not called and (own or before not in _NO_COLUMN_AFTER):
            kind = WORD if quote(new) == new else QUOTED
            token = token._replace(kind=kind, text=new)
        made.append(token)
    return render_tokens(made)


def infer_index_expression_types(
    edit: CatalogEdit, table: Table, index: Index
) -> dict[int, TypeName]:
    """The types that an index's expressions have over the table as it is now."""
    return {
        i: TypeName.from_type(bind.bind_row_expression(edit.catalog, table, part.expression).type)
        for i, part in enumerate(index.parts)
        if part.expression is not None
    }
