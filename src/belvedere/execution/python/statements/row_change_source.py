"""Generated source of the writes of one row: how its stored form changes, and the lock of its root.

An UPDATE that assigns numbers replaces their bytes in the stored row and decodes only the columns
that its expressions read; where a value is NULL or has no fixed place, the row is encoded again.
"""

from __future__ import annotations

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation_codecs import CompiledTable, compiled_table
from belvedere.execution.python.expressions.expression_source import ExpressionWriter
from belvedere.execution.python.expressions.generated_function import (
    GeneratedFunction,
    tuple_source,
)
from belvedere.plan import nodes as n
from belvedere.plan.transform import columns_of_all
from belvedere.txn.transaction.root_keys import find_root_in_key, root_finder
from belvedere.txn.transaction.table_rows import find_null_violation
from belvedere.types import Row


def write_root_of_key(catalog: Catalog, relation: int, source: GeneratedFunction) -> str | None:
    """Text of the root's key of a row with the key `key`; None: it takes more than the key."""
    if root_finder(catalog, relation) is None:
        return "key"
    place = find_root_in_key(catalog, relation)
    if place is None:
        return None
    return f"{source.add_constant(place.prefix)} + key[{place.start}:{place.end}]"


def has_plain_rows(catalog: Catalog, relation: int, rules: n.RowRules) -> bool:
    """Whether the rows of a table are its columns in order, and nothing but NOT NULL is checked."""
    table = compiled_table(catalog, relation)
    whole = len(table.live_columns) == len(table.table.columns)
    return whole and not rules.generated and not rules.checks


def write_new_row(
    table: CompiledTable, node: n.Update, source: GeneratedFunction, writer: ExpressionWriter
) -> list[str]:
    """Lines that set `new` to what an UPDATE makes of the row `stored`. `writer` writes columns by
    `column_name`."""
    slots = tuple([one.ordinal for one in node.assignments])
    names = [f"a{slot}" for slot in slots]
    read = sorted(columns_of_all([one.value for one in node.assignments]))
    lines = [
        f"{name} = {writer.write_value(one.value)}" for name, one in zip(names, node.assignments)
    ]
    if read:
        project = source.add_constant(table.layout.projector(tuple(read)), "project")
        lines.insert(0, f"{', '.join(map(column_name, read))}, = {project}(stored)")
    assigned = dict(zip(slots, names))
    values = [assigned.get(slot, f"row[{slot}]") for slot in range(len(table.table.columns))]
    encode = [
        f"row = {source.add_constant(table.decode, 'decode')}(stored)",
        f"row = {tuple_source(values)}",
        *write_encoded_row(table, source),
    ]
    patch = table.layout.patcher(slots)
    if patch is None:
        return [*lines, *encode]
    patched = f"new = {source.add_constant(patch, 'patch')}(stored, {', '.join(names)})"
    return [*lines, patched, "if new is None:", *[f"    {line}" for line in encode]]


def write_encoded_row(table: CompiledTable, source: GeneratedFunction) -> list[str]:
    """Lines that set `new` to the stored form of `row`."""

    def refuse_nulls(row: Row) -> None:
        raise find_null_violation(table, row)

    return [
        f"new = {source.add_constant(table.encode_required, 'encode')}(row)",
        f"if new is None: {source.add_constant(refuse_nulls, 'refuse')}(row)",
    ]


def column_name(slot: int) -> str:
    """The variable of a column of the row before the change."""
    return f"x{slot}"
