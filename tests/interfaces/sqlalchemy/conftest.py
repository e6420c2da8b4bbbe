"""Engines at both doors: embedded, and over the wire with SQLAlchemy's PostgreSQL dialect."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from belvedere.config import Durability
from belvedere.interfaces.server.listener import Endpoints, Listener
from belvedere.interfaces.stores import OpenOptions, acquire_store, release_store


@pytest.fixture(params=["embedded", "wire"])
def door(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sa.Engine]:
    if request.param == "embedded":
        engine = sa.create_engine(f"belvedere:///{tmp_path}/shop.db?durability=off")
        yield engine
        engine.dispose()
        return
    options = OpenOptions(durability=Durability.OFF, allow_remote=False)
    store = acquire_store(str(tmp_path / "shop.db"), options)
    listener = Listener(store.shared, "shop", Endpoints(tmp_path, 5432))
    engine = sa.create_engine(f"postgresql+psycopg://{getpass.getuser()}@/shop?host={tmp_path}")
    try:
        yield engine
    finally:
        engine.dispose()
        listener.close()
        release_store(store)
