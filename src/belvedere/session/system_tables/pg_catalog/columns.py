"""The columns of the tables in pg_catalog, from the list in `columns.txt`; rows by column name.

A row is made of what is known of an object; every other column has the value that means nothing in
PostgreSQL: no object, false, NULL.
"""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from belvedere.plan.fields import Field, Fields
from belvedere.types import (
    BIGINT,
    BOOLEAN,
    INTEGER,
    OID,
    REAL,
    REGPROC,
    REGTYPE,
    SMALLINT,
    TEXT,
    TIMESTAMPTZ,
    ObjectName,
    Row,
    SqlType,
    array_of,
    vector_of,
)

_TYPES: dict[str, SqlType] = {
    "bool": BOOLEAN,
    "int2": SMALLINT,
    "int4": INTEGER,
    "int8": BIGINT,
    "float4": REAL,
    "oid": OID,
    "regtype": REGTYPE,
    "regproc": REGPROC,
    "timestamptz": TIMESTAMPTZ,
    "xid": BIGINT,
    "int2vector": vector_of(SMALLINT),
    "oidvector": vector_of(OID),
    "_int2": array_of(SMALLINT),
    "_oid": array_of(OID),
    "_text": array_of(TEXT),
    "_char": array_of(TEXT),
    "_aclitem": array_of(TEXT),
}
"""Types of columns; every other is text."""

_NOTHING: dict[str, Any] = {"bool": False, "int2": 0, "int4": 0, "int8": 0, "oid": 0, "char": ""}
_NOTHING["regproc"] = ObjectName(0, "-")


class CatalogTable(NamedTuple):
    oid: int
    fields: Fields
    nothing: Mapping[str, Any]


@functools.cache
def load_catalog_tables() -> dict[str, CatalogTable]:
    """The tables of pg_catalog by name."""
    file = importlib.resources.files("belvedere.session.system_tables.pg_catalog") / "columns.txt"
    found: dict[str, CatalogTable] = {}
    entries = file.read_text().partition("\n")[2].replace("\n    ", " ").strip().split("\n")
    for entry in entries:
        head, _, columns = entry.partition(": ")
        name, oid = head.split()
        typed = [column.split() for column in columns.split(", ")]
        fields = tuple([Field(column, _TYPES.get(kind, TEXT)) for column, kind in typed])
        nothing = {column: _NOTHING.get(kind) for column, kind in typed}
        found[name] = CatalogTable(int(oid), fields, nothing)
    return found


def make_row_builder(table: str) -> Callable[..., Row]:
    """A function from known columns to a row of the table."""
    nothing = load_catalog_tables()[table].nothing
    count = len(nothing)

    def build_row(**known: Any) -> Row:
        row = tuple({**nothing, **known}.values())
        assert len(row) == count, known.keys() - nothing.keys()
        return row

    return build_row
