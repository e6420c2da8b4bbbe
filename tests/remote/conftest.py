"""A store that an application has open, and the client that another process would use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import belvedere
from belvedere.interfaces.dbapi import Connection
from belvedere.pipeline.store.client import Store


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with belvedere.connect(str(tmp_path / "shop.db"), durability="off", autocommit=True) as made:
        yield made


@pytest.fixture
def store(tmp_path: Path, connection: Connection) -> Store:
    return Store.from_url(str(tmp_path / "shop.db"))
