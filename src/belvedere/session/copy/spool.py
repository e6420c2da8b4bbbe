"""COPY between a client and a table: the data of the client waits in a spool.

A spool is a file in memory while it is short and on disk when it is long, so that a COPY reads or
writes it as it would read or write a file, whatever door the client came by.
"""

from __future__ import annotations

import tempfile
from functools import partial
from typing import IO, TYPE_CHECKING, BinaryIO, cast

if TYPE_CHECKING:
    from belvedere.session.session import Session

SPOOL_BYTES = 1024 * 1024
"""Longer data waits in a temporary file."""
PART_BYTES = 1024 * 1024


def open_spool() -> IO[bytes]:
    return tempfile.SpooledTemporaryFile(SPOOL_BYTES)


def copy_spool_in(session: Session, sql: str, spool: IO[bytes]) -> int:
    """Run COPY .. FROM STDIN with the data of a file; returns the number of rows."""
    session.copy_streams.input = partial(_rewind_spool, spool)
    try:
        return session.execute(sql).affected
    finally:
        session.copy_streams.input = None


def copy_out_to_spool(session: Session, sql: str, spool: IO[bytes]) -> int:
    """Run COPY .. TO STDOUT into a file, which is then at its beginning."""
    session.copy_streams.output = partial(_empty_spool, spool)
    try:
        count = session.execute(sql).affected
    finally:
        session.copy_streams.output = None
    spool.seek(0)
    return count


def _rewind_spool(spool: IO[bytes]) -> BinaryIO:
    spool.seek(0)
    return cast("BinaryIO", spool)


def _empty_spool(spool: IO[bytes]) -> BinaryIO:
    spool.seek(0)
    spool.truncate()
    return cast("BinaryIO", spool)
