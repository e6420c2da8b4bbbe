"""A request that reads one row by its key, answered by a thread that must not wait: `read_poller`.

The request is one that a client sends in one packet: the text of a query, or Bind to Sync of a
prepared statement. Anything else is left alone, and so is an error, for the client's own thread.
"""

from __future__ import annotations

from typing import Any

from belvedere.errors import Error
from belvedere.interfaces.server.messages import HEADER_BYTES, BodyReader, build_completion
from belvedere.interfaces.server.portals import Portals
from belvedere.interfaces.server.prepared_rounds import PreparedRound
from belvedere.interfaces.server.row_encoder import RowFormat, make_text_row_format
from belvedere.session.context.result import Result
from belvedere.session.prepared_text import try_run_prepared_point_read
from belvedere.session.session import Session
from belvedere.session.simple_query import try_run_simple_point_read
from belvedere.session.statement.parameters import ParameterTypesDiffer

ANSWER_BYTES_MAX = 32 * 1024
_BIND, _QUERY = map(ord, "BQ")


class PointReader:
    """Answers the point reads of one client, while no transaction is open."""

    def __init__(self, session: Session, portals: Portals) -> None:
        self._session = session
        self._portals = portals

    def answer_request(self, data: bytes) -> bytes | None:
        """The answer up to ReadyForQuery; None: it is another request, and nothing was done."""
        kind = data[0] if data else None
        if kind == _QUERY:
            return self._answer_text(data)
        found = self._portals.read_round(data) if kind == _BIND else None
        return None if found is None else self.answer_round(*found)

    def answer_round(self, known: PreparedRound, values: tuple[Any, ...]) -> bytes | None:
        """The same for a round that was read."""
        try:
            result = try_run_prepared_point_read(self._session, known.statement, values)
        except (Error, ParameterTypesDiffer):  # the usual way meets and tells it
            return None
        if result is None:
            return None
        self._portals.close_portals()
        return _build_answer(result, *known.get_formats(self._session.settings.zone))

    def _answer_text(self, data: bytes) -> bytes | None:
        if int.from_bytes(data[1:HEADER_BYTES], "big") != len(data) - 1:
            return None
        body = BodyReader(data[HEADER_BYTES:])
        try:
            text = body.read_text()
            result = try_run_simple_point_read(self._session, text) if body.is_at_end else None
        except (Error, ParameterTypesDiffer):
            return None
        if result is None or result.fields is None:
            return None
        self._portals.close_portal("")
        row_format = make_text_row_format(result.fields, self._session.settings.zone)
        return _build_answer(result, row_format.description, row_format)


def _build_answer(result: Result, prefix: bytes, row_format: RowFormat | None) -> bytes | None:
    rows = () if row_format is None else row_format.encode_rows(result.rows)
    completion = build_completion(result.tag, result.affected, len(result.rows))
    answer = b"".join((prefix, *rows, completion))
    return answer if len(answer) <= ANSWER_BYTES_MAX else None
