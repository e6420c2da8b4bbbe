"""The context that optimizer rules get."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from belvedere.catalog.catalog import Catalog
from belvedere.plan import nodes as n
from belvedere.sql.bind.expressions.stored_expressions import StoredExpressions
from belvedere.sql.rules.statistics import NoStatistics, Statistics


@dataclass(slots=True)
class OptimizerContext:
    """`join_rows` are the estimates already made, by the identity of the join, which is kept with
    it: without them a chain of joins is estimated in a time exponential in its length.
    `failing_constants`: one was met that cannot be computed.
    """

    catalog: Catalog
    texts: StoredExpressions
    statistics: Statistics = field(default_factory=NoStatistics)
    failing_constants: bool = False
    join_rows: dict[int, tuple[n.Join, float]] = field(default_factory=dict)


Rule = Callable[[n.Node, OptimizerContext], n.Node]
