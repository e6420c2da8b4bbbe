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
from belvedere.pipeline.shapes import for_spark
from belvedere.pipeline.store import Identity, Store

POSITIONS_PER_PART_MIN = 1000


@dataclass
class Stretch(InputPartition):
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
        self._followed = store.describe_changes(changes)
        self._position = position
        self._rows_max = rows_max
        self._partitions = partitions
        self._target: int | None = None

    # -- offsets ------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        identity = self._store.identity()
        position = self._reached(identity) if self._position is None else self._position
        if not identity.first - 1 <= position <= identity.position:
            raise InvalidInput(
                "position is not in the log",
                sqlstate="22023",
                position_wanted=position,
                first=identity.first - 1,
                newest=identity.position,
            )
        return _offset(identity, position)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 (Spark's name)
        return ReadAllAvailable() if self._rows_max is None else ReadMaxRows(self._rows_max)

    def latestOffset(  # noqa: N802 (Spark's name)
        self, start: dict[str, Any], limit: ReadLimit
    ) -> dict[str, Any]:
        identity = self._store.identity()
        after = _position_of(start, identity)
        through = max(self._reached(identity) if self._target is None else self._target, after)
        if isinstance(limit, ReadMaxRows) and through > after:
            through = min(through, self._store.reach(after, limit.max_rows))
        return _offset(identity, through)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        identity = self._store.identity()
        return _offset(identity, self._reached(identity))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        self._target = self._reached(self._store.identity())

    def _reached(self, identity: Identity) -> int:
        """The last position with changes to read now: a deferred view is behind the log."""
        if self._followed.kind == "view":
            return self._store.view_position(self._followed.name)
        return identity.position

    # -- rows ---------------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        identity = self._store.identity()
        after, through = _position_of(start, identity), _position_of(end, identity)
        count = 1 if self._followed.kind == "view" else self._partitions
        return stretches(after, through, count)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Stretch)
        changes = self._store.follow(self._followed, partition.after, partition.through)
        return map(for_spark, changes)

    def commit(self, end: dict[str, Any]) -> None:
        """Does nothing: Spark reports a batch as done only when it plans the next one."""

    def stop(self) -> None:
        """The reader holds nothing."""


def stretches(after: int, through: int, count: int) -> list[Stretch]:
    """Split a range of the log into at most `count` parts; a small range is not split."""
    size = max(POSITIONS_PER_PART_MIN, -(-(through - after) // count))
    return [Stretch(at, min(at + size, through)) for at in range(after, through, size)]


def _offset(identity: Identity, position: int) -> dict[str, Any]:
    return {
        "store": identity.store,
        "incarnation": identity.incarnation,
        "position": position,
    }


def _position_of(offset: dict[str, Any], identity: Identity) -> int:
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
