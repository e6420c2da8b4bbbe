"""Bind, Describe, Execute and Sync of a prepared statement that arrive together: a round.

Drivers run a prepared statement by these four messages in one packet (some leave out Describe; for
a statement without a name a Parse comes first), and from run to run nothing differs but the values.
A round keeps what does not differ as bytes:

    B length  "" name formats count   (size value)*   formats of results, Describe, Execute, Sync
              --------- head --------                 ------------------ tail -------------------

`read_values` compares both and decodes what is between. Data that differs in anything is for the
caller to read message by message, which also finds what is wrong with it.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable
from typing import Any

from belvedere.codec.compile import compile_function
from belvedere.interfaces.server.messages import (
    HEADER_BYTES,
    BodyReader,
    build_message,
    decode_text,
)
from belvedere.interfaces.server.row_encoder import RowFormat, expand_formats, make_row_format
from belvedere.session.prepared_text import PreparedText
from belvedere.types import Kind, SqlType
from belvedere.values.binary.decoders import make_binary_decoder

PARSE_COMPLETE = build_message(b"1")
BIND_COMPLETE = build_message(b"2")
NO_DATA = build_message(b"n")
_DESCRIBE = build_message(b"D", b"P\0")
_EXECUTE_AND_SYNC = build_message(b"E", bytes(5)) + build_message(b"S")
READERS_MAX = 1_000
_SAFE_DIGITS = {Kind.SMALLINT: 4, Kind.INTEGER: 9, Kind.BIGINT: 18}
"""As many digits are always in the range of the type."""

ReadValues = Callable[[bytes], tuple[Any, ...] | None]


class PreparedRound:
    """A round of `statement`, which has a plan. `formats` are those of its result."""

    __slots__ = (
        "_described",
        "_first",
        "_prefix",
        "_row_format",
        "_zone",
        "formats",
        "read_values",
        "statement",
    )

    def __init__(
        self,
        statement: PreparedText,
        read_values: ReadValues,
        formats: tuple[int, ...],
        *,
        described: bool,
        parsed: bool,
    ) -> None:
        self.statement = statement
        self.read_values = read_values
        self.formats = formats
        self._described = described
        self._first = PARSE_COMPLETE + BIND_COMPLETE if parsed else BIND_COMPLETE
        self._prefix = self._first + NO_DATA if described else self._first
        self._zone: datetime.tzinfo | None = None
        self._row_format: RowFormat | None = None

    def get_formats(self, zone: datetime.tzinfo) -> tuple[bytes, RowFormat | None]:
        """What is sent before any row, and how rows are sent; None: it returns none."""
        fields = self.statement.fields
        if fields is not None and self._zone is not zone:
            self._zone = zone
            origins = self.statement.origins
            self._row_format = made = make_row_format(fields, self.formats, zone, origins)
            self._prefix = self._first + made.description if self._described else self._first
        return self._prefix, self._row_format


def find_statement_name(data: bytes) -> bytes:
    """The name of the statement that data beginning with a Bind of the unnamed portal is for."""
    return data[HEADER_BYTES + 1 : data.find(b"\0", HEADER_BYTES + 1)]


def split_parse(data: bytes) -> tuple[bytes, bytes]:
    """The body of the Parse that data begins with, and what comes after it."""
    end = 1 + int.from_bytes(data[1:HEADER_BYTES], "big")
    return data[HEADER_BYTES:end], data[end:]


def learn_round(data: bytes, statement: PreparedText, *, parsed: bool) -> PreparedRound | None:
    """The round that data has the form of; None: of none, or something is wrong with it. `parsed`:
    a Parse came before it."""
    end = 1 + int.from_bytes(data[1:HEADER_BYTES], "big")
    rest = data[end:]
    described = rest == _DESCRIBE + _EXECUTE_AND_SYNC
    if statement.entry is None or not (described or rest == _EXECUTE_AND_SYNC):
        return None
    body = BodyReader(data[HEADER_BYTES:end])
    try:
        portal, _ = body.read_text(), body.read_text()
        codes = body.read_int16s()
        count = body.read_int16()
        head = data[HEADER_BYTES : HEADER_BYTES + body.at]
        for _ in range(count):
            body.read_value()
        tail_start = HEADER_BYTES + body.at
        results = body.read_int16s()
        body.require_end()
        formats = expand_formats(results, len(statement.fields or ()))
        types = tuple(zip(statement.parameters, expand_formats(codes, count), strict=True))
    except ValueError:  # another number of parameters
        return None
    if portal:
        return None
    tail = data[tail_start:]
    read_values = _compile_reader(types, head, tail, end - tail_start)
    return PreparedRound(statement, read_values, formats, described=described, parsed=parsed)


@functools.lru_cache(READERS_MAX)
def _compile_reader(
    types: tuple[tuple[SqlType, int], ...], head: bytes, tail: bytes, results: int
) -> ReadValues:
    """Straight code for values of these types and formats. Sizes are not trusted: a wrong one
    leaves something else than the tail."""
    at = HEADER_BYTES + len(head)
    lines = [f"if not data.startswith(HEAD, {HEADER_BYTES}): return None", f"at = {at}"]
    names = [f"v{place}" for place in range(len(types))]
    for name in names:
        lines += [
            "size = to_int(data[at : at + 4], 'big')",
            "at += 4",
            f"if size == {0xFFFFFFFF}: {name} = None",
            f"else: {name} = data[at : at + size]; at += size",
        ]
    lines += [
        f"if data[at:] != TAIL or to_int(data[1:{HEADER_BYTES}], 'big') != at + {results - 1}:"
    ]
    lines += ["    return None"]
    for name, (sql_type, code) in zip(names, types):
        lines.append(f"if {name} is not None: {name} = {_decoding_source(name, sql_type, code)}")
    lines.append(f"return ({''.join(f'{name}, ' for name in names)})")
    space: dict[str, Any] = {"HEAD": head, "TAIL": tail, "to_int": int.from_bytes}
    for name, (sql_type, code) in zip(names, types):
        space[f"decode_{name}"] = make_binary_decoder(sql_type) if code else decode_text
    return compile_function("read_values", "data", lines, space)


def _decoding_source(name: str, sql_type: SqlType, code: int) -> str:
    """Text stays text, which the statement reads as its type, but for usual texts of integers."""
    digits = _SAFE_DIGITS.get(sql_type.kind)
    if code or digits is None:
        return f"decode_{name}({name})"
    usual = f"{name}.isdigit() and len({name}) <= {digits}"
    return f"int({name}) if {usual} else decode_{name}({name})"
