"""Writer of staged rows to a table, in one transaction: append, upsert or delete.

Rows take the plan of an ordinary INSERT or DELETE statement, so defaults, constraints, indexes and
views need no special case. When bad rows are to be rejected rather than to stop the job, a chunk
that fails is retried row by row, and each row that fails is recorded with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import CatalogColumn, Table
from belvedere.errors import Error, InvalidInput, Unsupported
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.run import CteRows, Rows
from belvedere.plan import nodes as n
from belvedere.plan.transform import rebuild_inputs
from belvedere.session.context.result import Result
from belvedere.session.session import Session
from belvedere.session.statement import bind
from belvedere.session.statement.parameters import (
    make_assignment_converter,
    make_row_reporting_converter,
)
from belvedere.sql.statements import DataPlan
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row
from belvedere.values.quoting import quote_identifier

CORRUPT = "_corrupt_record"
"""A column that Spark adds for records it cannot parse: the text of the record, else NULL."""
OPERATIONS = ("append", "upsert", "delete")
CHUNK_ROWS = 5_000
REJECTS_MAX = 100_000
_STAGED = -2
"""The CTE number under which a chunk replaces the VALUES of the INSERT."""


@dataclass(frozen=True, slots=True)
class LoadTarget:
    """The table that rows are written to, and the columns of the rows, in order."""

    table: Table
    schema: str
    columns: tuple[CatalogColumn, ...]
    operation: str

    @property
    def qualified_name(self) -> str:
        return quote_identifier(self.schema, self.table.name)

    @property
    def key_positions(self) -> tuple[int, ...]:
        """The positions of the primary key in a row."""
        places = {column.slot: i for i, column in enumerate(self.columns)}
        return tuple(places[slot] for slot in self.table.primary_key)


@dataclass(slots=True)
class LoadOutcome:
    """Counts of a write. `rejected` has (row as sent, SQLSTATE, reason)."""

    written: int = 0
    rejected: list[tuple[Row, str, str]] = field(default_factory=list)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add_reject(self, row: Row, error: Error) -> None:
        if len(self.rejected) >= REJECTS_MAX:
            raise InvalidInput(
                "too many rows are rejected", sqlstate="54000", limit=REJECTS_MAX
            ) from error
        self.rejected.append((row, error.sqlstate, str(error).replace("\n", "; ")))
        self.reasons[error.sqlstate, error.message] += 1


def resolve_target(
    catalog: Catalog, schema: str, name: str, columns: Sequence[str], operation: str
) -> LoadTarget:
    """Check the columns and the operation against the table; an error names every mismatch."""
    if operation not in OPERATIONS:
        raise InvalidInput(
            "unknown operation", sqlstate="22023", hint=f"one of {', '.join(OPERATIONS)}"
        )
    table = catalog.require_relation(Table, name, schema)
    live = {c.name: c for c in table.columns if not c.dropped and not c.hidden}
    key = [table.columns[slot] for slot in table.primary_key]
    unknown = [one for one in columns if one not in live]
    needed = _required_columns(live.values(), key, operation)
    missing = [one for one in needed if one not in columns]
    if unknown or missing or len(set(columns)) != len(columns):
        raise InvalidInput(
            "columns do not match the table",
            sqlstate="42804",
            detail=f"given are {', '.join(columns)}; the table has {', '.join(live)}",
            unknown=", ".join(unknown) or "none",
            missing=", ".join(missing) or "none",
        )
    if operation != "append" and any(column.hidden for column in key):
        raise Unsupported(f"{operation} into a table without a primary key")
    return LoadTarget(table, schema, tuple(live[one] for one in columns), operation)


def _required_columns(
    columns: Iterable[CatalogColumn], key: list[CatalogColumn], operation: str
) -> list[str]:
    """Columns that must be sent: the key, and for an INSERT those NOT NULL without a default."""
    names = [] if operation == "append" else [column.name for column in key]
    if operation == "delete":
        return names
    bare = [c for c in columns if c.not_null and c.default is None and c.sequence is None]
    return names + [c.name for c in bare if c.generated is None and c.name not in names]


class StagedRowWriter:
    """Writes rows within the transaction that the session has open."""

    def __init__(
        self, session: Session, target: LoadTarget, *, reject: bool, corrupt: int | None = None
    ) -> None:
        """`corrupt`: the position in a row of the text of a record that could not be parsed."""
        self._session = session
        self._target = target
        self._reject = reject
        self._corrupt = corrupt
        convert = make_assignment_converter([column.type for column in target.columns])
        self._convert = convert if reject else make_row_reporting_converter(convert)
        self._keys: set[Row] = set()
        self.outcome = LoadOutcome()
        delete = target.operation == "delete"
        self._apply: Callable[[list[Row]], int] = (
            self._delete_chunk if delete else self._insert_chunk
        )
        self._text = _delete_text(target) if delete else _insert_text(target)
        self._compiled: Rows | None = None

    def write_rows(self, given: Iterator[Row]) -> None:
        """Write all rows, in chunks."""
        chunk: list[Row] = []
        for row in given:
            chunk.append(row)
            if len(chunk) == CHUNK_ROWS:
                self._write_chunk(chunk)
                chunk = []
        if chunk:
            self._write_chunk(chunk)

    def _write_chunk(self, chunk: list[Row]) -> None:
        if not self._reject:
            self.outcome.written += self._apply([self._convert_row(row) for row in chunk])
            return
        try:
            self._write_in_savepoint(chunk)
        except InvalidInput:
            for row in chunk:
                try:
                    self._write_in_savepoint([row])
                except InvalidInput as error:
                    self.outcome.add_reject(row, error)

    def _write_in_savepoint(self, chunk: list[Row]) -> None:
        state, known = self._session.transactions, set(self._keys)
        state.create_savepoint("staged")
        try:
            self.outcome.written += self._apply([self._convert_row(row) for row in chunk])
        except InvalidInput:
            state.rollback_to_savepoint("staged")
            self._keys = known
            raise
        finally:
            state.release_savepoint("staged")

    def _convert_row(self, row: Row) -> Row:
        if self._corrupt is not None:
            text = row[self._corrupt]
            if text is not None:
                raise InvalidInput("record cannot be parsed", sqlstate="22P04", record=text[:200])
            row = (*row[: self._corrupt], *row[self._corrupt + 1 :])
        converted = self._convert(row)
        if self._target.operation == "upsert":
            key = tuple([converted[place] for place in self._target.key_positions])
            if key in self._keys:
                raise InvalidInput("a row is given twice", sqlstate="21000", key=key)
            self._keys.add(key)
        return converted

    def _insert_chunk(self, chunk: list[Row]) -> int:
        def run_insert(transaction: Transaction) -> Result:
            if self._compiled is None:
                plan = _replace_values(_bind_text(self._session, self._text).plan)
                self._compiled = compile_plan(transaction.catalog, plan)
            run = self._session.make_run_context(transaction, ()).with_ctes(
                {_STAGED: CteRows(chunk)}
            )
            for _ in self._compiled(run):
                pass
            for write in run.changes:
                write.apply(transaction)
            return Result("INSERT", affected=len(chunk))

        return self._session.run_in_transaction(True, run_insert).affected

    def _delete_chunk(self, chunk: list[Row]) -> int:
        places = self._target.key_positions
        return sum(
            self._session.execute(self._text, [row[place] for place in places]).affected
            for row in chunk
        )


def _bind_text(session: Session, text: str) -> DataPlan:
    (parsed,) = bind.parse_statements(text)
    statement, _ = bind.bind_inferring_parameter_types(session, parsed, ())
    assert isinstance(statement, DataPlan)
    return statement


def _replace_values(node: n.Node) -> n.Node:
    if isinstance(node, n.Values) and node.rows and node.rows != ((),):
        return n.CteScan(_STAGED, "staged", node.fields)
    return rebuild_inputs(node, _replace_values)


def _insert_text(target: LoadTarget) -> str:
    names = ", ".join(quote_identifier(column.name) for column in target.columns)
    values = ", ".join(f"CAST(NULL AS {column.type})" for column in target.columns)
    text = (
        f"INSERT INTO {target.qualified_name} ({names}) SELECT * FROM (VALUES ({values})) AS staged"
    )
    if target.operation == "append":
        return text
    key = [target.table.columns[slot] for slot in target.table.primary_key]
    others = [column for column in target.columns if column not in key]
    action = ", ".join(
        f"{quote_identifier(c.name)} = excluded.{quote_identifier(c.name)}" for c in others
    )
    conflict = f"ON CONFLICT ({', '.join(quote_identifier(c.name) for c in key)})"
    return f"{text} {conflict} " + (f"DO UPDATE SET {action}" if others else "DO NOTHING")


def _delete_text(target: LoadTarget) -> str:
    key = [target.columns[place] for place in target.key_positions]
    return f"DELETE FROM {target.qualified_name} WHERE " + " AND ".join(
        f"{quote_identifier(c.name)} = ?" for c in key
    )


def batches_to_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        yield from zip(*columns)
