"""Every plan gives the same bag of rows in both tiers. A plan that must keep its order is compared
as a list."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from belvedere.plan import access as a
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.types import BIGINT, BOOLEAN, INTEGER, TEXT
from tests.execution.plans import (
    Store,
    aggregate,
    bag,
    by_key,
    call,
    column,
    grouped,
    literal,
    outer,
    project,
    window_call,
)

Case = Callable[[Store], n.Node]
CASES: dict[str, Case] = {}
IN_PYTHON: set[str] = set()
"""Cases of which DuckDB answers no part."""


def case(build: Case) -> Case:
    CASES[build.__name__] = build
    return build


def in_python(build: Case) -> Case:
    IN_PYTHON.add(build.__name__)
    return case(build)


def equal(left: e.Expression, right: e.Expression) -> e.Call:
    return call("=", left, right)


@case
def filter_with_nulls(s: Store) -> n.Node:
    items = s.scan()
    cheap = call("<", column(items, "price"), column(items, "price"))
    return n.Filter(items, e.Or((cheap, equal(column(items, "kind"), literal("a")))))


@case
def three_valued_logic(s: Store) -> n.Node:
    items = s.scan()
    fresh, stock = column(items, "fresh"), call(">", column(items, "stock"), literal(10))
    return project(
        items,
        column(items, "id"),
        e.And((fresh, stock)),
        e.Or((fresh, stock)),
        e.Not(fresh),
        e.Test(fresh, e.Truth.UNKNOWN),
        e.Test(fresh, e.Truth.FALSE, negated=True),
    )


@case
def case_and_coalesce(s: Store) -> n.Node:
    items = s.scan()
    kind = column(items, "kind")
    shown = e.Coalesce((kind, literal("none")), TEXT)
    chosen = e.Case(((equal(kind, literal("a")), literal("first")),), e.Literal(None, TEXT), TEXT)
    return project(items, column(items, "id"), shown, chosen)


@case
def in_list(s: Store) -> n.Node:
    items = s.scan()
    names = (literal("a"), e.Literal(None, TEXT), literal("b"))
    function = call("=", literal("a"), literal("a")).function
    inside = e.InList(column(items, "kind"), names, function)
    outside = e.InList(column(items, "kind"), names, function, negated=True)
    return project(items, column(items, "id"), inside, outside)


@case
def is_distinct(s: Store) -> n.Node:
    items = s.scan()
    function = call("=", literal("a"), literal("a")).function
    test = e.IsDistinct(column(items, "kind"), literal("a"), function)
    return project(items, column(items, "id"), test)


@case
def arithmetic(s: Store) -> n.Node:
    items = s.scan()
    price, stock = column(items, "price"), column(items, "stock")
    return project(
        items,
        call("*", price, price),
        call("+", price, price),
        call("/", stock, literal(3)),
        call("-", column(items, "id"), literal(10)),
    )


@case
def group_by(s: Store) -> n.Node:
    items = s.scan()
    return grouped(
        items,
        (column(items, "kind"),),
        aggregate("count"),
        aggregate("count", column(items, "price")),
        aggregate("sum", column(items, "price")),
        aggregate("min", column(items, "made")),
        aggregate("max", column(items, "stock")),
    )


@case
def averages_finish_in_python(s: Store) -> n.Node:
    items = s.scan()
    return grouped(
        items,
        (column(items, "kind"),),
        aggregate("avg", column(items, "price")),
        aggregate("avg", column(items, "stock")),
        aggregate("avg", column(items, "id"), distinct=True),
    )


@case
def aggregate_of_nothing(s: Store) -> n.Node:
    none = n.Filter(s.scan(), literal(False))
    return grouped(none, (), aggregate("count"), aggregate("sum", column(none, "price")))


@case
def aggregate_with_filter_and_distinct(s: Store) -> n.Node:
    items = s.scan()
    cheap = call("<", column(items, "id"), literal(4))
    return grouped(
        items,
        (),
        aggregate("count", column(items, "stock"), distinct=True),
        aggregate("sum", column(items, "id"), filter=cheap),
    )


@case
def grouping_sets(s: Store) -> n.Node:
    items = s.scan()
    return grouped(
        items,
        (column(items, "kind"), column(items, "fresh")),
        aggregate("count"),
        grouping_sets=((0, 1), (0,), ()),
        groupings=((0, 1), (1,)),
    )


def _joined(s: Store, kind: n.JoinKind, residual: bool = False) -> n.Join:
    items, kinds = s.scan(), s.scan("kinds")
    key = n.JoinKey(column(items, "kind"), column(kinds, "name"))
    factor = e.Column(len(items.fields) + 1, INTEGER)
    condition = call("<", column(items, "id"), factor) if residual else None
    return n.Join(kind, items, kinds, (key,), condition, method=n.JoinMethod.HASH)


for _kind in n.JoinKind:
    for _residual in (False, True):
        _name = f"{_kind.value}_join{'_with_residual' if _residual else ''}"
        CASES[_name] = lambda s, k=_kind, r=_residual: _joined(s, k, r)
        CASES[f"loop_{_name}"] = lambda s, k=_kind, r=_residual: n.Join(
            k, s.scan(), s.scan("kinds"), (), _joined(s, k, True).residual if r else None
        )


@case
def join_where_both_sides_have_nulls(s: Store) -> n.Node:
    items = s.scan()
    return n.Join(n.JoinKind.FULL, items, items, (_same_kind(items),))


@case
def inner_join_where_both_sides_have_nulls(s: Store) -> n.Node:
    items = s.scan()
    return n.Join(n.JoinKind.INNER, items, items, (_same_kind(items),))


def _same_kind(items: n.Scan) -> n.JoinKey:
    return n.JoinKey(column(items, "kind"), column(items, "kind"))


@case
def null_safe_join(s: Store) -> n.Node:
    items = s.scan()
    key = n.JoinKey(column(items, "kind"), column(items, "kind"), null_safe=True)
    return n.Join(n.JoinKind.INNER, items, items, (key,))


@case
def lookup_join(s: Store) -> n.Node:
    joined = _joined(s, n.JoinKind.LEFT)
    access = by_key(column(joined.left, "kind"))
    return n.Join(
        joined.kind,
        joined.left,
        joined.right,
        joined.keys,
        method=n.JoinMethod.LOOKUP,
        lookup=n.Lookup(access, None),
    )


@case
def lateral_join(s: Store) -> n.Node:
    items, kinds = s.scan(), s.scan("kinds")
    inner = n.Filter(items, equal(column(items, "kind"), outer(kinds, "name")))
    top = n.TopN(inner, (e.SortKey(column(inner, "id"), descending=True),), _count(1))
    return n.Join(n.JoinKind.LEFT, kinds, top, lateral=True)


def _count(number: int) -> e.Literal:
    return e.Literal(number, BIGINT)


@case
def correlated_exists(s: Store) -> n.Node:
    items, kinds = s.scan(), s.scan("kinds")
    matching = n.Filter(items, equal(column(items, "kind"), outer(kinds, "name")))
    return n.Filter(kinds, e.Exists(matching, negated=True))


@case
def correlated_scalar(s: Store) -> n.Node:
    items, kinds = s.scan(), s.scan("kinds")
    matching = n.Filter(items, equal(column(items, "kind"), outer(kinds, "name")))
    total = grouped(matching, (), aggregate("count"))
    return project(kinds, column(kinds, "name"), e.ScalarSubquery(total, BIGINT))


@case
def in_subquery_with_nulls(s: Store) -> n.Node:
    items, kinds = s.scan(), s.scan("kinds")
    names = project(items, column(items, "kind"))
    function = call("=", literal("a"), literal("a")).function
    differs = call("<>", literal("a"), literal("a")).function
    name = column(kinds, "name")
    return project(
        kinds,
        name,
        e.QuantifiedSubquery(e.Quantifier.ANY, (function,), (name,), names),
        e.QuantifiedSubquery(e.Quantifier.ALL, (differs,), (name,), names),
    )


@case
def distinct(s: Store) -> n.Node:
    items = s.scan()
    return n.Distinct(project(items, column(items, "kind"), column(items, "fresh")))


for _set_kind in n.SetKind:
    for _all in (False, True):
        CASES[f"{_set_kind.value}{'_all' if _all else ''}"] = lambda s, k=_set_kind, every=_all: (
            n.SetOperation(
                k,
                every,
                project(s.scan(), column(s.scan(), "kind")),
                project(s.scan("kinds"), column(s.scan("kinds"), "name")),
            )
        )


@case
def recursion(s: Store) -> n.Node:
    fields = (n.Field("i", INTEGER),)
    base = n.Values(((literal(1),),), fields)
    working = n.CteScan(7, "r", fields)
    below = n.Filter(working, call("<", e.Column(0, INTEGER), literal(5)))
    step = project(below, call("+", e.Column(0, INTEGER), literal(1)))
    return n.RecursiveUnion(7, "r", base, step, all=True)


@case
def with_read_twice(s: Store) -> n.Node:
    kinds = s.scan("kinds")
    cte = n.Cte(3, "k", kinds)
    scan = n.CteScan(3, "k", kinds.fields)
    return n.With((cte,), n.SetOperation(n.SetKind.UNION, True, scan, scan))


def _window(s: Store, frame: n.Frame, *calls: e.WindowCall) -> n.Window:
    items = s.scan()
    order = (e.SortKey(column(items, "id")),)
    names = tuple(f"w{i}" for i in range(len(calls)))
    return n.Window(items, (column(items, "kind"),), order, frame, calls, names)


@case
def window_ranks(s: Store) -> n.Node:
    items = s.scan()
    order = (e.SortKey(column(items, "stock"), descending=True, nulls_first=True),)
    calls = (window_call("rank"), window_call("dense_rank"))
    return n.Window(items, (), order, n.Frame(), calls, ("r", "d"))


@case
def window_running_sum(s: Store) -> n.Node:
    return _window(s, n.Frame(), _sum_of_stock(s))


def _sum_of_stock(s: Store) -> e.WindowCall:
    return window_call("max", column(s.scan(), "stock"))


@case
def window_rows_frame(s: Store) -> n.Node:
    frame = n.Frame(
        n.FrameMode.ROWS,
        n.FrameBound(n.FrameSide.PRECEDING, _count(1)),
        n.FrameBound(n.FrameSide.FOLLOWING, _count(1)),
        exclude="current row",
    )
    return _window(s, frame, _sum_of_stock(s))


@case
def window_groups_frame(s: Store) -> n.Node:
    frame = n.Frame(
        n.FrameMode.GROUPS,
        n.FrameBound(n.FrameSide.CURRENT_ROW),
        n.FrameBound(n.FrameSide.FOLLOWING, _count(1)),
    )
    items = s.scan()
    order = (e.SortKey(column(items, "made"), nulls_first=True),)
    return n.Window(items, (), order, frame, (_sum_of_stock(s),), ("m",))


@in_python
def key_access(s: Store) -> n.Node:
    return s.scan(access=by_key(literal(3)))


@case
def range_access(s: Store) -> n.Node:
    found = a.Range(a.Bound(literal(2), False), a.Bound(literal(5), True))
    items = s.scan(access=a.Access(range=found))
    return n.Filter(items, call("<>", column(items, "id"), literal(4)))


@case
def index_access(s: Store) -> n.Node:
    access = a.Access(index=s.index("by_kind"), parts=(a.InListPart((literal("a"), literal("b"))),))
    return n.Filter(s.scan(access=access), literal(True))


@case
def values(s: Store) -> n.Node:
    fields = (n.Field("x", INTEGER), n.Field("y", TEXT))
    rows = ((literal(1), literal("p")), (literal(2), e.Literal(None, TEXT)))
    return n.Filter(n.Values(rows, fields), call(">", e.Column(0, INTEGER), literal(0)))


@pytest.mark.parametrize("name", CASES)
def test_both_tiers_give_the_same_rows(store: Store, name: str) -> None:
    plan = CASES[name](store)
    expected = store.run(plan)
    found, report = store.run_duck(plan)
    assert bag(found) == bag(expected)
    assert bool(report.statements) is (name not in IN_PYTHON), report.reasons


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
@pytest.mark.parametrize("name", ["kind", "price", "stock", "weight", "made", "fresh"])
def test_both_tiers_sort_alike(
    store: Store, name: str, descending: bool, nulls_first: bool
) -> None:
    items = store.scan()
    keys = (
        e.SortKey(column(items, name), descending, nulls_first),
        e.SortKey(column(items, "id")),
    )
    for plan in (
        n.Sort(items, keys),
        n.TopN(items, keys, _count(3), _count(1)),
        project(n.Limit(n.Sort(items, keys), _count(2)), column(items, "id")),
    ):
        found, report = store.run_duck(plan)
        assert report.statements
        assert list(map(repr, found)) == list(map(repr, store.run(plan)))


def test_branches_of_different_scales_keep_their_digits(store: Store) -> None:
    items = store.scan()
    mixed = e.Case(
        ((e.Test(column(items, "fresh"), e.Truth.TRUE), column(items, "price")),),
        call("*", column(items, "price"), column(items, "price")),
        column(items, "price").type,
    )
    plan = project(n.Filter(items, call(">", column(items, "id"), literal(2))), mixed)
    found, report = store.run_duck(plan)
    assert bag(found) == bag(store.run(plan))
    assert sorted(map(repr, found)) == sorted(map(repr, store.run(plan)))
    assert report.reasons == []
    assert len(report.statements) == 1


def test_what_has_no_exact_form_stays_in_python_and_says_why(store: Store) -> None:
    items = store.scan()
    price = column(items, "price")
    mixed = e.Case(
        ((e.Test(column(items, "fresh"), e.Truth.TRUE), price),),
        call("*", price, price),
        price.type,
    )
    kept = n.Filter(items, call(">", column(items, "id"), literal(2)))
    plan = n.Distinct(project(kept, mixed))
    found, report = store.run_duck(plan)
    assert bag(found) == bag(store.run(plan))
    assert report.reasons == ["equal NUMERIC values of different scales are grouped"]
    assert len(report.statements) == 1


def test_a_failure_of_duckdb_is_judged_by_the_direct_tier(store: Store) -> None:
    """The division fails only for the row that the filter below it takes away."""
    items = store.scan()
    kept = n.Filter(items, call("<>", column(items, "id"), literal(1)))
    divided = project(kept, call("/", literal(10), call("-", column(items, "id"), literal(1))))
    found, report = store.run_duck(divided)
    assert report.statements
    assert bag(found) == bag(store.run(divided))


def test_boolean_columns_are_conditions(store: Store) -> None:
    items = store.scan()
    plan = n.Filter(items, column(items, "fresh"))
    assert plan.condition.type == BOOLEAN
    assert bag(store.run_duck(plan)[0]) == bag(store.run(plan))
