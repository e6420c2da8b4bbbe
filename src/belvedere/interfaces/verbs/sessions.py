"""Verbs of a connection to the store from another process: one session for each peer.

    open_session   autocommit, read_only      the key of the session, and facts about the owner
    configure      autocommit
    run            statement | upload         what the statements of a text give
    commit, rollback
    session_state                             transaction, notices: after a statement that failed
    token                                     the session's freshness token
    cancel         key                        stops the statement of another connection's session

A statement is msgpack of `SentStatement`. It comes in the request, or as an upload when it does not
fit a frame. Rows of a small result are in the answer; others follow as Arrow batches.
"""

from __future__ import annotations

import datetime
import os
import zoneinfo
from typing import Any

import msgspec

from belvedere.errors import InvalidInput
from belvedere.interfaces.verbs.peer import Arguments, Peer, Stream, Verb
from belvedere.interfaces.verbs.plain_values import decode_values, encode_values
from belvedere.interfaces.verbs.wire import describe_fields, rows_to_batch
from belvedere.session.context.result import Result
from belvedere.session.session import Session

BATCH_ROWS = 20_000
INLINE_ROWS_MAX = 100
INLINE_BYTES_MAX = 256 * 1024
STATEMENT_BYTES_MAX = 512 * 1024
"""A longer statement is uploaded."""


class SentStatement(msgspec.Struct, frozen=True):
    sql: str
    parameters: list[Any] = []
    freshness: str | None = None


def open_session(peer: Peer, arguments: Arguments) -> dict[str, Any]:
    key = peer.open_session(
        autocommit=bool(arguments.get_number("autocommit")),
        read_only=bool(arguments.get_number("read_only")),
    )
    settings = peer.served_store.shared.describe_store_settings()
    return {"key": key, "pid": os.getpid(), "settings": settings}


def configure_session(peer: Peer, arguments: Arguments) -> None:
    peer.session.autocommit = bool(arguments.get_number("autocommit"))


def run_statement(peer: Peer, arguments: Arguments) -> object:
    """Run the statements of a text; the answer is the last one's. A transaction that it begins
    lasts until the peer ends it or disconnects."""
    statement = read_statement(arguments)
    parameters = decode_values(statement.parameters)
    result = peer.session.execute(statement.sql, parameters, statement.freshness)
    return answer_with_result(peer, result)


def answer_with_result(peer: Peer, result: Result) -> object:
    value = {"tag": result.tag, "affected": result.affected, **describe_session(peer)}
    if result.fields is None:
        return value
    value["fields"] = describe_fields(result.fields)
    result.convert_arrow_to_rows()
    rows = result.rows
    if len(rows) <= INLINE_ROWS_MAX:
        inline = msgspec.msgpack.encode([encode_values(row) for row in rows])
        if len(inline) <= INLINE_BYTES_MAX:
            return {**value, "rows": inline}
    fields = result.fields
    starts = range(0, len(rows), BATCH_ROWS)
    batches = (rows_to_batch(fields, rows[at : at + BATCH_ROWS]) for at in starts)
    return Stream(rows_to_batch(fields, []).schema, batches, value)


def describe_session(peer: Peer, arguments: Arguments | None = None) -> dict[str, Any]:
    session = peer.session
    return {
        "transaction": find_transaction_state(session),
        "zone": _describe_zone(session.settings.zone),
        "notices": peer.new_notices(),
    }


def _describe_zone(zone: datetime.tzinfo) -> str | int:
    """The name of a time zone, or its seconds east of UTC."""
    if isinstance(zone, zoneinfo.ZoneInfo):
        return zone.key
    return int((zone.utcoffset(None) or datetime.timedelta()).total_seconds())


def parse_zone(described: str | int) -> datetime.tzinfo:
    if isinstance(described, str):
        return zoneinfo.ZoneInfo(described)
    if not described:
        return datetime.UTC
    return datetime.timezone(datetime.timedelta(seconds=described))


def find_transaction_state(session: Session) -> str:
    state = session.transactions
    if state.open is None:
        return "none"
    return "failed" if state.failed else "open"


def commit_transaction(peer: Peer, arguments: Arguments) -> dict[str, Any]:
    peer.session.commit()
    return describe_session(peer)


def roll_back_transaction(peer: Peer, arguments: Arguments) -> dict[str, Any]:
    peer.session.rollback()
    return describe_session(peer)


def read_token(peer: Peer, arguments: Arguments) -> str:
    return peer.session.freshness_token


def cancel_statement(peer: Peer, arguments: Arguments) -> bool:
    """Stop the running statement of the session with this key; False when there is none."""
    session = peer.served_store.sessions.get(arguments.get_text("key"))
    if session is not None:
        session.cancel()
    return session is not None


def read_statement(arguments: Arguments) -> SentStatement:
    if arguments.has("statement"):
        data = arguments.get_bytes("statement")
    else:
        data = b"".join(part for batch in arguments.upload.batches for part in batch[0].to_pylist())
    try:
        return msgspec.msgpack.decode(data, type=SentStatement)
    except msgspec.MsgspecError as error:
        raise InvalidInput("not a statement", sqlstate="08P01", detail=str(error)[:200]) from error


VERBS: dict[str, Verb] = {
    "open_session": open_session,
    "configure": configure_session,
    "run": run_statement,
    "commit": commit_transaction,
    "rollback": roll_back_transaction,
    "session_state": describe_session,
    "token": read_token,
    "cancel": cancel_statement,
}
