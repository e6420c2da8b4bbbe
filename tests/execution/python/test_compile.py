"""What the direct tier does beyond agreeing with DuckDB: access, order, laziness, nesting."""

from __future__ import annotations

import pytest

from belvedere.errors import InvalidInput, Unavailable
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.run import Interrupt, Run
from belvedere.plan import access as a
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.types import BIGINT, DOUBLE, INTEGER, TEXT, Row, array_of
from tests.execution.plans import (
    ITEM_ROWS,
    Store,
    aggregate,
    by_key,
    call,
    column,
    grouped,
    literal,
    outer,
    project,
)


def ids(rows: list[tuple[object, ...]]) -> list[object]:
    return [row[0] for row in rows]


def test_a_key_that_is_null_selects_nothing(store: Store) -> None:
    assert store.run(store.scan(access=by_key(e.Parameter(1, INTEGER))), None) == []


def test_keys_are_read_once_each_and_in_order_when_order_matters(store: Store) -> None:
    numbers = e.Parameter(1, array_of(INTEGER))
    access = a.Access(parts=(a.AnyElementPart(numbers),), full_key=True, ordered=True, reverse=True)
    assert ids(store.run(store.scan(access=access), [2, 5, 2, None, 99, 3])) == [5, 3, 2]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (a.Bound(literal(2), True), None, [2, 3, 4, 5, 6]),
        (a.Bound(literal(2), False), a.Bound(literal(5), False), [3, 4]),
        (None, a.Bound(literal(2), True), [1, 2]),
        (a.Bound(e.Literal(None, INTEGER), True), None, []),
    ],
)
def test_ranges_respect_their_bounds(
    store: Store, low: a.Bound | None, high: a.Bound | None, expected: list[int]
) -> None:
    access = a.Access(range=a.Range(low, high), ordered=True)
    assert ids(store.run(store.scan(access=access))) == expected


def test_a_descending_index_gives_rows_in_its_order_and_backwards(store: Store) -> None:
    forward = a.Access(index=store.index("by_stock"), ordered=True)
    backward = a.Access(index=store.index("by_stock"), ordered=True, reverse=True)
    found = [row[3] for row in store.run(store.scan(access=forward))]
    assert found == [None, 30, 20, 20, 10, 5]
    assert [row[3] for row in store.run(store.scan(access=backward))] == found[::-1]


def test_a_range_of_a_descending_index_has_no_nulls(store: Store) -> None:
    found = a.Range(a.Bound(e.Literal(10, BIGINT), True), None)
    access = a.Access(index=store.index("by_stock"), range=found, ordered=True)
    assert [row[3] for row in store.run(store.scan(access=access))] == [30, 20, 20, 10]


def test_an_index_part_can_ask_for_null(store: Store) -> None:
    access = a.Access(index=store.index("by_kind"), parts=(a.IsNullPart(),))
    assert ids(store.run(store.scan(access=access))) == [4]


def test_a_covering_index_is_read_alone(store: Store) -> None:
    table = store.database.get_compiled_table("items").table
    fields = (n.Field("kind", TEXT), n.Field("id", INTEGER))
    access = a.Access(index=store.index("by_kind"), covering=True, ordered=True)
    plan = n.Scan(table.id, "items", (1, 0), fields, access)
    assert store.run(plan)[:3] == [("a", 1), ("a", 3), ("b", 2)]


def test_limit_stops_reading(store: Store) -> None:
    """The second row would fail."""
    items = store.scan()
    risky = project(items, call("/", literal(1), call("-", column(items, "id"), literal(2))))
    assert store.run(n.Limit(risky, e.Literal(1, BIGINT))) == [(-1,)]
    with pytest.raises(InvalidInput, match="division by zero"):
        store.run(n.Limit(risky, e.Literal(2, BIGINT)))


def test_limit_with_ties_gives_the_equals_of_the_last_row(store: Store) -> None:
    items = store.scan()
    by_stock = n.Sort(items, (e.SortKey(column(items, "stock")),))
    found = store.run(n.Limit(by_stock, e.Literal(3, BIGINT), with_ties=True))
    assert [row[3] for row in found] == [5, 10, 20, 20]


def test_negative_limit_is_refused(store: Store) -> None:
    with pytest.raises(InvalidInput) as caught:
        store.run(n.Limit(store.scan(), e.Literal(-1, BIGINT)))
    assert caught.value.sqlstate == "2201W"


def test_distinct_on_keeps_the_first_row_of_each_group(store: Store) -> None:
    items = store.scan()
    order = (e.SortKey(column(items, "kind")), e.SortKey(column(items, "id"), descending=True))
    plan = n.Distinct(n.Sort(items, order), (column(items, "kind"),))
    assert ids(store.run(plan)) == [3, 6, 5, 4]


def test_a_scalar_subquery_with_two_rows_is_refused(store: Store) -> None:
    kinds = store.scan("kinds")
    names = project(kinds, column(kinds, "name"))
    with pytest.raises(InvalidInput) as caught:
        store.run(project(kinds, e.ScalarSubquery(names, TEXT)))
    assert caught.value.sqlstate == "21000"


def run_counting(store: Store, plan: n.Node, counted: n.Node) -> tuple[list[Row], int]:
    """The rows of the plan, and how often the node `counted` in it ran."""
    runs: list[n.Node] = []

    def count(node: n.Node, rows: object) -> object:
        if node is not counted:
            return rows
        assert callable(rows)

        def counting(run: Run) -> object:
            runs.append(node)
            return rows(run)

        return counting

    with store.database.begin() as txn:
        run = store._run(txn, ())
        found = list(compile_plan(txn.catalog, plan, count)(run))  # type: ignore[arg-type]
    return found, len(runs)


def test_an_uncorrelated_subquery_runs_once(store: Store) -> None:
    items, kinds = store.scan(), store.scan("kinds")
    total = grouped(kinds, (), aggregate("count"))
    plan = project(items, column(items, "id"), e.ScalarSubquery(total, BIGINT))
    found, runs = run_counting(store, plan, total)
    assert found == [(row[0], 3) for row in ITEM_ROWS]
    assert runs == 1


def same_kind(store: Store, items: n.Node, *more: e.Expression) -> n.Node:
    """How many items are of the outer item's kind."""
    conditions = (call("=", column(items, "kind"), outer(items, "kind")), *more)
    condition = conditions[0] if len(conditions) == 1 else e.And(conditions)
    return grouped(n.Filter(items, condition), (), aggregate("count"))


def test_a_correlated_subquery_runs_again_only_when_the_outer_values_change(store: Store) -> None:
    items = store.scan()
    counted = same_kind(store, items)
    by_kind = n.Sort(items, (e.SortKey(column(items, "kind")),))
    plan = project(by_kind, column(items, "kind"), e.ScalarSubquery(counted, BIGINT))
    found, runs = run_counting(store, plan, counted)
    kinds = [row[1] for row in ITEM_ROWS]
    assert found == [(kind, kinds.count(kind) if kind else 0) for kind, _ in found]
    assert len(found) == len(kinds)
    assert runs == len(set(kinds)) < len(kinds)


def test_a_correlated_subquery_with_a_volatile_function_runs_for_every_row(store: Store) -> None:
    items = store.scan()
    counted = same_kind(store, items, call("<", call("random"), e.Literal(2.0, DOUBLE)))
    by_kind = n.Sort(items, (e.SortKey(column(items, "kind")),))
    plan = project(by_kind, e.ScalarSubquery(counted, BIGINT))
    found, runs = run_counting(store, plan, counted)
    assert runs == len(found) == len(ITEM_ROWS)


def test_two_levels_of_correlation_see_their_own_rows(store: Store) -> None:
    """For each kind: does an item of it exist that is the only one with its stock?"""
    items, kinds = store.scan(), store.scan("kinds")
    same_stock = n.Filter(
        items,
        e.And(
            (
                call("=", column(items, "stock"), outer(items, "stock")),
                call("<>", column(items, "id"), outer(items, "id")),
                call("<>", column(items, "kind"), outer(kinds, "name", depth=2)),
            )
        ),
    )
    inner = n.Filter(
        items,
        e.And(
            (
                call("=", column(items, "kind"), outer(kinds, "name")),
                e.Exists(same_stock),
            )
        ),
    )
    plan = n.Filter(kinds, e.Exists(inner))
    assert ids(store.run(plan)) == ["b"]


def test_deeply_nested_expressions_compile(store: Store) -> None:
    kinds = store.scan("kinds")
    deep: e.Expression = column(kinds, "factor")
    for _ in range(150):
        deep = call("+", deep, literal(1))
    assert store.run(project(kinds, deep)) == [(152,), (153,), (159,)]


def test_wide_logic_compiles(store: Store) -> None:
    kinds = store.scan("kinds")
    tests = tuple(call("=", column(kinds, "factor"), literal(i)) for i in range(1000, 3000))
    wide = e.Or((*tests, call("=", column(kinds, "factor"), literal(3))))
    assert store.run(project(kinds, wide)) == [(False,), (True,), (False,)]
    assert ids(store.run(n.Filter(kinds, wide))) == ["b"]


def test_case_with_many_branches_compiles(store: Store) -> None:
    kinds = store.scan("kinds")
    whens = tuple(
        (call("=", column(kinds, "factor"), literal(i)), literal(i * 10)) for i in range(500)
    )
    plan = project(kinds, e.Case(whens, literal(-1), INTEGER))
    assert store.run(plan) == [(20,), (30,), (90,)]


def test_a_strict_call_evaluates_all_its_arguments(store: Store) -> None:
    """As PostgreSQL does: the NULL of the first does not hide the failure of the second."""
    kinds = store.scan("kinds")
    failing = call("/", literal(1), call("-", column(kinds, "factor"), literal(2)))
    plan = project(kinds, call("+", e.Parameter(1, INTEGER), failing))
    with pytest.raises(InvalidInput, match="division by zero"):
        store.run(plan, None)


def test_an_interrupt_stops_a_running_plan(store: Store) -> None:
    kinds = store.scan("kinds")
    plan = n.Join(n.JoinKind.INNER, kinds, kinds)
    interrupt = Interrupt()
    with store.database.begin() as txn:
        run = Run(txn, (), None, store.services, interrupt)  # type: ignore[arg-type]
        rows = compile_plan(txn.catalog, plan)(run)
        next(rows)
        interrupt.stop("canceled by the user")
        with pytest.raises(Unavailable) as caught:
            list(rows)
    assert caught.value.sqlstate == "57014"
