"""Plans of views over a small shop, built by hand, so that views can be tested without SQL text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from belvedere import types
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.definitions import ColumnDefinition, TableDefinition
from belvedere.catalog.model import Table
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.fields import Field, Fields
from belvedere.plan.functions.registry import resolve
from belvedere.types import SqlType

PRICE = types.numeric_type(10, 2)

CUSTOMERS = TableDefinition(
    "customers",
    (
        ColumnDefinition("id", types.BIGINT),
        ColumnDefinition("city", types.TEXT),
        ColumnDefinition("weight", types.DOUBLE),
    ),
    primary_key=("id",),
)
ORDERS = TableDefinition(
    "orders",
    (
        ColumnDefinition("id", types.BIGINT),
        ColumnDefinition("customer", types.BIGINT),
        ColumnDefinition("total", PRICE),
    ),
    primary_key=("id",),
)


def scan(catalog: Catalog, name: str) -> n.Scan:
    table = catalog.require_relation(Table, name)
    fields = tuple(Field(column.name, column.type) for column in table.columns)
    return n.Scan(table.id, name, tuple(range(len(fields))), fields)


def column(fields: Fields, name: str, after: int = 0) -> e.Column:
    at = next(i for i, f in enumerate(fields) if i >= after and f.name == name)
    return e.Column(at, fields[at].type, name)


def equal(left: e.Expression, right: e.Expression) -> e.Expression:
    return call("=", left, right)


def call(name: str, *arguments: e.Expression) -> e.Expression:
    found = resolve(name, tuple(argument.type for argument in arguments))
    assert isinstance(found.function.result, SqlType)
    return e.Call(found.function, arguments, found.function.result)


def aggregate_call(name: str, *arguments: e.Expression) -> e.AggregateCall:
    found = resolve(name, tuple(argument.type for argument in arguments))
    return e.AggregateCall(found.function, arguments, found.result_type)


def aggregate(
    node: n.Node, groups: tuple[e.Expression, ...], *calls: e.AggregateCall
) -> n.Aggregate:
    names = [Field(f"g{i}", g.type) for i, g in enumerate(groups)]
    names += [Field(f"a{i}", c.type) for i, c in enumerate(calls)]
    return n.Aggregate(node, groups, calls, tuple(names))


def joined(catalog: Catalog) -> n.Join:
    orders, customers = scan(catalog, "orders"), scan(catalog, "customers")
    key = n.JoinKey(column(orders.fields, "customer"), column(customers.fields, "id"))
    return n.Join(n.JoinKind.INNER, orders, customers, (key,))


def per_customer(catalog: Catalog) -> n.Node:
    orders = scan(catalog, "orders")
    total = column(orders.fields, "total")
    groups = (column(orders.fields, "customer"),)
    calls = (aggregate_call("count"), aggregate_call("sum", total), aggregate_call("avg", total))
    return aggregate(orders, groups, *calls)


def per_city(catalog: Catalog) -> n.Node:
    """A join, then groups by a column of one side, with HAVING count > 1."""
    join = joined(catalog)
    total, weight = column(join.fields, "total"), column(join.fields, "weight")
    groups = (column(join.fields, "city"),)
    calls = (aggregate_call("count"), aggregate_call("sum", total), aggregate_call("sum", weight))
    node = aggregate(join, groups, *calls)
    return n.Filter(node, call(">", column(node.fields, "a0"), e.Literal(1, types.BIGINT)))


def join_rows(catalog: Catalog) -> n.Node:
    """The city of each order over 5, as often as there are such orders."""
    join = joined(catalog)
    over = call(">", column(join.fields, "total"), e.Literal(_five(), types.NUMERIC))
    city = column(join.fields, "city")
    return n.Project(n.Filter(join, over), (city,), (Field("city", city.type),))


def same_city(catalog: Catalog) -> n.Node:
    """A self-join: pairs of customers of one city."""
    left, right = scan(catalog, "customers"), scan(catalog, "customers")
    key = n.JoinKey(column(left.fields, "city"), column(right.fields, "city"))
    join = n.Join(n.JoinKind.INNER, left, right, (key,))
    ids = (column(join.fields, "id"), column(join.fields, "id", after=3))
    return n.Project(join, ids, (Field("a", types.BIGINT), Field("b", types.BIGINT)))


def three_ways(catalog: Catalog) -> n.Node:
    """Pairs of orders of one customer, with the city: three leaves, two of one table."""
    join, again = joined(catalog), scan(catalog, "orders")
    key = n.JoinKey(column(join.fields, "customer"), column(again.fields, "customer"))
    both = n.Join(n.JoinKind.INNER, join, again, (key,))
    return aggregate(both, (column(both.fields, "city"),), aggregate_call("count"))


def all_ids(catalog: Catalog) -> n.Node:
    """UNION ALL of the ids of both tables."""
    sides = []
    for name in ("orders", "customers"):
        node = scan(catalog, name)
        sides.append(n.Project(node, (column(node.fields, "id"),), (Field("id", types.BIGINT),)))
    return n.SetOperation(n.SetKind.UNION, True, sides[0], sides[1])


def grand_total(catalog: Catalog) -> n.Node:
    orders = scan(catalog, "orders")
    return aggregate(
        orders, (), aggregate_call("count"), aggregate_call("sum", column(orders.fields, "total"))
    )


def outer(kind: n.JoinKind) -> Callable[[Catalog], n.Node]:
    return lambda catalog: replace(joined(catalog), kind=kind)


def count_with_empty(catalog: Catalog) -> n.Node:
    """A linear aggregate over an outer join: orders of every customer, those without any too."""
    customers, orders = scan(catalog, "customers"), scan(catalog, "orders")
    key = n.JoinKey(column(customers.fields, "id"), column(orders.fields, "customer"))
    join = n.Join(n.JoinKind.LEFT, customers, orders, (key,))
    groups = (column(join.fields, "city"),)
    return aggregate(join, groups, aggregate_call("count", column(join.fields, "total")))


def extremes(catalog: Catalog) -> n.Node:
    orders = scan(catalog, "orders")
    total = column(orders.fields, "total")
    distinct = replace(aggregate_call("count", total), distinct=True)
    return aggregate(
        orders,
        (column(orders.fields, "customer"),),
        aggregate_call("min", total),
        aggregate_call("max", total),
        distinct,
    )


def largest(catalog: Catalog) -> n.Node:
    """A grand total that is not linear."""
    orders = scan(catalog, "orders")
    return aggregate(orders, (), aggregate_call("max", column(orders.fields, "total")))


def cities(catalog: Catalog) -> n.Node:
    customers = scan(catalog, "customers")
    city = column(customers.fields, "city")
    return n.Distinct(n.Project(customers, (city,), (Field("city", city.type),)))


def set_operation(kind: n.SetKind, all_: bool) -> Callable[[Catalog], n.Node]:
    def plan(catalog: Catalog) -> n.Node:
        orders, customers = scan(catalog, "orders"), scan(catalog, "customers")
        field = (Field("id", types.BIGINT),)
        left = n.Project(orders, (column(orders.fields, "customer"),), field)
        right = n.Project(customers, (column(customers.fields, "id"),), field)
        return n.SetOperation(kind, all_, left, right)

    return plan


def top_two(catalog: Catalog) -> n.Node:
    orders = scan(catalog, "orders")
    keys = (e.SortKey(column(orders.fields, "total"), descending=True, nulls_first=True),)
    return n.Limit(n.Sort(orders, keys), e.Literal(2, types.BIGINT))


def numbered(catalog: Catalog) -> n.Node:
    orders = scan(catalog, "orders")
    function = resolve("row_number", ()).function
    return n.Window(
        orders,
        (column(orders.fields, "customer"),),
        (e.SortKey(column(orders.fields, "total")),),
        n.Frame(),
        (e.WindowCall(function, (), types.BIGINT),),
        ("number",),
    )


def _five() -> Decimal:
    return Decimal(5)


PLANS: dict[str, Callable[[Catalog], n.Node]] = {
    "per_customer": per_customer,
    "per_city": per_city,
    "join_rows": join_rows,
    "same_city": same_city,
    "three_ways": three_ways,
    "all_ids": all_ids,
    "grand_total": grand_total,
    "left_join": outer(n.JoinKind.LEFT),
    "right_join": outer(n.JoinKind.RIGHT),
    "full_join": outer(n.JoinKind.FULL),
    "semi_join": outer(n.JoinKind.SEMI),
    "anti_join": outer(n.JoinKind.ANTI),
    "count_with_empty": count_with_empty,
    "extremes": extremes,
    "largest": largest,
    "cities": cities,
    "union": set_operation(n.SetKind.UNION, False),
    "intersect": set_operation(n.SetKind.INTERSECT, False),
    "intersect_all": set_operation(n.SetKind.INTERSECT, True),
    "except": set_operation(n.SetKind.EXCEPT, False),
    "except_all": set_operation(n.SetKind.EXCEPT, True),
    "top_two": top_two,
    "numbered": numbered,
}
UNORDERED = ("per_city", "top_two", "numbered")
"""Plans whose plain result depends on the order of rows: float sums, ties."""
