"""Plans by hand: a small store, and short ways to write nodes and expressions."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from decimal import Decimal
from typing import Any

from belvedere.catalog.definitions import (
    ColumnDefinition,
    IndexDefinition,
    KeyPartDefinition,
    TableDefinition,
)
from belvedere.database import Database
from belvedere.execution.duckdb.engine import DuckEngine
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.run import Interrupt, Run
from belvedere.execution.split_tiers import HybridReport, lower_hybrid
from belvedere.plan import access as a
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions import Environment, cast_function, resolve
from belvedere.txn.transaction import table_rows
from belvedere.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, TEXT, Row, SqlType, numeric_type

MONEY = numeric_type(10, 2)
NOW = datetime.datetime(2024, 5, 6, 7, 8, 9, tzinfo=datetime.UTC)

ITEMS = (
    ("id", INTEGER),
    ("kind", TEXT),
    ("price", MONEY),
    ("stock", BIGINT),
    ("weight", DOUBLE),
    ("made", DATE),
    ("fresh", BOOLEAN),
)
ITEM_ROWS: list[Row] = [
    (1, "a", Decimal("1.50"), 10, 0.5, datetime.date(2024, 1, 1), True),
    (2, "b", Decimal("2.25"), 20, 1.5, datetime.date(2024, 2, 1), False),
    (3, "a", None, 30, float("nan"), None, None),
    (4, None, Decimal("0.00"), None, -0.0, datetime.date(2023, 1, 1), True),
    (5, "c", Decimal("-3.10"), 20, 0.0, datetime.date(2024, 2, 1), None),
    (6, "b", Decimal("2.25"), 5, None, datetime.date(2022, 12, 31), False),
]
KINDS = (("name", TEXT), ("factor", INTEGER))
KIND_ROWS: list[Row] = [("a", 2), ("b", 3), ("z", 9)]


class Services:
    """What plans of these tests may ask for."""

    def __init__(self) -> None:
        self._next = 1_000

    def row_id(self, relation: int) -> int:
        self._next += 1
        return self._next

    def next_value(self, sequence: int) -> int:
        return self.row_id(sequence)


class Store:
    """A store with two tables: items (by id, indexes on kind and on (stock desc, id)) and kinds."""

    def __init__(self) -> None:
        self.database = Database.open(":memory:")
        self.engine = DuckEngine()
        self.services = Services()
        self._create("items", ITEMS, ("id",))
        self._create("kinds", KINDS, ("name",))
        self._index("by_kind", ("kind",))
        self._index("by_stock", ("stock",), descending=True)
        with self.database.begin() as txn:
            for row in ITEM_ROWS:
                table_rows.insert_row(txn, self.database.get_compiled_table("items"), row)
            for row in KIND_ROWS:
                table_rows.insert_row(txn, self.database.get_compiled_table("kinds"), row)

    def _create(self, name: str, columns: Any, key: tuple[str, ...]) -> None:
        definition = TableDefinition(
            name, tuple(ColumnDefinition(*column) for column in columns), key
        )
        self.database.change_schema(lambda edit: edit.create_table(definition))

    def _index(self, name: str, columns: tuple[str, ...], descending: bool = False) -> None:
        parts = tuple(KeyPartDefinition(one, descending=descending) for one in columns)
        definition = IndexDefinition("items", parts, name=name)
        self.database.change_schema(lambda edit: edit.create_index(definition))

    def index(self, name: str) -> int:
        found = self.database.catalog.find_relation(name)
        assert found is not None
        return found.id

    def scan(self, name: str = "items", **more: Any) -> n.Scan:
        columns = ITEMS if name == "items" else KINDS
        fields = tuple(n.Field(*column) for column in columns)
        relation = self.database.get_compiled_table(name).table.id
        return n.Scan(relation, name, tuple(range(len(fields))), fields, **more)

    def run(self, plan: n.Node, *parameters: Any) -> list[Row]:
        """By the direct tier; changes are committed."""
        with self.database.begin() as txn:
            run = self._run(txn, parameters)
            found = list(compile_plan(txn.catalog, plan)(run))
            for write in run.changes:
                write.apply(txn)
            return found

    def run_duck(self, plan: n.Node, *parameters: Any) -> tuple[list[Row], HybridReport]:
        with self.database.begin() as txn:
            run, report = self._run(txn, parameters), HybridReport()
            return list(lower_hybrid(txn.catalog, plan, self.engine, run, report)(run)), report

    def _run(self, txn: Any, parameters: Row) -> Run:
        environment = Environment(NOW, NOW, lambda: NOW, random.Random(1))
        return Run(txn, parameters, environment, self.services, Interrupt())  # type: ignore[arg-type]

    def close(self) -> None:
        self.engine.close()
        self.database.close()


def column(node: n.Node, name: str) -> e.Column:
    for i, field in enumerate(node.fields):
        if field.name == name:
            return e.Column(i, field.type, name)
    raise KeyError(name)


def outer(node: n.Node, name: str, depth: int = 1) -> e.OuterColumn:
    found = column(node, name)
    return e.OuterColumn(depth, found.index, found.type, name)


def literal(value: Any) -> e.Literal:
    types: dict[type, SqlType] = {int: INTEGER, str: TEXT, bool: BOOLEAN, float: DOUBLE}
    return e.Literal(value, types[type(value)])


def call(name: str, *arguments: e.Expression) -> e.Call:
    found = resolve(name, [argument.type for argument in arguments])
    return e.Call(found.function, _coerced(arguments, found.argument_types), found.result_type)


def aggregate(name: str, *arguments: e.Expression, **more: Any) -> e.AggregateCall:
    found = resolve(name, [argument.type for argument in arguments])
    given = _coerced(arguments, found.argument_types)
    return e.AggregateCall(found.function, given, found.result_type, **more)


def window_call(name: str, *arguments: e.Expression) -> e.WindowCall:
    found = resolve(name, [argument.type for argument in arguments])
    return e.WindowCall(
        found.function, _coerced(arguments, found.argument_types), found.result_type
    )


def _coerced(
    arguments: tuple[e.Expression, ...], types: tuple[SqlType, ...]
) -> tuple[e.Expression, ...]:
    return tuple(
        one
        if one.type.kind is wanted.kind
        else e.Cast(one, wanted, cast_function(one.type, wanted))
        for one, wanted in zip(arguments, types)
    )


def project(node: n.Node, *expressions: e.Expression) -> n.Project:
    fields = tuple(n.Field(f"c{i}", one.type) for i, one in enumerate(expressions))
    return n.Project(node, expressions, fields)


def grouped(
    node: n.Node, groups: tuple[e.Expression, ...], *calls: e.AggregateCall, **more: Any
) -> n.Aggregate:
    kinds = [*(one.type for one in groups), *(one.type for one in calls)]
    kinds += [INTEGER] * len(more.get("groupings", ()))
    fields = tuple(n.Field(f"c{i}", one) for i, one in enumerate(kinds))
    return n.Aggregate(node, groups, calls, fields, **more)


def by_key(*values: e.Expression) -> a.Access:
    return a.Access(parts=tuple(a.EqualityPart(value) for value in values), full_key=True)


def bag(found: list[Row]) -> Counter[str]:
    """Rows as a multiset, told apart by what they print: 1.0 is not 1.00, NaN is NaN."""
    return Counter(map(repr, found))
