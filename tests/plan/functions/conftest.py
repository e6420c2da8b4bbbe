from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.plan.functions.engines import Duck


@pytest.fixture(scope="session")
def duck() -> Iterator[Duck]:
    duck = Duck()
    yield duck
    duck.close()
