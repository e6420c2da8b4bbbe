"""Rows as bytes: fixed offsets, so that one column is read without the others.

- u16 k: how many slots the row has
- null bitmap, (k + 7) // 8 bytes: bit i % 8 of byte i // 8 is 1 when slot i is NULL
- fixed area: the fixed-width slots in slot order, zero where NULL
- for every variable slot, in slot order: u32 end of its bytes in the tail
- tail: the variable slots' bytes, one after the other

All integers little-endian; `codec.row_slots` says how each type is stored. The value holds the
entire row, key columns included, so that 1.00 keeps its scale and a scan reads only values.

Slots are only ever appended. A dropped column keeps its slot and is written NULL from then on. A
row with fewer slots than the layout was written before the others were added, and reads as their
missing values; a row with more slots is Corruption.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

from belvedere.codec.compile import compile_function, indent
from belvedere.codec.encoding_errors import DECODE_ERRORS, ENCODE_ERRORS, raise_invalid_value
from belvedere.codec.row_shape import RowField, RowShape, all_fields, shape_of, struct_of
from belvedere.codec.row_slots import CONSTANTS, PLAIN_LOAD, TEXT_LOAD, SlotCode, slot_code
from belvedere.errors import Corruption, InvalidInput
from belvedere.types import Row, SqlType

SLOTS_MAX = 1600
TEXTS_MIN = 3
"""From this many texts of a row on, they are decoded together."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One column in a row; `missing_value` is what rows older than the column read as."""

    type: SqlType
    missing_value: Any = None


class RowLayout:
    """Encodes and decodes the rows of one relation. Functions are compiled on first use."""

    def __init__(self, slots: tuple[Slot, ...]) -> None:
        if len(slots) > SLOTS_MAX:
            raise InvalidInput(
                "too many columns", sqlstate="54011", found=len(slots), limit=SLOTS_MAX
            )
        self.slots = slots
        self.types = tuple(slot.type for slot in slots)
        self.codes = tuple(slot_code(slot.type, index) for index, slot in enumerate(slots))
        self._shapes: dict[int, RowShape] = {}
        self._projectors: dict[tuple[int, ...], Callable[[bytes], Row]] = {}
        self._getters: dict[int, Callable[[bytes], Any]] = {}
        self._constants = CONSTANTS | {
            name: value for code in self.codes for name, value in code.constants
        }
        self._constants |= {f"M{i}": slot.missing_value for i, slot in enumerate(slots)}

    @cached_property
    def encode(self) -> Callable[[Row], bytes]:
        """The bytes of a row, a tuple with a value for every slot."""
        return self._compile_encoder(())

    def required_encoder(self, required: tuple[int, ...]) -> Callable[[Row], bytes | None]:
        """The same encoder for rows that must not be NULL in these slots: None for one that is."""
        return self._compile_encoder(required)

    def _compile_encoder(self, required: tuple[int, ...]) -> Callable[[Row], Any]:
        shape = self.shape_for(len(self.slots))
        lines = [("".join(f"v{i}, " for i in range(shape.count)) or "() ") + "= row"]
        lines += [f"{word.name} = 0" for word in shape.words]
        for index, code in enumerate(self.codes):
            lines += _store_source(shape, index, code)
        if required:
            lines.append(f"if {_null_test(shape, required)}: return None")
        lines += _pack_source(shape, self.codes)
        body = ["try:", *indent(lines), "except ENCODE_ERRORS as error:"]
        body += ["    refuse(TYPES, row, stored=True, cause=error)"]
        space = self._constants | {"ENCODE_ERRORS": ENCODE_ERRORS, "refuse": raise_invalid_value}
        space |= {"TYPES": self.types, "pack": struct_of(all_fields(shape), shape.tail).pack}
        return compile_function("encode", "row", body, space)

    def patcher(self, indexes: tuple[int, ...]) -> Callable[..., bytes | None] | None:
        """A function (row, *values) that replaces the values of these slots in the bytes of a row
        without looking at the others; None from it: where a value is NULL, does not fit, or the row
        has fewer slots, the row has to be encoded. None: a slot has no fixed place."""
        codes = [self.codes[index] for index in indexes]
        if not indexes or any(code.store != "{v}" or code.format is None for code in codes):
            return None
        shape = self.shape_for(len(self.slots))
        places = sorted(indexes, key=lambda index: shape.fields[index].offset)
        fields = [shape.fields[index] for index in places]
        names = ", ".join(f"v{index}" for index in indexes)
        kinds = [
            f"v{index}.__class__ is not {'float' if code.format == 'd' else 'int'}"
            for index, code in zip(indexes, codes)
        ]
        masks = _null_masks(shape, indexes)
        words = sorted({shape.null_bits[index][0] for index in indexes}, key=lambda w: w.offset)
        head = [RowField("k", 0, "H"), *words]
        values = [f"v{index}" for index in places]
        cleared = [f"{word.name} & {~masks[word.name]}" for word in words]
        space: dict[str, Any] = {"unpack": struct_of(head, None).unpack_from, "error": struct.error}
        lines = [
            f"if {' or '.join(kinds)}: return None",
            f"{', '.join(field.name for field in head)}, = unpack(row)",
            f"if k != {len(self.slots)}: return None",
            f"if not ({_null_test(shape, places)}): "
            + _splice_source(fields, values, "pack", space),
            _splice_source([*words, *fields], [*cleared, *values], "fill", space),
        ]
        body = ["try:", *indent(lines), "except error: return None"]
        return compile_function("patch", f"row, {names}", body, space)

    @cached_property
    def decode(self) -> Callable[[bytes], Row]:
        """The values of every slot. Corruption when the bytes are no row of this layout."""
        return self._row_reader(tuple(range(len(self.slots))), bare=False)

    def getter(self, index: int) -> Callable[[bytes], Any]:
        """A function that decodes one slot."""
        if index not in self._getters:
            self._getters[index] = self._row_reader((index,), bare=True)
        return self._getters[index]

    def projector(self, indexes: tuple[int, ...]) -> Callable[[bytes], Row]:
        """A function that decodes only these slots, in this order."""
        if indexes not in self._projectors:
            self._projectors[indexes] = self._row_reader(indexes, bare=False)
        return self._projectors[indexes]

    def equality_test(self, indexes: tuple[int, ...]) -> Callable[[bytes, bytes], bool]:
        """A function that tells whether two rows have equal values in these slots. Nothing is
        decoded where the slots are of fixed width and the rows have the same bytes up to them."""
        project = self.projector(tuple(sorted(set(indexes))))
        shape = self.shape_for(len(self.slots))
        if not indexes or any(self.codes[index].format is None for index in indexes):
            return lambda one, other: project(one) == project(other)
        fields = [shape.fields[index] for index in indexes]
        end = max(field.offset + field.width for field in fields)
        return lambda one, other: one[:end] == other[:end] or project(one) == project(other)

    def inline_decode(
        self, indexes: tuple[int, ...], row: str, results: list[str], name: Callable[[Any], str]
    ) -> list[str]:
        """Lines of generated code that set `results` to what the projector of these slots returns
        for `row`: unpacked inline where all slots are of fixed width and none is NULL. `name`
        returns the variable by which the generated lines refer to an object."""
        if not indexes:
            return []
        usual = f"{', '.join(results)}, = {name(self.projector(indexes))}({row})"
        codes = [self.codes[index] for index in indexes]
        plain = all(code.format is not None and code.load == PLAIN_LOAD for code in codes)
        if not plain or len(set(indexes)) < len(indexes):
            return [usual]
        shape, placed = self.shape_for(len(self.slots)), dict(zip(indexes, results, strict=True))
        fields = _needed_fields(shape, sorted(indexes))
        named = {f"x{index}": result for index, result in placed.items()}
        targets = ", ".join(named.get(field.name, field.name) for field in fields)
        return [
            f"try: {targets} = {name(struct_of(fields, None).unpack_from)}({row})",
            f"except {name(struct.error)}: k = -1",
            f"if k != {len(self.slots)} or {_null_test(shape, indexes)}: {usual}",
        ]

    def shape_for(self, count: int) -> RowShape:
        """The field offsets of a row that has the first `count` slots."""
        if count not in self._shapes:
            self._shapes[count] = shape_of(self.codes[:count])
        return self._shapes[count]

    def _row_reader(self, indexes: tuple[int, ...], *, bare: bool) -> Callable[[bytes], Any]:
        """A reader of rows with all slots; it passes rows with fewer slots to `other`, which
        compiles a reader for each slot count on first use."""
        older: dict[int, Callable[[bytes], Any]] = {}

        def read_older_row(row: bytes, cause: Exception | None = None) -> Any:
            count = _slot_count(row)
            if count >= len(self.slots):
                _refuse_row(row, len(self.slots), cause)
            if count not in older:
                older[count] = self._compile_reader(count, indexes, bare, raise_undecodable)
            return older[count](row)

        def raise_undecodable(row: bytes, cause: Exception | None = None) -> NoReturn:
            _refuse_row(row, len(self.slots), cause)

        return self._compile_reader(len(self.slots), indexes, bare, read_older_row)

    def _compile_reader(
        self, count: int, indexes: tuple[int, ...], bare: bool, other: Callable[..., Any]
    ) -> Callable[[bytes], Any]:
        shape = self.shape_for(count)
        needed = sorted({index for index in indexes if index < count})
        fields = _needed_fields(shape, needed)
        names = "".join(f"{field.name}, " for field in fields)
        lines = [f"{names}= unpack(row)", f"if k != {count}: return other(row)"]
        lines += _check_source(shape, self.codes[:count], needed)
        values = [self._load_source(shape, index) for index in indexes]
        test = _null_test(shape, needed)
        if test:
            whole = self._load_texts_source(shape, indexes, bare)
            lines += [
                f"if not ({test}):",
                *indent([*whole, f"return {_result_source(values, bare)}"]),
            ]
        nullable = [_nullable_source(shape, index, value) for index, value in zip(indexes, values)]
        lines += [f"return {_result_source(nullable, bare)}"]
        body = ["try:", *indent(lines), "except DECODE_ERRORS as error:"]
        body += ["    return other(row, error)"]
        space = self._constants | {"DECODE_ERRORS": DECODE_ERRORS, "other": other}
        space["unpack"] = struct_of(fields, None).unpack_from
        return compile_function("decode", "row", body, space)

    def _load_texts_source(
        self, shape: RowShape, indexes: tuple[int, ...], bare: bool
    ) -> list[str]:
        """Lines that decode several texts at once: an ASCII tail, the usual case, is decoded in one
        call and sliced, which is half the work."""
        variable = [i for i in range(shape.count) if self.codes[i].format is None]
        wanted = [index for index in indexes if index in variable]
        if len(wanted) < TEXTS_MIN or 2 * len(wanted) < len(variable):
            return []
        if any(self.codes[index].load != TEXT_LOAD for index in variable):
            return []
        values = [
            self._load_source(shape, index) if index not in wanted else _slice_text(shape, index)
            for index in indexes
        ]
        return [
            f"t = row[{shape.tail}:].decode()",
            f"if len(t) == n: return {_result_source(values, bare)}",
        ]

    def _load_source(self, shape: RowShape, index: int) -> str:
        if index >= shape.count:
            return f"M{index}"
        code = self.codes[index]
        if code.format is not None:
            return code.load.replace("{x}", f"x{index}")
        before = shape.before[index]
        start = f"{shape.tail}" if before is None else f"{shape.tail} + {before.name}"
        return code.load.replace("{x}", f"row[{start}:{shape.tail} + e{index}]")


def _contiguous_groups(fields: list[RowField]) -> list[list[RowField]]:
    """Fields in byte order, those without a gap between them together."""
    groups: list[list[RowField]] = []
    for field in fields:
        if groups and groups[-1][-1].offset + groups[-1][-1].width == field.offset:
            groups[-1].append(field)
        else:
            groups.append([field])
    return groups


def _splice_source(
    fields: list[RowField], values: list[str], name: str, space: dict[str, Any]
) -> str:
    """A statement that returns the row with these fields, in byte order, packed again; `space` gets
    what it needs."""
    left = iter(values)
    parts, at = [], 0
    for number, group in enumerate(_contiguous_groups(fields)):
        pack = f"{name}{number}"
        space[pack] = struct.Struct("<" + "".join(field.format for field in group)).pack
        packed = ", ".join(next(left) for _ in group)
        parts += [f"row[{at}:{group[0].offset}]", f"{pack}({packed})"]
        at = group[-1].offset + group[-1].width
    return f"return {' + '.join(parts)} + row[{at}:]"


def _null_masks(shape: RowShape, indexes: Iterable[int]) -> dict[str, int]:
    """The bits of these slots in each word of the null bitmap."""
    masks: dict[str, int] = {}
    for index in indexes:
        word, bit = shape.null_bits[index]
        masks[word.name] = masks.get(word.name, 0) | bit
    return masks


def _null_test(shape: RowShape, indexes: Iterable[int]) -> str:
    """An expression that is true where one of these slots is NULL."""
    masks = _null_masks(shape, indexes)
    return " or ".join(f"{word} & {mask}" for word, mask in masks.items())


def _slice_text(shape: RowShape, index: int) -> str:
    before = shape.before[index]
    return f"t[{'' if before is None else before.name}:e{index}]"


def _needed_fields(shape: RowShape, needed: list[int]) -> list[RowField]:
    """The fields to unpack to read these slots, in byte order."""
    found = {RowField("k", 0, "H")}
    for index in needed:
        found |= {shape.null_bits[index][0], shape.fields[index]}
        before = shape.before[index]
        if before is not None:
            found.add(before)
    return sorted(found, key=lambda field: field.offset)


def _store_source(shape: RowShape, index: int, code: SlotCode) -> list[str]:
    word, bit = shape.null_bits[index]
    lines = [f"if v{index} is None: {word.name} |= {bit}; x{index} = {code.null_source}", "else:"]
    lines += indent([*code.prepare, f"x{index} = {code.store}"])
    return [line.replace("{v}", f"v{index}") for line in lines]


def _pack_source(shape: RowShape, codes: tuple[SlotCode, ...]) -> list[str]:
    variable = [index for index, code in enumerate(codes) if code.format is None]
    lines = []
    end = ""
    for index in variable:
        lines.append(f"e{index} = {end}len(x{index})")
        end = f"e{index} + "
    names = ", ".join(field.name for field in all_fields(shape)[1:])
    parts = [f"pack({shape.count}, {names})", *(f"x{index}" for index in variable)]
    if len(parts) > 4:
        return [*lines, f'return b"".join(({", ".join(parts)}))']
    return [*lines, "return " + " + ".join(parts)]


def _check_source(shape: RowShape, codes: tuple[SlotCode, ...], needed: list[int]) -> list[str]:
    """Lines that refuse contradicting lengths, which would otherwise read as shorter values.

    Reading all slots verifies the row exactly; reading some verifies that these lie inside it.
    """
    variable = [index for index, code in enumerate(codes) if code.format is None]
    if len(needed) == len(codes):
        if not variable:
            return [f"if len(row) != {shape.tail}: raise ValueError"]
        ends = " <= ".join(f"e{index}" for index in variable)
        return [f"n = len(row) - {shape.tail}", f"if not {ends} == n: raise ValueError"]
    wanted = [index for index in needed if codes[index].format is None]
    lines = [f"n = len(row) - {shape.tail}"] if wanted else []
    for index in wanted:
        before = shape.before[index]
        start = f"{before.name} <= " if before is not None else ""
        lines.append(f"if not {start}e{index} <= n: raise ValueError")
    return lines


def _nullable_source(shape: RowShape, index: int, value: str) -> str:
    if index >= shape.count:
        return value
    word, bit = shape.null_bits[index]
    return f"None if {word.name} & {bit} else {value}"


def _result_source(values: list[str], bare: bool) -> str:
    return values[0] if bare else "(" + "".join(f"{value}, " for value in values) + ")"


def _slot_count(row: bytes) -> int:
    if len(row) < 2:
        raise Corruption("row is cut short", found_bytes=len(row))
    return row[0] | row[1] << 8


def _refuse_row(row: bytes, slots: int, cause: Exception | None) -> NoReturn:
    found = _slot_count(row)
    message = "row has more slots than its table" if found > slots else "row cannot be decoded"
    raise Corruption(message, slots=slots, found_slots=found, found_bytes=len(row)) from cause
