"""COPY .. FROM STDIN and COPY .. TO STDOUT of a program: `cursor.copy(sql)`, as psycopg has it.

    with con.cursor().copy("COPY orders FROM STDIN") as copy:
        copy.write_row((1, "ann"))
    with con.cursor().copy("COPY orders TO STDOUT (FORMAT csv)") as copy:
        for data in copy:
            file.write(data)

What is written is kept until the block ends, beyond a megabyte in a temporary file, and loaded
then, all of it or none; an exception in the block discards it. What is read is written by the
statement at the beginning of the block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any, Self

from belvedere import errors, forks
from belvedere.interfaces.client.arguments import encode_copy_data, require_sequence
from belvedere.interfaces.exceptions import InterfaceError, ProgrammingError, translate_error
from belvedere.plan.functions import text_formatter
from belvedere.remote.client import SentRows
from belvedere.remote.frames import Request
from belvedere.session.copy.arrow_input import BATCH_ROWS, insert_arrow_table
from belvedere.session.copy.spool import (
    PART_BYTES,
    copy_out_to_spool,
    copy_spool_in,
    open_spool,
)
from belvedere.session.session import Session
from belvedere.session.statement.python_types import infer_sql_type
from belvedere.sql.parse.lexical.lexer import WORD, tokenize
from belvedere.types import Row

if TYPE_CHECKING:
    import pyarrow as pa

    from belvedere.interfaces.client.connection import Connection
    from belvedere.interfaces.client.cursor import Cursor
    from belvedere.interfaces.remote import RemoteSession

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_MEANINGS = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}


def insert_table(session: Session | RemoteSession, name: str, rows: pa.Table) -> int:
    """Insert an Arrow table, here or in the process that has the store open."""
    if isinstance(session, Session):
        return insert_arrow_table(session, name, rows).affected
    batches = rows.to_batches(BATCH_ROWS)
    request = Request("insert_arrow", {"table": name})
    value, _ = session.ask_and_update(request, SentRows(rows.schema, batches))
    return int(value["affected"])


class CopyExchange:
    """One COPY; a context manager."""

    def __init__(self, cursor: Cursor, connection: Connection, sql: str) -> None:
        self._cursor = cursor
        self._connection = connection
        self._sql = sql
        self._reads, self._has_options = _parse_direction(sql)
        self._spool: IO[bytes] | None = None
        forks.track_handle(self, translate_error)

    def __enter__(self) -> Self:
        self._spool = open_spool()
        if self._reads:
            try:
                self._cursor.rowcount = self._run_copy_out(self._spool)
            except BaseException:
                self._spool.close()
                raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        spool = self._require_spool()
        self._spool = None
        with spool:
            if kind is None and not self._reads:
                self._cursor.rowcount = self._run_copy_in(spool)

    # -- in -----------------------------------------------------------------------------------

    def write(self, data: str | bytes) -> None:
        """Data as it would be in the file, in parts of any length."""
        if self._reads:
            raise InterfaceError("COPY TO writes; read from it", sqlstate="24000")
        self._require_spool().write(encode_copy_data(data))

    def write_row(self, row: Sequence[Any]) -> None:
        """A row of Python values; only of a COPY without options."""
        self._refuse_options("write_row")
        require_sequence(row)
        self.write("\t".join(map(_format_value, row)) + "\n")

    # -- out ----------------------------------------------------------------------------------

    def read(self) -> bytes:
        """The next part of the data; empty at its end."""
        if not self._reads:
            raise InterfaceError("COPY FROM reads; write to it", sqlstate="24000")
        return self._require_spool().read(PART_BYTES)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.read, b"")

    def rows(self) -> Iterator[Row]:
        """The rows, every value as text or None; only of a COPY without options."""
        self._refuse_options("rows")
        if not self._reads:
            raise InterfaceError("COPY FROM reads; write to it", sqlstate="24000")
        for line in self._require_spool():
            text = line.decode()[:-1]
            yield tuple([_parse_value(part) for part in text.split("\t")]) if text else ("",)

    # -- the statement ------------------------------------------------------------------------

    def _run_copy_in(self, spool: IO[bytes]) -> int:
        session = self._connection.session
        with self._connection._lock:
            try:
                if isinstance(session, Session):
                    return copy_spool_in(session, self._sql, spool)
                spool.seek(0)
                request = Request("copy_in", {"sql": self._sql})
                value, _ = session.ask_and_update(request, _upload_spool(spool))
                return int(value["affected"])
            except errors.Error as error:
                raise translate_error(error) from None

    def _run_copy_out(self, spool: IO[bytes]) -> int:
        session = self._connection.session
        with self._connection._lock:
            try:
                if isinstance(session, Session):
                    return copy_out_to_spool(session, self._sql, spool)
                request = Request("copy_out", {"sql": self._sql})
                value, batches = session.ask_and_update(request)
                for batch in batches or ():
                    spool.writelines(batch[0].to_pylist())
                spool.seek(0)
                return int(value["affected"])
            except errors.Error as error:
                raise translate_error(error) from None

    def _require_spool(self) -> IO[bytes]:
        if self._spool is None:
            raise InterfaceError("copy is used outside of its with block", sqlstate="24000")
        return self._spool

    def _refuse_options(self, what: str) -> None:
        if self._has_options:
            raise ProgrammingError(
                f"{what} needs a COPY without options", sqlstate="0A000", hint="use write and read"
            )


def _upload_spool(spool: IO[bytes]) -> SentRows:
    from belvedere.interfaces.verbs.copies import split_spool  # heavy
    from belvedere.interfaces.verbs.wire import bytes_to_batch  # heavy

    empty = bytes_to_batch(b"")
    return SentRows(empty.schema, tuple(split_spool(spool)) or (empty,))


def _parse_direction(sql: str) -> tuple[bool, bool]:
    """Whether the statement is COPY .. TO STDOUT, and whether it has options."""
    try:
        tokens = tokenize(sql)
    except errors.Error as error:
        raise translate_error(error) from None
    words = [token.text if token.kind == WORD else "" for token in tokens]
    for at, (way, stream) in enumerate(pairwise(words)):
        if words[0] == "copy" and (way, stream) in (("from", "stdin"), ("to", "stdout")):
            behind = [token for token in tokens[at + 2 : -1] if token.text != ";"]
            return way == "to", bool(behind)
    raise ProgrammingError(
        "copy needs COPY .. FROM STDIN or COPY .. TO STDOUT", sqlstate="42601", hint="use execute"
    )


def _format_value(value: Any) -> str:
    if value is None:
        return "\\N"
    try:
        text = value if isinstance(value, str) else text_formatter(infer_sql_type(value))(value)
    except errors.Error as error:
        raise translate_error(error) from None
    return str(text).translate(_ESCAPES)


def _parse_value(text: str) -> str | None:
    if text == "\\N":
        return None
    if "\\" not in text:
        return text
    signs = iter(text)
    return "".join(
        _MEANINGS.get(after := next(signs), after) if sign == "\\" else sign for sign in signs
    )
