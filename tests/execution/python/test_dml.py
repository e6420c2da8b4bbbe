"""INSERT, UPDATE and DELETE as plans."""

from __future__ import annotations

from decimal import Decimal

import pytest

from belvedere.errors import InvalidInput
from belvedere.plan import access as a
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.types import INTEGER, TEXT
from tests.execution.plans import Store, call, column, literal

NO_RULES = n.RowRules()


def values(*rows: tuple[str | None, int | None]) -> n.Values:
    fields = (n.Field("name", TEXT), n.Field("factor", INTEGER))
    made = tuple((e.Literal(a, TEXT), e.Literal(b, INTEGER)) for a, b in rows)
    return n.Values(made, fields)


def insert(store: Store, node: n.Node, **more: object) -> n.Insert:
    scan = store.scan("kinds")
    arguments = {
        "relation": scan.relation,
        "name": "kinds",
        "input": node,
        "ordinals": (0, 1),
        "rules": NO_RULES,
        "on_conflict": None,
        "returning": (),
        "fields": (),
    }
    return n.Insert(**(arguments | more))  # type: ignore[arg-type]


def kinds(store: Store) -> list[tuple[object, ...]]:
    return store.run(store.scan("kinds"))


def test_insert_returns_the_new_rows(fresh: Store) -> None:
    scan = fresh.scan("kinds")
    plan = insert(
        fresh,
        values(("n", 1)),
        returning=(call("+", column(scan, "factor"), literal(1)),),
        fields=(n.Field("x", INTEGER),),
    )
    assert fresh.run(plan) == [(2,)]
    assert ("n", 1) in kinds(fresh)


def test_insert_of_a_taken_key_is_refused(fresh: Store) -> None:
    with pytest.raises(InvalidInput) as caught:
        fresh.run(insert(fresh, values(("n", 1), ("a", 5))))
    assert caught.value.sqlstate == "23505"
    assert ("n", 1) not in kinds(fresh)


def test_insert_select_reads_the_table_as_it_was(fresh: Store) -> None:
    scan = fresh.scan("kinds")
    doubled = n.Project(
        scan,
        (call("||", column(scan, "name"), literal("2")), column(scan, "factor")),
        scan.fields,
    )
    fresh.run(insert(fresh, doubled))
    assert sorted(kinds(fresh)) == [
        ("a", 2),
        ("a2", 2),
        ("b", 3),
        ("b2", 3),
        ("z", 9),
        ("z2", 9),
    ]


def test_rules_are_generated_then_not_null_then_checks(fresh: Store) -> None:
    scan = fresh.scan("kinds")
    rules = n.RowRules(
        generated=(n.Assignment(1, call("length", column(scan, "name"))),),
        not_null=(0,),
        checks=(n.RowCheck("short", call("<", column(scan, "factor"), literal(3))),),
    )
    fresh.run(insert(fresh, values(("xy", None)), rules=rules))
    assert ("xy", 2) in kinds(fresh)
    with pytest.raises(InvalidInput) as caught:
        fresh.run(insert(fresh, values(("long", None)), rules=rules))
    assert (caught.value.sqlstate, caught.value.facts["constraint"]) == ("23514", "short")
    with pytest.raises(InvalidInput) as caught:
        fresh.run(insert(fresh, values((None, None)), rules=rules))
    assert caught.value.sqlstate == "23502"


def test_a_check_that_is_unknown_passes(fresh: Store) -> None:
    scan = fresh.scan("kinds")
    rules = n.RowRules(checks=(n.RowCheck("c", call(">", column(scan, "factor"), literal(0))),))
    fresh.run(insert(fresh, values(("n", None)), rules=rules))
    assert ("n", None) in kinds(fresh)


def test_on_conflict_do_nothing_skips_taken_and_repeated_keys(fresh: Store) -> None:
    conflict = n.OnConflict(primary=True)
    scan = fresh.scan("kinds")
    plan = insert(
        fresh,
        values(("a", 7), ("n", 1), ("n", 2)),
        on_conflict=conflict,
        returning=(column(scan, "name"),),
        fields=(n.Field("name", TEXT),),
    )
    assert fresh.run(plan) == [("n",)]
    assert sorted(kinds(fresh)) == [("a", 2), ("b", 3), ("n", 1), ("z", 9)]


def test_on_conflict_do_update_sees_existing_and_proposed_rows(fresh: Store) -> None:
    total = call("+", e.Column(1, INTEGER), e.Column(3, INTEGER))
    conflict = n.OnConflict(
        primary=True,
        assignments=(n.Assignment(1, total),),
        where=call("<", e.Column(1, INTEGER), literal(5)),
    )
    fresh.run(insert(fresh, values(("a", 7), ("z", 1), ("n", 4)), on_conflict=conflict))
    assert sorted(kinds(fresh)) == [("a", 9), ("b", 3), ("n", 4), ("z", 9)]


def test_on_conflict_do_update_refuses_a_row_twice(fresh: Store) -> None:
    conflict = n.OnConflict(primary=True, assignments=(n.Assignment(1, e.Column(3, INTEGER)),))
    with pytest.raises(InvalidInput) as caught:
        fresh.run(insert(fresh, values(("a", 7), ("a", 8)), on_conflict=conflict))
    assert caught.value.sqlstate == "21000"


def test_update_changes_a_row_once_by_its_first_match(fresh: Store) -> None:
    scan = fresh.scan("kinds")
    others = n.Values(((literal(10),), (literal(20),)), (n.Field("v", INTEGER),))
    joined = n.Join(n.JoinKind.INNER, scan, others)
    value = call("+", e.Column(1, INTEGER), e.Column(2, INTEGER))
    plan = n.Update(
        scan.relation,
        "kinds",
        joined,
        2,
        (n.Assignment(1, value),),
        NO_RULES,
        (e.Column(0, TEXT), e.Column(1, INTEGER), e.Column(2, INTEGER)),
        (n.Field("a", TEXT), n.Field("b", INTEGER), n.Field("c", INTEGER)),
    )
    assert fresh.run(plan) == [("a", 12, 10), ("b", 13, 10), ("z", 19, 10)]
    assert kinds(fresh) == [("a", 12), ("b", 13), ("z", 19)]


def test_update_may_move_a_row_to_another_key(fresh: Store) -> None:
    scan = fresh.scan("kinds")
    plan = n.Update(
        scan.relation,
        "kinds",
        n.Filter(scan, call("=", column(scan, "name"), literal("a"))),
        2,
        (n.Assignment(0, literal("y")),),
        NO_RULES,
        (),
        (),
    )
    fresh.run(plan)
    assert kinds(fresh) == [("b", 3), ("y", 2), ("z", 9)]


def test_delete_returns_what_is_gone(fresh: Store) -> None:
    scan = fresh.scan("kinds")
    plan = n.Delete(
        scan.relation,
        "kinds",
        n.Filter(scan, call(">", column(scan, "factor"), literal(2))),
        2,
        (column(scan, "name"),),
        (n.Field("name", TEXT),),
    )
    assert fresh.run(plan) == [("b",), ("z",)]
    assert kinds(fresh) == [("a", 2)]


def test_parts_of_a_statement_do_not_see_each_others_changes(fresh: Store) -> None:
    """WITH gone AS (DELETE ..) SELECT: the scan still has every row, the CTE what was deleted."""
    scan = fresh.scan("kinds")
    gone = n.Delete(
        scan.relation, "kinds", scan, 2, (column(scan, "name"),), (n.Field("name", TEXT),)
    )
    names = n.CteScan(1, "gone", gone.fields)
    body = n.SetOperation(
        n.SetKind.UNION, True, names, n.Project(scan, (column(scan, "name"),), gone.fields)
    )
    plan = n.With((n.Cte(1, "gone", gone, materialized=True),), body)
    assert sorted(fresh.run(plan)) == [(x,) for x in "aabbzz"]
    assert kinds(fresh) == []


def test_a_change_in_a_cte_happens_even_if_nobody_reads_it(fresh: Store) -> None:
    scan = fresh.scan("kinds")
    gone = n.Delete(scan.relation, "kinds", scan, 2, (), ())
    plan = n.With((n.Cte(1, "gone", gone, materialized=True),), n.EMPTY_ROW)
    assert fresh.run(plan) == [()]
    assert kinds(fresh) == []


def test_changes_keep_indexes_right(fresh: Store) -> None:
    items = fresh.scan()
    plan = n.Update(
        items.relation,
        "items",
        n.Filter(items, call("=", column(items, "id"), literal(1))),
        len(items.fields),
        (
            n.Assignment(1, literal("q")),
            n.Assignment(2, e.Literal(Decimal("9.99"), items.fields[2].type)),
        ),
        NO_RULES,
        (),
        (),
    )
    fresh.run(plan)
    access = a.Access(index=fresh.index("by_kind"), parts=(a.EqualityPart(literal("q")),))
    assert [row[0] for row in fresh.run(fresh.scan(access=access))] == [1]
