"""Maintain job: Structured Streaming triggers the maintenance of deferred views from the log.

Spark's stream of the log only triggers the job; its rows are not used. Each batch starts at the
group's watermark, under a claim (`pipeline.maintain.group_driver`).

One job at a time may use a checkpoint directory, which also names the job: restarted with the same
directory after a crash, it takes its own claims back. The job fails for a group that another
running job has claimed. At a regular end it releases the groups to the worker of the store's
owner.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from belvedere.errors import Error, InvalidInput, Unavailable
from belvedere.execution.spark.failures import FAILURES, translate_failure
from belvedere.pipeline.maintain.group_driver import (
    ATTEMPTS_MAX,
    POSITIONS_MAX,
    TAKEN_OVER,
    AppliedBatch,
    GroupDriver,
    GroupProgress,
)
from belvedere.pipeline.store.checkpoint import ensure_jobs_directory, try_open_locked_file
from belvedere.pipeline.store.client import Store
from belvedere.pipeline.store.tables import DefinitionCompiler
from belvedere.values.durations import UNITS_US, parse_duration_us

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_OWNER_FILE = "owner"
_SPARK_UNITS = {"minutes": "min", "seconds": "s", "milliseconds": "ms"}


@contextmanager
def lock_job_checkpoint_directory(
    store: Store, directory: Path | None
) -> Iterator[tuple[str, Path]]:
    """The name of a job and its checkpoint directory, locked against other jobs meanwhile."""
    with ExitStack() as stack:
        place = directory or _find_default_directory(store, stack)
        yield _name_job_of_directory(store, place, stack), place


def _find_default_directory(store: Store, stack: ExitStack) -> Path:
    """Beside the store; of a database on HBase, one that ends with the job: its name too is new
    then, and another job waits until the claim of a killed one has expired."""
    if store.host.directory is not None:
        return ensure_jobs_directory(store) / "maintain"
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="belvedere-maintain-")))


def _name_job_of_directory(store: Store, place: Path, stack: ExitStack) -> str:
    place.mkdir(parents=True, exist_ok=True)
    file = stack.enter_context(_lock_owner_file(place))
    known = file.read().split()
    which = store.identity().store
    if not known:
        known = [secrets.token_hex(8), which]
        file.write(" ".join(known))
        file.flush()
        os.fsync(file.fileno())
    if known[1] != which:
        raise InvalidInput(
            "checkpoint is of another store",
            sqlstate="22023",
            checkpoint=str(place),
            hint="name another directory with --checkpoint",
        )
    return f"spark {known[0]}"


def _lock_owner_file(place: Path) -> IO[str]:
    """The job's file, at its beginning."""
    file = try_open_locked_file(place / _OWNER_FILE)
    if file is None:
        raise Unavailable(
            "another job uses this checkpoint",
            sqlstate=TAKEN_OVER,
            checkpoint=str(place),
            hint="stop it first, or name another directory with --checkpoint",
        )
    file.seek(0)
    return file


def run_maintenance(
    spark: SparkSession,
    store: Store,
    names: Sequence[str],
    definitions: DefinitionCompiler,
    *,
    once: bool = False,
    trigger: str = "200 ms",
    directory: Path | None = None,
    tasks: int | None = None,
    positions_max: int = POSITIONS_MAX,
    progress: Callable[[AppliedBatch], None] = lambda _: None,
    stopped: Callable[[], bool] = lambda: False,
) -> list[GroupProgress]:
    """Maintain the groups of these views until `stopped`, or (`once`) up to now; returns the
    progress of each group."""
    every = parse_trigger_interval(trigger)
    with lock_job_checkpoint_directory(store, directory) as (owner, place):
        count = tasks or spark.sparkContext.defaultParallelism
        maintainer = GroupDriver(spark, store, definitions, owner, count, positions_max, progress)
        maintainer.claim_groups(names)
        try:
            for attempt in range(ATTEMPTS_MAX):
                query = start_trigger_stream(maintainer, place, once=once, trigger=every)
                if _try_await_stream_end(query, stopped, last=attempt + 1 == ATTEMPTS_MAX):
                    break
        except Error as error:
            raise maintainer.failure or error from error
        finally:
            maintainer.release_groups()
        return list(maintainer.group_progress.values())


def parse_trigger_interval(text: str) -> str:
    """How often the log is looked at, as Spark spells it: of '200 ms', '200 milliseconds'."""
    length_us = parse_duration_us(text)
    if length_us is None:
        raise InvalidInput(
            "not an interval of time",
            sqlstate="22007",
            hint="such as '200 ms', '5 s' or '1 min'",
            found=text[:80],
        )
    length_ms = -(-length_us // UNITS_US["ms"])  # nothing at all would mean: without a pause
    for name, unit in _SPARK_UNITS.items():
        count, rest = divmod(length_ms * UNITS_US["ms"], UNITS_US[unit])
        if count and not rest:
            return f"{count} {name}"
    return "0 seconds"


def start_trigger_stream(
    maintainer: GroupDriver, place: Path, *, once: bool, trigger: str
) -> StreamingQuery:
    """Start the stream that triggers the maintainer; the rows of the stream are not used."""
    log = maintainer.spark.readStream.format("belvedere")
    log = log.option("database", maintainer.store.url).option("changes", "*")

    def advance_on_trigger(batch: DataFrame, number: int) -> None:
        try:
            maintainer.advance_groups()
        except Error as error:  # Spark passes on only its text
            maintainer.failure = error
            raise

    maintainer.advance_groups()  # changes from before the start of the stream
    writer = log.load().writeStream.foreachBatch(advance_on_trigger)
    writer = writer.option("checkpointLocation", str(place / "stream"))
    chosen = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=trigger)
    return chosen.start()


def _try_await_stream_end(
    query: StreamingQuery, stopped: Callable[[], bool], *, last: bool
) -> bool:
    """Wait for the end of the stream. False: the stream reader's process did not start within
    Spark's time-out, as happens on a busy machine; as the stream is only a trigger, the caller
    starts it again."""
    try:
        while not stopped():
            if query.awaitTermination(1):
                break
    except FAILURES as error:
        if not last and "failed to connect back" in str(error):
            return False
        raise translate_failure(error) from error
    finally:
        query.stop()
    return True
