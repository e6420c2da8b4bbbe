"""What a text turns into: bound data statements, DDL (`sql.definitions`), and the utility ones."""

from __future__ import annotations

from dataclasses import dataclass

from belvedere.plan.expressions import Expression
from belvedere.plan.fields import Fields
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
    and the parameters.
    """

    verb: str
    plan: Node
    parameters: tuple[SqlType, ...]
    changes: bool
    returns: bool
    relations: tuple[int, ...]
    volatile: bool

    @property
    def fields(self) -> Fields:
        return self.plan.fields


# -- transactions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TransactionModes:
    """None: not said. Isolation is 'read committed', 'repeatable read' or 'serializable'."""

    isolation: str | None = None
    read_only: bool | None = None
    deferrable: bool | None = None


@dataclass(frozen=True, slots=True)
class Begin:
    modes: TransactionModes = TransactionModes()


@dataclass(frozen=True, slots=True)
class Commit:
    chain: bool = False


@dataclass(frozen=True, slots=True)
class Rollback:
    chain: bool = False


@dataclass(frozen=True, slots=True)
class Savepoint:
    name: str


@dataclass(frozen=True, slots=True)
class ReleaseSavepoint:
    name: str


@dataclass(frozen=True, slots=True)
class RollbackTo:
    name: str


@dataclass(frozen=True, slots=True)
class SetTransaction:
    """`session`: SET SESSION CHARACTERISTICS, for the transactions to come."""

    modes: TransactionModes
    session: bool = False


@dataclass(frozen=True, slots=True)
class SetConstraints:
    """No names: ALL."""

    names: tuple[QualifiedName, ...]
    deferred: bool


@dataclass(frozen=True, slots=True)
class LockTable:
    names: tuple[QualifiedName, ...]
    mode: str
    nowait: bool = False


# -- session ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetVariable:
    """`value` None: DEFAULT. A list is joined with ', '."""

    name: str
    value: str | None
    local: bool = False


@dataclass(frozen=True, slots=True)
class ShowVariable:
    """'all' shows every one."""

    name: str


@dataclass(frozen=True, slots=True)
class ResetVariable:
    """'all' resets every one."""

    name: str


@dataclass(frozen=True, slots=True)
class Prepare:
    """`source` is the text of the statement; `types` are those of its first parameters."""

    name: str
    types: tuple[SqlType, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Execute:
    """Arguments have no columns; the session casts their values to the parameters' types."""

    name: str
    arguments: tuple[Expression, ...]
    parameters: tuple[SqlType, ...] = ()


@dataclass(frozen=True, slots=True)
class Deallocate:
    """None: ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Explain:
    """`options` as written: analyze, verbose, costs, format, .. with their values in lower case."""

    statement: Statement
    source: str
    options: Options = ()

    @property
    def analyze(self) -> bool:
        return dict(self.options).get("analyze", "false") in ("true", "on", "1")


@dataclass(frozen=True, slots=True)
class Copy:
    """COPY between a table (or a query, TO only) and a file, STDIN or STDOUT (`path` None).

    `columns` are the columns in file order, all of them when none were named. FROM carries `plan`,
    an Insert whose input is the Values of parameters $1 .. $n, one row of the file; TO carries the
    query's plan. `format` is 'text', 'csv' or 'parquet'.
    """

    direction: str  # 'from' or 'to'
    path: str | None
    columns: Fields
    plan: Node
    format: str = "text"
    options: Options = ()


@dataclass(frozen=True, slots=True)
class Analyze:
    """No names: every table."""

    names: tuple[QualifiedName, ...]


@dataclass(frozen=True, slots=True)
class Vacuum:
    names: tuple[QualifiedName, ...]
    analyze: bool = False


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
    | Explain
    | Copy
    | Analyze
    | Vacuum
)
Statement = DataPlan | Definition | Utility
