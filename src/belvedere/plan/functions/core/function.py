"""Function: one registered overload, and the notation in which family modules declare them.

    scalar("lpad(text,int4,text) text", lpad, "lpad(_0, _1, _2)")

The signature uses PostgreSQL's type names; `variadic any` and the like mark a last argument that
repeats. The SQL form is one of

- a template in DuckDB's dialect in which `_0`, `_1`, ... stand for the arguments,
- a rule that picks a template by the argument types (NUMERIC types carry the bounds the planner
  knows), or None when no DuckDB expression is exact for them,
- `UDF`: the Python form, registered on the DuckDB connection,
- None: there is no exact form; the planner evaluates the call in Python.

Python forms are plain functions of Python values as `belvedere.types` lists them. A strict
function's form is never called with None. A form marked `environment` takes an `Environment` first.
"""

from __future__ import annotations

import datetime
import enum
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from belvedere.types import Kind, SqlType, array_of

Types = tuple[SqlType, ...]

AVERAGE_OF_TOTAL = "average of total"
"""The function of a count and an integer total whose value is a NUMERIC quotient, NULL for no
values: each engine divides in its own way."""


class Volatility(enum.StrEnum):
    IMMUTABLE = "immutable"
    STABLE = "stable"
    VOLATILE = "volatile"


class FunctionKind(enum.StrEnum):
    SCALAR = "scalar"
    AGGREGATE = "aggregate"
    WINDOW = "window"
    SET = "set"


class PseudoType(enum.StrEnum):
    """PostgreSQL's pseudo-types: the arguments of a call determine the types they stand for."""

    ANY = "any"
    ANYELEMENT = "anyelement"
    ANYNONARRAY = "anynonarray"
    ANYARRAY = "anyarray"
    ANYCOMPATIBLE = "anycompatible"
    ANYCOMPATIBLENONARRAY = "anycompatiblenonarray"
    ANYCOMPATIBLEARRAY = "anycompatiblearray"


Parameter = SqlType | PseudoType
SqlRule = Callable[[Types], "str | None"]
BoundRule = Callable[[Types], "SqlType | None"]


class PythonForm:
    def __repr__(self) -> str:
        return "UDF"


UDF: Final = PythonForm()


@dataclass(frozen=True, slots=True)
class Environment:
    """The statement context of stable and volatile functions. Owned by the session."""

    transaction_time: datetime.datetime
    statement_time: datetime.datetime
    clock: Callable[[], datetime.datetime]
    random: random.Random
    user: str = "belvedere"
    session_user: str = "belvedere"
    database: str = "belvedere"
    schema: str = "public"
    # Answers functions and casts that read the system catalogs, by the function's name.
    ask_catalog: Callable[..., Any] | None = None


@dataclass(frozen=True, slots=True)
class Accumulator:
    """The Python form of an aggregate: state = step(state, *arguments) per row, then finish(state).

    `initial` makes a fresh state. Rows with a NULL argument are left out when the function is
    strict. An ordered-set aggregate gets its direct arguments through `finish(state, *direct)`.
    """

    initial: Callable[[], Any]
    step: Callable[..., Any]
    finish: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class PartialAggregate:
    """An aggregate split in two: DuckDB computes `columns`, Python finishes over their values.

    For aggregates whose last step (a numeric division) has no exact SQL form.
    """

    columns: tuple[str, ...]
    finish: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class WindowPartition:
    """The input of a window function's Python form, which returns one value per row.

    `arguments[i]` are row i's argument values, `peers[i]` the number of its peer group (rows equal
    under ORDER BY), `frames[i]` the row numbers in its frame, in order.
    """

    arguments: Sequence[tuple[Any, ...]]
    peers: Sequence[int]
    frames: Sequence[Sequence[int]]


SqlForm = str | SqlRule | PythonForm | None


@dataclass(frozen=True, slots=True)
class Function:
    """One overload of one function or operator."""

    name: str
    arguments: tuple[Parameter, ...]
    result: Parameter
    python: Callable[..., Any] | Accumulator
    sql: SqlForm = None
    strict: bool = True
    volatility: Volatility = Volatility.IMMUTABLE
    kind: FunctionKind = FunctionKind.SCALAR
    variadic: bool = False
    environment: bool = False
    # Precision and scale of a NUMERIC result in DuckDB, from the arguments' bounds.
    bounds: BoundRule | None = None
    partial: PartialAggregate | None = None
    # Builds the Python form for concrete argument types, where it depends on them (ResolvedCall).
    specialize: Callable[[Types], Callable[..., Any] | Accumulator] | None = None
    # The SQL form calls the Python form by its UDF name for some values.
    udf: bool = False
    # How many of the arguments of an ordered-set aggregate are written before WITHIN GROUP.
    direct: int | None = None

    @property
    def signature(self) -> str:
        arguments = ",".join(type_name(argument) for argument in self.arguments)
        return f"{self.name}({arguments})"


_KINDS = {
    "bool": Kind.BOOLEAN,
    "int2": Kind.SMALLINT,
    "int4": Kind.INTEGER,
    "int8": Kind.BIGINT,
    "numeric": Kind.NUMERIC,
    "float4": Kind.REAL,
    "float8": Kind.DOUBLE,
    "bpchar": Kind.CHAR,
    "varchar": Kind.VARCHAR,
    "text": Kind.TEXT,
    "json": Kind.JSON,
    "bytea": Kind.BYTEA,
    "date": Kind.DATE,
    "time": Kind.TIME,
    "timestamp": Kind.TIMESTAMP,
    "timestamptz": Kind.TIMESTAMPTZ,
    "interval": Kind.INTERVAL,
    "uuid": Kind.UUID,
    "oid": Kind.OID,
    "regclass": Kind.REGCLASS,
    "regtype": Kind.REGTYPE,
    "regnamespace": Kind.REGNAMESPACE,
    "regproc": Kind.REGPROC,
    "unknown": Kind.UNKNOWN,
}
NAMED_TYPES: dict[str, SqlType] = {name: SqlType(kind) for name, kind in _KINDS.items()}
_NAMES = {kind: name for name, kind in _KINDS.items()} | {Kind.RECORD: "record"}


def type_by_name(name: str) -> Parameter:
    """The type or pseudo-type of a short PostgreSQL name: int4, text[], anyarray."""
    if name.endswith("[]"):
        return array_of(NAMED_TYPES[name[:-2]])
    if name == "record":
        return SqlType(Kind.RECORD)
    return NAMED_TYPES.get(name) or PseudoType(name)


def type_name(parameter: Parameter) -> str:
    """The short PostgreSQL name of a type, without modifiers."""
    if isinstance(parameter, PseudoType):
        return parameter.value
    if parameter.element is not None:
        return type_name(parameter.element) + "[]"
    return _NAMES[parameter.kind]


def scalar(
    signature: str, python: Callable[..., Any] | Accumulator, sql: SqlForm = None, **more: Any
) -> Function:
    """A function from `name(argument types) result type`."""
    call, result = signature.rsplit(" ", 1)
    name, _, rest = call.partition("(")
    # An operator may itself hold no parenthesis, so the first one opens the arguments.
    names = [part for part in rest[:-1].split(",") if part]
    variadic = bool(names) and names[-1].startswith("variadic ")
    arguments = tuple(type_by_name(part.removeprefix("variadic ")) for part in names)
    return Function(name, arguments, type_by_name(result), python, sql, variadic=variadic, **more)


def stable(
    signature: str, python: Callable[..., Any], sql: SqlForm = None, **more: Any
) -> Function:
    return scalar(signature, python, sql, volatility=Volatility.STABLE, **more)


def volatile(
    signature: str, python: Callable[..., Any], sql: SqlForm = None, **more: Any
) -> Function:
    return scalar(signature, python, sql, volatility=Volatility.VOLATILE, **more)


def aggregate(
    signature: str, accumulator: Accumulator, sql: SqlForm = None, **more: Any
) -> Function:
    return scalar(signature, accumulator, sql, kind=FunctionKind.AGGREGATE, **more)


def window(signature: str, python: Callable[..., Any], sql: SqlForm = None) -> Function:
    """A window function: `python` maps a WindowPartition to one value per row."""
    return scalar(signature, python, sql, kind=FunctionKind.WINDOW, strict=False)


def set_returning(
    signature: str, python: Callable[..., Any], sql: SqlForm = None, **more: Any
) -> Function:
    """A function that gives rows: its Python form returns an iterable of values."""
    return scalar(signature, python, sql, kind=FunctionKind.SET, **more)
