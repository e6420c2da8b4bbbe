"""Spark sessions with the settings that the pipeline's measurements use.

`open_spark_session` is for commands and tests; an application has a session of its own and calls
`belvedere.pipeline.register`. Every setting here was found by measurement: small shuffles, a
checkpoint manager that does not start processes, no checksum files for local checkpoint files.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from belvedere.errors import Unavailable
from belvedere.pipeline import register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing"
_STATE = "org.apache.spark.sql.execution.streaming.state"
SETTINGS: dict[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.authenticate.socketTimeout": "120s",  # else 15 s, which a busy machine may take
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{_CHECKPOINTS}.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.stateStore.providerClass": f"{_STATE}.RocksDBStateStoreProvider",
}


def build_small_job_settings(cores: int) -> dict[str, str]:
    """Settings for small jobs: as many shuffle partitions as cores, no adaptive planning."""
    return {
        **SETTINGS,
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.adaptive.enabled": "false",
    }


@contextmanager
def open_spark_session(
    master: str = "local[*]",
    name: str = "belvedere",
    settings: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """A session with `format("belvedere")` registered, stopped at the end."""
    require_spark_and_java()
    from pyspark.sql import SparkSession  # heavy

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    scratch = Path(tempfile.mkdtemp(prefix="belvedere-spark-"))
    builder = SparkSession.builder.master(master).appName(name)
    chosen = {**build_small_job_settings(os.cpu_count() or 1), "spark.local.dir": str(scratch)}
    for key, value in {**chosen, **(settings or {})}.items():
        builder = builder.config(key, value)
    try:
        spark = _start_session(builder, master)
        try:
            spark.sparkContext.setLogLevel("ERROR")
            register(spark)
            yield spark
        finally:
            spark.stop()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _start_session(builder: SparkSession.Builder, master: str) -> SparkSession:
    from belvedere.execution.spark.failures import FAILURES  # heavy

    try:
        return builder.getOrCreate()
    except FAILURES as error:
        said = [line for line in str(error).splitlines() if "Exception: " in line]
        raise Unavailable(
            "spark does not start",
            sqlstate="58000",
            hint="is the master there, and is it Java 17 or newer?",
            detail=(said or [str(error)])[0].strip(": ")[:500],
            master=master,
        ) from error


def require_spark_and_java() -> None:
    """Raise Unavailable, with the remedy, when pyspark or Java is missing."""
    try:
        import pyspark  # noqa: F401  # heavy
    except ImportError as error:
        raise Unavailable(
            "pyspark is not installed",
            sqlstate="58000",
            hint="pip install 'belvedere[spark]'",
        ) from error
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    if shutil.which(java) is None:
        raise Unavailable(
            "java is not installed",
            sqlstate="58000",
            hint="install Java 17 or newer, or set JAVA_HOME",
        )
