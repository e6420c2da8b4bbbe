"""COPY: files to rows and rows to files, as CSV, PostgreSQL's text and binary format, or Parquet.

A file is read in chunks; each chunk becomes rows as the same INSERT would make them, in one
transaction per file. Columns without defaults or checks to evaluate are encoded as Arrow columns,
also those of a text file whose values are spelled plainly. Files are on the machine the session
runs on; COPY .. FROM STDIN and TO STDOUT use the streams of the session's door.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from belvedere.catalog.relation_codecs import CompiledTable, compiled_table
from belvedere.errors import InvalidInput, Unavailable, Unsupported
from belvedere.execution.bulk_insert import BulkLoader
from belvedere.execution.choose_tier import changes_data
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.python.context import CompileContext
from belvedere.execution.python.statements.dml import row_maker, row_widener
from belvedere.execution.run import CteRows
from belvedere.kv.files import replace_when_written
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions import text_formatter, text_parser
from belvedere.plan.transform import rebuild_operands
from belvedere.session.context.result import Result
from belvedere.session.copy import binary_format, parquet, text_chunks, text_format
from belvedere.session.copy.options import Header, TextFormat, parse_copy_options
from belvedere.session.materialized import freshness_policy
from belvedere.session.query_stream import iterate_rows, run_plan_and_apply_writes
from belvedere.session.statement.parameters import (
    make_assignment_converter,
    make_row_reporting_converter,
)
from belvedere.sql import statements as s
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row, SqlType
from belvedere.values.failures import add_column_to_error, show_number

if TYPE_CHECKING:
    from belvedere.session.session import Session

CHUNK_ROWS = 5_000
_FILE_ROWS = -1  # the number of the CTE that a chunk of the file is read as


def run_copy(session: Session, statement: s.Copy, _: Sequence[Any]) -> Result:
    _parse_text_format(statement)
    query = statement.query
    session.copy_streams.column_count = len(statement.columns)
    session.copy_streams.binary = statement.format == "binary"
    if query is None:
        return session.run_in_transaction(
            True,
            lambda transaction: _copy_into_table(session, transaction, statement),
            repeats=statement.path is not None,  # standard input can be read once
        )
    return session.run_in_transaction(
        query.changes,
        lambda transaction: _copy_query_to_output(session, transaction, statement, query),
        restarts=True,
        repeats=statement.path is not None or session.copy_streams.can_rewrite,
    )


def _parse_text_format(statement: s.Copy) -> TextFormat:
    names = [field.name for field in statement.columns]
    return parse_copy_options(statement.format, statement.direction, dict(statement.options), names)


# -- in --------------------------------------------------------------------------------------------


class _CopyLoader:
    """Inserts the rows of a file into a table, in one transaction."""

    def __init__(self, session: Session, transaction: Transaction, statement: s.Copy) -> None:
        insert = _build_file_insert_plan(statement)
        catalog = transaction.catalog
        self.session = session
        self.table = compiled_table(catalog, insert.relation)
        self.columns = _map_slots_to_file_columns(insert, self.table)
        self._run = session.make_run_context(transaction, ())
        self._loader = BulkLoader(transaction, self.table, self._run.memory)
        self._each = compile_plan(catalog, insert.input)
        context = CompileContext(catalog, lambda inner: compile_plan(catalog, inner))
        self._make = row_maker(context, insert, self.table)
        self._widen = row_widener(self.table)
        self.count = 0

    def find_file_column_types(self) -> list[SqlType] | None:
        """The table's types of the file's columns; None when the file must be read as rows."""
        if self.columns is None:
            return None
        slots = {place: slot for slot, place in enumerate(self.columns) if place is not None}
        return [self.table.layout.types[slots[place]] for place in sorted(slots)]

    def insert_file_rows(self, chunk: list[Row], lines: Sequence[int] = ()) -> None:
        """Insert rows whose values are those of the file's columns, of these lines."""
        self.session.interrupt.check()
        try:
            rows = self._make_table_rows(chunk)
        except InvalidInput as error:
            if error.sqlstate.startswith("22"):  # the others show the row
                failing = (
                    line for line, row in zip(lines, chunk) if not self._can_make_table_row(row)
                )
                line = next(failing, None)
                if line is not None:  # rows that are given as columns have none
                    error.facts.setdefault("line", line)
            raise
        self._loader.add_rows(rows)
        self.count += len(rows)

    def _make_table_rows(self, chunk: list[Row]) -> list[Row]:
        run = self._run.with_ctes({_FILE_ROWS: CteRows(chunk)})
        return [self._widen(row) for row in map(self._make(run), self._each(run))]

    def _can_make_table_row(self, row: Row) -> bool:
        try:
            self._make_table_rows([row])
        except InvalidInput:
            return False
        return True

    def try_insert_arrow_columns(self, columns: list[Any]) -> bool:
        """Insert Arrow columns of the file as they are; False when they must become rows first."""
        self.session.interrupt.check()
        batch = parquet.try_build_slot_ordered_batch(columns, self.columns, self.table)
        if batch is None:
            return False
        try:
            self._loader.add_columns(batch)
        except InvalidInput as error:
            if error.sqlstate in ("23505", "23502"):
                raise
            return False
        self.count += batch.num_rows
        return True


def _copy_into_table(session: Session, transaction: Transaction, statement: s.Copy) -> Result:
    intake = _CopyLoader(session, transaction, statement)
    if statement.format == "parquet":
        _load_parquet_file(intake, statement)
        return Result("COPY", affected=intake.count)
    load = _load_binary_file if statement.format == "binary" else _load_text_file
    if statement.path is None:
        file = session.copy_streams.open_input()
        load(intake, statement, file)
        while file.read(text_chunks.CHUNK_BYTES):  # what follows an end marker
            session.interrupt.check()
    else:
        with _require_existing_file(statement.path).open("rb") as file:
            load(intake, statement, file)
    return Result("COPY", affected=intake.count)


def _load_text_file(intake: _CopyLoader, statement: s.Copy, file: BinaryIO) -> None:
    """Load a text file chunk by chunk as columns; other chunks are read record by record."""
    types, in_table = [field.type for field in statement.columns], intake.find_file_column_types()
    names = [field.name for field in statement.columns]
    style = _parse_text_format(statement)
    by_columns = in_table is not None and len(in_table) == len(types)
    for chunk in text_chunks.split_text_chunks(file, style):
        if style.header is Header.SKIP and chunk.has_plain_header(style):
            chunk, style = chunk.skip_line(), style._replace(header=Header.NONE)
        columns = None
        if by_columns and style.header is Header.NONE:
            columns = text_chunks.try_parse_arrow_columns(chunk, style, in_table or [])
        if columns is None or not intake.try_insert_arrow_columns(columns):
            lines = chunk.split_lines()
            records = _parse_typed_records(lines, chunk.number, style, types, names)
            while some := list(itertools.islice(records, CHUNK_ROWS)):
                numbers, rows = zip(*some)
                intake.insert_file_rows(list(rows), numbers)
            if any(map(text_format.is_end_marker, lines)):
                return
        style = style._replace(header=Header.NONE)


def _load_binary_file(intake: _CopyLoader, statement: s.Copy, file: BinaryIO) -> None:
    types = [field.type for field in statement.columns]
    convert = make_row_reporting_converter(make_assignment_converter(types))
    rows = binary_format.read_binary_rows(file, types, [field.name for field in statement.columns])
    while chunk := list(itertools.islice(rows, CHUNK_ROWS)):
        intake.insert_file_rows(list(map(convert, chunk)))


def _load_parquet_file(intake: _CopyLoader, statement: s.Copy) -> None:
    if statement.path is None:
        raise Unsupported("COPY of Parquet from STDIN")
    names = [field.name for field in statement.columns]
    batches = parquet.read_column_batches(_require_existing_file(statement.path), names)
    _load_column_batches(intake, statement, batches)


def insert_column_batches(
    session: Session, transaction: Transaction, statement: s.Copy, batches: Iterable[list[Any]]
) -> Result:
    """Insert Arrow columns, in the order of the statement's columns, instead of a file's."""
    intake = _CopyLoader(session, transaction, statement)
    _load_column_batches(intake, statement, batches)
    return Result("INSERT", affected=intake.count)


def _load_column_batches(
    intake: _CopyLoader, statement: s.Copy, batches: Iterable[list[Any]]
) -> None:
    convert = make_row_reporting_converter(
        make_assignment_converter([field.type for field in statement.columns])
    )
    for columns in batches:
        if intake.columns is None or not intake.try_insert_arrow_columns(columns):
            values = [column.to_pylist() for column in columns]
            intake.insert_file_rows(list(map(convert, zip(*values))))


def _build_file_insert_plan(statement: s.Copy) -> n.Insert:
    """The INSERT with the file's rows instead of its parameters."""
    insert = statement.plan
    assert isinstance(insert, n.Insert)
    values = insert.input
    assert isinstance(values, n.Values)
    source = n.CteScan(_FILE_ROWS, "file", tuple(statement.columns))
    expressions = tuple(_replace_parameters_by_columns(one) for one in values.rows[0])
    return replace(insert, input=n.Project(source, expressions, values.fields))


def _replace_parameters_by_columns(expression: e.Expression) -> e.Expression:
    if isinstance(expression, e.Parameter):
        return e.Column(expression.index - 1, expression.type)
    return rebuild_operands(expression, _replace_parameters_by_columns)


def _map_slots_to_file_columns(insert: n.Insert, table: CompiledTable) -> list[int | None] | None:
    """For every slot of the table its column of the file (None: NULL); None for the list when some
    slot has an expression to evaluate."""
    rules, project = insert.rules, insert.input
    assert isinstance(project, n.Project)
    if rules.generated or rules.checks or any(column.hidden for column in table.live_columns):
        return None
    found: list[int | None] = [None] * len(table.table.columns)
    for ordinal, expression in zip(insert.ordinals, project.expressions):
        while (
            isinstance(expression, e.Cast) and expression.type.kind is expression.operand.type.kind
        ):
            expression = expression.operand
        slot = table.live_columns[ordinal].slot
        if isinstance(expression, e.Column):
            found[slot] = expression.index
        elif not (isinstance(expression, e.Literal) and expression.value is None):
            return None
    return found


def _require_existing_file(path: str) -> Path:
    found = Path(path)
    if not found.is_file():
        raise InvalidInput("file does not exist", sqlstate="58P01", path=path)
    return found


def _parse_typed_records(
    lines: list[str], first: int, style: TextFormat, types: list[SqlType], names: list[str]
) -> Iterator[tuple[int, Row]]:
    """Records as values, each with its line; an error names the line it is in."""
    parsers = [text_parser(one) for one in types]
    for number, record in text_format.read_records(lines, style, first, names):
        if len(record) != len(parsers):
            word = "missing data for a column" if len(record) < len(parsers) else "extra data"
            raise InvalidInput(word, sqlstate="22P04", line=number)
        try:
            values = [None if v is None else p(v) for p, v in zip(parsers, record)]
        except InvalidInput as error:
            _add_failing_column_to_error(error, parsers, record, names)
            error.facts.setdefault("line", number)
            raise
        yield number, tuple(values)


def _add_failing_column_to_error(
    error: InvalidInput,
    parsers: list[Callable[[str], Any]],
    record: Sequence[str | None],
    names: list[str],
) -> None:
    """Say which column of the record has no place for its value, and the value."""
    fields = [field for field in zip(names, parsers, record) if field[2] is not None]
    for name, parse, text in fields:
        try:
            parse(text or "")
        except InvalidInput:
            add_column_to_error(error, name)
            if error.sqlstate == "22003":
                error.facts.setdefault("value", show_number(text))
            return


# -- out -------------------------------------------------------------------------------------------


def _copy_query_to_output(
    session: Session, transaction: Transaction, statement: s.Copy, query: s.DataPlan
) -> Result:
    """Rows are written as they are computed; those of a statement that changes data, or waits for
    locks, when it is done, so that it may begin again before."""
    entry = session.compile_statement(query, "")
    if query.changes or changes_data(query.plan):
        result = run_plan_and_apply_writes(session, transaction, entry, ())
        result.convert_arrow_to_rows()
        rows = iter(result.rows)
    else:
        entry, reader = freshness_policy.choose_statement_and_reader(session, transaction, entry)
        rows = iterate_rows(session, entry, session.make_run_context(reader, ()))
    return Result("COPY", affected=_write_rows(session, statement, rows))


def _write_rows(session: Session, statement: s.Copy, rows: Iterator[Row]) -> int:
    rows = session.interrupt.check_rows(rows)  # to write one takes longer than to read it
    names = [field.name for field in statement.columns]
    types = [field.type for field in statement.columns]
    if statement.format == "parquet":
        if statement.path is None:
            raise Unsupported("COPY of Parquet to STDOUT")
        with _open_draft_of_output(statement.path) as draft:
            return parquet.write_parquet_rows(draft, names, types, rows)
    with _open_output(session, statement) as out:
        if statement.format == "binary":
            return binary_format.write_binary_rows(out.write, types, rows)
        style = _parse_text_format(statement)
        formatters = [text_formatter(one) for one in types]
        records = (
            [None if v is None else form(v) for form, v in zip(formatters, row)] for row in rows
        )
        return text_format.write_records(out, style, names, records)


@contextmanager
def _open_output(session: Session, statement: s.Copy) -> Iterator[BinaryIO]:
    if statement.path is None:
        yield session.copy_streams.open_output()
        return
    with _open_draft_of_output(statement.path) as draft, draft.open("wb") as file:
        yield file


@contextmanager
def _open_draft_of_output(path: str) -> Iterator[Path]:
    """The file that becomes the one of this path when all of it is written."""
    try:
        with replace_when_written(Path(path)) as draft:
            yield draft
    except FileNotFoundError as error:
        raise InvalidInput("directory does not exist", sqlstate="58P01", path=path) from error
    except OSError as error:
        raise Unavailable("file cannot be written", sqlstate="58030", detail=str(error)) from error
