"""Row factories: what a fetched row is, by name. The protocol is psycopg's: a factory takes the
cursor, after its statement has run, and returns a function from a tuple of values to a row.

    con.row_factory = belvedere.dict_row          # {"id": 1, "name": "ann"}
    con.row_factory = belvedere.namedtuple_row    # Row(id=1, name="ann")
    con.row_factory = belvedere.class_row(User)   # User(id=1, name="ann")
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

from belvedere.interfaces.exceptions import InterfaceError
from belvedere.interfaces.values import Description
from belvedere.types import Row


class DescribedCursor(Protocol):
    @property
    def description(self) -> list[Description] | None: ...


RowMaker = Callable[[Row], Any]
RowFactory = Callable[[DescribedCursor], RowMaker]


def tuple_row(cursor: DescribedCursor) -> RowMaker:
    """Rows as tuples, as without a factory."""
    return tuple


def dict_row(cursor: DescribedCursor) -> RowMaker:
    """Rows as dictionaries by column name; of two columns with one name the last is seen."""
    names = _column_names(cursor)
    return lambda values: dict(zip(names, values))


def namedtuple_row(cursor: DescribedCursor) -> RowMaker:
    """Rows as named tuples; a name that Python cannot write becomes `_0`, `_1`, by its place."""
    maker: RowMaker = _named_tuple_class(_column_names(cursor))._make  # type: ignore[attr-defined]
    return maker


def class_row(kind: Callable[..., Any]) -> RowFactory:
    """Rows as `kind(column=value, ..)`: a dataclass, or any callable with these parameters."""
    if not callable(kind):
        raise InterfaceError("class_row needs a class or another callable", sqlstate="HY024")

    def make_factory(cursor: DescribedCursor) -> RowMaker:
        names = _column_names(cursor)
        return lambda values: kind(**dict(zip(names, values)))

    return make_factory


def _column_names(cursor: DescribedCursor) -> tuple[str, ...]:
    return tuple([column[0] for column in cursor.description or ()])


@lru_cache(maxsize=256)
def _named_tuple_class(names: tuple[str, ...]) -> type:
    return namedtuple("Row", names, rename=True)  # noqa: PYI024
