"""The small cases that the explorer walks through completely."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.node import NodeSettings
from tests.simulation.row import processes as p
from tests.simulation.row.explorer import Case, Rows, run_alone
from tests.simulation.row.judges import (
    check_deleted,
    check_group,
    check_index,
    check_lists,
    check_sum,
)

ON_DEMAND = frozenset(
    (
        "three transactions, more of them",
        "reader helps, in full",
        "late cells, vacuum, in full",
        "swept, death, in full",
    )
)
FAULTS = {
    "lock": (layout.LOCKS,),
    "log": (layout.LOG,),
    "counter": (layout.COUNTER_ROW,),
    "cells": (p.TABLE, layout.OUTCOMES),
}


def all_cases() -> dict[str, Case]:
    """Every case, by name."""
    config = p.settings()
    groups: tuple[Callable[[NodeSettings], list[Case]], ...]
    groups = (core_cases, parallel_lock_cases, group_cases, fault_cases, reader_cases)
    groups += (sweep_cases, forget_cases, ddl_and_fold_cases, load_cases)
    return {case.name: case for group in groups for case in group(config)}


def two(c: NodeSettings, a: Sequence[str] = "x", b: Sequence[str] = "x", late: bool = True) -> Any:
    """Two transactions; `late`: they read only under their locks, so nothing else protects them."""
    if late:
        return (("a", p.append_newest(1, "a", a, c)), ("b", p.append_newest(2, "b", b, c)))
    return (("a", p.append(1, "a", a, c)), ("b", p.append(2, "b", b, c, newest=True)))


def lists(a: Sequence[str] = "x", b: Sequence[str] = "x") -> Any:
    return check_lists({"a": a, "b": b}, sorted({*a, *b}))


def core_cases(c: NodeSettings) -> list[Case]:
    three = (*two(c), ("c", p.append_newest(3, "c", "x", c)))
    all_three = check_lists(dict.fromkeys("abc", "x"), "x")
    few = {"positions_max": 4, "ordered": True, "switches_max": 2}
    more = {"positions_max": 5, "ordered": True, "switches_max": 5}
    dying: dict[str, Any] = {"deaths": 1, "mortal": ("a",)}
    return [
        Case("three transactions", {}, three, all_three, **few),
        Case("three transactions, more of them", {}, three, all_three, **more),
        Case("one lock", {}, two(c, late=False), lists()),
        Case("one lock, read late", {}, two(c), lists()),
        Case("one lock, death", {}, two(c), lists(), **dying),
        Case("two locks", {}, two(c, "xy", "xy"), lists("xy", "xy"), positions_max=3),
        Case("broken secondary", {}, two(c, "xy", "y"), lists("xy", "y"), positions_max=3, **dying),
    ]


def parallel_lock_cases(c: NodeSettings) -> list[Case]:
    """Secondary locks are taken side by side, and given back where one of them is held."""
    crossing, check = two(c, "xyz", "yz"), lists("xyz", "yz")
    few: dict[str, Any] = {"positions_max": 3, "switches_max": 2}
    dying: dict[str, Any] = {"deaths": 1, "mortal": ("a",)}
    lost: dict[str, Any] = {"faults": 1, "faulty": ("a",), "fault_on": FAULTS["lock"]}
    return [
        Case("three locks", {}, crossing, check, **few),
        Case("three locks, death", {}, crossing, check, **few, **dying),
        Case("three locks, faults on lock", {}, crossing, check, **few, **lost, ordered=True),
    ]


def group_cases(c: NodeSettings) -> list[Case]:
    grouped: dict[str, Sequence[str]] = {"a": "x", "c": "y"}
    both = (("g", p.group(1, grouped, c)), ("b", p.append_newest(2, "b", "x", c)))
    check = check_group({**grouped, "b": "x"}, "xy")
    lost: dict[str, Any] = {"faults": 1, "faulty": ("g",), "positions_max": 3, "ordered": True}
    lost["switches_max"] = 2
    return [
        Case("group", {}, both, check, positions_max=4, ordered=True),
        Case("group, faults on log", {}, both, check, fault_on=FAULTS["log"], **lost),
        Case("group, faults on lock", {}, both, check, fault_on=FAULTS["lock"], **lost),
    ]


def fault_cases(c: NodeSettings) -> list[Case]:
    """One request, any request, is lost, delayed, repeated, or answered wrongly."""
    return [
        Case(
            f"one lock, faults on {where}",
            {},
            two(c),
            lists(),
            faults=1,
            faulty=("a",),
            fault_on=rows,
            positions_max=3 if where == "log" else 2,
            ordered=True,
        )
        for where, rows in FAULTS.items()
    ]


def reader_cases(c: NodeSettings) -> list[Case]:
    a = ("a", p.append(1, "a", "x", c))
    r, q = ("r", p.reader(2, "x", c)), ("q", p.reader(3, "x", c))
    helped = (*two(c), ("r", p.reader(3, "x", c)))
    return [
        Case("reader helps", {}, helped, lists(), positions_max=2, ordered=True, switches_max=3),
        Case("reader helps, in full", {}, helped, lists(), positions_max=2, ordered=True),
        Case("anyone closes", {}, (a, r, q), check_lists({"a": "x"}, "x"), positions_max=3),
    ]


def sweep_cases(c: NodeSettings) -> list[Case]:
    """A sweep notes a node as gone that is dead, or only slow, and goes on."""
    both = (("a", p.beat_and_append(1, "a", c)), ("b", p.sweep_and_append(2, "b", c)))
    lost: dict[str, Any] = {"faults": 1, "faulty": ("a",), "fault_on": (layout.HEARTBEATS,)}
    dying: dict[str, Any] = {"deaths": 1, "mortal": ("a",)}
    all_of_it: dict[str, Any] = {"positions_max": 3, "sweeps": True}
    few = {**all_of_it, "switches_max": 3}
    return [
        Case("swept", {}, both, lists(), **few),
        Case("swept, death", {}, both, lists(), **dying, **few),
        Case("swept, death, in full", {}, both, lists(), **dying, **all_of_it),
        Case("swept, late heartbeat", {}, both, lists(), ordered=True, **lost, **few),
    ]


def forget_cases(c: NodeSettings) -> list[Case]:
    one = ("a", p.append_newest(1, "a", "x", c))
    forgetting = (one, ("b", p.forget_and_append(2, "b", c)))
    deleting = (one, ("d", p.delete_and_forget(2, c)))
    adding = (("a", p.add(1, "a", c)), ("v", p.forgetter(2, c)))
    late: dict[str, Any] = {"faults": 1, "faulty": ("a",), "forgets": True, "ordered": True}
    log, cells = FAULTS["log"], FAULTS["cells"]
    return [
        Case("zombie, trim", {}, forgetting, lists(), forgets=True, positions_max=3),
        Case("lost reply, trim", {}, adding, check_sum("a"), fault_on=log, positions_max=2, **late),
        Case(
            "late cells, vacuum",
            {},
            forgetting,
            lists(),
            fault_on=cells,
            positions_max=2,
            switches_max=3,
            **late,
        ),
        Case(
            "late cells, vacuum, in full",
            {},
            forgetting,
            lists(),
            fault_on=cells,
            positions_max=2,
            **late,
        ),
        Case(
            "late cells, deleted row, vacuum",
            {},
            deleting,
            check_deleted,
            fault_on=cells,
            positions_max=2,
            switches_max=3,
            **late,
        ),
    ]


def ddl_and_fold_cases(c: NodeSettings) -> list[Case]:
    writer = ("a", p.append(1, "a", "x", c, index_from=1))
    ddl = (writer, ("ddl", p.indexer(2, "x", c)))
    index = check_index({"a": "x"}, "x")
    adding = (("a", p.add(1, "a", c)), ("b", p.add(2, "b", c)))
    vacuum = (("a", p.add(1, "a", c)), ("f", p.fold_and_forget(2, c)))
    return [
        Case("ddl", prepared("x", c), ddl, index, changes_catalog=True),
        Case("fold", {}, (*adding, ("f", p.folder(3, c))), check_sum("ab"), positions_max=2),
        Case(
            "fold, vacuum",
            {},
            vacuum,
            check_sum("a"),
            faults=1,
            faulty=("a",),
            fault_on=FAULTS["cells"],
            forgets=True,
            positions_max=1,
            ordered=True,
        ),
    ]


def load_cases(c: NodeSettings) -> list[Case]:
    """A bulk load holds the table; its rows have no locks."""
    loader, writer = ("a", p.load(1, "a", "xy", c)), ("b", p.append(2, "b", "y", c))
    both, check = (loader, writer), lists("xy", "y")
    ended = (loader, ("b", p.end_holds_and_append(2, "b", "y", c)))
    loads, of_loads = (loader, ("b", p.load(2, "b", "y", c))), lists("xy", "y")
    wide: dict[str, Any] = {"changes_catalog": True, "positions_max": 3}
    few = {**wide, "switches_max": 4}
    dying: dict[str, Any] = {"deaths": 1, "mortal": ("a",)}
    lost: dict[str, Any] = {"faults": 1, "faulty": ("a",), "ordered": True}
    catalog = {"fault_on": (layout.CATALOG_ROW,)}
    return [
        Case("load", {}, both, check, **wide),
        Case("load, death", {}, both, check, **few, **dying),
        Case("load, faults on catalog", {}, both, check, **few, **lost, **catalog),
        Case("load, ended by a writer", {}, ended, check, **few),
        Case("two loads", {}, loads, of_loads, **few),
    ]


def fallen_counter_case() -> Case:
    """Of a store that may forget increments, which no store of this contract does."""
    few: dict[str, Any] = {"positions_max": 3, "ordered": True, "faults": 1}
    name = "counter falls back"
    return Case(name, {}, two(p.settings()), lists(), counter_falls=True, **few)


def prepared(keys: Sequence[str], config: NodeSettings) -> Rows:
    """A store in which every key has a list, so that positions, log and rows are not empty."""
    rows, _ = run_alone({}, p.append(80, "0", keys, config)())
    rows, _ = run_alone(rows, p.reader(81, [], config)())
    return rows
