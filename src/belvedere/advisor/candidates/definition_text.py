"""Definitions of candidate views as SQL text.

A definition is written from leaves (table occurrences), conditions and columns over the product of
their rows. Each leaf has an alias, a column of the view the name that its table gives it, or, where
two leaves have a column of that name, the alias before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from belvedere.advisor.workload.join_block import LeafColumn
from belvedere.advisor.workload.sql_names import write_name
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Table
from belvedere.errors import Unsupported
from belvedere.plan import expressions as e
from belvedere.plan.expression_printer import ExpressionPrinter, print_value
from belvedere.types import Kind, SqlType

_LIKE = {"~~": "LIKE", "!~~": "NOT LIKE", "~~*": "ILIKE", "!~~*": "NOT ILIKE"}

FindColumn = Callable[[int], LeafColumn | None]
"""The column of a leaf at a place of the product's row."""

_TYPED_LITERALS = frozenset(
    (Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.UUID, Kind.BYTEA)
)


@dataclass(frozen=True, slots=True)
class ViewLeaves:
    """The table occurrences of a definition."""

    catalog: Catalog
    relations: tuple[int, ...]

    @property
    def aliases(self) -> tuple[str, ...]:
        counts = Counter(self.relations)
        seen = Counter[int]()
        found = []
        for relation in self.relations:
            name = self.table(relation).name
            seen[relation] += 1
            found.append(name if counts[relation] == 1 else f"{name}_{seen[relation]}")
        return tuple(found)

    def table(self, relation: int) -> Table:
        return self.catalog.table(relation)

    def list_columns(self, leaf: int) -> list[LeafColumn]:
        """The columns that a user sees of one leaf."""
        return [
            LeafColumn(leaf, column.slot)
            for column in self.table(self.relations[leaf]).columns
            if not column.dropped and not column.hidden
        ]

    def name_column(self, column: LeafColumn) -> str:
        return self.table(self.relations[column.leaf]).columns[column.slot].name

    def write_column(self, column: LeafColumn) -> str:
        """The column in an expression."""
        if len(self.relations) == 1:
            return write_name(self.name_column(column))
        alias = write_name(self.aliases[column.leaf])
        return f"{alias}.{write_name(self.name_column(column))}"

    def write_from(self) -> str:
        parts = []
        for relation, alias in zip(self.relations, self.aliases, strict=True):
            name = self.table(relation).name
            schema = next(
                s.name for s in self.catalog.schemas if s.id == self.table(relation).schema
            )
            written = write_name(name)
            if schema != "public":
                written = f"{write_name(schema)}.{written}"
            parts.append(written if alias == name else f"{written} AS {write_name(alias)}")
        return ", ".join(parts)


def name_view_columns(leaves: ViewLeaves, columns: Sequence[LeafColumn]) -> dict[LeafColumn, str]:
    """A name of its own for each column of a view."""
    counts = Counter(leaves.name_column(column) for column in columns)
    taken = set[str]()
    found: dict[LeafColumn, str] = {}
    for column in columns:
        name = leaves.name_column(column)
        if counts[name] > 1:
            name = f"{leaves.aliases[column.leaf]}_{name}"
        while name in taken:
            name += "_"
        taken.add(name)
        found[column] = name
    return found


def write_select_item(leaves: ViewLeaves, column: LeafColumn, name: str) -> str:
    written = leaves.write_column(column)
    return written if name == leaves.name_column(column) else f"{written} AS {write_name(name)}"


class ConditionWriter(ExpressionPrinter):
    """Expressions over the product of the leaves' rows, as SQL; what SQL text cannot say exactly is
    refused."""

    def __init__(self, leaves: ViewLeaves, find: FindColumn) -> None:
        super().__init__(exact=False)
        self._leaves = leaves
        self._find = find

    def expression(self, expression: e.Expression) -> str:
        match expression:
            case e.Column():
                column = self._find(expression.index)
                if column is None:
                    raise Unsupported("a column that is of no table")
                return self._leaves.write_column(column)
            case e.Parameter() | e.OuterColumn() | e.SequenceCall():
                raise Unsupported("a value that is not that of a row")
            case e.Cast(explicit=False):
                return self.expression(expression.operand)  # the binder puts it in again
            case e.Cast(type=SqlType(kind=Kind.CHAR, length=None)):
                return f"{self.operand(expression.operand)}::bpchar"
            case e.Literal():
                written = print_value(expression.value, expression.type.kind)
                if isinstance(expression.value, list):
                    raise Unsupported("an array constant")
                typed = expression.type.kind in _TYPED_LITERALS and expression.value is not None
                return f"{written}::{expression.type}" if typed else written
            case _:
                return super().expression(expression)

    def scalar_call(self, call: e.Call) -> str:
        name, arguments = call.function.name, call.arguments
        if name in _LIKE:
            return f"{self.operand(arguments[0])} {_LIKE[name]} {self.operand(arguments[1])}"
        if name == "extract" and isinstance(arguments[0], e.Literal):
            return f"extract({arguments[0].value} FROM {self.expression(arguments[1])})"
        return super().scalar_call(call)

    def operand(self, expression: e.Expression) -> str:
        if isinstance(expression, e.Cast) and not expression.explicit:
            return self.operand(expression.operand)
        return super().operand(expression)

    def subquery(self, expression: e.Expression) -> str:
        raise Unsupported("a sub-query")

    def aggregate_call(self, call: e.AggregateCall) -> str:
        if call.order_by:
            raise Unsupported("an ordered aggregate")
        arguments = self.expression_list(call.arguments) or "*"
        distinct = "DISTINCT " if call.distinct else ""
        kept = "" if call.filter is None else f" FILTER (WHERE {self.expression(call.filter)})"
        return f"{call.function.name}({distinct}{arguments}){kept}"
