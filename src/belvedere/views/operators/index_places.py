"""Places of an index: rows of a table that share the indexed columns lie at one place."""

from __future__ import annotations

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation_codecs import compiled_index, compiled_table
from belvedere.codec.keyspace import next_prefix
from belvedere.txn.contracts import Reader
from belvedere.txn.exact_order import find_run
from belvedere.types import Row


class IndexPlaces:
    """Reads `columns` of the rows of a table by their places in an index."""

    def __init__(
        self,
        catalog: Catalog,
        relation: int,
        columns: tuple[int, ...],
        index_id: int,
        width: int,
        groups: int,
    ) -> None:
        """`width` is the number of indexed columns that make a place; the first `groups` of them
        are not for their order."""
        index, table = compiled_index(catalog, index_id), compiled_table(catalog, relation)
        self.place_of_entry = index.layout.projector(tuple(range(width)))
        self._key, self._groups = index.key, groups
        self._primary = index.layout.projector(index.primary_key)
        self._row_key = table.key.encode
        self._project = table.layout.projector(columns)

    def get_place_range(self, prefix: Row) -> tuple[bytes, bytes]:
        """The keys of a place. Those that the index cannot tell apart by order are one place."""
        run = find_run(self._key, prefix, self._groups)
        start, end = self._key.prefix_range(prefix) if run is None else (run, next_prefix(run))
        assert end is not None
        return start, end

    def read_rows_in_range(self, reader: Reader, start: bytes, end: bytes) -> list[Row]:
        if start >= end:
            return []
        entries = [entry for batch in reader.scan(start, end) for _, entry in batch]
        rows = reader.multi_get([self._row_key(self._primary(entry)) for entry in entries])
        return [self._project(row) for row in rows if row is not None]
