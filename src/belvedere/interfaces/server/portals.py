"""Prepared statements and portals of one client, by the names that it gives them.

A portal is a statement with its parameters. It runs at its first Execute; the rows that a row limit
holds back are kept for the next one, until the transaction in which it was made ends.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from belvedere.errors import Error, InvalidInput
from belvedere.interfaces.server.messages import BodyReader, decode_text
from belvedere.interfaces.server.prepared_rounds import (
    PreparedRound,
    find_statement_name,
    learn_round,
    split_parse,
)
from belvedere.interfaces.server.row_encoder import expand_formats
from belvedere.session.context.result import Result
from belvedere.session.prepared_text import PreparedText, can_skip_parse
from belvedere.session.session import Session
from belvedere.types import Row
from belvedere.values.binary.decoders import make_binary_decoder


class Portal:
    """`statement` is None for an empty text."""

    __slots__ = ("formats", "result", "sent", "statement", "values")

    def __init__(
        self, statement: PreparedText | None, values: tuple[Any, ...], formats: tuple[int, ...]
    ) -> None:
        self.statement = statement
        self.values = values
        self.formats = formats
        self.result: Result | None = None
        self.sent = 0

    def take_rows(self, limit: int) -> tuple[Sequence[Row], bool]:
        """The next rows of the result, at most `limit` if that is not 0, and whether it has no
        more."""
        result = self.result
        assert result is not None
        if result.stream is not None:
            found = result.stream.fetch_rows(limit or sys.maxsize)
            self.sent += len(found)
            return found, not limit or len(found) < limit
        end = self.sent + limit if limit else len(result.rows)
        rows = result.rows[self.sent : end] if self.sent or end < len(result.rows) else result.rows
        self.sent += len(rows)
        return rows, self.sent >= len(result.rows)

    def close(self) -> None:
        if self.result is not None and self.result.stream is not None:
            self.result.stream.close()


PARSED_MAX = 100
PARSED_BYTES_MAX = 10_000
_PARSE = ord("P")


class Portals:
    """The statements and portals of a client, and the rounds of its statements: by the name of the
    statement, or by the body of the Parse of one that has no name."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._parsed: dict[bytes, PreparedText] = {}
        self._statements: dict[str, PreparedText | None] = {}
        self._portals: dict[str, Portal] = {}
        self._rounds: dict[bytes, PreparedRound] = {}

    def add_statement(self, name: str, statement: PreparedText | None) -> None:
        if name and name in self._statements:
            raise InvalidInput("prepared statement already exists", sqlstate="42P05", name=name)
        self._statements[name] = statement

    def require_statement(self, name: str) -> PreparedText | None:
        if name not in self._statements:
            raise InvalidInput("prepared statement does not exist", sqlstate="26000", name=name)
        return self._statements[name]

    def close_statement(self, name: str) -> None:
        self._statements.pop(name, None)
        self._rounds.pop(name.encode(), None)

    def forget_statements(self) -> None:
        self._statements.clear()
        self._parsed.clear()
        self._rounds.clear()

    def read_round(self, data: bytes) -> tuple[PreparedRound, tuple[Any, ...]] | None:
        """The round that the data is, and its values; None: it is to be read message by message,
        which also tells the client what is wrong with it."""
        try:
            if data[0] == _PARSE:
                return self._read_parsed_round(data)
            name = find_statement_name(data)
            known = self._rounds.get(name)
            if known is not None and (values := known.read_values(data)) is not None:
                return known, values
            statement = self._statements.get(name.decode())
            return self._learn_round(name, data, statement)
        except (Error, UnicodeDecodeError):
            return None

    def keep_parsed(self, body: bytes, statement: PreparedText) -> None:
        """Keep what the body of a Parse without a name has given, for the next such Parse."""
        if len(body) <= PARSED_BYTES_MAX and statement.entry is not None:
            if len(self._parsed) >= PARSED_MAX:
                self._parsed.clear()
                self._rounds.clear()
            self._parsed[body] = statement
            self._rounds.pop(body, None)  # that of an earlier plan

    def _read_parsed_round(self, data: bytes) -> tuple[PreparedRound, tuple[Any, ...]] | None:
        parse, rest = split_parse(data)
        statement = self._parsed.get(parse)
        if statement is None or not rest or find_statement_name(rest):
            return None
        if self._session.transactions.failed or not can_skip_parse(self._session, statement):
            return None
        known = self._rounds.get(parse)
        values = None if known is None else known.read_values(rest)
        if known is None or values is None:
            found = self._learn_round(parse, rest, statement)
        else:
            found = known, values
        if found is not None:
            self.close_statement("")
            self._statements[""] = statement
        return found

    def _learn_round(
        self, key: bytes, data: bytes, statement: PreparedText | None
    ) -> tuple[PreparedRound, tuple[Any, ...]] | None:
        if statement is None:
            return None
        learned = learn_round(data, statement, parsed=key[:1] == b"\0")
        values = None if learned is None else learned.read_values(data)
        if learned is None or values is None:
            return None
        self._rounds[key] = learned
        return learned, values

    def add_portal(self, name: str, portal: Portal) -> None:
        if name in self._portals:
            raise InvalidInput("portal already exists", sqlstate="42P03", name=name)
        self._portals[name] = portal

    def replace_unnamed(self, portal: Portal) -> None:
        self.close_portal("")
        self._portals[""] = portal

    def require_portal(self, name: str) -> Portal:
        if name not in self._portals:
            raise InvalidInput("portal does not exist", sqlstate="34000", name=name)
        return self._portals[name]

    def close_portal(self, name: str) -> None:
        portal = self._portals.pop(name, None)
        if portal is not None:
            portal.close()

    def close_portals(self) -> None:
        for portal in self._portals.values():
            portal.close()
        self._portals.clear()


def read_portal(body: BodyReader, statement: PreparedText | None) -> Portal:
    """The rest of a Bind message: formats and values of parameters, formats of results."""
    codes = body.read_int16s()
    given = [body.read_value() for _ in range(body.read_int16())]
    results = body.read_int16s()
    body.require_end()
    types = () if statement is None else statement.parameters
    if len(given) != len(types):
        raise InvalidInput(
            "wrong number of parameters", sqlstate="08P01", wanted=len(types), given=len(given)
        )
    fields = None if statement is None else statement.fields
    values = _decode_parameters(types, expand_formats(codes, len(given)), given)
    return Portal(statement, values, expand_formats(results, len(fields or ())))


def _decode_parameters(
    types: Sequence[Any], formats: Sequence[int], given: Sequence[bytes | None]
) -> tuple[Any, ...]:
    """Text stays text, which the statement reads as its type."""
    values: list[Any] = []
    for sql_type, code, data in zip(types, formats, given):
        if data is None:
            values.append(None)
        elif code:
            values.append(make_binary_decoder(sql_type)(data))
        else:
            values.append(decode_text(data))
    return tuple(values)
