"""Expands CREATE TABLE (LIKE other ..) to the columns and constraints of the other table."""

from __future__ import annotations

from msgspec.structs import replace

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import CatalogColumn, Index, Table
from belvedere.errors import Unsupported
from belvedere.sql import definitions as d


def expand_likes(catalog: Catalog, schema: str, tree: d.CreateTable) -> d.CreateTable:
    """The definition with columns and constraints in the place of every LIKE."""
    if not tree.likes:
        return tree
    columns, constraints = list(tree.columns), list(tree.constraints)
    for like in reversed(tree.likes):
        table = catalog.require_relation(Table, like.source.name, like.source.schema or schema)
        shown = [one for one in table.columns if not one.dropped and not one.hidden]
        columns[like.place : like.place] = [_copy_column(one, like.including) for one in shown]
        constraints += _copy_constraints(catalog, table, like.including)
    return replace(tree, columns=tuple(columns), constraints=tuple(constraints), likes=())


def _copy_column(column: CatalogColumn, including: frozenset[str]) -> d.ColumnClause:
    if column.sequence is not None and column.identity is None and "defaults" in including:
        raise Unsupported(
            "like including the default of a serial column",
            hint="make it an identity column",
            column=column.name,
        )
    return d.ColumnClause(
        column.name,
        column.type,
        not_null=column.not_null,
        default=column.default if "defaults" in including else None,
        identity=column.identity if "identity" in including else None,
        generated=column.generated if "generated" in including else None,
    )


def _copy_constraints(
    catalog: Catalog, table: Table, including: frozenset[str]
) -> list[d.Constraint]:
    found: list[d.Constraint] = []
    if "constraints" in including:
        found += [d.CheckClause(check.name, check.expression) for check in table.checks]
    if "indexes" not in including:
        return found
    if not table.columns[table.primary_key[0]].hidden:
        found.append(d.PrimaryKeyClause(None, _list_column_names(table, table.primary_key)))
    for index in catalog.table_indexes(table.id):
        if index.constraint:
            found.append(_copy_unique(table, index))
        elif not index.hidden:
            raise Unsupported(
                "like including an index that is no constraint",
                hint="create it on the new table",
                index=index.name,
            )
    return found


def _copy_unique(table: Table, index: Index) -> d.UniqueClause:
    slots = tuple(part.slot for part in index.parts if part.slot is not None)
    return d.UniqueClause(None, _list_column_names(table, slots), index.nulls_distinct)


def _list_column_names(table: Table, slots: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(table.columns[slot].name for slot in slots)
