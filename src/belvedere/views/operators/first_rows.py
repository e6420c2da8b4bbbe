"""The first rows of groups, read from the end of an index: for DISTINCT ON."""

from __future__ import annotations

from belvedere.catalog.catalog import Catalog
from belvedere.txn.contracts import Reader
from belvedere.types import Row
from belvedere.views.delta.delta_tree import Recompute
from belvedere.views.delta.first_rows import match_first_rows_query
from belvedere.views.delta.min_max import find_index_ordered_by
from belvedere.views.operators.exists import read_first_or_last_entry
from belvedere.views.operators.index_places import IndexPlaces


class FirstRowsReader:
    """Reads the rows of a group that share the first place in the order of an index."""

    def __init__(
        self,
        catalog: Catalog,
        relation: int,
        columns: tuple[int, ...],
        index_id: int,
        width: int,
        groups: int,
        *,
        descending: bool,
    ) -> None:
        """`width` is the number of indexed columns, of the group and of its order, and `groups`
        that of the group alone."""
        self._places = IndexPlaces(catalog, relation, columns, index_id, width, groups)
        self._descending = descending

    def read_first_rows(self, reader: Reader, keys: list[Row]) -> list[Row]:
        places, found = self._places, list[Row]()
        for key in keys:
            first = read_first_or_last_entry(
                reader, *places.get_place_range(key), reverse=self._descending
            )
            if first is not None:
                found += places.read_rows_in_range(
                    reader, *places.get_place_range(places.place_of_entry(first))
                )
        return found


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
        len(wanted.groups),
        descending=wanted.descending,
    )
