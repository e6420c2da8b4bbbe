"""Results that are expected to outgrow the memory limit: counted before they are sorted.

    SELECT .. FROM a JOIN b ON a.g = b.g ORDER BY a.t

DuckDB sorts all rows, and spills them to disk, before it returns the first one, so a result that
does not fit is noticed only after the whole sort. A sort or a window function returns as many rows
as it reads; these are counted first, and no further than the limit reaches. Only where the estimate
says that there are too many: the count reads the tables and joins them once more.
"""

from __future__ import annotations

from collections.abc import Iterator

from belvedere.catalog.catalog import Catalog
from belvedere.execution.duckdb.engine import DuckEngine
from belvedere.execution.memory_limit import over_limit
from belvedere.execution.run import Rows, Run, scalar_value
from belvedere.execution.split_tiers import compile_hybrid
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.fields import Field
from belvedere.plan.functions import resolve
from belvedere.types import BIGINT, Kind, Row

_BYTES_MIN = {Kind.BOOLEAN: 0, Kind.SMALLINT: 2}
"""What a value takes in a column of Arrow, at least; 4 where nothing else is said."""


def find_counted_input(node: n.Node) -> n.Node | None:
    """The input of the sorts and window functions at the top, which has as many rows as they."""
    ordered, below = False, node
    while isinstance(below, n.Project | n.Sort | n.Window):
        ordered = ordered or not isinstance(below, n.Project)
        below = below.input
    return below if ordered else None


class SizeCheckedPlan:
    """A plan that fails with 53200 before it is run if it returns too many rows; EXPLAIN ANALYZE
    prints `notes`."""

    def __init__(
        self, catalog: Catalog, node: n.Node, estimated: float, engine: DuckEngine, rows: Rows
    ) -> None:
        self._catalog, self._engine, self._rows = catalog, engine, rows
        self._node, self._estimated = node, estimated
        widths = [_BYTES_MIN.get(field.type.kind, 4) for field in node.fields]
        self._row_bytes_min = max(sum(widths), 1)
        self._counted: tuple[int, Rows] | None = None  # up to so many rows

    def __call__(self, run: Run) -> Iterator[Row]:
        bytes_max = run.memory.result_bytes_max
        if bytes_max is not None:
            rows_max = bytes_max // self._row_bytes_min
            if self._estimated > rows_max and self._count_rows(run, rows_max + 1) > rows_max:
                raise over_limit(bytes_max)
        return self._rows(run)

    @property
    def notes(self) -> list[str]:
        return list(getattr(self._rows, "notes", ()))

    def _count_rows(self, run: Run, upto: int) -> int:
        if self._counted is None or self._counted[0] != upto:
            counted = find_counted_input(self._node)
            assert counted is not None
            limited = n.Limit(n.Project(counted, (), ()), e.Literal(upto, BIGINT))
            found = resolve("count", ())
            call = e.AggregateCall(found.function, (), found.result_type)
            plan = n.Aggregate(limited, (), (call,), (Field("count", call.type),))
            self._counted = upto, compile_hybrid(self._catalog, plan, self._engine)
        count: int = scalar_value(self._counted[1](run.nested_run(())))
        return count
