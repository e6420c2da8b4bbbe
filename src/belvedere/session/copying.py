"""COPY: files to rows and rows to files, as CSV, PostgreSQL's text format, or Parquet.

A file is read in chunks; each chunk goes through the same INSERT a statement would, in one
transaction for the whole file. A file comes from the machine the session runs on; COPY .. FROM
STDIN and TO STDOUT use the streams of the session's door.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from belvedere.errors import InvalidInput, Unavailable, Unsupported
from belvedere.execution.direct.compile import compile_plan
from belvedere.execution.run import CteRows, Rows
from belvedere.plan import nodes as n
from belvedere.plan.functions import formatter, parser
from belvedere.plan.transform import rebuild_inputs
from belvedere.session import parquet, textfile
from belvedere.session.parameters import converter
from belvedere.session.result import Result
from belvedere.sql import statements as s
from belvedere.txn.transaction import Transaction
from belvedere.types import Row, SqlType

if TYPE_CHECKING:
    from belvedere.session.session import Session

CHUNK_ROWS = 5_000
_FILE_ROWS = -1  # the number under which a chunk stands in for the INSERT's VALUES


def run(session: Session, statement: s.Copy, _: Sequence[Any]) -> Result:
    if statement.direction == "from":
        count = session.in_transaction(
            True, lambda transaction: _copy_in(session, transaction, statement)
        )
    else:
        count = session.in_transaction(
            False, lambda transaction: _copy_out(session, transaction, statement)
        )
    return Result("COPY", affected=count.affected)


# -- in --------------------------------------------------------------------------------------------


def _copy_in(session: Session, transaction: Transaction, statement: s.Copy) -> Result:
    rows = _file_rows(session, statement)
    plan = _from_file(statement.plan)
    compiled = compile_plan(transaction.catalog, plan)
    count = 0
    while chunk := list(itertools.islice(rows, CHUNK_ROWS)):
        _insert(session, transaction, compiled, chunk)
        count += len(chunk)
    return Result("COPY", affected=count)


def _insert(session: Session, transaction: Transaction, compiled: Rows, chunk: list[Row]) -> None:
    run = session.new_run(transaction, ()).beside({_FILE_ROWS: CteRows(chunk)})
    for _ in compiled(run):
        pass
    for write in run.changes:
        write.apply(transaction)
    session.interrupt.check()


def _from_file(node: n.Node) -> n.Node:
    if isinstance(node, n.Values) and node.rows and node.rows != ((),):
        return n.CteScan(_FILE_ROWS, "file", node.fields)
    return rebuild_inputs(node, _from_file)


def _file_rows(session: Session, statement: s.Copy) -> Iterator[Row]:
    types = [field.type for field in statement.columns]
    options = dict(statement.options)
    if statement.format == "parquet":
        if statement.path is None:
            raise Unsupported("COPY of Parquet from STDIN")
        names = [field.name for field in statement.columns]
        convert = converter(types)
        return map(convert, parquet.read(_existing(statement.path), names))
    if statement.path is None:
        return _parsed(session.door_input(), statement.format, options, types)
    return _opened(_existing(statement.path), statement.format, options, types)


def _existing(path: str) -> Path:
    found = Path(path)
    if not found.is_file():
        raise InvalidInput("file does not exist", sqlstate="58P01", path=path)
    return found


def _opened(path: Path, form: str, options: dict[str, str], types: list[SqlType]) -> Iterator[Row]:
    with path.open(encoding="utf-8", newline="") as lines:
        yield from _parsed(lines, form, options, types)


def _parsed(
    lines: IO[str], form: str, options: dict[str, str], types: list[SqlType]
) -> Iterator[Row]:
    """Records as values; a mistake says in which line it is."""
    parsers = [parser(one) for one in types]
    style = textfile.style_of(form, options)
    try:
        for number, record in textfile.read(lines, style):
            if len(record) != len(parsers):
                word = "missing data for a column" if len(record) < len(parsers) else "extra data"
                raise InvalidInput(word, sqlstate="22P04", line=number)
            try:
                values = [None if v is None else p(v) for p, v in zip(parsers, record)]
            except InvalidInput as error:
                error.facts.setdefault("line", number)
                raise
            yield tuple(values)
    except UnicodeDecodeError as error:
        raise InvalidInput("invalid byte sequence for UTF8", sqlstate="22021") from error


# -- out -------------------------------------------------------------------------------------------


def _copy_out(session: Session, transaction: Transaction, statement: s.Copy) -> Result:
    compiled = compile_plan(transaction.catalog, session.planned(statement.plan))
    rows = compiled(session.new_run(transaction, ()))
    names = [field.name for field in statement.plan.fields]
    types = [field.type for field in statement.plan.fields]
    if statement.format == "parquet":
        if statement.path is None:
            raise Unsupported("COPY of Parquet to STDOUT")
        return Result("COPY", affected=parquet.write(Path(statement.path), names, types, rows))
    style = textfile.style_of(statement.format, dict(statement.options))
    formatters = [formatter(one) for one in types]
    records = ([None if v is None else form(v) for form, v in zip(formatters, row)] for row in rows)
    if statement.path is None:
        return Result("COPY", affected=textfile.write(session.door_output(), style, names, records))
    try:
        with Path(statement.path).open("w", encoding="utf-8", newline="") as out:
            return Result("COPY", affected=textfile.write(out, style, names, records))
    except OSError as error:
        raise Unavailable("file cannot be written", sqlstate="58030", detail=str(error)) from error
