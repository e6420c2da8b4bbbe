"""Rows to Arrow and back, column by column, without a Python loop over rows.

| type | Arrow type |
|---|---|
| BOOLEAN, integers, REAL, DOUBLE | bool, int16/32/64, float, double |
| NUMERIC(p <= 38, s) | decimal128(p, s) |
| other NUMERIC | utf8, the digits |
| CHAR, VARCHAR, TEXT, JSON | utf8 |
| BYTEA | binary |
| DATE, TIME | date32, time64(us) |
| TIMESTAMP, TIMESTAMPTZ | timestamp(us), timestamp(us, UTC) |
| INTERVAL | month_day_nano |
| UUID | fixed-size binary of 16 |

Every field carries its SQL type as metadata (`SQL_TYPE_KEY`): digits are not taken for text.

How: the values are joined into one buffer; the static part of all rows is gathered as a matrix;
each fixed column is a slice of it. A variable column is an Arrow array over the joined buffer whose
offsets are start, end, start, end, ...: every second element is a value, and `take` copies these.
Rows with different numbers of slots are done group by group and put back in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from belvedere.codec.row_shape import RowShape
from belvedere.codec.row_slots import numeric_bits
from belvedere.codec.rows import RowLayout
from belvedere.errors import Corruption, Unsupported
from belvedere.types import Kind, SqlType

SQL_TYPE_KEY = b"belvedere.type"

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]

_OFFSETS_32_MAX = 2**31 - 1
_EQUAL_WIDTH_MAX = 32  # Arrow copies longer values as fast
_PLAIN: dict[Kind, pa.DataType] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.SMALLINT: pa.int16(),
    Kind.INTEGER: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.REAL: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.CHAR: pa.utf8(),
    Kind.VARCHAR: pa.utf8(),
    Kind.TEXT: pa.utf8(),
    Kind.JSON: pa.utf8(),
    Kind.BYTEA: pa.binary(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.time64("us"),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    Kind.INTERVAL: pa.month_day_nano_interval(),
    Kind.UUID: pa.binary(16),
}


def arrow_type(sql_type: SqlType) -> pa.DataType:
    if sql_type.kind is Kind.NUMERIC:
        if numeric_bits(sql_type) is None:
            return pa.utf8()
        return pa.decimal128(sql_type.precision, sql_type.scale or 0)
    return _PLAIN[sql_type.kind]


def arrow_field(name: str, sql_type: SqlType) -> pa.Field:
    return pa.field(name, arrow_type(sql_type), metadata={SQL_TYPE_KEY: str(sql_type).encode()})


def rows_to_arrow(
    layout: RowLayout, values: list[bytes], columns: Sequence[int], names: Sequence[str]
) -> pa.RecordBatch:
    """The given slots of encoded rows, in the rows' order."""
    types = [layout.types[column] for column in columns]
    schema = pa.schema([arrow_field(name, sql_type) for name, sql_type in zip(names, types)])
    arrays = EncodedRows(layout, values).decode_columns(columns)
    if not columns:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(values), pa.struct([])))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


class EncodedRows:
    """Rows in their stored form, joined into one buffer; columns are decoded on request."""

    __slots__ = ("_alike", "_joined", "_layout")

    def __init__(self, layout: RowLayout, values: list[bytes] | pa.Array) -> None:
        self._layout = layout
        self._joined = JoinedValues(values)
        self._alike = False  # all rows are known to be complete, with all slots

    def __len__(self) -> int:
        return len(self._joined.starts)

    @property
    def size_bytes(self) -> int:
        joined = self._joined
        return joined.bytes.nbytes + joined.starts.nbytes + joined.lengths.nbytes

    def decode_columns(self, slots: Sequence[int], *, narrow: bool = False) -> list[pa.Array]:
        """The given slots, in the rows' order. `narrow`: NUMERIC of up to 18 digits as decimal64,
        which is how DuckDB holds it too."""
        layout, joined = self._layout, self._joined
        shape = layout.shape_for(len(layout.slots))
        if self._alike:
            return _decode_columns(
                layout, shape, joined, _gather_static(shape, joined), slots, narrow
            )
        counts = _slot_counts(joined, len(layout.slots))
        if (counts != len(layout.slots)).any():
            return _groups_to_arrays(layout, joined, counts, slots, narrow)
        arrays = _group_to_arrays(layout, shape, joined, slots, narrow)
        self._alike = True
        return arrays


class JoinedValues:
    """Many values in one buffer, with the start and the length of each. A binary array without
    NULLs is that already."""

    def __init__(self, values: list[bytes] | pa.Array) -> None:
        if isinstance(values, pa.Array):
            self._use_array(values)
            return
        data = b"".join(values)
        self.buffer = pa.py_buffer(data)
        self.bytes: Bytes = np.frombuffer(data, np.uint8)
        self.lengths: Integers = np.fromiter(map(len, values), np.int64, len(values))
        ends = np.cumsum(self.lengths)
        self.starts: Integers = ends - self.lengths

    def _use_array(self, values: pa.Array) -> None:
        width = np.int64 if pa.types.is_large_binary(values.type) else np.int32
        _, offsets, data = values.buffers()
        bounds = np.frombuffer(offsets, width)[values.offset :][: len(values) + 1]
        self.buffer = pa.py_buffer(b"") if data is None else data
        self.bytes = np.frombuffer(self.buffer, np.uint8)
        self.starts = bounds[:-1].astype(np.int64)
        self.lengths = np.diff(bounds).astype(np.int64)

    def select_values(self, members: Integers) -> JoinedValues:
        """The values with these indexes, joined again."""
        data, starts, lengths = self.bytes.data, self.starts, self.lengths
        return JoinedValues(
            [bytes(data[starts[one] : starts[one] + lengths[one]]) for one in members]
        )

    def gather(self, starts: Integers, width: int) -> Bytes:
        """A matrix of the `width` bytes at each start, which must be inside the buffer."""
        if not len(starts):
            return np.empty((0, width), np.uint8)
        # One item of `width` bytes begins at every byte: items are gathered faster than windows.
        everywhere = np.ndarray(
            (len(self.bytes) - width + 1,), np.dtype(f"V{width}"), self.buffer, 0, (1,)
        )
        return everywhere[starts].view(np.uint8).reshape(-1, width)

    def take_slices(self, bounds: Integers, step: int, first: int, count: int) -> pa.Array:
        """Elements first, first + step, ... of the slices between neighbouring bounds, copied.

        Bounds never decrease. The array is of binary type.
        """
        if not count:
            return pa.array([], pa.binary())
        wide = len(self.bytes) > _OFFSETS_32_MAX
        offsets = bounds if wide else bounds.astype(np.int32)
        pieces = pa.Array.from_buffers(
            pa.large_binary() if wide else pa.binary(),
            len(bounds) - 1,
            [None, pa.py_buffer(offsets), self.buffer],
        )
        taken = pieces.take(pa.array(np.arange(first, first + count * step, step)))
        return taken.cast(pa.binary()) if wide else taken

    def copy_ranges(self, begins: Integers, ends: Integers) -> tuple[pa.Buffer, pa.Buffer | None]:
        """The bytes from each begin to its end, as offsets and data of an Arrow array."""
        width = int(ends[0] - begins[0]) if len(begins) else 0
        if 0 < width <= _EQUAL_WIDTH_MAX and (ends - begins == width).all():
            data = self.gather(begins, width)
            offsets = np.arange(0, data.size + 1, width, dtype=np.int32)
            return pa.py_buffer(offsets), pa.py_buffer(data)
        bounds = np.stack([begins, ends], axis=1).ravel()
        _, offsets_found, data_found = self.take_slices(bounds, 2, 0, len(begins)).buffers()
        return offsets_found, data_found


def _slot_counts(joined: JoinedValues, slots: int) -> Integers:
    if len(joined.lengths) and joined.lengths.min() < 2:
        raise Corruption("row is cut short", found_bytes=int(joined.lengths.min()))
    counts: Integers = joined.gather(joined.starts, 2).view("<u2").ravel().astype(np.int64)
    if len(counts) and counts.max() > slots:
        raise Corruption(
            "row has more slots than its table", slots=slots, found_slots=int(counts.max())
        )
    return counts


def _groups_to_arrays(
    layout: RowLayout,
    joined: JoinedValues,
    counts: Integers,
    columns: Sequence[int],
    narrow: bool,
) -> list[pa.Array]:
    """Decodes the rows of each slot count separately, then restores the order of all rows."""
    order = np.argsort(counts, kind="stable")
    groups = []
    for count in np.unique(counts):
        members = order[counts[order] == count]
        part, shape = joined.select_values(members), layout.shape_for(int(count))
        groups.append(_group_to_arrays(layout, shape, part, columns, narrow))
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    indexes = pa.array(back)
    return [pa.concat_arrays(list(parts)).take(indexes) for parts in zip(*groups)]


def _group_to_arrays(
    layout: RowLayout, shape: RowShape, joined: JoinedValues, columns: Sequence[int], narrow: bool
) -> list[pa.Array]:
    """Columns of rows that all have the shape's slots."""
    if len(joined.lengths) and joined.lengths.min() < shape.tail:
        raise Corruption("row is cut short", found_bytes=int(joined.lengths.min()))
    static = _gather_static(shape, joined)
    _check_ends(layout, shape, joined, static)
    return _decode_columns(layout, shape, joined, static, columns, narrow)


def _gather_static(shape: RowShape, joined: JoinedValues) -> Bytes:
    return joined.gather(joined.starts, shape.tail)


def _decode_columns(
    layout: RowLayout,
    shape: RowShape,
    joined: JoinedValues,
    static: Bytes,
    columns: Sequence[int],
    narrow: bool,
) -> list[pa.Array]:
    type_of = _narrow_type if narrow else arrow_type
    arrays = []
    for column in columns:
        sql_type = layout.types[column]
        if column >= shape.count:
            array = _missing_values(layout, column, len(static)).cast(type_of(sql_type))
        elif layout.codes[column].format is None:
            array = _variable_column(sql_type, shape, column, joined, static)
        else:
            array = _fixed_column(sql_type, type_of(sql_type), shape, column, static)
        arrays.append(array)
    return arrays


def _check_ends(layout: RowLayout, shape: RowShape, joined: JoinedValues, static: Bytes) -> None:
    """Corruption when ends decrease or do not add up to the row's length: the bytes would otherwise
    decode as other values."""
    codes = layout.codes[: shape.count]
    variable = [shape.fields[i].offset for i, code in enumerate(codes) if code.format is None]
    tails = joined.lengths - shape.tail
    if not variable:
        torn = tails.any()
    else:  # the ends are adjacent, in slot order
        found = _gather_field(static, variable[0], 4 * len(variable)).view("<u4")
        found = found.reshape(-1, len(variable))
        torn = (found[:, -1] != tails).any()
        for place in range(1, len(variable)):
            torn = torn or (found[:, place] < found[:, place - 1]).any()
    if torn:
        raise Corruption("row cannot be decoded", slots=shape.count)


def _tail_ends(shape: RowShape, column: int, static: Bytes) -> Integers:
    offset = shape.fields[column].offset
    ends: Integers = _gather_field(static, offset, 4).astype(np.int64)
    return ends


def _gather_field(static: Bytes, offset: int, width: int) -> npt.NDArray[Any]:
    """The bytes at one offset of all rows, as one item for each row: numpy copies items many times
    faster than it copies rows of bytes."""
    item = np.dtype(f"<u{width}" if width in (1, 2, 4, 8) else f"V{width}")
    if not len(static):
        return np.empty(0, item)
    return np.ndarray((len(static),), item, static, offset, static.strides[:1]).copy()


def _validity_bitmap(column: int, static: Bytes) -> pa.Buffer | None:
    """Arrow's validity bitmap, None when no value is NULL."""
    null = static[:, 2 + column // 8] & np.uint8(1 << column % 8)
    if not null.any():
        return None
    return pa.py_buffer(np.packbits(null == 0, bitorder="little"))


def _narrow_type(sql_type: SqlType) -> pa.DataType:
    if sql_type.kind is Kind.NUMERIC and numeric_bits(sql_type) == 64:
        return pa.decimal64(sql_type.precision, sql_type.scale or 0)
    return arrow_type(sql_type)


def _fixed_column(
    sql_type: SqlType, found: pa.DataType, shape: RowShape, column: int, static: Bytes
) -> pa.Array:
    field = shape.fields[column]
    validity = _validity_bitmap(column, static)
    raw = _gather_field(static, field.offset, field.width)
    data: npt.NDArray[Any] = raw
    match sql_type.kind:
        case Kind.BOOLEAN:
            data = np.packbits(raw != 0, bitorder="little")
        case Kind.NUMERIC:
            data = _widen_decimals(sql_type, raw, narrow=found.bit_width == 64)
        case Kind.INTERVAL:
            data = _to_nanoseconds(raw)
    return pa.Array.from_buffers(found, len(static), [validity, pa.py_buffer(data)])


def _widen_decimals(sql_type: SqlType, raw: npt.NDArray[Any], *, narrow: bool) -> npt.NDArray[Any]:
    """Numbers of 16 bytes, or of 8. Arrow's decimals know neither NaN nor infinities: these are
    refused."""
    if numeric_bits(sql_type) == 64:
        low = raw.view("<i8")
        special = _has_reserved_number(low)
        wide = low if narrow else np.stack([low, low >> 63], axis=1)
    else:
        wide = raw.view("<i8").reshape(-1, 2)
        # The reserved numbers are the only ones whose upper half is an extreme.
        special = _has_reserved_number(wide[:, 1])
    if special:
        raise Unsupported(
            "NaN or infinity of a numeric column in Arrow",
            hint="cast the column to double precision",
            type=str(sql_type),
        )
    return wide


def _has_reserved_number(numbers: Integers) -> bool:
    """Whether one of the numbers is reserved in a NUMERIC slot: the two smallest and the greatest
    of 64 bits."""
    if not len(numbers):
        return False
    limits = np.iinfo(np.int64)
    return bool(numbers.min() <= limits.min + 1 or numbers.max() == limits.max)


def _to_nanoseconds(raw: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Converts microseconds to Arrow's nanoseconds, whose range is a thousandth as wide."""
    data = raw.copy()
    microseconds = data.view("<i8").reshape(-1, 2)[:, 1]
    limit = np.iinfo(np.int64).max // 1000
    if ((microseconds > limit) | (microseconds < -limit)).any():
        raise Unsupported(
            "interval of more than 292 years of hours in Arrow",
            hint="use days or months for the large part",
        )
    microseconds *= 1000
    return data


def _variable_column(
    sql_type: SqlType, shape: RowShape, column: int, joined: JoinedValues, static: Bytes
) -> pa.Array:
    begins = joined.starts + shape.tail
    ends = begins + _tail_ends(shape, column, static)
    before = shape.before[column]
    if before is not None:
        begins += _gather_field(static, before.offset, 4)
    offsets, data = joined.copy_ranges(begins, ends)
    if sql_type.kind is not Kind.BYTEA:
        _check_text(len(static), offsets, data)
    validity = _validity_bitmap(column, static)
    return pa.Array.from_buffers(arrow_type(sql_type), len(static), [validity, offsets, data])


def _check_text(count: int, offsets: pa.Buffer, data: pa.Buffer | None) -> None:
    if data is None or not data.size or np.frombuffer(data, np.uint8).max() < 0x80:
        return
    try:
        pa.Array.from_buffers(pa.utf8(), count, [None, offsets, data]).validate(full=True)
    except pa.ArrowInvalid as error:
        raise Corruption("row holds text that is not UTF-8", detail=str(error)) from error


def _missing_values(layout: RowLayout, column: int, count: int) -> pa.Array:
    """The missing value of a column that the rows do not have yet."""
    sql_type = layout.types[column]
    value = layout.slots[column].missing_value
    if value is None:
        return pa.nulls(count, arrow_type(sql_type))
    one = RowLayout((layout.slots[column],))
    single = JoinedValues([one.encode((value,))])
    array = _group_to_arrays(one, one.shape_for(1), single, (0,), narrow=False)[0]
    return array.take(pa.array(np.zeros(count, np.int64)))
