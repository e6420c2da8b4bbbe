"""Single-row fast path: statements that touch at most one row by its key, or none at all.

Applications send mostly such statements, so their plan becomes one function, without a Run,
iterators or a list of writes:

    read     SELECT columns FROM t WHERE key = ?        (reader, run) -> rows
    write    UPDATE, DELETE by key; INSERT of one row    (transaction, run) -> rows changed
    commit   UPDATE by key, INSERT, of a row that is its own root  (commits, run) -> position

`run` here is a `FastPathRun`, which has only what expressions need. Everything that needs more
(sub-queries, the clock, conflicts, RETURNING) takes the general path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Table
from belvedere.catalog.relation_codecs import CompiledTable, compiled_table
from belvedere.codec.compile import compile_function
from belvedere.execution import row_writes
from belvedere.execution.python.context import CompileContext
from belvedere.execution.python.expressions.expression_source import ExpressionWriter
from belvedere.execution.python.expressions.generated_function import (
    GeneratedFunction,
    tuple_source,
)
from belvedere.execution.python.expressions.outer_references import walk_plan
from belvedere.execution.python.statements.dml import compile_rules, row_narrower, row_widener
from belvedere.execution.run import Services
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.txn.contracts import Reader, SingleRowCommits
from belvedere.txn.transaction import table_rows as stored_rows
from belvedere.txn.transaction.root_keys import root_finder
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row


class FastPathRun:
    __slots__ = ("parameters", "services")

    def __init__(self, parameters: Row, services: Services) -> None:
        self.parameters = parameters
        self.services = services


FastPathRead = Callable[[Reader, FastPathRun], list[Row] | None]
"""None: the general path has to run this execution."""
FastPathWrite = Callable[[Transaction, FastPathRun], int | None]
"""None: the general path has to run this execution, and nothing was written."""
FastPathCommit = Callable[[SingleRowCommits, FastPathRun], int | None]
FindKey = Callable[[Row], bytes | None]
NewRow = Callable[[FastPathRun, Row], Row]

_MORE = (
    e.ScalarSubquery,
    e.Exists,
    e.QuantifiedSubquery,
    e.ArraySubquery,
    e.OuterColumn,
)


_CALLS = (e.Call, e.Cast, e.AggregateCall, e.WindowCall)


def compile_fast_read(catalog: Catalog, node: n.Node) -> FastPathRead | None:
    """The fast path of a query, or None when the plan is not that simple."""
    if isinstance(node, n.Project) and node.input == n.EMPTY_ROW:
        return _compile_constant_row(catalog, node.expressions)
    columns: list[int] | None = None
    if isinstance(node, n.Project):
        if not all(isinstance(one, e.Column) for one in node.expressions):
            return None
        columns = [one.index for one in node.expressions if isinstance(one, e.Column)]
        node = node.input
    values = _key_values(node)
    if values is None:
        return None
    assert isinstance(node, n.Scan)
    if not isinstance(catalog.get(node.relation), Table):
        return None  # the state of a view has another layout
    slots = node.slots if columns is None else tuple(node.slots[i] for i in columns)
    table = compiled_table(catalog, node.relation)
    constants, nulls, key = _key_source(table, values, "run.parameters")
    constants["project"] = table.layout.projector(slots)
    body = [
        f"if {nulls}: return []",
        f"value = reader.get({key})",
        "return [] if value is None else [project(value)]",
    ]
    return compile_function("point", "reader, run", body, constants)


def _compile_constant_row(
    catalog: Catalog, expressions: tuple[e.Expression, ...]
) -> FastPathRead | None:
    """A SELECT without FROM."""
    if not all(map(is_simple, expressions)):
        return None
    bound = plain_context(catalog).tuple_of(expressions)
    return lambda reader, run: [bound(run)(())]  # type: ignore[arg-type]


def _key_values(node: n.Node) -> list[e.Expression] | None:
    """The parameters or constants of the complete primary key, if this scan reads one key."""
    if not isinstance(node, n.Scan) or node.residual is not None:
        return None
    access = node.access
    if access.index is not None or access.kind is not paths.AccessKind.KEY:
        return None
    values = [part.value for part in access.parts if isinstance(part, paths.EqualityPart)]
    if len(values) < len(access.parts):
        return None
    return values if all(map(is_known_value, values)) else None


def is_known_value(value: e.Expression) -> bool:
    """Whether the value is known before anything is read."""
    return isinstance(value, e.Parameter | e.Literal)


def _key_source(
    table: CompiledTable, values: list[e.Expression], parameters: str
) -> tuple[dict[str, Any], str, str]:
    """Constants, an expression that is true when a part is NULL, and the expression of the key."""
    constants: dict[str, Any] = {}
    texts = []
    for number, value in enumerate(values):
        if isinstance(value, e.Parameter):
            texts.append(f"{parameters}[{value.index - 1}]")
        else:
            assert isinstance(value, e.Literal)
            constants[f"c{number}"] = value.value
            texts.append(f"c{number}")
    nulls = " or ".join(f"{text} is None" for text in texts)
    if len(texts) == 1:
        constants["encode"] = table.key.encode_first
        return constants, nulls, f"encode({texts[0]})"
    constants["encode"] = table.key.encode
    return constants, nulls, f"encode({tuple_source(texts)})"


def is_simple(expression: e.Expression | n.Node) -> bool:
    """Whether it needs nothing but its row, parameters and sequences."""
    for item, _ in walk_plan(expression, 0):
        if isinstance(item, _MORE):
            return False
        if isinstance(item, _CALLS) and item.function.environment:
            return False
    return True


def plain_context(catalog: Catalog) -> CompileContext:
    """For expressions without plans inside."""

    def no_plan(node: n.Node) -> Any:
        raise AssertionError("a point has no plans inside")

    return CompileContext(catalog, no_plan)


# -- writes ----------------------------------------------------------------------------------------


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
    constants, nulls, key = _key_source(table, values, "parameters")
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
    values = _key_values(node.input)
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
    make = _compile_insert_row(catalog, node) if node.on_conflict is None else None
    if make is None:
        return None
    table, checked = compiled_table(catalog, node.relation), stored_rows.encode_checked_row
    key_of = table.key_of

    def commit_insert(single_row_commits: SingleRowCommits, run: FastPathRun) -> int | None:
        row = make(run)
        return single_row_commits.insert_row(
            key_of(row), catalog, checked(table, row), run.services.lock_wait_ms
        )

    return commit_insert


def _compile_update_commit(catalog: Catalog, node: n.Update) -> FastPathCommit | None:
    update = _analyze_update(catalog, node)
    if update is None or not update.keeps_keys:
        return None
    table, find, make, _ = update
    decode, checked = table.decode, stored_rows.encode_checked_row

    def commit_update(single_row_commits: SingleRowCommits, run: FastPathRun) -> int | None:
        key = find(run.parameters)
        if key is None:
            return None
        return single_row_commits.replace_row(
            key,
            catalog,
            lambda stored: checked(table, make(run, decode(stored))),
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
    values = _key_values(node.input)
    if values is None:
        return None
    assert isinstance(node.input, n.Scan)
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
