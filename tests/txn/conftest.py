"""Databases to test on: in memory, and on RocksDB with and without durability."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from belvedere import failpoints
from belvedere.config import Config, Durability
from belvedere.database import Database
from tests.txn.shop import create_shop

ENGINES = ("memory", "rocksdb", "rocksdb-full")
QUICK_WAIT_MS = 5_000


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    """Failpoints are global to the process: no test inherits another's."""
    failpoints.disarm()
    yield
    failpoints.disarm()


def open_engine(engine: str, path: Path, **settings: int) -> Database:
    """A database on one of ENGINES; an on-disk one is in `path`."""
    if engine == "memory":
        return Database.open(":memory:", Config(lock_wait_ms_max=QUICK_WAIT_MS, **settings))
    durability = Durability.FULL if engine.endswith("full") else Durability.OFF
    config = Config(durability=durability, lock_wait_ms_max=QUICK_WAIT_MS, **settings)
    return Database.open(path / "store", config)


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """An empty database on every engine."""
    with open_engine(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture
def shop(database: Database) -> Database:
    """Every engine, with the tables of tests.txn.shop."""
    create_shop(database)
    return database


@pytest.fixture
def memory_shop() -> Iterator[Database]:
    """The same in memory only, for what does not depend on the engine."""
    with Database.open(":memory:", Config(lock_wait_ms_max=QUICK_WAIT_MS)) as opened:
        create_shop(opened)
        yield opened


@pytest.fixture
def directory_shop(tmp_path: Path) -> Iterator[Database]:
    """The same on RocksDB, durable."""
    with open_engine("rocksdb-full", tmp_path) as opened:
        create_shop(opened)
        yield opened
