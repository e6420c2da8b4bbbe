"""Databases to test on: in memory, on RocksDB with and without durability, and on a row-atomic
store. What does not run on the last is in tests/protocols.py, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from belvedere import failpoints
from belvedere.config import Config, Durability
from belvedere.database import Database
from tests.protocols import open_on_cells, runs_on_cells
from tests.txn.shop import create_shop

ENGINES = ("memory", "rocksdb", "rocksdb-full")
CELLS = "cells"
QUICK_WAIT_MS = 5_000


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    """Failpoints are global to the process: no test inherits another's."""
    failpoints.disarm_all()
    yield
    failpoints.disarm_all()


def open_engine(engine: str, path: Path, **settings: int) -> Database:
    """A database on one of ENGINES, or on CELLS; an on-disk one is in `path`."""
    if engine == CELLS:
        return open_on_cells(Config(lock_wait_ms_max=QUICK_WAIT_MS, **settings))
    if engine == "memory":
        return Database.open(":memory:", Config(lock_wait_ms_max=QUICK_WAIT_MS, **settings))
    durability = Durability.FULL if engine.endswith("full") else Durability.OFF
    config = Config(durability=durability, lock_wait_ms_max=QUICK_WAIT_MS, **settings)
    return Database.open(path / "store", config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    both = (CELLS,) if runs_on_cells(metafunc) else ()
    if "database" in metafunc.fixturenames:
        metafunc.parametrize("database", (*ENGINES, *both), indirect=True)
    elif "memory_shop" in metafunc.fixturenames:
        metafunc.parametrize("memory_shop", ("memory", *both), indirect=True)


@pytest.fixture
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
def memory_shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """The same in memory only, for what does not depend on the engine."""
    with open_engine(request.param, tmp_path) as opened:
        create_shop(opened)
        yield opened


@pytest.fixture
def directory_shop(tmp_path: Path) -> Iterator[Database]:
    """The same on RocksDB, durable."""
    with open_engine("rocksdb-full", tmp_path) as opened:
        create_shop(opened)
        yield opened
