from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.execution.plans import Store
from tests.oracle.postgres import postgres  # noqa: F401


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    opened = Store()
    yield opened
    opened.close()


@pytest.fixture
def fresh() -> Iterator[Store]:
    """A store of its own, for tests that write."""
    opened = Store()
    yield opened
    opened.close()
