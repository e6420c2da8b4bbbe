"""The result of a statement: its tag, fields and rows, or the number of affected rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belvedere.execution.duckdb.rows import rows_of
from belvedere.plan.fields import ColumnOrigins, Fields
from belvedere.types import Row

if TYPE_CHECKING:
    import pyarrow as pa

    from belvedere.session.query_stream import QueryStream


class Result:
    """`fields` is None for a statement that returns no rows. `affected` is the number of rows
    returned or changed, -1 when there is no such number. `table` has the same rows as Arrow
    columns, when DuckDB computed them. `plain`: no column's values need another representation
    outside of Belvedere. `is_point_read`: at most one row of a table was read, by its key.
    `origins`: the columns of tables that its columns are, if it is that of a plan. `stream`: its
    rows are still to be computed, by a `QueryStream`."""

    __slots__ = (
        "affected",
        "fields",
        "is_point_read",
        "origins",
        "plain",
        "rows",
        "stream",
        "table",
        "tag",
    )

    def __init__(
        self,
        tag: str,
        fields: Fields | None = None,
        rows: list[Row] | None = None,
        affected: int = -1,
        table: pa.Table | None = None,
        *,
        plain: bool = False,
        is_point_read: bool = False,
        origins: ColumnOrigins = (),
        stream: QueryStream | None = None,
    ) -> None:
        self.tag = tag
        self.fields = fields
        self.rows: list[Row] = [] if rows is None else rows
        self.affected = affected
        self.table = table
        self.plain = plain
        self.is_point_read = is_point_read
        self.origins = origins
        self.stream = stream

    def convert_arrow_to_rows(self) -> None:
        """Make rows of the Arrow columns."""
        if self.table is not None and not self.rows:
            assert self.fields is not None
            self.rows = list(rows_of(self.table, tuple(field.type for field in self.fields)))

    def count_rows(self) -> int:
        return len(self.rows) if self.rows or self.table is None else int(self.table.num_rows)
