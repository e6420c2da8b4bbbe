r"""Compound keys as ordered bytes: order(a, b) = order(encode a, encode b).

A key is the codec's prefix, then the columns one after the other, each a tag byte and a payload
(`codec.key_parts`):

| tag | ascending | descending |
|---|---|---|
| value | 01 | FE |
| NULL, first | 00 | FD |
| NULL, last | 02 | FF |

NULLs come last ascending and first descending unless the column says otherwise, as in PostgreSQL.

Invariants: no encoding is a prefix of another one of the same columns; all keys that agree in the
first k columns are one range; values that are equal in SQL are equal bytes (1.0 and 1.00, 0.0 and
-0.0, 'a' and 'a ' as CHAR, one month and 30 days), so decoding gives back the canonical one. A
codec with `long` keeps long values by a digest, which has no order: `codec.scalars`.

    KeyCodec((KeyColumn(BIGINT), KeyColumn(TEXT))).encode((7, "a"))
    01 80 00 00 00 00 00 00 07  01 61 00 00
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from belvedere.codec.compile import compile_function, indent
from belvedere.codec.encoding_errors import DECODE_ERRORS, ENCODE_ERRORS, raise_invalid_value
from belvedere.codec.key_parts import CONSTANTS, KeyPartSource, key_part_of
from belvedere.codec.keyspace import next_prefix
from belvedere.codec.scalars import LongValues
from belvedere.errors import Corruption, InvalidInput
from belvedere.types import Kind, Row, SqlType

INTEGER_KINDS = frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT})
INTEGER_KEY_BYTES = 9
"""Of an integer in a key: its tag and its number."""
_SIGN = 1 << 63
_BIG = struct.Struct(">Q")

KeyRange = tuple[bytes, bytes | None]
"""start <= key < end; None: no end, which cannot happen below a prefix of the key space."""


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """`nulls_first` None means PostgreSQL's default: NULLs are larger than every value."""

    type: SqlType
    descending: bool = False
    nulls_first: bool | None = None

    @property
    def value_tag(self) -> bytes:
        return b"\xfe" if self.descending else b"\x01"

    @property
    def null_tag(self) -> bytes:
        first = self.descending if self.nulls_first is None else self.nulls_first
        if self.descending:
            return b"\xfd" if first else b"\xff"
        return b"\x00" if first else b"\x02"


class KeyCodec:
    """The keys of one relation. Immutable; its functions are compiled on first use."""

    def __init__(
        self, columns: tuple[KeyColumn, ...], prefix: bytes = b"", long: LongValues | None = None
    ) -> None:
        self.columns = columns
        self.prefix = prefix
        self.long = long
        self.types = tuple(column.type for column in columns)
        cut = None if long is None else long.cut
        self._parts = tuple(key_part_of(one.type, one.descending, cut) for one in columns)
        self._prefix_encoders: dict[int, Callable[[Row], bytes]] = {}
        self._column_encoders: dict[int, Callable[[Any], bytes]] = {}

    @cached_property
    def exact(self) -> KeyCodec:
        """The same keys with every value whole: what a store may not take, but in order."""
        return self if self.long is None else KeyCodec(self.columns, self.prefix)

    @cached_property
    def encode(self) -> Callable[[Row], bytes]:
        """The key of a full tuple of values, prefix included."""
        return self._compile_encoder(len(self.columns))

    @cached_property
    def encode_first(self) -> Callable[[Any], bytes]:
        """Like `encode`, of the bare value of the first column; further columns are left open."""
        lines = _column_source(0, self._parts[0], "value")
        lines += ["return k0"]
        return self._compile_guarded("encode1", "value", lines, 1, "(value,)")

    def inline_encode(self, values: str, name: Callable[[Any], str]) -> str:
        """An expression for generated code that gives the key of a tuple of values: written inline
        where the key is one integer, else a call of `encode`. `name` returns the variable by which
        the generated text refers to an object."""
        usual = f"{name(self.encode)}({values})"
        kinds = [column.type.kind for column in self.columns]
        if len(kinds) != 1 or kinds[0] not in INTEGER_KINDS or self.columns[0].descending:
            return usual
        head = name(self.prefix + self.columns[0].value_tag)
        inside = f"{-_SIGN} <= {values}[0] < {_SIGN}"
        placed = f"{head} + {name(_BIG.pack)}({values}[0] + {_SIGN})"
        return f"({placed} if {values}[0].__class__ is int and {inside} else {usual})"

    @cached_property
    def decode(self) -> Callable[[bytes], Row]:
        """The canonical values of a key. Corruption when the bytes are no key of this codec."""
        count = len(self.columns)
        lines = ["if not key.startswith(PREFIX): raise ValueError", f"p = {len(self.prefix)}"]
        for index, (column, part) in enumerate(zip(self.columns, self._parts)):
            lines += _read_source(index, column, part)
        values = "".join(f"v{index}, " for index in range(count))
        lines += ["if p != len(key): raise ValueError", f"return ({values})"]
        body = ["try:", *indent(lines), "except DECODE_ERRORS as error:"]
        body += ["    raise Corruption('key cannot be decoded', key=key.hex()) from error"]
        space = CONSTANTS | {"PREFIX": self.prefix}
        space |= {"DECODE_ERRORS": DECODE_ERRORS, "Corruption": Corruption}
        return compile_function("decode", "key", body, space)

    @cached_property
    def first_column_end(self) -> Callable[[bytes], int]:
        """Where the first column of a key, or of a bound of a range, ends. Corruption when the
        first column is incomplete."""
        lines = ["if not key.startswith(PREFIX): raise ValueError", f"p = {len(self.prefix)}"]
        lines += _read_source(0, self.columns[0], self._parts[0])
        lines += ["if p > len(key): raise ValueError", "return p"]
        body = ["try:", *indent(lines), "except DECODE_ERRORS as error:"]
        body += ["    raise Corruption('key has no first column', key=key.hex()) from error"]
        space = CONSTANTS | {"PREFIX": self.prefix}
        space |= {"DECODE_ERRORS": DECODE_ERRORS, "Corruption": Corruption}
        return compile_function("first_end", "key", body, space)

    def encode_prefix(self, values: Row) -> bytes:
        """The common prefix of all keys whose first columns have these values."""
        count = len(values)
        encoder = self._prefix_encoders.get(count)
        if encoder is None:
            if count > len(self.columns):
                raise_invalid_value(self.types, values, stored=False)
            encoder = self.compile_prefix_encoder(count)
        return encoder(values)

    def compile_prefix_encoder(self, count: int) -> Callable[[Row], bytes]:
        """The function that `encode_prefix` calls for so many values."""
        if count not in self._prefix_encoders:
            self._prefix_encoders[count] = self._compile_encoder(count)
        return self._prefix_encoders[count]

    def prefix_range(self, values: Row) -> KeyRange:
        """Every key whose first columns have these values; None stands for NULL."""
        start = self.encode_prefix(values)
        return start, next_prefix(start)

    def bounded_range(
        self,
        prefix_values: Row,
        low: Any = None,
        low_inclusive: bool = True,
        high: Any = None,
        high_inclusive: bool = True,
    ) -> KeyRange:
        """Keys with these first values whose next column lies between the bounds; None: no bound.

        A bounded range holds no NULLs, as no comparison with NULL is true; without any bound it is
        `prefix_range`. Use `null_range` and `not_null_range` for IS NULL and IS NOT NULL.
        """
        if low is None and high is None:
            return self.prefix_range(prefix_values)
        start, end = self.not_null_range(prefix_values)
        base = self.encode_prefix(prefix_values)
        index = len(prefix_values)
        first, last = (low, low_inclusive), (high, high_inclusive)
        if self.columns[index].descending:
            first, last = last, first
        if first[0] is not None:
            bound = base + self.encode_column(index, first[0])
            start = bound if first[1] else _end_after(bound)
        if last[0] is not None:
            bound = base + self.encode_column(index, last[0])
            end = _end_after(bound) if last[1] else bound
        if end is not None and start > end:
            return start, start
        return start, end

    def null_range(self, prefix_values: Row) -> KeyRange:
        """Keys with these first values whose next column is NULL."""
        column = self._next_column(prefix_values)
        start = self.encode_prefix(prefix_values) + column.null_tag
        return start, next_prefix(start)

    def not_null_range(self, prefix_values: Row) -> KeyRange:
        """Keys with these first values whose next column is not NULL."""
        column = self._next_column(prefix_values)
        start = self.encode_prefix(prefix_values) + column.value_tag
        return start, next_prefix(start)

    def encode_column(self, index: int, value: Any) -> bytes:
        """Tag and payload of one column, without prefix and neighbours."""
        encoder = self._column_encoders.get(index)
        if encoder is None:
            encoder = KeyCodec((self.columns[index],), long=self.long).encode_first
            self._column_encoders[index] = encoder
        return encoder(value)

    def _next_column(self, prefix_values: Row) -> KeyColumn:
        if len(prefix_values) >= len(self.columns):
            raise InvalidInput(
                "no key column is left for a range",
                sqlstate="42601",
                columns=len(self.columns),
                found=len(prefix_values),
            )
        return self.columns[len(prefix_values)]

    def _compile_encoder(self, count: int) -> Callable[[Row], bytes]:
        if count == 0:
            lines = ["() = values", "return H0"]
        else:
            lines = ["".join(f"v{index}, " for index in range(count)) + "= values"]
            for index in range(count):
                lines += _column_source(index, self._parts[index], f"v{index}")
            lines += ["return " + " + ".join(f"k{index}" for index in range(count))]
        return self._compile_guarded("encode", "values", lines, count, "values")

    def _compile_guarded(
        self, name: str, parameter: str, lines: list[str], count: int, values: str
    ) -> Callable[..., Any]:
        body = ["try:", *indent(lines), "except ENCODE_ERRORS as error:"]
        body += [f"    refuse(TYPES, {values}, stored=False, cause=error)"]
        space = CONSTANTS | {"ENCODE_ERRORS": ENCODE_ERRORS, "refuse": raise_invalid_value}
        space |= {"TYPES": self.types[:count], "H0": self.prefix}
        for index, column in enumerate(self.columns[:count]):
            before = self.prefix if index == 0 else b""
            space[f"H{index}"] = before + column.value_tag
            space[f"N{index}"] = before + column.null_tag
            space[f"pack{index}"] = struct.Struct(f">{len(before) + 1}sQ").pack
        return compile_function(name, parameter, body, space)


def _column_source(index: int, part: KeyPartSource, variable: str) -> list[str]:
    """Lines that set k{index} to the column's bytes, constant head included."""
    if part.number is not None:
        result = f"pack{index}(H{index}, {part.number})"
    else:
        result = f"H{index} + {part.payload}"
    lines = [f"if {variable} is None: k{index} = N{index}", "else:"]
    lines += indent([*part.prepare, f"k{index} = {result}"])
    return [line.replace("{v}", variable) for line in lines]


def _read_source(index: int, column: KeyColumn, part: KeyPartSource) -> list[str]:
    lines = ["t = key[p]; p += 1", f"if t == {column.value_tag[0]}:"]
    lines += indent(line.replace("{v}", f"v{index}") for line in part.read)
    lines += [f"elif t == {column.null_tag[0]}: v{index} = None", "else: raise ValueError"]
    return lines


def _end_after(bound: bytes) -> bytes:
    """The first key after all keys that start with `bound`."""
    end = next_prefix(bound)
    assert end is not None, "a bound holds a value tag, which is never 0xff"
    return end
