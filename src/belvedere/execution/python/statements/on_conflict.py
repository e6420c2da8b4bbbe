"""Arbiters of ON CONFLICT: the primary key and unique indexes that detect conflicting rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Index, ObjectState
from belvedere.catalog.relation_codecs import CompiledTable, compiled_index
from belvedere.errors import Corruption
from belvedere.execution.python.context import CompileContext
from belvedere.execution.run import Rows
from belvedere.plan import nodes as n
from belvedere.sql.bind.statements.statement import STORED_EXPRESSIONS
from belvedere.txn.contracts import Reader
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
        arbiters.append(_primary_key_arbiter(table, narrow, widen))
    if not conflict.primary:
        arbiters += [
            _unique_index_arbiter(catalog, table, index, narrow)
            for index in catalog.table_indexes(table.table.id)
            if index.unique
            and index.state is ObjectState.READY
            and conflict.target in (None, index.id)
        ]
    return tuple(arbiters)


def _primary_key_arbiter(
    table: CompiledTable, narrow: Callable[[Row], Row], widen: Callable[[Row], Row]
) -> Arbiter:
    def find_by_key(reader: Reader, row: Row) -> Row | None:
        stored = reader.get(table.key_of(widen(row)))
        return None if stored is None else narrow(table.decode(stored))

    return Arbiter(lambda row: table.key_of(widen(row)), find_by_key)


def _unique_index_arbiter(
    catalog: Catalog, table: CompiledTable, index: Index, narrow: Callable[[Row], Row]
) -> Arbiter:
    context = CompileContext(catalog, _no_plans)
    compiled = compiled_index(catalog, index.id)
    encode = compiled.unique_key.encode
    primary = compiled.layout.projector(compiled.primary_key)
    parts = [STORED_EXPRESSIONS.bind_key_part(catalog, table.table, part) for part in index.parts]
    condition = STORED_EXPRESSIONS.bind_predicate(catalog, table.table, index)
    # Immutable expressions need nothing of a run: no parameters, no clock, no outer rows.
    values_of = context.tuple_of(parts)(None)  # type: ignore[arg-type]
    covers = None if condition is None else context.truth_of(condition)(None)  # type: ignore[arg-type]

    def encode_claim(row: Row) -> bytes | None:
        if covers is not None and not covers(row):
            return None
        values = values_of(row)
        return None if None in values and index.nulls_distinct else encode(values)

    def find_by_index(reader: Reader, row: Row) -> Row | None:
        key = encode_claim(row)
        entry = None if key is None else reader.get(key)
        if entry is None:
            return None
        stored = reader.get(table.key.encode(primary(entry)))
        if stored is None:
            raise Corruption("index entry points to no row", index=index.name)
        return narrow(table.decode(stored))

    return Arbiter(encode_claim, find_by_index)


def _no_plans(node: n.Node) -> Rows:
    raise Corruption("an index cannot have a sub-query", node=type(node).__name__)
