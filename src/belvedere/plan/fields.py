"""Field: the name and type of one column of a plan node's rows."""

from __future__ import annotations

from typing import NamedTuple

from belvedere.types import SqlType


class Field(NamedTuple):
    """A column of a node's rows. Names are for people and result headers; they need not be
    unique."""

    name: str
    type: SqlType


Fields = tuple[Field, ...]


class ColumnOrigin(NamedTuple):
    """The column of a table or view that a column of a result is. `number` counts the columns that
    can be named, dropped ones too, from 1."""

    relation: int
    number: int


ColumnOrigins = tuple[ColumnOrigin | None, ...]
