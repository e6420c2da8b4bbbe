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

    `words` are the words of the null bitmap, each with the number of its first slot. `fields[i]` is
    slot i: its bytes when it is fixed, its end offset when it is variable. `before[i]` is the end
    offset at which variable slot i starts, None for the first. `tail` is where the tail begins.
    """

    count: int
    words: tuple[tuple[int, RowField], ...]
    fields: tuple[RowField, ...]
    before: tuple[RowField | None, ...]
    tail: int

    def null_bit_of(self, slot: int) -> tuple[RowField, int]:
        """The bitmap word that holds the slot's bit, and the bit."""
        first, word = max(
            (item for item in self.words if item[0] <= slot), key=lambda item: item[0]
        )
        return word, 1 << slot - first


def shape_of(codes: tuple[SlotCode, ...]) -> RowShape:
    count = len(codes)
    offset = 2
    words: list[tuple[int, RowField]] = []
    left = (count + 7) // 8
    for width, form in _WORDS:
        while left >= width:
            words.append(((offset - 2) * 8, RowField(f"b{len(words)}", offset, form)))
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
        tuple(fields[index] for index in slots),
        tuple(before.get(index) for index in slots),
        offset,
    )


def all_fields(shape: RowShape) -> list[RowField]:
    fields = [RowField("k", 0, "H"), *(word for _, word in shape.words), *shape.fields]
    return sorted(fields, key=lambda field: field.offset)


def struct_of(fields: list[RowField], size: int | None) -> struct.Struct:
    """A struct that reads the fields and skips what is between them."""
    formats, offset = ["<"], 0
    for field in fields:
        formats.append(f"{field.offset - offset}x{field.format}")
        offset = field.offset + field.width
    assert size is None or size == offset
    return struct.Struct("".join(formats))
