"""The fixtures of tests/txn, on the row-atomic commit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.txn.row.nodes import RowDatabase
from tests.txn.shop import create_shop


@pytest.fixture
def shop() -> Iterator[RowDatabase]:
    with RowDatabase() as opened:
        create_shop(opened)  # type: ignore[arg-type]
        yield opened


@pytest.fixture
def memory_shop(shop: RowDatabase) -> RowDatabase:
    return shop


@pytest.fixture
def database() -> Iterator[RowDatabase]:
    with RowDatabase() as opened:
        yield opened
