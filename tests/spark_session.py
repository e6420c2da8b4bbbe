"""One Spark session for all tests that need one in a part."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import belvedere

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """local[2] in a JVM of its own, with the settings of the pipeline's commands."""
    from belvedere.pipeline.store.spark_session import build_small_job_settings, open_spark_session

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    source = str(Path(belvedere.__file__).parent.parent)
    paths = [source, *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    settings = {
        **build_small_job_settings(CORES),
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
        "spark.network.timeout": "3600s",  # a machine that stood still has not lost its executor
    }
    with open_spark_session(f"local[{CORES}]", "belvedere tests", settings) as made:
        yield made
