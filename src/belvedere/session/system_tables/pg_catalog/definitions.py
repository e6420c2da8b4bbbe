"""Objects as SQL text, for pg_get_indexdef, pg_get_constraintdef and their relatives."""

from __future__ import annotations

import re

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import (
    CatalogColumn,
    ForeignKey,
    Index,
    ReferentialAction,
    Sequence,
    Table,
)
from belvedere.session.system_tables.pg_catalog.relations import (
    PUBLIC,
    IndexKey,
    Relation,
    Relations,
)
from belvedere.sql.parse.lexical.render import quote
from belvedere.types import Kind, SqlType
from belvedere.values.quoting import quote_literal

_STRING = re.compile(r"'(?:[^']|'')*'\Z")
_NEGATIVE = re.compile(r"- ?(\d[\d.]*)\Z")


def describe_default(catalog: Catalog, column: CatalogColumn) -> str | None:
    """The default of a column, or what a generated one is computed by; None: it has none."""
    if column.identity is not None:
        return None
    sequence = None if column.sequence is None else catalog.get(column.sequence)
    if isinstance(sequence, Sequence):
        return f"nextval({quote_literal(qualify_name(catalog, sequence))}::regclass)"
    if column.generated is not None:
        return column.generated
    return None if column.default is None else _append_cast_to_literal(column.default, column.type)


def _append_cast_to_literal(text: str, sql_type: SqlType) -> str:
    """A literal with the type that PostgreSQL writes behind it; other expressions as they are."""
    if _STRING.match(text):
        return f"{text}::{_name_type_without_modifier(sql_type)}"
    negative = _NEGATIVE.match(text)
    if negative is not None:
        return f"'-{negative[1]}'::{_name_type_without_modifier(sql_type)}"
    return text


def _name_type_without_modifier(sql_type: SqlType) -> str:
    return "bpchar" if sql_type.kind is Kind.CHAR else str(SqlType(sql_type.kind))


def qualify_name(catalog: Catalog, item: Table | Index | Sequence) -> str:
    """The name, with its schema unless that is public."""
    schema = next(one.name for one in catalog.schemas if one.id == item.schema)
    own = quote(item.name)
    return own if schema == PUBLIC else f"{quote(schema)}.{own}"


def parenthesize_expression(text: str) -> str:
    """An expression in parentheses, unless it is a name, a literal or one call."""
    if re.fullmatch(r"[\w.]+|('(?:[^']|'')*'|-?[\d.]+)(::[\w .]+(\(\d+(,\d+)?\))?)?", text):
        return text
    called = re.fullmatch(r"[\w.]+\((.*)\)", text)
    return text if called and _has_balanced_parentheses(called[1]) else f"({text})"


def _has_balanced_parentheses(text: str) -> bool:
    depth = 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            return False
    return depth == 0


# -- indexes ---------------------------------------------------------------------------------------


def describe_index(
    relations: Relations, index: Relation, *, pretty: bool = False, table_name: str | None = None
) -> str:
    """CREATE INDEX; `pretty`: without parentheses that are not needed. `table_name` None: it is
    qualified."""
    shape = index.shape
    assert shape is not None
    table = relations.by_oid[shape.relation]
    unique = "UNIQUE " if shape.unique else ""
    place = table_name or f"{quote(table.schema)}.{quote(table.name)}"
    text = (
        f"CREATE {unique}INDEX {quote(index.name)} ON {place}"
        f" USING btree ({', '.join(_describe_index_key(key) for key in shape.keys)})"
    )
    if shape.included:
        text += f" INCLUDE ({', '.join(quote(key.text) for key in shape.included)})"
    text += "" if shape.nulls_distinct else " NULLS NOT DISTINCT"
    if shape.where is None:
        return text
    return f"{text} WHERE {shape.where if pretty else parenthesize_expression(shape.where)}"


def describe_index_column(index: Relation, number: int) -> str | None:
    assert index.shape is not None
    keys = (*index.shape.keys, *index.shape.included)
    return _spell_index_key(keys[number - 1]) if 1 <= number <= len(keys) else None


def _describe_index_key(key: IndexKey) -> str:
    text = _spell_index_key(key) + (" DESC" if key.descending else "")
    if key.nulls_first == key.descending:
        return text
    return text + (" NULLS FIRST" if key.nulls_first else " NULLS LAST")


def _spell_index_key(key: IndexKey) -> str:
    if key.number:
        return quote(key.text)
    return parenthesize_expression(key.text)


# -- constraints -----------------------------------------------------------------------------------


def describe_key_constraint(index: Relation) -> str:
    """PRIMARY KEY or UNIQUE."""
    shape = index.shape
    assert shape is not None
    what = "PRIMARY KEY" if shape.primary else "UNIQUE"
    nulls = "" if shape.nulls_distinct else " NULLS NOT DISTINCT"
    text = f"{what}{nulls} ({', '.join(quote(key.text) for key in shape.keys)})"
    if shape.included:
        text += f" INCLUDE ({', '.join(quote(key.text) for key in shape.included)})"
    return text


def describe_foreign_key(catalog: Catalog, table: Table, key: ForeignKey) -> str:
    parent = catalog.table(key.parent)
    own, referenced = (
        ", ".join([quote(one.columns[slot].name) for slot in slots])
        for one, slots in ((table, key.columns), (parent, key.parent_columns))
    )
    text = f"FOREIGN KEY ({own}) REFERENCES {qualify_name(catalog, parent)}({referenced})"
    for event, action in (("UPDATE", key.on_update), ("DELETE", key.on_delete)):
        text += "" if action is ReferentialAction.NO_ACTION else f" ON {event} {action.upper()}"
    text += " DEFERRABLE" if key.deferrable else ""
    text += " INITIALLY DEFERRED" if key.initially_deferred else ""
    return text + ("" if key.enforced else " NOT ENFORCED")
