"""Fast path of queries over a few rows of one key range: a sum over a prefix, a filter, a sort.

    SELECT sum(amount) FROM order_lines WHERE order_id = ?
    SELECT * FROM customers WHERE name = ? ORDER BY first_name       by an index on name

The rows are read at once, without the tier choice and the statement's timer around them, and the
plan above them, compiled as any other, runs over the list. One range is consistent by itself; rows
that an index refers to are a second read, for which there has to be a transaction. When there turn
out to be more than ROWS_MAX rows, the general path runs the statement, where it can be cancelled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Table
from belvedere.catalog.relation_codecs import compiled_index, compiled_table
from belvedere.errors import Corruption
from belvedere.execution.memory_limit import Memory, RowLimitExceeded
from belvedere.execution.python.compile import compile_over_rows, compile_plan
from belvedere.execution.python.expressions.generated_function import GeneratedFunction
from belvedere.execution.python.expressions.outer_references import walk_plan
from belvedere.execution.python.operators.scans import index_slot_map
from belvedere.execution.python.statements.key_range import (
    has_one_range,
    is_one_range,
    write_range,
)
from belvedere.execution.python.statements.page_reads import projected_columns
from belvedere.execution.python.statements.point_statements import (
    FastPathRead,
    FastPathRun,
    is_simple,
    plain_context,
)
from belvedere.execution.run import Interrupt, Run
from belvedere.plan import nodes as n
from belvedere.plan.expressions import SequenceCall
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row

ROWS_MAX = 1024
INDEX_ROWS_MAX = 128
"""Of rows that an index refers to: each takes a get."""
Fetch = Callable[[Any, FastPathRun], list[bytes] | None]
"""The stored rows, or index entries, of a range; None: the general path has to run this."""
_NEVER = Interrupt()
"""Few rows are read at once: there is no moment in which to cancel."""
_OPERATORS = (n.Project, n.Filter, n.Aggregate, n.Sort, n.TopN, n.Limit, n.Distinct)
_STREAMING = (n.Project, n.Filter, n.Distinct)


def compile_few_rows_read(catalog: Catalog, node: n.Node) -> FastPathRead | None:
    """The fast path of a query, or None when it reads more than one range or needs more than its
    rows and parameters."""
    scan = node
    while isinstance(scan, _OPERATORS):
        scan = scan.input
    if not isinstance(scan, n.Scan) or not has_one_range(scan.access) or not is_simple(node):
        return None
    if any(isinstance(item, SequenceCall) for item, _ in walk_plan(node, 0)):
        return None
    table = isinstance(catalog.get(scan.relation), Table)
    if not table or _stops_early(node) or _may_have_long_bound(catalog, scan):
        return _compile_general_read(catalog, node) if is_one_range(scan) else None
    fetch = _compile_fetch(catalog, scan)
    columns, below = projected_columns(node)
    if below is scan and scan.residual is None:
        slots = scan.slots if columns is None else tuple([scan.slots[i] for i in columns])
        return _compile_projection(fetch, _find_projector(catalog, scan, slots))
    return _compile_operators(catalog, node, scan, fetch)


def _stops_early(node: n.Node) -> bool:
    """Whether a LIMIT ends the scan itself, so that not all of its range is read."""
    limited = False
    while not isinstance(node, n.Scan):
        limited = isinstance(node, n.Limit) or (limited and isinstance(node, _STREAMING))
        node = node.input  # type: ignore[union-attr]
    return limited


def _may_have_long_bound(catalog: Catalog, scan: n.Scan) -> bool:
    """Whether a bound of the range may be a value that keys keep by a digest, without order."""
    access = scan.access
    if access.index is None or access.range is None:
        return False
    return compiled_index(catalog, access.index).key.long is not None


def _find_projector(
    catalog: Catalog, scan: n.Scan, slots: tuple[int, ...]
) -> Callable[[bytes], Row]:
    access = scan.access
    if access.index is None or not access.covering:
        return compiled_table(catalog, scan.relation).layout.projector(slots)
    index = compiled_index(catalog, access.index)
    places = index_slot_map(catalog, index)
    return index.layout.projector(tuple([places[slot] for slot in slots]))


def _compile_fetch(catalog: Catalog, scan: n.Scan) -> Fetch:
    """A function that reads the rows of the range at once."""
    source, access = GeneratedFunction(), scan.access
    by_index = access.index is not None and not access.covering
    most = INDEX_ROWS_MAX if by_index else ROWS_MAX
    fetch_pairs = f"reader.fetch_range(start, end, {most + 1}, reverse={access.reverse})"
    body = [
        *write_range(catalog, plain_context(catalog), scan, source, "[]"),
        f"pairs = {fetch_pairs}",
        f"if len(pairs) > {most}: return None",
        "return [value for _, value in pairs]",
    ]
    long = None if access.index is None else compiled_index(catalog, access.index).key.long
    if long is not None and (access.ordered or access.reverse):
        longer = f"any({source.add_constant(long.may_be_long)}(entry) for _, entry in pairs)"
        body.insert(-1, f"if {longer}: return None")  # such entries have to be put in order
    if by_index:
        held = source.add_constant(Transaction)
        body[-1] = f"return {source.add_constant(_row_getter(catalog, scan))}(reader, pairs)"
        body.insert(0, f"if not isinstance(reader, {held}): return None")
    return source.build_function("fetch_rows", body, "reader, run")


def _row_getter(catalog: Catalog, scan: n.Scan) -> Callable[..., list[bytes]]:
    """A function that gets the rows that index entries refer to; each must exist."""
    assert scan.access.index is not None
    index = compiled_index(catalog, scan.access.index)
    primary: Callable[[bytes], Row] = index.layout.projector(index.primary_key)
    encode = compiled_table(catalog, scan.relation).key.encode

    def get_rows(transaction: Transaction, pairs: list[tuple[bytes, bytes]]) -> list[bytes]:
        rows: list[bytes] = []
        for _, entry in pairs:
            key = encode(primary(entry))
            found = transaction.get_row(key)
            if found is None:
                raise Corruption("index entry points to no row", key=key.hex())
            rows.append(found)
        return rows

    return get_rows


def _compile_projection(fetch: Fetch, project: Callable[[bytes], Row]) -> FastPathRead:
    def read_rows(reader: Any, run: FastPathRun) -> list[Row] | None:
        values = fetch(reader, run)
        return None if values is None else list(map(project, values))

    return read_rows


def _compile_operators(catalog: Catalog, node: n.Node, scan: n.Scan, fetch: Fetch) -> FastPathRead:
    """The plan above the scan, compiled as any other, over the rows that were read."""
    project = _find_projector(catalog, scan, scan.slots)
    rows = compile_over_rows(catalog, node, scan)

    def read_rows(reader: Any, run: FastPathRun) -> list[Row] | None:
        values = fetch(reader, run)
        if values is None:
            return None
        context = Run(reader, run.parameters, None, run.services, _NEVER, Memory())  # type: ignore[arg-type]
        context.deltas = {scan.relation: list(map(project, values))}
        return list(rows(context))

    return read_rows


def _compile_general_read(catalog: Catalog, node: n.Node) -> FastPathRead:
    rows = compile_plan(catalog, node)

    def read_few_rows(reader: object, run: FastPathRun) -> list[Row] | None:
        limits = Memory().with_row_limit(ROWS_MAX)
        context = Run(reader, run.parameters, None, run.services, Interrupt(), limits)  # type: ignore[arg-type]
        try:
            return list(rows(context))
        except RowLimitExceeded:
            return None

    return read_few_rows
