"""Verbs of COPY between another process and a table: the data goes with the request or the answer.

copy_in       sql, upload             rows of bytes, as they are in a file
copy_out      sql                     the same, downloaded
insert_arrow  table, upload           batches of Arrow, by the names of their columns
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

import pyarrow as pa

from belvedere.interfaces.verbs.peer import Arguments, Peer, Stream, Verb
from belvedere.interfaces.verbs.sessions import describe_session
from belvedere.interfaces.verbs.wire import bytes_to_batch
from belvedere.session.copy.arrow_input import insert_arrow_table
from belvedere.session.copy.spool import (
    PART_BYTES,
    copy_out_to_spool,
    copy_spool_in,
    open_spool,
)


def split_spool(spool: IO[bytes]) -> Iterator[pa.RecordBatch]:
    """The data in parts; closes the file."""
    with spool:
        while part := spool.read(PART_BYTES):
            yield bytes_to_batch(part)


def copy_in(peer: Peer, arguments: Arguments) -> dict[str, Any]:
    with open_spool() as spool:
        for batch in arguments.upload.batches:
            spool.writelines(batch[0].to_pylist())
        count = copy_spool_in(peer.session, arguments.get_text("sql"), spool)
    return {"affected": count, **describe_session(peer)}


def copy_out(peer: Peer, arguments: Arguments) -> Stream:
    spool = open_spool()
    try:
        count = copy_out_to_spool(peer.session, arguments.get_text("sql"), spool)
    except BaseException:
        spool.close()
        raise
    value = {"affected": count, **describe_session(peer)}
    return Stream(bytes_to_batch(b"").schema, split_spool(spool), value)


def insert_arrow(peer: Peer, arguments: Arguments) -> dict[str, Any]:
    schema, batches = arguments.upload
    table = pa.Table.from_batches(list(batches), schema)
    result = insert_arrow_table(peer.session, arguments.get_text("table"), table)
    return {"affected": result.affected, **describe_session(peer)}


VERBS: dict[str, Verb] = {"copy_in": copy_in, "copy_out": copy_out, "insert_arrow": insert_arrow}
