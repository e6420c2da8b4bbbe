"""Bound statements: plans of data statements, DDL (`sql.definitions`), utility statements."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import msgspec

from belvedere.plan.expressions import Expression
from belvedere.plan.fields import ColumnOrigins, Fields
from belvedere.plan.nodes import Node
from belvedere.sql.definitions import Definition, Options, QualifiedName
from belvedere.types import SqlType

# -- data ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DataPlan:
    """A query or a change of data. `verb` is 'select', 'insert', 'update' or 'delete'.

    `parameters` are the types the values must have, first to last. `changes`: some part of it
    writes. `returns`: it gives rows (a change of data without RETURNING does not). `relations` are
    the tables and views it reads or writes. `volatile`: its result depends on more than the data
    and the parameters. `zone` is that of the session it was bound for. `origins` are the columns
    of tables that the columns of its result are.
    """

    verb: str
    plan: Node
    parameters: tuple[SqlType, ...]
    changes: bool
    returns: bool
    relations: tuple[int, ...]
    volatile: bool
    zone: datetime.tzinfo = datetime.UTC
    origins: ColumnOrigins = ()

    @property
    def fields(self) -> Fields:
        return self.plan.fields


# -- transactions ----------------------------------------------------------------------------------


class TransactionModes(msgspec.Struct, frozen=True):
    """None: not said. Isolation is 'read committed', 'repeatable read' or 'serializable'."""

    isolation: str | None = None
    read_only: bool | None = None
    deferrable: bool | None = None


class Begin(msgspec.Struct, frozen=True):
    modes: TransactionModes = TransactionModes()


class Commit(msgspec.Struct, frozen=True):
    chain: bool = False


class Rollback(msgspec.Struct, frozen=True):
    chain: bool = False


class Savepoint(msgspec.Struct, frozen=True):
    name: str


class ReleaseSavepoint(msgspec.Struct, frozen=True):
    name: str


class RollbackTo(msgspec.Struct, frozen=True):
    name: str


class SetTransaction(msgspec.Struct, frozen=True):
    """`session`: SET SESSION CHARACTERISTICS, for the transactions to come."""

    modes: TransactionModes
    session: bool = False


class SetConstraints(msgspec.Struct, frozen=True):
    """No names: ALL."""

    names: tuple[QualifiedName, ...]
    deferred: bool


class LockTable(msgspec.Struct, frozen=True):
    names: tuple[QualifiedName, ...]
    mode: str
    nowait: bool = False


# -- session ---------------------------------------------------------------------------------------


class SetVariable(msgspec.Struct, frozen=True):
    """`value` None: DEFAULT. A list is joined with ', '."""

    name: str
    value: str | None
    local: bool = False


class ShowVariable(msgspec.Struct, frozen=True):
    """'all' shows every one."""

    name: str


class ResetVariable(msgspec.Struct, frozen=True):
    """'all' resets every one."""

    name: str


class Prepare(msgspec.Struct, frozen=True):
    """`source` is the text of the statement; `types` are those of its first parameters."""

    name: str
    types: tuple[SqlType, ...]
    source: str


class Execute(msgspec.Struct, frozen=True):
    """Arguments have no columns; the session casts their values to the parameters' types."""

    name: str
    arguments: tuple[Expression, ...]
    parameters: tuple[SqlType, ...] = ()


class DeclareCursor(msgspec.Struct, frozen=True):
    """`statement` is the bound query, `source` its text. `hold`: it outlives its transaction."""

    name: str
    statement: DataPlan
    source: str
    scroll: bool = False
    hold: bool = False


class FetchCursor(msgspec.Struct, frozen=True):
    """FETCH, and MOVE (`moves`). `direction` is 'forward', 'backward', 'absolute' or 'relative';
    `count` None: ALL."""

    name: str
    direction: str = "forward"
    count: int | None = 1
    moves: bool = False


class CloseCursor(msgspec.Struct, frozen=True):
    """None: ALL."""

    name: str | None


class Listen(msgspec.Struct, frozen=True):
    channel: str


class Unlisten(msgspec.Struct, frozen=True):
    """None: all channels."""

    channel: str | None


class Notify(msgspec.Struct, frozen=True):
    channel: str
    payload: str = ""


class Discard(msgspec.Struct, frozen=True):
    """`what`: all, plans, sequences, temp or temporary."""

    what: str


class Deallocate(msgspec.Struct, frozen=True):
    """None: ALL."""

    name: str | None


class Explain(msgspec.Struct, frozen=True):
    """`options` as written: analyze, verbose, costs, format, .. with their values in lower case."""

    statement: Statement
    source: str
    options: Options = ()

    @property
    def analyze(self) -> bool:
        return dict(self.options).get("analyze", "false") in ("true", "on", "1")


class Copy(msgspec.Struct, frozen=True):
    """COPY between a table (or a query, TO only) and a file, STDIN or STDOUT (`path` None).

    `columns` are the columns in file order, all of them when none were named. FROM carries `plan`,
    an Insert whose input is the Values of parameters $1 .. $n, one row of the file; TO carries
    `query`, and its plan. `format` is 'text', 'csv', 'binary' or 'parquet'.
    """

    direction: str  # 'from' or 'to'
    path: str | None
    columns: Fields
    plan: Node
    format: str = "text"
    options: Options = ()
    query: DataPlan | None = None


class Analyze(msgspec.Struct, frozen=True):
    """No names: every table."""

    names: tuple[QualifiedName, ...]


class Vacuum(msgspec.Struct, frozen=True):
    names: tuple[QualifiedName, ...]
    analyze: bool = False


class Reindex(msgspec.Struct, frozen=True):
    """`kind` is 'table', 'index', 'schema', 'database' or 'system'."""

    kind: str
    name: QualifiedName


Utility = (
    Begin
    | Commit
    | Rollback
    | Savepoint
    | ReleaseSavepoint
    | RollbackTo
    | SetTransaction
    | SetConstraints
    | LockTable
    | SetVariable
    | ShowVariable
    | ResetVariable
    | Prepare
    | Execute
    | Deallocate
    | Discard
    | DeclareCursor
    | FetchCursor
    | CloseCursor
    | Listen
    | Unlisten
    | Notify
    | Explain
    | Copy
    | Analyze
    | Vacuum
    | Reindex
)
Statement = DataPlan | Definition | Utility
