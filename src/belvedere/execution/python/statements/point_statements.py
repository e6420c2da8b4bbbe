"""Single-row fast path: statements that touch at most one row by its key, or none at all.

Applications send mostly such statements, so their plan becomes one function, without a Run,
iterators or a list of writes:

    read     SELECT columns FROM t WHERE key = ?        (reader, run) -> rows
    write    `point_writes`

`run` here is a `FastPathRun`, which has only what expressions need. Everything that needs more
(sub-queries, the clock, conflicts, RETURNING) takes the general path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Table
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.codec.compile import compile_function
from belvedere.codec.keys import KeyCodec
from belvedere.execution.python.context import CompileContext
from belvedere.execution.python.expressions.generated_function import (
    tuple_source,
)
from belvedere.execution.python.statements.key_range import is_known_value
from belvedere.execution.run import Services
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.plan_items import walk_plan_items
from belvedere.txn.contracts import Reader, SingleRowCommits
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import Row


class FastPathRun:
    __slots__ = ("parameters", "services")

    def __init__(self, parameters: Row, services: Services) -> None:
        self.parameters = parameters
        self.services = services


FastPathRead = Callable[[Reader, FastPathRun], list[Row] | None]
"""None: the general path has to run this execution."""
FastPathWrite = Callable[[Transaction, FastPathRun], int | None]
"""None: the general path has to run this execution, and nothing was written."""
FastPathCommit = Callable[[SingleRowCommits, FastPathRun], int | None]

_MORE = (
    e.ScalarSubquery,
    e.Exists,
    e.QuantifiedSubquery,
    e.ArraySubquery,
    e.OuterColumn,
)


_CALLS = (e.Call, e.Cast, e.AggregateCall, e.WindowCall)


def compile_fast_read(catalog: Catalog, node: n.Node) -> FastPathRead | None:
    """The fast path of a query, or None when the plan is not that simple."""
    if isinstance(node, n.Project) and node.input == n.EMPTY_ROW:
        return _compile_constant_row(catalog, node.expressions)
    columns: list[int] | None = None
    if isinstance(node, n.Project):
        if not all(isinstance(one, e.Column) for one in node.expressions):
            return None
        columns = [one.index for one in node.expressions if isinstance(one, e.Column)]
        node = node.input
    values = key_values(node)
    if values is None:
        return None
    assert isinstance(node, n.Scan)
    if not isinstance(catalog.get(node.relation), Table):
        return None  # the state of a view has another layout
    slots = node.slots if columns is None else tuple(node.slots[i] for i in columns)
    table = compiled_table(catalog, node.relation)
    constants, nulls, key = key_source(table.key, values, "run.parameters")
    constants["project"] = table.layout.projector(slots)
    body = [
        f"if {nulls}: return []",
        f"value = reader.get({key})",
        "return [] if value is None else [project(value)]",
    ]
    return compile_function("point", "reader, run", body, constants)


def _compile_constant_row(
    catalog: Catalog, expressions: tuple[e.Expression, ...]
) -> FastPathRead | None:
    """A SELECT without FROM."""
    if not all(map(is_simple, expressions)):
        return None
    bound = plain_context(catalog).tuple_of(expressions)
    return lambda reader, run: [bound(run)(())]  # type: ignore[arg-type]


def key_values(node: n.Node) -> list[e.Expression] | None:
    """The parameters or constants of the complete primary key, if this scan reads one key."""
    if not isinstance(node, n.Scan) or node.residual is not None:
        return None
    access = node.access
    if access.index is not None or access.kind is not paths.AccessKind.KEY:
        return None
    values = [part.value for part in access.parts if isinstance(part, paths.EqualityPart)]
    if len(values) < len(access.parts):
        return None
    return values if all(map(is_known_value, values)) else None


def key_source(
    codec: KeyCodec, values: list[e.Expression], parameters: str
) -> tuple[dict[str, Any], str, str]:
    """Constants, an expression that is true when a part is NULL, and the expression of the key."""
    constants: dict[str, Any] = {}
    texts = []
    for number, value in enumerate(values):
        if isinstance(value, e.Parameter):
            texts.append(f"{parameters}[{value.index - 1}]")
        else:
            assert isinstance(value, e.Literal)
            constants[f"c{number}"] = value.value
            texts.append(f"c{number}")
    nulls = " or ".join(f"{text} is None" for text in texts)
    if len(texts) == 1:
        constants["encode"] = codec.encode_first
        return constants, nulls, f"encode({texts[0]})"
    constants["encode"] = codec.encode
    return constants, nulls, f"encode({tuple_source(texts)})"


def is_simple(expression: e.Expression | n.Node) -> bool:
    """Whether it needs nothing but its row, parameters and sequences."""
    return not any(
        isinstance(item, _MORE) or calls_environment(item) for item in walk_plan_items(expression)
    )


def calls_environment(item: Any) -> bool:
    """Whether an item of a plan calls a function that takes more than its arguments."""
    return isinstance(item, _CALLS) and bool(item.function.environment)


def plain_context(catalog: Catalog) -> CompileContext:
    """For expressions without plans inside."""

    def no_plan(node: n.Node) -> Any:
        raise AssertionError("a point has no plans inside")

    return CompileContext(catalog, no_plan)
