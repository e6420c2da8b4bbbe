"""Verbs of queries whose rows another process fetches as they are computed.

open_stream    statement | upload     its number, and its fields
fetch_stream   number, rows           at most so many rows; fewer at its end
close_stream   number
"""

from __future__ import annotations

from typing import Any

from belvedere.errors import InvalidInput
from belvedere.interfaces.verbs.peer import Arguments, Peer, Verb
from belvedere.interfaces.verbs.plain_values import decode_values
from belvedere.interfaces.verbs.sessions import answer_with_result, describe_session, read_statement
from belvedere.interfaces.verbs.wire import describe_fields
from belvedere.session.context.result import Result
from belvedere.session.query_stream import QueryStream, open_query_stream


def open_stream(peer: Peer, arguments: Arguments) -> dict[str, Any]:
    statement = read_statement(arguments)
    parameters = decode_values(statement.parameters)
    stream = open_query_stream(peer.session, statement.sql, parameters, statement.freshness)
    number = peer.add_stream(stream)
    return {"number": number, "fields": describe_fields(stream.fields), **describe_session(peer)}


def fetch_stream(peer: Peer, arguments: Arguments) -> object:
    number, count = arguments.get_number("number"), arguments.get_number("rows")
    stream = _require_stream(peer, number)
    try:
        rows = stream.fetch_rows(count)
    except BaseException:
        del peer.streams[number]
        raise
    if len(rows) < count:
        del peer.streams[number]
    return answer_with_result(peer, Result("FETCH", stream.fields, rows, len(rows)))


def close_stream(peer: Peer, arguments: Arguments) -> None:
    stream = peer.streams.pop(arguments.get_number("number"), None)
    if stream is not None:
        stream.close()


def _require_stream(peer: Peer, number: int) -> QueryStream:
    found = peer.streams.get(number)
    if found is None:
        raise InvalidInput("the stream has ended", sqlstate="24000", number=number)
    return found


VERBS: dict[str, Verb] = {
    "open_stream": open_stream,
    "fetch_stream": fetch_stream,
    "close_stream": close_stream,
}
