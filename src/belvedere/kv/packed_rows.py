"""Rows of cells as they came from a store: one buffer, and where in it everything is.

Most scans want columns, not rows. From here a column is taken with a few operations of numpy for
thousands of rows, where making a cell object for every value costs more than all the rest of a
scan. As a sequence it is rows like those of every other scan, made when they are asked for.

Only rows with at most one version of each column can be packed. numpy is loaded with the first of
them: an embedded store has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from belvedere.kv.cell import Cell, Cells

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]
Row = tuple[bytes, Cells]

ABSENT = -1


class PackedColumn(NamedTuple):
    """The cells of one column, by row: where the value begins, its length (ABSENT: no such cell),
    and its timestamp."""

    starts: Integers
    lengths: Integers
    timestamps: Integers

    @staticmethod
    def of_absent(rows: int) -> PackedColumn:
        import numpy as np  # heavy

        lengths = np.full(rows, ABSENT, np.int64)
        return PackedColumn(np.zeros(rows, np.int64), lengths, np.zeros(rows, np.int64))

    def take(self, rows: Any) -> PackedColumn:
        return PackedColumn(*(each[rows] for each in self))


class PackedRows(Sequence[Row]):
    __slots__ = ("_keys", "buffer", "columns")

    def __init__(
        self, buffer: bytes, keys: tuple[Integers, Integers], columns: dict[bytes, PackedColumn]
    ) -> None:
        """`keys`: where each begins, and its length."""
        self.buffer = buffer
        self._keys = keys
        self.columns = dict(sorted(columns.items()))

    def __len__(self) -> int:
        return len(self._keys[0])

    @overload
    def __getitem__(self, at: int) -> Row: ...

    @overload
    def __getitem__(self, at: slice) -> list[Row]: ...

    def __getitem__(self, at: int | slice) -> Row | list[Row]:
        if isinstance(at, slice):
            return [self._make_row(number) for number in range(len(self))[at]]
        return self._make_row(range(len(self))[at])

    def __iter__(self) -> Iterator[Row]:
        return map(self._make_row, range(len(self)))

    def _make_row(self, at: int) -> Row:
        buffer, cells = self.buffer, []
        for name, (starts, lengths, timestamps) in self.columns.items():
            length = int(lengths[at])
            if length != ABSENT:
                start = int(starts[at])
                cells.append(Cell(name, int(timestamps[at]), buffer[start : start + length]))
        start, size = int(self._keys[0][at]), int(self._keys[1][at])
        return buffer[start : start + size], tuple(cells)

    def list_keys(self) -> list[bytes]:
        buffer, (starts, sizes) = self.buffer, self._keys
        ends = (starts + sizes).tolist()
        return [buffer[start:end] for start, end in zip(starts.tolist(), ends)]

    def take_rows(self, rows: Sequence[int]) -> PackedRows:
        """Some of the rows, in this order, in the same buffer."""
        import numpy as np  # heavy

        at = np.array(rows, np.int64)
        columns = {name: column.take(at) for name, column in self.columns.items()}
        return PackedRows(self.buffer, (self._keys[0][at], self._keys[1][at]), columns)

    @staticmethod
    def join_pages(pages: Sequence[PackedRows], cut: int, head: bytes) -> PackedRows:
        """The rows of several, one after the other, with this head, which is not longer, in place
        of the first `cut` bytes of every key."""
        import numpy as np  # heavy

        offsets = np.cumsum([0, *(len(page.buffer) for page in pages)])[:-1]
        skipped = cut - len(head)
        moved = [page._keys[0] + offset + skipped for page, offset in zip(pages, offsets)]
        starts = np.concatenate(moved)
        sizes = np.concatenate([page._keys[1] for page in pages]) - skipped
        data = np.frombuffer(b"".join(page.buffer for page in pages), np.uint8).copy()
        for at, byte in enumerate(head):
            data[starts + at] = byte
        names = sorted({name for page in pages for name in page.columns})
        columns = {}
        for name in names:
            parts = [page._column_at(name, int(offset)) for page, offset in zip(pages, offsets)]
            columns[name] = PackedColumn(*(np.concatenate(each) for each in zip(*parts)))
        return PackedRows(data.tobytes(), (starts, sizes), columns)

    def _column_at(self, name: bytes, offset: int) -> PackedColumn:
        """The column as it is with so many bytes before the buffer."""
        column = self.columns.get(name)
        if column is None:
            return PackedColumn.of_absent(len(self))
        return column._replace(starts=column.starts + offset)

    def gather(self, starts: Integers, width: int) -> Bytes:
        """So many bytes from each start, a row of the array each."""
        import numpy as np  # heavy

        return gather_bytes(np.frombuffer(self.buffer, np.uint8), starts, width)


def gather_bytes(data: Bytes, starts: Integers, width: int) -> Bytes:
    """So many bytes from each start; IndexError beyond the end."""
    import numpy as np  # heavy

    found: Bytes = data[starts[:, None] + np.arange(width)]
    return found
