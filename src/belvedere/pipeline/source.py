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
from belvedere.pipeline.shapes import for_spark, spark_schema
from belvedere.pipeline.source_filters import pushed
from belvedere.pipeline.store import Filter, Lease, Relation, Split, Store, relation_of, store_of
from belvedere.pipeline.stream import StreamReader, Stretch, stretches
from belvedere.pipeline.write import BatchWriter, StreamWriter, refuse_overwrite, target_of

PARTITIONS_DEFAULT = 8
CHANGES = "changes"


class BelvedereSource(DataSource):
    """The data source. Spark constructs it in every process that needs it, from its options
    alone."""

    @classmethod
    def name(cls) -> str:
        return "belvedere"

    def schema(self) -> StructType:
        store = store_of(self.options)
        if CHANGES in self.options:
            return spark_schema(store.describe_changes(self.options[CHANGES]).schema)
        return spark_schema(store.describe(relation_of(self.options)).schema)

    def reader(self, schema: StructType) -> Reader | LogReader:
        if CHANGES in self.options:
            return LogReader(
                store_of(self.options),
                self.options[CHANGES],
                after=number_option(self.options, "after"),
                through=number_option(self.options, "through"),
                partitions=number_option(self.options, "partitions") or PARTITIONS_DEFAULT,
            )
        return Reader(
            store_of(self.options),
            relation_of(self.options),
            number_option(self.options, "position"),
            number_option(self.options, "partitions") or PARTITIONS_DEFAULT,
        )

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802 (Spark's name)
        if CHANGES not in self.options:
            raise InvalidInput(
                "the option changes is wanted",
                sqlstate="22023",
                hint="the name of a table or view, or * for the whole log",
            )
        return StreamReader(
            store_of(self.options),
            self.options[CHANGES],
            position=number_option(self.options, "position"),
            rows_max=number_option(self.options, "maxRowsPerTrigger"),
            partitions=number_option(self.options, "partitions") or PARTITIONS_DEFAULT,
        )

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        refuse_overwrite(overwrite)
        return BatchWriter(target_of(store_of(self.options), self.options, schema.names))

    def streamWriter(  # noqa: N802 (Spark's name)
        self, schema: StructType, overwrite: bool
    ) -> StreamWriter:
        refuse_overwrite(overwrite)
        return StreamWriter(target_of(store_of(self.options), self.options, schema.names))


@dataclass
class Part(InputPartition):
    """Pickled from the planner to a task."""

    lease: Lease
    split: Split | None


class Reader(DataSourceReader):
    """Reads a table, view or query. Lives in the planner for `partitions`, then is pickled to the
    tasks for `read`."""

    def __init__(
        self, store: Store, relation: Relation, position: int | None, partitions: int
    ) -> None:
        self._store = store
        self._relation = relation
        self._position = position
        self._partitions = partitions
        self._filters: tuple[Filter, ...] = ()

    def pushFilters(self, filters: list[Pushed]) -> Iterable[Pushed]:  # noqa: N802 (Spark's name)
        """Narrow what is read; Spark applies all of them again, by its own rules."""
        if self._relation.kind != "query":
            schema = self._store.describe(self._relation._replace(columns=None)).schema
            self._filters = pushed(filters, schema)
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        lease = self._store.lease(self._position)
        if self._relation.kind == "query":
            return [Part(lease, None)]
        splits = self._store.splits(self._relation, lease, self._partitions, self._filters)
        return [Part(lease, split) for split in splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part)
        if partition.split is None:
            batches = self._store.query(self._relation.name, partition.lease)
        else:
            batches = self._store.scan(self._relation, partition.lease, partition.split)
        return map(for_spark, batches)


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
        self._followed = store.describe_changes(changes)
        self._after = after
        self._through = through
        self._partitions = partitions

    def pushFilters(self, filters: list[Pushed]) -> Iterable[Pushed]:  # noqa: N802 (Spark's name)
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        identity = self._store.identity()
        after = identity.first - 1 if self._after is None else self._after
        through = identity.position if self._through is None else self._through
        count = self._partitions
        if self._followed.kind == "view":
            reached, count = self._store.view_position(self._followed.name), 1
            after = reached if self._after is None else after
            through = reached if self._through is None else through
        # At least one part, even of an empty or wrong range: then the owner reports what is wrong.
        return stretches(after, through, count) or [Stretch(after, through)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Stretch)
        changes = self._store.follow(self._followed, partition.after, partition.through)
        return map(for_spark, changes)


def number_option(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(
            "option is not a number", sqlstate="22023", name=name, text=text
        ) from None
