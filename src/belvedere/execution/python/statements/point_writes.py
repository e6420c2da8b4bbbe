"""Single-row fast path of writes: an UPDATE or DELETE by key, an INSERT of one row.

    write    UPDATE, DELETE by key; INSERT of one row    (transaction, run) -> rows changed
    commit   UPDATE by key, INSERT, of a row that is its own root  (commits, run) -> position

Where a row is its columns in order and its key names its root, which is nearly always, the
statement is one generated function: key, stored row, new row, lock and write. Generated columns,
CHECKs, dropped columns and roots that have to be looked up go through `txn`'s functions of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation_codecs import CompiledTable, compiled_table
from belvedere.codec.compile import compile_function, indent
from belvedere.execution import row_writes
from belvedere.execution.python.context import CompileContext
from belvedere.execution.python.expressions.expression_source import ExpressionWriter
from belvedere.execution.python.expressions.generated_function import (
    GeneratedFunction,
    tuple_source,
)
from belvedere.execution.python.statements.dml import compile_rules, row_narrower, row_widener
from belvedere.execution.python.statements.point_statements import (
    FastPathCommit,
    FastPathRun,
    FastPathWrite,
    is_simple,
    key_source,
    key_values,
    plain_context,
)
from belvedere.execution.python.statements.row_change_source import (
    column_name,
    has_plain_rows,
    write_encoded_row,
    write_new_row,
    write_root_of_key,
)
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.plan_items import walk_plan_items
from belvedere.txn.contracts import SingleRowCommits
from belvedere.txn.transaction import table_rows as stored_rows
from belvedere.txn.transaction.root_keys import root_finder
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row

FindKey = Callable[[Row], bytes | None]
NewRow = Callable[[FastPathRun, Row], Row]
ChangeRow = Callable[[FastPathRun], Callable[[bytes], bytes]]
"""For a run: a function from the stored row before an update to the one after it."""
MakePair = Callable[[FastPathRun], tuple[bytes, bytes]]
"""The key and the stored form of a row to be inserted."""
INLINE_PARTS_MAX = 25
"""Expressions with more parts are functions of their own, over complete rows."""


def compile_fast_write(catalog: Catalog, node: n.Node) -> FastPathWrite | None:
    match node:
        case n.Update() if not node.returning:
            return _compile_update(catalog, node)
        case n.Delete() if not node.returning:
            return _compile_delete(catalog, node)
        case n.Insert() if not node.returning and node.on_conflict is None:
            return _compile_insert(catalog, node)
        case _:
            return None


def _find_key(catalog: Catalog, node: n.Scan, values: list[e.Expression]) -> FindKey:
    table = compiled_table(catalog, node.relation)
    constants, nulls, key = key_source(table.key, values, "parameters")
    body = [f"return None if {nulls} else {key}"]
    return compile_function("find", "parameters", body, constants)


def rules_are_simple(rules: n.RowRules) -> bool:
    expressions = [one.value for one in rules.generated] + [one.condition for one in rules.checks]
    return all(map(is_simple, expressions))


class _KeyedUpdate(NamedTuple):
    """An update of one row by its key."""

    table: CompiledTable
    find: FindKey
    make: NewRow
    keeps_keys: bool  # no assigned column belongs to a key


def _analyze_update(catalog: Catalog, node: n.Update) -> _KeyedUpdate | None:
    values = key_values(node.input)
    if values is None or not rules_are_simple(node.rules):
        return None
    if not all(is_simple(assignment.value) for assignment in node.assignments):
        return None
    assert isinstance(node.input, n.Scan)
    context, table = plain_context(catalog), compiled_table(catalog, node.relation)
    if not reads_every_column(node.input, table):
        return None
    find = _find_key(catalog, node.input, values)
    alone = keeps_keys(catalog, table, node)
    return _KeyedUpdate(table, find, compile_new_row(context, table, node), alone)


def reads_every_column(scan: n.Scan, table: CompiledTable) -> bool:
    """Whether its rows have all columns of the table, in their order."""
    return scan.slots == tuple(column.slot for column in table.live_columns)


def _compile_update(catalog: Catalog, node: n.Update) -> FastPathWrite | None:
    update = _analyze_update(catalog, node)
    if update is None:
        return None
    table, find, make, alone = update
    if not alone:
        return _compile_key_update(table, find, make)
    generated = _generate_update(catalog, node)
    if generated is not None:
        return generated
    decode, replace = table.decode, stored_rows.replace_row

    def update_row(transaction: Transaction, run: FastPathRun) -> int:
        key = find(run.parameters)
        stored = None if key is None else transaction.get(key)
        if stored is None:
            return 0
        old = decode(stored)
        replace(transaction, table, key, old, make(run, old), stored)  # type: ignore[arg-type]
        return 1

    return update_row


def compile_fast_commit(catalog: Catalog, node: n.Node) -> FastPathCommit | None:
    """An update or insert committed directly, without a transaction, where that is enough."""
    if not isinstance(node, n.Update | n.Insert) or node.returning:
        return None
    table = compiled_table(catalog, node.relation)
    if table.table.foreign_keys or root_finder(catalog, node.relation) is not None:
        return None
    if isinstance(node, n.Insert):
        return _compile_insert_commit(catalog, node)
    return _compile_update_commit(catalog, node)


def _compile_insert_commit(catalog: Catalog, node: n.Insert) -> FastPathCommit | None:
    if node.on_conflict is not None:
        return None
    make_pair = _generate_insert_pair(catalog, node) or _compile_insert_pair(catalog, node)
    if make_pair is None:
        return None

    def commit_insert(single_row_commits: SingleRowCommits, run: FastPathRun) -> int | None:
        key, value = make_pair(run)
        return single_row_commits.insert_row(key, catalog, value, run.services.lock_wait_ms)

    return commit_insert


def _compile_insert_pair(catalog: Catalog, node: n.Insert) -> MakePair | None:
    make, table = _compile_insert_row(catalog, node), compiled_table(catalog, node.relation)
    if make is None:
        return None
    key_of, checked = table.key_of, stored_rows.encode_checked_row

    def make_pair(run: FastPathRun) -> tuple[bytes, bytes]:
        row = make(run)
        return key_of(row), checked(table, row)

    return make_pair


def _compile_update_commit(catalog: Catalog, node: n.Update) -> FastPathCommit | None:
    update = _analyze_update(catalog, node)
    if update is None or not update.keeps_keys:
        return None
    table, find, make, _ = update
    decode, checked = table.decode, stored_rows.encode_checked_row
    change = _generate_change(catalog, node) or (
        lambda run: lambda stored: checked(table, make(run, decode(stored)))
    )

    def commit_update(single_row_commits: SingleRowCommits, run: FastPathRun) -> int | None:
        key = find(run.parameters)
        if key is None:
            return None
        return single_row_commits.replace_row(
            key,
            catalog,
            change(run),
            run.services.lock_wait_ms,
        )

    return commit_update


def _compile_key_update(table: CompiledTable, find: FindKey, make: NewRow) -> FastPathWrite:
    """An update that may change the key, or columns that foreign keys refer to."""

    def update_row(transaction: Transaction, run: FastPathRun) -> int:
        key = find(run.parameters)
        stored = None if key is None else transaction.get(key)
        if stored is None:
            return 0
        old = table.decode(stored)
        row_writes.update(transaction, table, old, make(run, old), stored)
        return 1

    return update_row


def keeps_keys(catalog: Catalog, table: CompiledTable, node: n.Update) -> bool:
    """Whether no assigned column is in the primary key or in a key that other tables refer to."""
    changed = {table.live_columns[assignment.ordinal].slot for assignment in node.assignments}
    changed |= {table.live_columns[one.ordinal].slot for one in node.rules.generated}
    pointed = {
        s
        for _, key in row_writes.referring_keys(catalog, node.relation)
        for s in key.parent_columns
    }
    return not changed & (pointed | set(table.table.primary_key))


def compile_new_row(context: CompileContext, table: CompiledTable, node: n.Update) -> NewRow:
    """A function from the stored row before the update to the stored row after."""
    source = GeneratedFunction()
    writer = ExpressionWriter(source, context.plan)
    assigned = {one.ordinal: writer.write_value(one.value) for one in node.assignments}
    parts, at = [], 0
    for ordinal, text in sorted(assigned.items()):
        parts += [f"*row[{at}:{ordinal}]", text] if at < ordinal else [text]
        at = ordinal + 1
    if at < len(table.live_columns):
        parts.append(f"*row[{at}:]")
    made = source.build_row_function(tuple_source(parts))
    finish, narrow, widen = (
        compile_rules(context, table, node.rules),
        row_narrower(table),
        row_widener(table),
    )
    if node.rules.generated or node.rules.checks:
        return lambda run, row: widen(finish(run)(list(made(run)(narrow(row)))))  # type: ignore[arg-type]
    if len(table.live_columns) < len(table.table.columns):
        return lambda run, row: widen(made(run)(narrow(row)))
    return lambda run, row: made(run)(row)


def _compile_delete(catalog: Catalog, node: n.Delete) -> FastPathWrite | None:
    values = key_values(node.input)
    if values is None:
        return None
    assert isinstance(node.input, n.Scan)
    generated = _generate_delete(catalog, node)
    if generated is not None:
        return generated
    find, table = _find_key(catalog, node.input, values), compiled_table(catalog, node.relation)

    def delete_row(transaction: Transaction, run: FastPathRun) -> int:
        key = find(run.parameters)
        stored = None if key is None else transaction.get(key)
        if stored is None:
            return 0
        row_writes.delete(transaction, table, table.decode(stored), stored)
        return 1

    return delete_row


def _compile_insert(catalog: Catalog, node: n.Insert) -> FastPathWrite | None:
    generated = _generate_insert(catalog, node)
    if generated is not None:
        return generated
    make, table = _compile_insert_row(catalog, node), compiled_table(catalog, node.relation)
    if make is None:
        return None

    def insert_row(transaction: Transaction, run: FastPathRun) -> int:
        row_writes.insert(transaction, table, make(run))
        return 1

    return insert_row


def _compile_insert_row(catalog: Catalog, node: n.Insert) -> Callable[[FastPathRun], Row] | None:
    """A function that returns the row of a single-row insert, None for other inserts."""
    expressions = _single_row_values(node.input)
    if expressions is None or not rules_are_simple(node.rules):
        return None
    if not all(map(is_simple, expressions)):
        return None
    context, table = plain_context(catalog), compiled_table(catalog, node.relation)
    made, finish, widen = (
        context.tuple_of(expressions),
        compile_rules(context, table, node.rules),
        row_widener(table),
    )
    width, relation = len(table.live_columns), node.relation
    hidden = [i for i, column in enumerate(table.live_columns) if column.hidden]
    whole = node.ordinals == tuple(range(width))

    def make_row(run: FastPathRun) -> Row:
        given = made(run)(())  # type: ignore[arg-type]
        if whole:
            values = list(given)
        else:
            values = [None] * width
            for ordinal, value in zip(node.ordinals, given):
                values[ordinal] = value
            for ordinal in hidden:
                values[ordinal] = run.services.row_id(relation)
        return widen(finish(run)(values))  # type: ignore[arg-type]

    return make_row


def _single_row_values(node: n.Node) -> tuple[e.Expression, ...] | None:
    """The expressions of an input that is one row of constants and parameters."""
    match node:
        case n.Values() if len(node.rows) == 1 and node.fields:
            return node.rows[0]
        case n.Project() if node.input == n.EMPTY_ROW:
            return node.expressions
        case n.Project() if isinstance(node.input, n.Values) and len(node.input.rows) == 1:
            row = node.input.rows[0]
            if all(isinstance(one, e.Column | e.Literal) for one in node.expressions):
                return tuple(
                    row[one.index] if isinstance(one, e.Column) else one for one in node.expressions
                )
            return None
        case _:
            return None


# -- generated -------------------------------------------------------------------------------------


def _is_short(expressions: Iterable[e.Expression]) -> bool:
    return all(sum(1 for _ in walk_plan_items(one)) <= INLINE_PARTS_MAX for one in expressions)


def can_generate_update(catalog: Catalog, node: n.Update) -> bool:
    """Whether the update of a row that keeps its keys can be written out (`write_new_row`)."""
    return has_plain_rows(catalog, node.relation, node.rules) and _is_short(
        [one.value for one in node.assignments]
    )


def _write_stored_row(source: GeneratedFunction, table: CompiledTable, scan: n.Node) -> list[str]:
    """Lines that set `key` and `stored` to the row that a scan by key finds, or return 0."""
    values = key_values(scan)
    assert values is not None
    constants, nulls, key = key_source(table.key, values, source.use_parameters())
    source.constants.update(constants)
    return [
        f"if {nulls}: return 0",
        f"key = {key}",
        "stored = transaction.get_row(key)",
        "if stored is None: return 0",
    ]


def _generate_update(catalog: Catalog, node: n.Update) -> FastPathWrite | None:
    source, table = GeneratedFunction(), compiled_table(catalog, node.relation)
    root = write_root_of_key(catalog, node.relation, source)
    if root is None or not can_generate_update(catalog, node):
        return None
    writer = ExpressionWriter(source, plain_context(catalog).plan, column_name)
    body = [
        *_write_stored_row(source, table, node.input),
        *write_new_row(table, node, source, writer),
        f"transaction.write_under({root}, key, stored, new)",
        "return 1",
    ]
    return source.build_function("update_row", body, "transaction, run")


def _generate_change(catalog: Catalog, node: n.Update) -> ChangeRow | None:
    if not can_generate_update(catalog, node):
        return None
    source, table = GeneratedFunction(), compiled_table(catalog, node.relation)
    writer = ExpressionWriter(source, plain_context(catalog).plan, column_name)
    lines = [*write_new_row(table, node, source, writer), "return new"]
    body = ["def change_row(stored):", *indent(lines), "return change_row"]
    return source.build_function("bind", body)


def _generate_delete(catalog: Catalog, node: n.Delete) -> FastPathWrite | None:
    source, table = GeneratedFunction(), compiled_table(catalog, node.relation)
    root = write_root_of_key(catalog, node.relation, source)
    if root is None or row_writes.referring_keys(catalog, node.relation):
        return None
    body = [
        *_write_stored_row(source, table, node.input),
        f"transaction.write_under({root}, key, stored, None)",
        "return 1",
    ]
    return source.build_function("delete_row", body, "transaction, run")


def write_inserted_row(
    catalog: Catalog, node: n.Insert, source: GeneratedFunction
) -> list[str] | None:
    """Lines that set `row`, its stored form `new` and its `key`; None for other inserts than those
    of one row, all columns of which are given or NULL."""
    expressions = _single_row_values(node.input)
    table = compiled_table(catalog, node.relation)
    if expressions is None or not has_plain_rows(catalog, node.relation, node.rules):
        return None
    if not all(map(is_simple, expressions)) or not _is_short(expressions):
        return None
    hidden = [i for i, column in enumerate(table.live_columns) if column.hidden]
    if hidden and not set(hidden) <= set(node.ordinals):
        return None
    writer = ExpressionWriter(source, plain_context(catalog).plan)
    given = {ordinal: f"a{ordinal}" for ordinal in node.ordinals}
    values = [given.get(slot, "None") for slot in range(len(table.table.columns))]
    key = [values[slot] for slot in table.table.primary_key]
    encode = table.key.encode_first if len(key) == 1 else table.key.encode
    encoded = key[0] if len(key) == 1 else tuple_source(key)
    return [
        *[f"a{at} = {writer.write_value(one)}" for at, one in zip(node.ordinals, expressions)],
        f"row = {tuple_source(values)}",
        *write_encoded_row(table, source),
        f"key = {source.add_constant(encode, 'key')}({encoded})",
    ]


def _generate_insert(catalog: Catalog, node: n.Insert) -> FastPathWrite | None:
    source, table = GeneratedFunction(), compiled_table(catalog, node.relation)
    root = write_root_of_key(catalog, node.relation, source)
    lines = None if root is None else write_inserted_row(catalog, node, source)
    if lines is None:
        return None

    def refuse_key(transaction: Transaction, key: bytes, row: Row) -> None:
        raise stored_rows.used_key_error(transaction, table, key, row)

    body = [
        *lines,
        f"transaction.lock_root({root})",
        "if transaction.get_row(key) is not None:",
        f"    {source.add_constant(refuse_key, 'refuse')}(transaction, key, row)",
        "transaction.write(key, None, new)",
        "return 1",
    ]
    return source.build_function("insert_row", body, "transaction, run")


def _generate_insert_pair(catalog: Catalog, node: n.Insert) -> MakePair | None:
    """A function that returns the key and the stored form of the row of an insert."""
    source = GeneratedFunction()
    lines = write_inserted_row(catalog, node, source)
    return None if lines is None else source.build_function("make", [*lines, "return key, new"])
