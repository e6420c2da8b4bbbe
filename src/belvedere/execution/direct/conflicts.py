"""Arbiters of ON CONFLICT: the primary key and unique indexes, asked whether a row is taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Index, State
from belvedere.catalog.relation import CompiledTable, compiled_index
from belvedere.errors import Corruption, Unsupported
from belvedere.plan import nodes as n
from belvedere.txn.border import Reader
from belvedere.types import Row


@dataclass(frozen=True, slots=True)
class Arbiter:
    """`claim` is the value that must be unique, None when the row claims none (a NULL); `find`
    gives the row that has it now. Rows are of live columns."""

    claim: Callable[[Row], bytes | None]
    find: Callable[[Reader, Row], Row | None]


def compile_arbiters(
    catalog: Catalog,
    table: CompiledTable,
    conflict: n.OnConflict,
    narrow: Callable[[Row], Row],
    widen: Callable[[Row], Row],
) -> tuple[Arbiter, ...]:
    arbiters = []
    if conflict.primary or conflict.target is None:
        arbiters.append(_by_primary_key(table, narrow, widen))
    if not conflict.primary:
        arbiters += [
            _by_index(catalog, table, index, narrow, widen)
            for index in catalog.indexes_of(table.table.id)
            if index.unique and index.state is State.READY and conflict.target in (None, index.id)
        ]
    return tuple(arbiters)


def _by_primary_key(
    table: CompiledTable, narrow: Callable[[Row], Row], widen: Callable[[Row], Row]
) -> Arbiter:
    def find(reader: Reader, row: Row) -> Row | None:
        stored = reader.get(table.key_of(widen(row)))
        return None if stored is None else narrow(table.decode(stored))

    return Arbiter(lambda row: table.key_of(widen(row)), find)


def _by_index(
    catalog: Catalog,
    table: CompiledTable,
    index: Index,
    narrow: Callable[[Row], Row],
    widen: Callable[[Row], Row],
) -> Arbiter:
    if index.where is not None or any(part.slot is None for part in index.parts):
        raise Unsupported(
            "ON CONFLICT by a partial or expression index",
            index=index.name,
            hint="use a unique index of plain columns",
        )
    compiled = compiled_index(catalog, index.id)
    slots = [part.slot for part in index.parts if part.slot is not None]
    encode = compiled.unique_key.encode
    primary = compiled.layout.projector(compiled.primary_key)

    def claim(row: Row) -> bytes | None:
        whole = widen(row)
        values = tuple([whole[slot] for slot in slots])
        return None if None in values and index.nulls_distinct else encode(values)

    def find(reader: Reader, row: Row) -> Row | None:
        key = claim(row)
        entry = None if key is None else reader.get(key)
        if entry is None:
            return None
        stored = reader.get(table.key.encode(primary(entry)))
        if stored is None:
            raise Corruption("index entry points to no row", index=index.name)
        return narrow(table.decode(stored))

    return Arbiter(claim, find)
