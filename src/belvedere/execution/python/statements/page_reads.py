"""Fast path of page queries: the first rows of a key range, in key order.

    SELECT columns FROM t WHERE key > ? ORDER BY key LIMIT ?

or in descending order, or without a condition: the query behind a list in an application. Like the
single-row statements, such a plan becomes one function without a Run; it reads one scan, which is
consistent by itself, so it needs no snapshot. Pages longer than ROWS_MAX take the general path,
where they can be cancelled and their rows are counted.
"""

from __future__ import annotations

from collections.abc import Iterable

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation_codecs import compiled_relation
from belvedere.codec.scalars import is_long, is_shortened
from belvedere.execution.python.expressions.expression_source import ExpressionWriter
from belvedere.execution.python.expressions.generated_function import GeneratedFunction
from belvedere.execution.python.operators.access import compile_ranges
from belvedere.execution.python.statements.key_range import (
    is_known_value,
    is_one_range,
    write_range,
)
from belvedere.execution.python.statements.point_statements import (
    FastPathRead,
    FastPathRun,
    plain_context,
)
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.txn.contracts import Reader
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row

ROWS_MAX = 1024
LITERAL_BYTES = 64


def compile_page_read(catalog: Catalog, node: n.Node) -> FastPathRead | None:
    """The fast path of a page query, or None when the plan is no such query."""
    outer, node = projected_columns(node)
    if not isinstance(node, n.Limit) or node.offset is not None or node.with_ties:
        return None
    if node.count is None or not is_known_value(node.count):
        return None
    inner, scan = projected_columns(node.input)
    if not isinstance(scan, n.Scan) or not (is_one_range(scan) or _is_full_scan(scan)):
        return None
    if scan.residual is not None or scan.access.index is not None or _has_long_literal(scan):
        return None
    slots = scan.slots
    for columns in (inner, outer):
        slots = slots if columns is None else tuple([slots[index] for index in columns])
    return _compile_range_read(catalog, scan, slots, node.count)


def projected_columns(node: n.Node) -> tuple[list[int] | None, n.Node]:
    """The columns a projection selects of its input, in order (None: all as they are), and the
    input."""
    if isinstance(node, n.Project):
        columns = [one.index for one in node.expressions if isinstance(one, e.Column)]
        if len(columns) == len(node.expressions):
            return columns, node.input
    return None, node


def _is_full_scan(scan: n.Scan) -> bool:
    return not scan.access.parts and scan.access.range is None


def _has_long_literal(scan: n.Scan) -> bool:
    """Whether a bound in the text is so long that keys may keep it by a digest."""
    limits = () if scan.access.range is None else (scan.access.range.low, scan.access.range.high)
    values = [limit.value for limit in limits if limit is not None]
    return any(isinstance(one, e.Literal) and is_long(one.value, LITERAL_BYTES) for one in values)


def _compile_range_read(
    catalog: Catalog, scan: n.Scan, slots: tuple[int, ...], count: e.Expression
) -> FastPathRead:
    if scan.access.parts and scan.access.range is None:
        generated = _generate_prefix_read(catalog, scan, slots, count)
        if generated is not None:
            return generated
    context, compiled = plain_context(catalog), compiled_relation(catalog, scan.relation)
    wanted_of, project = context.value_of(count), compiled.layout.projector(slots)
    ranges, reverse = compile_ranges(context, scan.access, compiled.key), scan.access.reverse
    long = compiled.key.long

    def read_page(reader: Reader, run: FastPathRun) -> list[Row] | None:
        wanted = wanted_of(run)(())  # type: ignore[arg-type]
        if wanted is None or not 0 < wanted <= ROWS_MAX:
            return None
        if long is not None and any(is_shortened(value, long.cut) for value in run.parameters):
            return None
        rows: list[Row] = []
        for start, end in ranges(run, ()):  # type: ignore[arg-type]
            for values in _scan_batches(reader, start, end, reverse, wanted):
                if long is not None and any(map(long.may_be_long, values)):
                    return None
                rows += map(project, values)
                if len(rows) >= wanted:
                    return rows[:wanted]
        return rows

    return read_page


def _generate_prefix_read(
    catalog: Catalog, scan: n.Scan, slots: tuple[int, ...], count: e.Expression
) -> FastPathRead | None:
    """One function for the first rows under a prefix of the key; None where keys keep long values
    by a digest."""
    compiled, context = compiled_relation(catalog, scan.relation), plain_context(catalog)
    if compiled.key.long is not None:
        return None
    source = GeneratedFunction()
    project = source.add_constant(compiled.layout.projector(slots), "project")
    batches = source.add_constant(_scan_batches, "batches")
    body = [
        f"wanted = {ExpressionWriter(source, context.plan).write_value(count)}",
        f"if wanted is None or not 0 < wanted <= {ROWS_MAX}: return None",
        *write_range(catalog, context, scan, source, "[]"),
        "rows = []",
        f"for values in {batches}(reader, start, end, {scan.access.reverse}, wanted):",
        f"    rows += map({project}, values)",
        "    if len(rows) >= wanted: return rows[:wanted]",
        "return rows",
    ]
    return source.build_function("read_page", body, "reader, run")


def _scan_batches(
    reader: Reader, start: bytes, end: bytes, reverse: bool, wanted: int
) -> Iterable[list[bytes]]:
    if isinstance(reader, Transaction):  # which puts its own rows in
        found = reader.fetch_range(start, end, wanted, reverse=reverse)
        return ([value for _, value in found],)
    if not reverse:
        return reader.scan_values(start, end, batch_rows=wanted)
    pairs = reader.scan(start, end, reverse=reverse, limit=wanted)
    return ([value for _, value in batch] for batch in pairs)
