"""`spark.read.format("belvedere")`: the data source, and its batch reader.

Options: `database` (the store's directory), one of `table`, `view` and `query`; `position` (by
default the newest), `columns` (comma-separated: Spark does not tell a Python source which ones it
needs), `partitions`.

Which process does what, and so what must pickle: `schema`, and `pushFilters` with `partitions`, run
in a planner process; `read` runs in a task. None of them is the driver. The planner takes a lease
on a position in the owner, and every partition carries it, so all tasks read one snapshot.
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

PARTITIONS_DEFAULT = 8


class BelvedereSource(DataSource):
    """Made in every process that needs it, from its options alone."""

    @classmethod
    def name(cls) -> str:
        return "belvedere"

    def schema(self) -> StructType:
        relation = relation_of(self.options)
        return spark_schema(store_of(self.options).describe(relation).schema)

    def reader(self, schema: StructType) -> Reader:
        return Reader(
            store_of(self.options),
            relation_of(self.options),
            number_option(self.options, "position"),
            number_option(self.options, "partitions") or PARTITIONS_DEFAULT,
        )


@dataclass
class Part(InputPartition):
    """Pickled from the planner to a task."""

    lease: Lease
    split: Split | None


class Reader(DataSourceReader):
    """In the planner for `partitions`, then pickled to the tasks for `read`."""

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
