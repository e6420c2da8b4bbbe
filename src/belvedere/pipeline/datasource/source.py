"""`spark.read.format("belvedere")`: the data source, and its batch reader.

Options: `database` (the store's directory), one of `table`, `view` and `query`; `position` (by
default the newest), `columns` (comma-separated: Spark does not pass the columns it needs to a
Python source), `partitions`. Or `changes` (a table or view, or `*`) with `after` and `through`: a
range of the log.

Which process runs what, and so what must pickle: `schema`, and `pushFilters` with `partitions`, run
in a planner process; `read` runs in a task. None of them runs in the driver. The planner takes a
lease on a position in the owner, and every partition carries it, so all tasks read one snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.datasource import Filter as Pushed
from pyspark.sql.types import StructType

from belvedere.errors import InvalidInput
from belvedere.pipeline.datasource.filters import translate_pushed_filters
from belvedere.pipeline.datasource.stream import (
    LogPartition,
    StreamReader,
    split_into_log_partitions,
)
from belvedere.pipeline.datasource.types import to_spark_batch, to_spark_schema
from belvedere.pipeline.datasource.write import (
    BatchWriter,
    StreamWriter,
    parse_write_target,
    refuse_overwrite_mode,
)
from belvedere.pipeline.store.client import (
    PositionLease,
    PushedFilter,
    ReadRequest,
    RelationSplit,
    Store,
    make_store_from_options,
    parse_read_request,
)

PARTITIONS_DEFAULT = 8
CHANGES = "changes"


class BelvedereSource(DataSource):
    """The data source. Spark constructs it in every process that needs it, only from its
    options."""

    @classmethod
    def name(cls) -> str:
        return "belvedere"

    def schema(self) -> StructType:
        store = make_store_from_options(self.options)
        if CHANGES in self.options:
            return to_spark_schema(store.describe_change_source(self.options[CHANGES]).schema)
        return to_spark_schema(store.describe_relation(parse_read_request(self.options)).schema)

    def reader(self, schema: StructType) -> RelationReader | LogReader:
        if CHANGES in self.options:
            return LogReader(
                make_store_from_options(self.options),
                self.options[CHANGES],
                after=parse_number_option(self.options, "after"),
                through=parse_number_option(self.options, "through"),
                partitions=parse_number_option(self.options, "partitions") or PARTITIONS_DEFAULT,
            )
        return RelationReader(
            make_store_from_options(self.options),
            parse_read_request(self.options),
            parse_number_option(self.options, "position"),
            parse_number_option(self.options, "partitions") or PARTITIONS_DEFAULT,
        )

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802 (Spark's name)
        if CHANGES not in self.options:
            raise InvalidInput(
                "the option changes is wanted",
                sqlstate="22023",
                hint="the name of a table or view, or * for the whole log",
            )
        return StreamReader(
            make_store_from_options(self.options),
            self.options[CHANGES],
            position=parse_number_option(self.options, "position"),
            rows_max=parse_number_option(self.options, "maxRowsPerTrigger"),
            partitions=parse_number_option(self.options, "partitions") or PARTITIONS_DEFAULT,
        )

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        refuse_overwrite_mode(overwrite)
        return BatchWriter(
            parse_write_target(make_store_from_options(self.options), self.options, schema.names)
        )

    def streamWriter(  # noqa: N802 (Spark's name)
        self, schema: StructType, overwrite: bool
    ) -> StreamWriter:
        refuse_overwrite_mode(overwrite)
        return StreamWriter(
            parse_write_target(make_store_from_options(self.options), self.options, schema.names)
        )


@dataclass
class ScanPartition(InputPartition):
    """Pickled from the planner to a task."""

    lease: PositionLease
    split: RelationSplit | None


class RelationReader(DataSourceReader):
    """Reads a table, view or query. Lives in the planner for `partitions`, then is pickled to the
    tasks for `read`."""

    def __init__(
        self, store: Store, relation: ReadRequest, position: int | None, partitions: int
    ) -> None:
        self._store = store
        self._relation = relation
        self._position = position
        self._partitions = partitions
        self._filters: tuple[PushedFilter, ...] = ()

    def pushFilters(self, filters: list[Pushed]) -> Iterable[Pushed]:  # noqa: N802 (Spark's name)
        """Narrow what is read; Spark applies all of them again, by its own rules."""
        if self._relation.kind != "query":
            schema = self._store.describe_relation(self._relation._replace(columns=None)).schema
            self._filters = translate_pushed_filters(filters, schema)
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        lease = self._store.take_position_lease(self._position)
        if self._relation.kind == "query":
            return [ScanPartition(lease, None)]
        splits = self._store.plan_relation_splits(
            self._relation, lease, self._partitions, self._filters
        )
        return [ScanPartition(lease, split) for split in splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ScanPartition)
        if partition.split is None:
            batches = self._store.run_query_at_lease(self._relation.name, partition.lease)
        else:
            batches = self._store.scan_relation_split(
                self._relation, partition.lease, partition.split
            )
        return map(to_spark_batch, batches)


class LogReader(DataSourceReader):
    """Reads a range of the change log as a batch: after < position <= through."""

    def __init__(
        self,
        store: Store,
        changes: str,
        *,
        after: int | None,
        through: int | None,
        partitions: int,
    ) -> None:
        self._store = store
        self._change_source = store.describe_change_source(changes)
        self._after = after
        self._through = through
        self._partitions = partitions

    def partitions(self) -> Sequence[InputPartition]:
        identity = self._store.identity()
        after = identity.first - 1 if self._after is None else self._after
        through = identity.position if self._through is None else self._through
        count = self._partitions
        if self._change_source.kind == "view":
            reached, count = self._store.view_position(self._change_source.name), 1
            after = reached if self._after is None else after
            through = reached if self._through is None else through
        # At least one part, even of an empty or wrong range: then the owner reports what is wrong.
        return split_into_log_partitions(after, through, count) or [LogPartition(after, through)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LogPartition)
        changes = self._store.read_changes_of_source(
            self._change_source, partition.after, partition.through
        )
        return map(to_spark_batch, changes)


def parse_number_option(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(
            "option is not a number", sqlstate="22023", name=name, text=text
        ) from None
