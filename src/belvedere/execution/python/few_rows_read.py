"""Fast path of queries over a few rows of one key or key range: a sum over a prefix, a filter, a
sort, and what a materialized view has under a key.

    SELECT sum(amount) FROM order_lines WHERE order_id = ?
    SELECT * FROM customers WHERE name = ? ORDER BY first_name       by an index on name
    SELECT * FROM orders WHERE customer = ? ORDER BY id DESC LIMIT 1  by an index on both
    SELECT orders, total FROM sales_by_city WHERE city = ?           from a view's state

The rows are read at once, without the tier choice and the statement's timer around them, and the
plan above them, compiled as any other, runs over the list. One range is consistent by itself;
several ones, and rows that an index refers to, are read in a transaction (`needs_snapshot`). When
there turn out to be more than ROWS_MAX rows, the general path runs the statement, where it can be
cancelled. A view that is a bag stores how often each row is there: these count as rows too.

Other plans with ranges and look-ups alone, of which few rows are expected, run as they are with a
limit of rows (`compile_bounded_read`): joins, unions, what an OR is split into.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Table, View
from belvedere.catalog.relation_codecs import (
    compiled_index,
    compiled_relation,
    compiled_table,
)
from belvedere.codec.compile import compile_function
from belvedere.errors import Corruption
from belvedere.execution.memory_limit import Memory, RowLimitExceeded
from belvedere.execution.python.compile import compile_over_rows, compile_plan
from belvedere.execution.python.expressions.expression_source import ExpressionWriter
from belvedere.execution.python.expressions.generated_function import GeneratedFunction
from belvedere.execution.python.operators.access import compile_keys, compile_ranges
from belvedere.execution.python.operators.scans import index_slot_map
from belvedere.execution.python.statements.key_range import (
    has_known_lists,
    has_one_range,
    is_known_value,
    is_one_range,
    write_range,
)
from belvedere.execution.python.statements.page_reads import projected_columns
from belvedere.execution.python.statements.point_statements import (
    FastPathRead,
    FastPathRun,
    calls_environment,
    is_simple,
    key_source,
    plain_context,
)
from belvedere.execution.run import Interrupt, Run
from belvedere.kv.batch import Pair
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.expressions import SequenceCall
from belvedere.plan.plan_items import SUBQUERIES, walk_plan_items
from belvedere.plan.row_repeat import find_repeat_column
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
    stored = _drop_repeats(node)
    scan = stored
    while isinstance(scan, _OPERATORS):
        scan = scan.input
    if not isinstance(scan, n.Scan) or not is_simple(stored):
        return None
    if any(isinstance(item, SequenceCall) for item in walk_plan_items(stored)):
        return None
    count = _find_first_rows_count(catalog, node, scan)
    if count is not None:
        return _compile_first_rows(catalog, node, scan, count)
    if _stops_early(stored) or _may_have_long_bound(catalog, scan):
        return (
            _compile_general_read(catalog, node) if node is stored and is_one_range(scan) else None
        )
    fetch = _compile_fetch(catalog, scan)
    return None if fetch is None else _compile_over_rows(catalog, node, scan, fetch)


def needs_snapshot(node: n.Node) -> bool:
    """Whether a plan reads a table more than once, so that it takes a transaction to read it."""
    scans = [item for item in walk_plan_items(node) if isinstance(item, n.Scan)]
    if len(scans) > 1:
        return True
    return any(
        (scan.access.index is not None and not scan.access.covering)
        or any(not isinstance(part, paths.EqualityPart) for part in scan.access.parts)
        for scan in scans
    )


def compile_bounded_read(catalog: Catalog, node: n.Node) -> FastPathRead | None:
    """The fast path of a plan which is expected to read few rows, in a transaction: of unions and
    joins by look-up of ranges, also inside of sub-queries. None: it has other operators, or needs
    more than its rows."""
    if not _is_bounded(node) or not all(map(_is_bounded_item, walk_plan_items(node))):
        return None
    read: FastPathRead | None = None

    def read_rows(reader: Any, run: FastPathRun) -> list[Row] | None:
        nonlocal read
        if not isinstance(reader, Transaction):
            return None
        if read is None:  # many a statement runs once
            read = _compile_general_read(catalog, node)
        return read(reader, run)

    return read_rows


def _is_bounded_item(item: Any) -> bool:
    if isinstance(item, SUBQUERIES):
        return _is_bounded(item.plan)
    return not isinstance(item, SequenceCall) and not calls_environment(item)


def _is_bounded(node: n.Node) -> bool:
    """Whether what a plan does follows from the rows that it reads, which are counted."""
    match node:
        case n.Values():
            return len(node.rows) <= 1
        case n.Scan():
            return node.access.kind is not paths.AccessKind.FULL
        case n.SetOperation():
            return node.all and _is_bounded(node.left) and _is_bounded(node.right)
        case n.Join():
            return node.lookup is not None and not node.lateral and _is_bounded(node.left)
        case _:
            return isinstance(node, _OPERATORS) and _is_bounded(node.input)


def _find_first_rows_count(catalog: Catalog, node: n.Node, scan: n.Scan) -> e.Expression | None:
    """How many rows are wanted, where the query is the first rows by an index, as they are."""
    _, limit = projected_columns(node)
    if not isinstance(limit, n.Limit) or limit.offset is not None or limit.with_ties:
        return None
    if limit.count is None or not is_known_value(limit.count) or limit.input is not scan:
        return None
    access, table = scan.access, isinstance(catalog.get(scan.relation), Table)
    if not table or access.index is None or scan.residual is not None or not has_one_range(access):
        return None
    return limit.count if compiled_index(catalog, access.index).key.long is None else None


def _compile_first_rows(
    catalog: Catalog, node: n.Node, scan: n.Scan, count: e.Expression
) -> FastPathRead | None:
    fetch = _compile_fetch(catalog, scan, count)
    columns, _ = projected_columns(node)
    slots = scan.slots if columns is None else tuple([scan.slots[i] for i in columns])
    return fetch and _compile_projection(fetch, _find_projector(catalog, scan, slots))


def _drop_repeats(node: n.Node) -> n.Node:
    """The plan over the rows of a bag as they are stored, each once."""
    if isinstance(node, n.Join) and find_repeat_column(node) is not None:
        return node.left
    return transform.rebuild_inputs(node, _drop_repeats) if isinstance(node, _OPERATORS) else node


def _compile_over_rows(catalog: Catalog, node: n.Node, scan: n.Scan, fetch: Fetch) -> FastPathRead:
    columns, below = projected_columns(node)
    repeats = find_repeat_column(below) if isinstance(below, n.Join) else None
    width = len(scan.fields)
    plain = scan.residual is None and (columns is None or max(columns, default=0) < width)
    if plain and below is scan:
        slots = scan.slots if columns is None else tuple([scan.slots[i] for i in columns])
        return _compile_projection(fetch, _find_projector(catalog, scan, slots))
    if plain and repeats is not None and columns is not None:
        slots = tuple([scan.slots[i] for i in (*columns, repeats)])
        return _compile_repetition(fetch, _find_projector(catalog, scan, slots))
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
    if access.index is not None:
        return (
            access.range is not None and compiled_index(catalog, access.index).key.long is not None
        )
    in_order = access.range is not None or access.ordered or access.reverse
    return in_order and compiled_relation(catalog, scan.relation).key.long is not None


def _find_projector(
    catalog: Catalog, scan: n.Scan, slots: tuple[int, ...]
) -> Callable[[bytes], Row]:
    access = scan.access
    if access.index is None or not access.covering:
        return compiled_relation(catalog, scan.relation).layout.projector(slots)
    index = compiled_index(catalog, access.index)
    places = index_slot_map(catalog, index)
    return index.layout.projector(tuple([places[slot] for slot in slots]))


def _compile_fetch(
    catalog: Catalog, scan: n.Scan, count: e.Expression | None = None
) -> Fetch | None:
    """A function that reads the rows of the key or range at once; with a count only so many. None:
    it is neither."""
    access = scan.access
    if access.full_key and access.range is None and access.index is None:
        return _compile_get(catalog, scan)
    if access.index is not None and isinstance(catalog.get(scan.relation), View):
        return None  # an index of a view is a view
    if not has_one_range(access):
        return _compile_several(catalog, scan) if count is None else None
    source = GeneratedFunction()
    by_index = access.index is not None and not access.covering
    most = INDEX_ROWS_MAX if by_index else ROWS_MAX
    wanted, limit = str(most + 1), []
    if count is not None:
        number = ExpressionWriter(source, plain_context(catalog).plan).write_value(count)
        limit = [
            f"wanted = {number}",
            f"if wanted is None or not 0 < wanted <= {most}: return None",
        ]
        wanted = "wanted"
    body = [
        *limit,
        *write_range(catalog, plain_context(catalog), scan, source, "[]"),
        f"pairs = reader.fetch_range(start, end, {wanted}, reverse={access.reverse})",
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


def _compile_several(catalog: Catalog, scan: n.Scan) -> Fetch | None:
    """A function that reads the rows of several keys or ranges: those of lists."""
    access = scan.access
    if not has_known_lists(access) or _may_have_long_bound(catalog, scan):
        return None
    context = plain_context(catalog)
    if access.full_key and access.index is None:
        find_keys = compile_keys(context, access, compiled_relation(catalog, scan.relation).key)

        def get_rows(reader: Any, run: Any) -> list[bytes] | None:
            keys = find_keys(run, ())
            if len(keys) > ROWS_MAX or not isinstance(reader, Transaction):
                return None
            return [value for value in reader.multi_get(keys) if value is not None]

        return get_rows
    by_index = access.index is not None and not access.covering
    most = INDEX_ROWS_MAX if by_index else ROWS_MAX
    relation = compiled_relation(catalog, scan.relation)
    codec = relation.key if access.index is None else compiled_index(catalog, access.index).key
    find_ranges = compile_ranges(context, access, codec)
    get_indexed = _row_getter(catalog, scan) if by_index else None

    def fetch_rows(reader: Any, run: Any) -> list[bytes] | None:
        if not isinstance(reader, Transaction):
            return None
        pairs: list[Pair] = []
        for start, end in find_ranges(run, ()):
            pairs += reader.fetch_range(start, end, most + 1 - len(pairs), reverse=access.reverse)
            if len(pairs) > most:
                return None
        return [value for _, value in pairs] if get_indexed is None else get_indexed(reader, pairs)

    return fetch_rows


def _compile_get(catalog: Catalog, scan: n.Scan) -> Fetch | None:
    """A function that reads the row of a complete key."""
    parts = scan.access.parts
    values = [part.value for part in parts if isinstance(part, paths.EqualityPart)]
    if len(values) < len(parts) or not all(map(is_known_value, values)):
        return None
    relation = compiled_relation(catalog, scan.relation)
    constants, nulls, key = key_source(relation.key, values, "run.parameters")
    body = [
        f"if {nulls}: return []",
        f"value = reader.get({key})",
        "return [] if value is None else [value]",
    ]
    made: Fetch = compile_function("fetch_row", "reader, run", body, constants)
    return made


def _row_getter(catalog: Catalog, scan: n.Scan) -> Callable[..., list[bytes]]:
    """A function that gets the rows that index entries refer to; each must exist."""
    assert scan.access.index is not None
    index = compiled_index(catalog, scan.access.index)
    primary: Callable[[bytes], Row] = index.layout.projector(index.primary_key)
    encode = compiled_table(catalog, scan.relation).key.encode

    def get_rows(transaction: Transaction, pairs: list[Pair]) -> list[bytes]:
        keys = [encode(primary(entry)) for _, entry in pairs]
        rows = transaction.multi_get(keys)
        if None in rows:
            key = keys[rows.index(None)]
            raise Corruption("index entry points to no row", key=key.hex())
        return cast("list[bytes]", rows)

    return get_rows


def _compile_projection(fetch: Fetch, project: Callable[[bytes], Row]) -> FastPathRead:
    def read_rows(reader: Any, run: FastPathRun) -> list[Row] | None:
        values = fetch(reader, run)
        return None if values is None else list(map(project, values))

    return read_rows


def _compile_repetition(fetch: Fetch, project: Callable[[bytes], Row]) -> FastPathRead:
    """The rows of a bag; the last value that `project` gives says how often a row is there."""

    def read_rows(reader: Any, run: FastPathRun) -> list[Row] | None:
        values = fetch(reader, run)
        if values is None:
            return None
        stored = list(map(project, values))
        if sum([row[-1] for row in stored]) > ROWS_MAX:
            return None
        return [row[:-1] for row in stored for _ in range(row[-1])]

    return read_rows


def _compile_operators(catalog: Catalog, node: n.Node, scan: n.Scan, fetch: Fetch) -> FastPathRead:
    """The plan above the scan, compiled as any other, over the rows that were read."""
    project = _find_projector(catalog, scan, scan.slots)
    rows, repeats = compile_over_rows(catalog, node, scan), _find_repeats(node)

    def read_rows(reader: Any, run: FastPathRun) -> list[Row] | None:
        values = fetch(reader, run)
        if values is None:
            return None
        stored = list(map(project, values))
        if repeats is not None and sum([row[repeats] for row in stored]) > ROWS_MAX:
            return None
        context = Run(reader, run.parameters, None, run.services, _NEVER, Memory())  # type: ignore[arg-type]
        context.deltas = {scan.relation: stored}
        return list(rows(context))

    return read_rows


def _find_repeats(node: n.Node) -> int | None:
    """The column of the stored rows that says how often each is there, if one does."""
    while isinstance(node, _OPERATORS):
        node = node.input
    return find_repeat_column(node) if isinstance(node, n.Join) else None


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
