"""The first rows of groups, read from the end of an index: for DISTINCT ON."""

from __future__ import annotations

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation_codecs import compiled_index, compiled_table
from belvedere.txn.contracts import Reader
from belvedere.types import Row
from belvedere.views.delta.delta_tree import Recompute
from belvedere.views.delta.first_rows import match_first_rows_query
from belvedere.views.delta.min_max import find_index_ordered_by
from belvedere.views.operators.exists import read_first_or_last_entry


class FirstRowsReader:
    """Reads the rows of a group that share the first place in the order of an index."""

    def __init__(
        self,
        catalog: Catalog,
        relation: int,
        columns: tuple[int, ...],
        index_id: int,
        width: int,
        *,
        descending: bool,
    ) -> None:
        """`width` is the number of indexed columns, of the group and of its order."""
        index, table = compiled_index(catalog, index_id), compiled_table(catalog, relation)
        self._prefix_range = index.key.prefix_range
        self._place = index.layout.projector(tuple(range(width)))
        self._primary = index.layout.projector(index.primary_key)
        self._row_key = table.key.encode
        self._project = table.layout.projector(columns)
        self._descending = descending

    def read_first_rows(self, reader: Reader, keys: list[Row]) -> list[Row]:
        found: list[Row] = []
        for key in keys:
            first = read_first_or_last_entry(
                reader, *self._find_range(key), reverse=self._descending
            )
            if first is not None:
                found += self._read_place(reader, self._place(first))
        return found

    def _read_place(self, reader: Reader, place: Row) -> list[Row]:
        start, end = self._find_range(place)
        entries = [entry for batch in reader.scan(start, end) for _, entry in batch]
        rows = reader.multi_get([self._row_key(self._primary(entry)) for entry in entries])
        return [self._project(row) for row in rows if row is not None]

    def _find_range(self, prefix: Row) -> tuple[bytes, bytes]:
        start, end = self._prefix_range(prefix)
        assert end is not None
        return start, end


def build_first_rows_reader(catalog: Catalog, tree: Recompute) -> FirstRowsReader | None:
    """The reader for a tree whose first rows an index gives, where that exists."""
    wanted = match_first_rows_query(catalog, tree)
    if wanted is None:
        return None
    slots = wanted.required_index_columns
    index = find_index_ordered_by(catalog, wanted.relation, slots)
    if index is None:
        return None
    return FirstRowsReader(
        catalog,
        wanted.relation,
        wanted.columns,
        index.id,
        len(slots),
        descending=wanted.descending,
    )
