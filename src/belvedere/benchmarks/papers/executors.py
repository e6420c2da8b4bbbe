"""The executors of a Spark session on this machine, as processes that can be counted and killed."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BACKEND = b"CoarseGrainedExecutorBackend"
_NUMBER = re.compile(rb"\0--executor-id\0(\d+)\0")


def executor_processes(spark: SparkSession) -> dict[int, int]:
    """Process ids of this session's executors, by executor id."""
    port = spark.sparkContext.getConf().get("spark.driver.port")
    wanted = f":{port}\0".encode()
    found = {}
    for directory in Path("/proc").iterdir():
        if (
            directory.name.isdigit()
            and (number := _parse_executor_id(directory, wanted)) is not None
        ):
            found[number] = int(directory.name)
    return found


def _parse_executor_id(process: Path, wanted: bytes) -> int | None:
    try:
        line = (process / "cmdline").read_bytes()
    except OSError:
        return None  # it has ended
    number = _NUMBER.search(line)
    if _BACKEND not in line or wanted not in line or number is None:
        return None
    return int(number[1])


def kill_executor(spark: SparkSession) -> int | None:
    """Send SIGKILL to the newest executor; return its id, or None when there is none."""
    running = executor_processes(spark)
    if not running:
        return None
    number = max(running)
    os.kill(running[number], signal.SIGKILL)
    return number
