"""The reader of an ended transaction, whose snapshot is released: every read is refused."""

from __future__ import annotations

from typing import Any, NoReturn

from belvedere.catalog.catalog import Catalog
from belvedere.errors import InvalidInput


class EndedReader:
    @property
    def position(self) -> int:
        raise ended_error()

    @property
    def catalog(self) -> Catalog:
        raise ended_error()

    def _refuse_read(self, *_: Any, **__: Any) -> NoReturn:
        raise ended_error()

    get = multi_get = scan = scan_values = _refuse_read


ENDED_READER = EndedReader()


def ended_error() -> InvalidInput:
    return InvalidInput("the transaction has ended", sqlstate="25P01")
