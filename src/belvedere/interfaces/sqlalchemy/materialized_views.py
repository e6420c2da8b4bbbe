"""Materialized views as constructs of SQLAlchemy, embedded and over the wire.

    totals = MaterializedView(
        "totals",
        metadata,
        sa.select(orders.c.customer, sa.func.sum(orders.c.total).label("total"))
        .group_by(orders.c.customer),
        options={"maintenance": "deferred", "max_lag": "1 s"},
    )
    metadata.create_all(engine)          # tables first, then views
    sa.select(totals.c.total).where(totals.c.customer == 7)

A view belongs to a MetaData: `create_all` creates it after the tables where it is not there, and
`drop_all` drops it before them. Views are created in the order in which they were declared, so one
may read another. The DDL constructs can be executed by themselves, in migrations by `op.execute`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import ExecutableDDLElement
from sqlalchemy.sql.expression import ColumnCollection, SelectBase

Option = str | int | float | bool
_OPTION_TYPES: dict[type, sa.types.TypeEngine[Any]] = {
    str: sa.String(),
    bool: sa.Boolean(),
    int: sa.Integer(),
    float: sa.Float(),
}


class MaterializedView:
    """A view that is kept up to date. It stands where a table may: in `select`, joins and mappings.

    `options` are those of WITH (..). `primary_key` names columns by which a row is known, for the
    ORM; the view itself needs none.
    """

    def __init__(
        self,
        name: str,
        metadata: sa.MetaData,
        query: SelectBase,
        *,
        schema: str | None = None,
        options: Mapping[str, Option] | None = None,
        primary_key: Sequence[str] = (),
    ) -> None:
        self.query = query
        self.options = dict(options or {})
        # In a MetaData of its own: that of the tables would create a table of this name.
        self.table = sa.Table(
            name,
            sa.MetaData(),
            *[
                sa.Column(one.name, one.type, primary_key=one.name in primary_key)
                for one in query.selected_columns
                if isinstance(one, sa.ColumnElement) and hasattr(one, "name")
            ],
            schema=schema,
        )
        sa.event.listen(metadata, "after_create", self._create_with_tables)
        sa.event.listen(metadata, "before_drop", self._drop_with_tables, insert=True)

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def c(self) -> ColumnCollection[str, sa.Column[Any]]:
        return self.table.c

    def __clause_element__(self) -> sa.Table:
        return self.table

    def _create_with_tables(self, _: Any, connection: sa.Connection, **more: Any) -> None:
        connection.execute(CreateMaterialized(self, if_not_exists=True))

    def _drop_with_tables(self, _: Any, connection: sa.Connection, **more: Any) -> None:
        connection.execute(DropMaterialized(self, if_exists=True))


class _ViewStatement(ExecutableDDLElement):
    """A statement about one view."""

    def __init__(self, view: MaterializedView) -> None:
        self.view = view


class CreateMaterialized(_ViewStatement):
    """CREATE MATERIALIZED VIEW [IF NOT EXISTS] name WITH (..) AS query."""

    def __init__(self, view: MaterializedView, *, if_not_exists: bool = False) -> None:
        super().__init__(view)
        self.if_not_exists = if_not_exists


class DropMaterialized(_ViewStatement):
    """DROP MATERIALIZED VIEW [IF EXISTS] name [CASCADE]."""

    def __init__(
        self, view: MaterializedView, *, if_exists: bool = False, cascade: bool = False
    ) -> None:
        super().__init__(view)
        self.if_exists = if_exists
        self.cascade = cascade


class AlterMaterialized(_ViewStatement):
    """ALTER MATERIALIZED VIEW name SET (..)."""

    def __init__(self, view: MaterializedView, options: Mapping[str, Option]) -> None:
        super().__init__(view)
        self.new_options = dict(options)


class RefreshMaterialized(_ViewStatement):
    """REFRESH MATERIALIZED VIEW name: a deferred view is brought up to date now."""


@compiles(CreateMaterialized)
def _compile_create(element: CreateMaterialized, compiler: Any, **more: Any) -> str:
    view = element.view
    query = compiler.sql_compiler.process(view.query, literal_binds=True)
    when = "IF NOT EXISTS " if element.if_not_exists else ""
    options = f" WITH {_format_options(view.options, compiler)}" if view.options else ""
    return f"CREATE MATERIALIZED VIEW {when}{_format_name(view, compiler)}{options} AS {query}"


@compiles(DropMaterialized)
def _compile_drop(element: DropMaterialized, compiler: Any, **more: Any) -> str:
    when = "IF EXISTS " if element.if_exists else ""
    further = " CASCADE" if element.cascade else ""
    return f"DROP MATERIALIZED VIEW {when}{_format_name(element.view, compiler)}{further}"


@compiles(AlterMaterialized)
def _compile_alter(element: AlterMaterialized, compiler: Any, **more: Any) -> str:
    options = _format_options(element.new_options, compiler)
    return f"ALTER MATERIALIZED VIEW {_format_name(element.view, compiler)} SET {options}"


@compiles(RefreshMaterialized)
def _compile_refresh(element: RefreshMaterialized, compiler: Any, **more: Any) -> str:
    return f"REFRESH MATERIALIZED VIEW {_format_name(element.view, compiler)}"


def _format_name(view: MaterializedView, compiler: Any) -> str:
    name: str = compiler.preparer.format_table(view.table)
    return name


def _format_options(options: Mapping[str, Option], compiler: Any) -> str:
    quote, render = compiler.preparer.quote, compiler.sql_compiler.render_literal_value
    shown = [
        f"{quote(name)} = {render(value, _OPTION_TYPES[type(value)])}"
        for name, value in options.items()
    ]
    return f"({', '.join(shown)})"
