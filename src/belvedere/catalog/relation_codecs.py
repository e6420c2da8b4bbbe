"""Compiled relations: the key codec, the row layout and the row checks of a table, index or view.

Each is compiled once per object and catalog, and cached in `Catalog.compiled_relations`.

- A table stores all columns by slot; its key is the primary key.
- An index stores (key parts, primary key, included columns); its key is the key parts followed by
  the primary key, so that equal values stay apart and a look-up is a prefix range.
- A view stores linear state: columns of its own with amounts behind them, by slot like a table's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import CatalogColumn, Index, KeyPart, Table, View
from belvedere.codec import keyspace
from belvedere.codec.keys import KeyCodec, KeyColumn
from belvedere.codec.rows import RowLayout, Slot
from belvedere.codec.scalars import LongValues, choose_cut
from belvedere.codec.view_state import StateLayout
from belvedere.errors import Corruption
from belvedere.types import Row, SqlType


@dataclass(frozen=True, slots=True)
class CompiledTable:
    table: Table
    key: KeyCodec
    layout: RowLayout
    key_of: Callable[[Row], bytes]
    same_key: Callable[[Row, Row], bool]
    encode_required: Callable[[Row], bytes | None]
    decode: Callable[[bytes], Row]
    not_null: tuple[tuple[int, str], ...]
    live_columns: tuple[CatalogColumn, ...]
    start: bytes
    end: bytes

    @property
    def encode(self) -> Callable[[Row], bytes]:
        """For rows whose NOT NULL columns were checked."""
        return self.layout.encode


@dataclass(frozen=True, slots=True)
class CompiledIndex:
    """A row of an index is (key part values, primary key values, included values).

    `key` encodes the parts and the primary key, `unique_key` the parts only: the key of an entry of
    a unique index without NULLs, so that a look-up is one get."""

    index: Index
    key: KeyCodec
    unique_key: KeyCodec
    layout: RowLayout
    part_count: int
    primary_key: tuple[int, ...]
    start: bytes
    end: bytes


@dataclass(frozen=True, slots=True)
class CompiledView:
    """The codecs of a view's state; slots are the stored columns, then the amounts."""

    view: View
    key: KeyCodec
    layout: StateLayout
    payload: RowLayout
    start: bytes
    end: bytes


def compiled_relation(catalog: Catalog, id_: int) -> CompiledTable | CompiledView:
    """The key, layout, start and end of a table or view, for a scan."""
    if isinstance(catalog.get(id_), View):
        return compiled_view(catalog, id_)
    return compiled_table(catalog, id_)


def compiled_view(catalog: Catalog, id_: int) -> CompiledView:
    found = catalog.compiled_relations.get(id_)
    if isinstance(found, CompiledView):
        return found
    view = catalog.get(id_)
    if not isinstance(view, View):
        raise Corruption("view is not in the catalog", id=id_)
    compiled = _compile_view(view)
    catalog.compiled_relations[id_] = compiled
    return compiled


def compiled_table(catalog: Catalog, id_: int) -> CompiledTable:
    found = catalog.compiled_relations.get(id_)
    if isinstance(found, CompiledTable):
        return found
    compiled = _compile_table(catalog.table(id_))
    catalog.compiled_relations[id_] = compiled
    return compiled


def compiled_index(catalog: Catalog, id_: int) -> CompiledIndex:
    found = catalog.compiled_relations.get(id_)
    if isinstance(found, CompiledIndex):
        return found
    index = catalog.get(id_)
    if not isinstance(index, Index):
        raise Corruption("index is not in the catalog", id=id_)
    compiled = _compile_index(index, catalog.table(index.table))
    catalog.compiled_relations[id_] = compiled
    return compiled


def table_layout(columns: tuple[CatalogColumn, ...]) -> RowLayout:
    return RowLayout(tuple(Slot(column.type, missing_value(column)) for column in columns))


def missing_value(column: CatalogColumn) -> Any:
    """The column's value in rows older than the column."""
    if column.missing is None:
        return None
    return RowLayout((Slot(column.type, None),)).decode(column.missing)[0]


def encode_missing_value(type_: SqlType, value: Any) -> bytes | None:
    """The encoding of a value for `CatalogColumn.missing`."""
    return None if value is None else RowLayout((Slot(type_, None),)).encode((value,))


def _compile_table(table: Table) -> CompiledTable:
    prefix = keyspace.row_prefix(table.id)
    start, end = keyspace.relation_range(table.id)
    key = KeyCodec(tuple(KeyColumn(table.columns[s].type) for s in table.primary_key), prefix)
    layout = table_layout(table.columns)
    not_null = tuple((c.slot, c.name) for c in table.columns if c.not_null and not c.dropped)
    return CompiledTable(
        table=table,
        key=key,
        layout=layout,
        key_of=_row_key_encoder(key, table.primary_key),
        same_key=_key_identity_test(table.primary_key),
        encode_required=layout.required_encoder(tuple(slot for slot, _ in not_null)),
        decode=layout.decode,
        not_null=not_null,
        live_columns=tuple(c for c in table.columns if not c.dropped),
        start=start,
        end=end,
    )


def _row_key_encoder(key: KeyCodec, slots: tuple[int, ...]) -> Callable[[Row], bytes]:
    if len(slots) == 1:
        only, encode1 = slots[0], key.encode_first
        return lambda row: encode1(row[only])
    encode = key.encode
    return lambda row: encode(tuple([row[slot] for slot in slots]))


def _key_identity_test(slots: tuple[int, ...]) -> Callable[[Row, Row], bool]:
    """A test whether two rows hold identical key objects; False for equal copies."""
    if len(slots) == 1:
        only = slots[0]
        return lambda old, new: old[only] is new[only]
    return lambda old, new: all(old[slot] is new[slot] for slot in slots)


def _compile_index(index: Index, table: Table) -> CompiledIndex:
    prefix = keyspace.row_prefix(index.id)
    start, end = keyspace.relation_range(index.id)
    columns = [_build_key_column(part, table) for part in index.parts]
    columns += [KeyColumn(table.columns[slot].type) for slot in table.primary_key]
    included = [table.columns[slot].type for slot in index.include]
    types = [column.type for column in columns] + included
    layout = RowLayout(tuple(Slot(type_, None) for type_ in types))
    long = _plan_long_values(index, columns, layout)
    return CompiledIndex(
        index=index,
        key=KeyCodec(tuple(columns), prefix, long),
        unique_key=KeyCodec(tuple(columns[: len(index.parts)]), prefix, long),
        layout=layout,
        part_count=len(index.parts),
        primary_key=tuple(range(len(index.parts), len(columns))),
        start=start,
        end=end,
    )


def _compile_view(view: View) -> CompiledView:
    start, end = keyspace.relation_range(view.id)
    orders: list[tuple[bool, bool | None]] = [
        *view.orders,
        *[(False, None)] * (view.key_columns - len(view.orders)),
    ]
    key = tuple(
        KeyColumn(column.type, descending, first)
        for column, (descending, first) in zip(view.stored, orders)
    )
    payload = RowLayout(tuple(Slot(column.type, None) for column in view.stored))
    layout = StateLayout(payload, view.amounts)
    return CompiledView(
        view=view,
        key=KeyCodec(key, keyspace.row_prefix(view.id), _plan_long_values(view, key, layout)),
        layout=layout,
        payload=payload,
        start=start,
        end=end,
    )


def _plan_long_values(
    relation: Index | View, columns: Sequence[KeyColumn], layout: RowLayout | StateLayout
) -> LongValues | None:
    """How the keys of the relation keep long values; None: it has none, or keeps them whole."""
    cut = choose_cut(tuple(column.type for column in columns)) if relation.digests else None
    if cut is None:
        return None
    return LongValues(cut, layout.projector(tuple(range(len(columns)))))


def _build_key_column(part: KeyPart, table: Table) -> KeyColumn:
    if part.slot is not None:
        type_ = table.columns[part.slot].type
    else:
        assert part.type_name is not None
        type_ = part.type_name.to_type()
    return KeyColumn(type_, part.descending, part.nulls_first)
