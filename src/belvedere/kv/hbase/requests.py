"""Operations of the store contract as calls of the gateway, and answers as results.

A `GatewayCall` is one exchange on one connection. `side_by_side` says which operations share one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from belvedere.kv.cell import (
    Cell,
    CellDelete,
    Cells,
    CellScan,
    Change,
    CheckAndMutate,
    Get,
    Increment,
    Mutate,
    Put,
)
from belvedere.kv.hbase.filter_text import filter_text
from belvedere.kv.hbase.thrift_types import (
    DELETE_UP_TO,
    DELETE_VERSION,
    EQUAL,
    VERSIONS_ALL,
    load_types,
)

_new_tuple = tuple.__new__  # half the cost of calling the class, and there are many cells

FAMILY = b"c"
"""The one column family of every table."""


@dataclass(frozen=True, slots=True)
class GatewayCall:
    """One exchange: the gateway's method, its arguments, and what to make of the answer."""

    name: str
    arguments: dict[str, Any]
    read: Callable[[Any], Any]
    repeatable: bool = False
    row_prefix: bytes | None = None
    """Of a page of a scan: what all its keys begin with. Its rows may then come packed."""


def get_call(table: bytes, get: Get) -> GatewayCall:
    return GatewayCall("get", {"table": table, "tget": _make_get(get)}, read_cells, repeatable=True)


def multi_get_call(table: bytes, gets: list[Get]) -> GatewayCall:
    arguments = {"table": table, "tgets": [_make_get(get) for get in gets]}
    return GatewayCall("getMultiple", arguments, _read_all_cells, repeatable=True)


def scan_call(table: bytes, scan: CellScan, rows_max: int) -> GatewayCall:
    """A page of a scan. A reverse one may begin with the row at its end, and end with rows just
    below its start, which the caller drops."""
    first, stop = scan.start, scan.end
    if scan.reverse:
        first, stop = scan.end or b"", _key_before(scan.start)
    wanted = load_types().TScan(
        startRow=first or None,
        stopRow=stop or None,
        columns=_make_columns(scan.columns),
        caching=rows_max,
        maxVersions=VERSIONS_ALL if scan.all_versions else 1,
        timeRange=_make_time_range(scan.as_of),
        filterString=None if scan.filter is None else filter_text(scan.filter, FAMILY),
        reversed=scan.reverse or None,
        limit=rows_max,
    )
    arguments = {"table": table, "tscan": wanted, "numRows": rows_max}
    return GatewayCall("getScannerResults", arguments, _read_rows, repeatable=True)


def put_calls(table: bytes, mutations: list[Mutate], bytes_max: int) -> list[GatewayCall]:
    """Mutations that only put, in as few calls as the limit allows."""
    calls: list[GatewayCall] = []
    puts: list[Any] = []
    size = 0
    for mutation in mutations:
        size += sum(len(change.value) for change in mutation.changes if isinstance(change, Put))
        if puts and size > bytes_max:
            calls.append(_put_call(table, puts))
            puts, size = [], 0
        puts.append(_make_put(mutation.row, mutation.changes))
    return [*calls, _put_call(table, puts)]


def _put_call(table: bytes, puts: list[Any]) -> GatewayCall:
    if len(puts) == 1:
        return GatewayCall("put", {"table": table, "tput": puts[0]}, _read_nothing)
    return GatewayCall("putMultiple", {"table": table, "tputs": puts}, _read_nothing)


def delete_call(table: bytes, mutations: list[Mutate]) -> GatewayCall:
    """Mutations that only delete single versions, in one call."""
    gone = [_make_delete(each.row, each.changes, exact=True) for each in mutations]
    return GatewayCall("deleteMultiple", {"table": table, "tdeletes": gone}, _read_nothing)


def mutate_call(table: bytes, mutation: Mutate) -> GatewayCall:
    arguments = {"table": table, "trowMutations": _make_mutations(mutation.row, mutation.changes)}
    return GatewayCall("mutateRow", arguments, _read_nothing)


def check_and_mutate_call(table: bytes, mutation: CheckAndMutate) -> GatewayCall:
    """The gateway takes an empty value for "absent", and None for a mistake."""
    arguments = {
        "table": table,
        "row": mutation.row,
        "family": FAMILY,
        "qualifier": mutation.column,
        "compareOp": EQUAL,
        "value": mutation.expected or b"",
        "rowMutations": _make_mutations(mutation.row, mutation.changes),
    }
    return GatewayCall("checkAndMutate", arguments, bool)


def increment_call(table: bytes, increment: Increment) -> GatewayCall:
    types = load_types()
    column = types.TColumnIncrement(family=FAMILY, qualifier=increment.column, amount=increment.by)
    wanted = types.TIncrement(row=increment.row, columns=[column])
    return GatewayCall("increment", {"table": table, "tincrement": wanted}, _read_number)


def only_puts(mutation: Mutate) -> bool:
    return all(isinstance(change, Put) for change in mutation.changes)


def only_version_deletes(mutation: Mutate) -> bool:
    return all(isinstance(change, CellDelete) and change.exact for change in mutation.changes)


def _make_get(get: Get) -> Any:
    return load_types().TGet(
        row=get.row,
        columns=_make_columns(get.columns),
        timeRange=_make_time_range(get.as_of),
        maxVersions=VERSIONS_ALL if get.all_versions else 1,
    )


def _make_columns(columns: tuple[bytes, ...] | None) -> list[Any] | None:
    if columns is None:
        return None
    make = load_types().TColumn
    return [make(family=FAMILY, qualifier=column) for column in columns]


def _make_time_range(as_of: int | None) -> Any:
    return None if as_of is None else load_types().TTimeRange(minStamp=0, maxStamp=as_of + 1)


def _make_put(row: bytes, puts: tuple[Change, ...]) -> Any:
    types = load_types()
    make = types.TColumnValue
    values = [
        make(family=FAMILY, qualifier=put.column, value=put.value, timestamp=put.timestamp)
        for put in puts
        if isinstance(put, Put)
    ]
    return types.TPut(row=row, columnValues=values)


def _make_mutations(row: bytes, changes: tuple[Change, ...]) -> Any:
    types = load_types()
    found = []
    puts = tuple(change for change in changes if isinstance(change, Put))
    if puts:
        found.append(types.TMutation(put=_make_put(row, puts)))
    for exact in (True, False):
        if any(isinstance(each, CellDelete) and each.exact == exact for each in changes):
            gone = _make_delete(row, changes, exact=exact)
            found.append(types.TMutation(deleteSingle=gone))
    return types.TRowMutations(row=row, mutations=found)


def _make_delete(row: bytes, changes: tuple[Change, ...], *, exact: bool) -> Any:
    types = load_types()
    columns = [
        types.TColumn(family=FAMILY, qualifier=change.column, timestamp=change.timestamp)
        for change in changes
        if isinstance(change, CellDelete) and change.exact == exact
    ]
    form = DELETE_VERSION if exact else DELETE_UP_TO
    return types.TDelete(row=row, columns=columns, deleteType=form)


def _key_before(key: bytes) -> bytes:
    """A key below `key` with nothing, or next to nothing, between the two."""
    if not key:
        return b""
    if key[-1] == 0:
        return key[:-1]
    return key[:-1] + bytes((key[-1] - 1,)) + b"\xff" * 16


def read_cells(result: Any) -> Cells:
    return tuple(
        [
            _new_tuple(Cell, (each.qualifier, each.timestamp, each.value))
            for each in result.columnValues
        ]
    )


def _read_all_cells(results: list[Any]) -> list[Cells]:
    return [read_cells(result) for result in results]


def _read_rows(results: list[Any]) -> list[tuple[bytes, Cells]]:
    return [(result.row, read_cells(result)) for result in results]


def _read_number(result: Any) -> int:
    return int.from_bytes(result.columnValues[0].value, signed=True)


def _read_nothing(result: Any) -> None:
    return None
