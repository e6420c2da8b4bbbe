"""Rows of cells packed as a store would send them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from belvedere.kv.cell import Cells
from belvedere.kv.packed_rows import PackedColumn, PackedRows


def pack_rows(rows: Sequence[tuple[bytes, Cells]]) -> PackedRows:
    buffer = bytearray(b"before")
    keys = (np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64))
    columns: dict[bytes, PackedColumn] = {}
    for number, (key, cells) in enumerate(rows):
        keys[0][number], keys[1][number] = len(buffer), len(key)
        buffer += key
        for name, timestamp, value in cells:
            column = columns.setdefault(name, PackedColumn.of_absent(len(rows)))
            column.starts[number], column.lengths[number] = len(buffer), len(value)
            column.timestamps[number] = timestamp
            buffer += value
    return PackedRows(bytes(buffer) + bytes(64), keys, columns)
