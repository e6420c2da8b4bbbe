"""Offsets of all fields of a row with a given number of slots (`codec.rows` has the format)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from belvedere.codec.row_slots import SlotCode

_WORDS = ((8, "Q"), (4, "I"), (2, "H"), (1, "B"))


@dataclass(frozen=True, slots=True)
class RowField:
    """A field at a fixed offset of a row: its name in generated source, offset, struct format."""

    name: str
    offset: int
    format: str

    @property
    def width(self) -> int:
        return struct.calcsize("<" + self.format)


@dataclass(frozen=True, slots=True)
class RowShape:
    """The offsets of all fields of a row of `count` slots.

    `words` are the words of the null bitmap; `null_bits[i]` is the one that holds the bit of slot
    i, and the bit. `fields[i]` is slot i: its bytes when it is fixed, its end offset when it is
    variable. `before[i]` is the end offset at which variable slot i starts, None for the first.
    `tail` is where the tail begins.
    """

    count: int
    words: tuple[RowField, ...]
    null_bits: tuple[tuple[RowField, int], ...]
    fields: tuple[RowField, ...]
    before: tuple[RowField | None, ...]
    tail: int


def shape_of(codes: tuple[SlotCode, ...]) -> RowShape:
    count = len(codes)
    offset = 2
    words: list[RowField] = []
    null_bits: list[tuple[RowField, int]] = []
    left = (count + 7) // 8
    for width, form in _WORDS:
        while left >= width:
            word = RowField(f"b{len(words)}", offset, form)
            words.append(word)
            null_bits += [(word, 1 << bit) for bit in range(8 * width)]
            offset, left = offset + width, left - width
    fields: dict[int, RowField] = {}
    for index, code in enumerate(codes):
        if code.format is not None:
            fields[index] = RowField(f"x{index}", offset, code.format)
            offset += fields[index].width
    before: dict[int, RowField | None] = {}
    last: RowField | None = None
    for index, code in enumerate(codes):
        if code.format is None:
            before[index] = last
            last = fields[index] = RowField(f"e{index}", offset, "I")
            offset += 4
    slots = range(count)
    return RowShape(
        count,
        tuple(words),
        tuple(null_bits[:count]),
        tuple(fields[index] for index in slots),
        tuple(before.get(index) for index in slots),
        offset,
    )


def all_fields(shape: RowShape) -> list[RowField]:
    fields = [RowField("k", 0, "H"), *shape.words, *shape.fields]
    return sorted(fields, key=lambda field: field.offset)


def struct_of(fields: list[RowField], size: int | None) -> struct.Struct:
    """A struct that reads the fields and skips what is between them."""
    formats, offset = ["<"], 0
    for field in fields:
        formats.append(f"{field.offset - offset}x{field.format}")
        offset = field.offset + field.width
    assert size is None or size == offset
    return struct.Struct("".join(formats))
