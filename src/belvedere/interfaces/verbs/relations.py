"""Resolution of the table or view and the columns that a request names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Column, Table, View
from belvedere.codec.arrow import arrow_field
from belvedere.errors import InvalidInput
from belvedere.interfaces.verbs.serving import Arguments


@dataclass(frozen=True, slots=True)
class Named:
    """A table or view and its requested columns, in the order of the request."""

    item: Table | View
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([arrow_field(column.name, column.type) for column in self.columns])

    @property
    def slots(self) -> list[int]:
        return [column.slot for column in self.columns]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]


def named(catalog: Catalog, arguments: Arguments) -> Named:
    """Resolve `table` or `view`, a name with or without schema, and `columns`, by default all."""
    table = arguments.optional_text("table")
    item: Table | View
    if table is not None:
        schema, name = split_name(catalog, table)
        item = catalog.expect(Table, name, schema)
    else:
        schema, name = split_name(catalog, arguments.text("view"))
        item = catalog.expect(View, name, schema)
    return Named(item, _columns(item, arguments.texts("columns")))


def split_name(catalog: Catalog, text: str) -> tuple[str, str]:
    schema, dot, name = text.partition(".")
    if dot and schema in {known.name for known in catalog.schemas}:
        return schema, name
    return "public", text


def _columns(item: Table | View, wanted: Sequence[str] | None) -> tuple[Column, ...]:
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
