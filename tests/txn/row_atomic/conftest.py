"""The fixtures of tests/txn, on the row-atomic commit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belvedere.database import Database
from tests.txn.row_atomic.nodes import open_node
from tests.txn.shop import create_shop


@pytest.fixture
def shop() -> Iterator[Database]:
    with open_node() as opened:
        create_shop(opened)
        yield opened


@pytest.fixture
def memory_shop(shop: Database) -> Database:
    return shop


@pytest.fixture
def database() -> Iterator[Database]:
    with open_node() as opened:
        yield opened
