from __future__ import annotations

from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform as x
from belvedere.plan.functions.registry import resolve
from belvedere.types import BOOLEAN, INTEGER

FIELDS = (n.Field("a", INTEGER), n.Field("b", INTEGER))


def column(index: int) -> e.Column:
    return e.Column(index, INTEGER, f"c{index}")


def outer(depth: int, index: int) -> e.OuterColumn:
    return e.OuterColumn(depth, index, INTEGER, f"o{index}")


def equal(left: e.Expression, right: e.Expression) -> e.Call:
    return e.Call(resolve("=", (INTEGER, INTEGER)).function, (left, right), BOOLEAN)


def scan() -> n.Scan:
    return n.Scan(1, "t", (0, 1), FIELDS)


def inner(condition: e.Expression) -> e.Exists:
    return e.Exists(n.Filter(scan(), condition))


def test_nothing_is_rebuilt_when_nothing_changes() -> None:
    plan = n.Filter(
        scan(), e.And((equal(column(0), column(1)), inner(equal(column(0), outer(1, 0)))))
    )
    assert x.map_outer_columns(plan, lambda reference, level: reference) is plan
    assert x.rebuild_inputs(plan, lambda node: node) is plan
    assert x.rebuild_expressions(plan, lambda one: one) is plan


def test_columns_of_counts_references_from_inside_sub_queries() -> None:
    nested = inner(e.And((equal(column(0), outer(1, 3)), inner(equal(outer(1, 1), outer(2, 4))))))
    assert x.columns_of(e.And((equal(column(0), column(0)), nested))) == {0, 3, 4}


def test_map_columns_reaches_into_sub_queries_at_every_depth() -> None:
    nested = inner(inner(equal(outer(1, 0), outer(2, 5))))
    moved = x.map_columns(nested, lambda one: e.Column(one.index + 10, one.type, one.name))
    assert x.columns_of(moved) == {15}
    assert isinstance(moved, e.Exists)
    assert x.outer_references(moved.plan) == {(1, 15)}


def test_map_columns_lifts_what_it_puts_into_a_sub_query() -> None:
    nested = inner(equal(column(0), outer(1, 0)))
    moved = x.map_columns(nested, lambda one: outer(1, 7))
    assert isinstance(moved, e.Exists)
    assert x.outer_references(moved.plan) == {(2, 7)}


def test_lift_deepens_only_what_leaves_the_expression() -> None:
    lifted = x.lift_expression(
        e.And((equal(column(0), outer(1, 1)), inner(equal(column(0), outer(1, 2))))), 2
    )
    assert x.columns_of(lifted) == set()
    holder = n.Filter(n.EMPTY_ROW, lifted)
    assert x.outer_references(holder) == {(2, 0), (3, 1), (2, 2)}


def test_the_right_side_of_a_lateral_join_stands_one_level_deeper() -> None:
    right = n.Filter(scan(), equal(outer(1, 0), outer(2, 5)))
    assert x.outer_references(n.Join(n.JoinKind.INNER, scan(), right, lateral=True)) == {(1, 5)}
    assert x.outer_references(n.Join(n.JoinKind.INNER, scan(), right)) == {(1, 0), (2, 5)}


def test_lift_plan_moves_a_plan_in_and_out_again() -> None:
    plan = n.Filter(
        scan(), e.And((equal(column(0), outer(2, 1)), inner(equal(outer(3, 2), column(0)))))
    )
    assert x.outer_references(plan) == {(2, 1), (2, 2)}
    moved = x.lift_plan(plan, -1)
    assert x.outer_references(moved) == {(1, 1), (1, 2)}
    assert x.lift_plan(moved, 1) == plan


def test_every_expression_of_a_node_is_reached() -> None:
    access = paths.Access(
        parts=(
            paths.EqualityPart(e.Parameter(1, INTEGER)),
            paths.InListPart((e.Parameter(2, INTEGER),)),
        ),
        range=paths.Range(paths.Bound(e.Parameter(3, INTEGER), True)),
    )
    node = n.Scan(1, "t", (0, 1), FIELDS, access, equal(column(0), e.Parameter(4, INTEGER)))
    found = x.own_expressions(node)
    assert [one.index for one in found if isinstance(one, e.Parameter)] == [1, 2, 3]
    assert len(found) == 4
    renamed = x.rebuild_expressions(
        node, lambda one: e.Literal(0, INTEGER) if isinstance(one, e.Parameter) else one
    )
    assert isinstance(renamed, n.Scan)
    assert renamed.access.parts[0] == paths.EqualityPart(e.Literal(0, INTEGER))


def test_conjuncts_open_nested_ands_and_conjunction_closes_them() -> None:
    one, two, three = (equal(column(i), column(i)) for i in range(3))
    assert x.conjuncts(e.And((one, e.And((two, three))))) == [one, two, three]
    assert x.conjunction([one, two]) == e.And((one, two))
    assert x.conjunction([one]) is one
    assert x.conjunction([]) is None


def test_case_is_rebuilt_pair_by_pair() -> None:
    case = e.Case(((equal(column(0), column(1)), column(2)),), column(3), INTEGER)
    assert x.columns_of(x.shift_columns(case, 5)) == {5, 6, 7, 8}
    assert x.shift_columns(x.shift_columns(case, 5), -5) == case
