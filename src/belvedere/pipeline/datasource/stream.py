"""`spark.readStream.format("belvedere")`: the stream reader of the change log.

Options: `database`; `changes`, the name of a table or view, or `*` for all changes; `position`,
after which the stream begins when there is no checkpoint yet (by default the position of the log or
view at that time); `maxRowsPerTrigger`; `partitions`, the parts of a batch of many positions.

An offset is (store, incarnation, position). A checkpoint of another store is refused, and so is one
of an earlier incarnation: the store has lost its end since, and its positions mean other changes.

The reader lives in one process for as long as the query runs; `read` runs in tasks, with the
contents of the partition only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from belvedere.errors import InvalidInput
from belvedere.pipeline.datasource.types import to_spark_batch
from belvedere.pipeline.store.client import Store, StoreIdentity

POSITIONS_PER_PART_MIN = 1000


@dataclass
class LogPartition(InputPartition):
    """after < position <= through. Pickled to a task."""

    after: int
    through: int


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(
        self,
        store: Store,
        changes: str,
        *,
        position: int | None,
        rows_max: int | None,
        partitions: int,
    ) -> None:
        self._store = store
        self._change_source = store.describe_change_source(changes)
        self._position = position
        self._rows_max = rows_max
        self._partitions = partitions
        self._target: int | None = None

    # -- offsets ------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        identity = self._store.identity()
        position = (
            self._find_newest_readable_position(identity)
            if self._position is None
            else self._position
        )
        if not identity.first - 1 <= position <= identity.position:
            raise InvalidInput(
                "position is not in the log",
                sqlstate="22023",
                position_wanted=position,
                first=identity.first - 1,
                newest=identity.position,
            )
        return _create_stream_offset(identity, position)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 (Spark's name)
        return ReadAllAvailable() if self._rows_max is None else ReadMaxRows(self._rows_max)

    def latestOffset(  # noqa: N802 (Spark's name)
        self, start: dict[str, Any], limit: ReadLimit
    ) -> dict[str, Any]:
        identity = self._store.identity()
        after = _check_and_get_offset_position(start, identity)
        through = max(
            self._find_newest_readable_position(identity) if self._target is None else self._target,
            after,
        )
        if isinstance(limit, ReadMaxRows) and through > after:
            through = min(through, self._store.last_position_within_rows(after, limit.max_rows))
        return _create_stream_offset(identity, through)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        identity = self._store.identity()
        return _create_stream_offset(identity, self._find_newest_readable_position(identity))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        self._target = self._find_newest_readable_position(self._store.identity())

    def _find_newest_readable_position(self, identity: StoreIdentity) -> int:
        """The last position with changes to read now: a deferred view is behind the log."""
        if self._change_source.kind == "view":
            return self._store.view_position(self._change_source.name)
        return identity.position

    # -- rows ---------------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        identity = self._store.identity()
        after, through = (
            _check_and_get_offset_position(start, identity),
            _check_and_get_offset_position(end, identity),
        )
        count = 1 if self._change_source.kind == "view" else self._partitions
        return split_into_log_partitions(after, through, count)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LogPartition)
        changes = self._store.read_changes_of_source(
            self._change_source, partition.after, partition.through
        )
        return map(to_spark_batch, changes)

    def commit(self, end: dict[str, Any]) -> None:
        """Does nothing: Spark reports a batch as done only when it plans the next one."""

    def stop(self) -> None:
        """The reader holds nothing."""


def split_into_log_partitions(after: int, through: int, count: int) -> list[LogPartition]:
    """Split a range of the log into at most `count` parts; a small range is not split."""
    size = max(POSITIONS_PER_PART_MIN, -(-(through - after) // count))
    return [LogPartition(at, min(at + size, through)) for at in range(after, through, size)]


def _create_stream_offset(identity: StoreIdentity, position: int) -> dict[str, Any]:
    return {
        "store": identity.store,
        "incarnation": identity.incarnation,
        "position": position,
    }


def _check_and_get_offset_position(offset: dict[str, Any], identity: StoreIdentity) -> int:
    """The position of an offset, which must be one of this store and incarnation."""
    if offset.get("store") != identity.store:
        raise InvalidInput(
            "checkpoint belongs to another store",
            sqlstate="22023",
            hint="use a new checkpoint directory",
            checkpoint=offset.get("store"),
            store=identity.store,
        )
    if offset.get("incarnation") != identity.incarnation:
        raise InvalidInput(
            "checkpoint belongs to an earlier life of the store",
            sqlstate="22023",
            hint="the store lost its end in a crash; use a new checkpoint directory",
        )
    return int(offset["position"])
