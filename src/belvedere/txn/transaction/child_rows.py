"""The rows that refer to a parent row: one range, of an index or of their own table.

Where the primary key of the child begins with the columns of the foreign key, as (warehouse,
district, order) of an order's lines, its own rows are that range, and the key has no index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import ForeignKey
from belvedere.catalog.relation_codecs import CompiledTable, compiled_index
from belvedere.errors import Corruption
from belvedere.txn.contracts import Reader
from belvedere.types import Row

FindRange = Callable[[Row], tuple[bytes, bytes]]
"""The range of the rows, or index entries, that refer to these values, in the key's order."""


def child_range_finder(catalog: Catalog, child: CompiledTable, key: ForeignKey) -> FindRange:
    if key.index is None:
        slots: tuple[int | None, ...] = child.table.primary_key
        codec = child.key
    else:
        index = compiled_index(catalog, key.index)
        slots, codec = tuple([part.slot for part in index.index.parts]), index.key
    order = [key.columns.index(slot) for slot in slots[: len(key.columns)] if slot is not None]

    def find_range(values: Row) -> tuple[bytes, bytes]:
        start, end = codec.prefix_range(tuple([values[at] for at in order]))
        assert end is not None
        return start, end

    return find_range


def find_child_rows(
    reader: Reader, child: CompiledTable, key: ForeignKey, values: Row
) -> Iterator[Row]:
    """The rows that refer to these values."""
    start, end = child_range_finder(reader.catalog, child, key)(values)
    if key.index is None:
        for batch in reader.scan_values(start, end):
            yield from map(child.decode, batch)
        return
    index = compiled_index(reader.catalog, key.index)
    primary: Callable[[bytes], Row] = index.layout.projector(index.primary_key)
    for pairs in reader.scan(start, end):
        for _, entry in pairs:
            found = reader.get(child.key.encode(primary(entry)))
            if found is None:
                raise Corruption("index entry points to no row", index=index.index.name)
            yield child.decode(found)
