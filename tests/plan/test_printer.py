from __future__ import annotations

import datetime
import decimal

import pytest

from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.expression_printer import print_expression, print_value
from belvedere.plan.functions.registry import resolve
from belvedere.plan.printer import print_plan
from belvedere.types import BOOLEAN, INTEGER, TEXT, Interval, Kind

FIELDS = (n.Field("a", INTEGER), n.Field("b", TEXT))
A = e.Column(0, INTEGER, "a")


def scan(**more: object) -> n.Scan:
    return n.Scan(7, "t", (0, 1), FIELDS, **more)  # type: ignore[arg-type]


def test_a_plan_prints_as_an_indented_tree() -> None:
    plan = n.Limit(n.Sort(scan(), (e.SortKey(A, descending=True, nulls_first=True),)), None)
    assert print_plan(plan) == "Limit\n  Sort a desc\n    Scan t (a, b)"


def test_exact_adds_places_and_note_adds_text() -> None:
    condition = e.Test(A, e.Truth.NULL)
    plan = n.Filter(scan(), condition)
    assert print_plan(plan, exact=True).startswith("Filter a#0 is null\n")
    noted = print_plan(plan, note=lambda node: f"[{type(node).__name__}]")
    assert noted == "Filter a is null  [Filter]\n  Scan t (a, b)  [Scan]"


def test_sub_queries_print_below_the_line_that_uses_them() -> None:
    plan = n.Filter(scan(), e.Not(e.Exists(n.Filter(scan(), e.Test(A, e.Truth.NULL)))))
    assert print_plan(plan).splitlines() == [
        "Filter not (exists <subquery 1>)",
        "  subquery 1",
        "    Filter a is null",
        "      Scan t (a, b)",
        "  Scan t (a, b)",
    ]


@pytest.mark.parametrize(
    ("access", "text"),
    [
        (paths.Access(parts=(paths.EqualityPart(A),), full_key=True), "key [a]"),
        (paths.Access(parts=(paths.InListPart((A, A)),), full_key=True), "keys [in (a, a)]"),
        (paths.Access(parts=(paths.AnyElementPart(A),), full_key=True), "keys [any (a)]"),
        (paths.Access(parts=(paths.EqualityPart(A),)), "prefix [a]"),
        (
            paths.Access(parts=(paths.IsNullPart(),), index=3, index_name="i"),
            "prefix index i [is null]",
        ),
        (
            paths.Access(
                3, "i", (), paths.Range(paths.Bound(A, True), paths.Bound(A, False)), covering=True
            ),
            "range index i only [>= a < a]",
        ),
        (paths.Access(ordered=True, reverse=True), "full ordered reverse"),
    ],
)
def test_access_paths_print_their_kind_and_keys(access: paths.Access, text: str) -> None:
    assert print_plan(scan(access=access)) == f"Scan t (a, b) {text}"


def test_leaves_of_delta_plans_print_their_positions() -> None:
    changes = n.Changes(7, "t", (0, 1), FIELDS)
    state = n.State(7, "t", (0, 1), FIELDS, at="to")
    assert print_plan(n.SetOperation(n.SetKind.UNION, True, changes, state)).splitlines() == [
        "Union all",
        "  Changes t (a, b) from..to",
        "  State t (a, b) at to",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (5, "5"),
        (decimal.Decimal("1.50"), "1.50"),
        ("it's", "'it''s'"),
        (b"\x01", "'\\x01'"),
        (Interval(1, 2, 3), "interval '1 mons 2 days 3 us'"),
        ([1, None], "{1, null}"),
        (datetime.date(2024, 1, 2), "'2024-01-02'"),
    ],
)
def test_values_print_as_sql(value: object, text: str) -> None:
    assert print_value(value, Kind.TEXT) == text


def test_operators_print_infix_with_parentheses_only_where_needed() -> None:
    plus = e.Call(resolve("+", (INTEGER, INTEGER)).function, (A, A), INTEGER)
    less = e.Call(resolve("<", (INTEGER, INTEGER)).function, (plus, A), BOOLEAN)
    assert print_expression(less) == "(a + a) < a"
    assert print_expression(e.Or((less, e.And((less, less))))) == (
        "((a + a) < a) or (((a + a) < a) and ((a + a) < a))"
    )
