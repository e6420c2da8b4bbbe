"""One Spark session for all tests of the pipeline, and stores that an application has open."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import belvedere
from belvedere.interfaces.dbapi import Connection
from tests.spark_session import spark as spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.pipeline.spark_faults import Owner


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Owner]:
    """A process that has a store open, to be killed and started again."""
    from tests.pipeline.spark_faults import Owner

    made = Owner(tmp_path_factory.mktemp("faults") / "faults.db")
    made.start()
    yield made
    made.kill()


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Where a test's store is."""
    return tmp_path / "shop.db"


@pytest.fixture
def connection(shop: Path) -> Iterator[Connection]:
    """The application that has the store open, in this very process."""
    with belvedere.connect(str(shop), durability="off", autocommit=True) as made:
        yield made


def read(spark: SparkSession, shop: Path, **options: object) -> DataFrame:
    reader = spark.read.format("belvedere").option("database", str(shop))
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load()


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    """The rows of a frame, sorted."""
    return sorted(tuple(row) for row in frame.collect())


def in_another_process(code: str) -> str:
    """What a Python process of its own prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120
    )
    return done.stdout
