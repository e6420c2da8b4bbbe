"""Resolution of the table or view and the columns that a request names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import CatalogColumn, Table, View
from belvedere.codec.arrow.rows_to_arrow import arrow_field
from belvedere.errors import InvalidInput
from belvedere.interfaces.verbs.peer import Arguments


@dataclass(frozen=True, slots=True)
class NamedRelation:
    """A table or view and its requested columns, in the order of the request."""

    item: Table | View
    columns: tuple[CatalogColumn, ...]

    @property
    def arrow_schema(self) -> pa.Schema:
        return pa.schema([arrow_field(column.name, column.type) for column in self.columns])

    @property
    def column_slots(self) -> list[int]:
        return [column.slot for column in self.columns]

    @property
    def column_names(self) -> list[str]:
        return [column.name for column in self.columns]


def find_relation(catalog: Catalog, arguments: Arguments) -> NamedRelation:
    """Resolve `table` or `view`, a name with or without schema, and `columns`, by default all."""
    table = arguments.optional_text("table")
    item: Table | View
    if table is not None:
        schema, name = split_name(catalog, table)
        item = catalog.require_relation(Table, name, schema)
    else:
        schema, name = split_name(catalog, arguments.get_text("view"))
        item = catalog.require_relation(View, name, schema)
    return NamedRelation(item, _select_columns(item, arguments.get_texts("columns")))


def split_name(catalog: Catalog, text: str) -> tuple[str, str]:
    schema, dot, name = text.partition(".")
    if dot and schema in {known.name for known in catalog.schemas}:
        return schema, name
    return "public", text


def _select_columns(item: Table | View, wanted: Sequence[str] | None) -> tuple[CatalogColumn, ...]:
    live = {c.name: c for c in item.columns if not c.dropped and not c.hidden}
    if wanted is None:
        return tuple(live.values())
    for name in wanted:
        if name not in live:
            raise InvalidInput(
                "column does not exist",
                sqlstate="42703",
                hint="there are " + ", ".join(live),
                name=name,
            )
    return tuple(live[name] for name in wanted)
