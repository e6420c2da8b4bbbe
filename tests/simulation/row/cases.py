"""The small cases that the explorer walks through completely.

Most transactions append their name to lists: a list tells who was lost, who came twice and who came
from nowhere. A final look by a fresh node then needs every lock and every position, so whatever is
stuck shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from belvedere.errors import Retry, Unavailable
from belvedere.kv.cell import Begin, Mutate, Put, Step, WorkExpired
from belvedere.txn.row import advance, barrier, cells, layout, read
from belvedere.txn.row.commit import Work, commit
from belvedere.txn.row.fold import fold
from belvedere.txn.row.forget import forget
from belvedere.txn.row.layout import RowWrite
from belvedere.txn.row.locks import Lock
from belvedere.txn.row.node import Node, Settings
from tests.simulation.row.explorer import Case, Outcome, Rows, run_alone

TABLE = b"\x10\x00\x00\x00\x64"
INDEX = b"\x10\x00\x00\x00\x65"
END = b"\x11"
LIST = b"l"
ON_DEMAND = frozenset(("three transactions, on demand",))
FAULTS = {
    "lock": (layout.LOCKS,),
    "log": (layout.LOG,),
    "counter": (layout.COUNTER_ROW,),
    "cells": (TABLE, layout.OUTCOMES),
}


def settings(*planted: str) -> Settings:
    return Settings(
        lanes=1,
        lease_seconds=0.0,
        grace_seconds=5.0,
        close_seconds_min=0.0,
        tries_max=2,
        planted=frozenset(planted),
    )


def key(name: str) -> bytes:
    return TABLE + name.encode()


def append(
    id_: int,
    name: str,
    keys: Sequence[str],
    config: Settings,
    *,
    newest: bool = False,
    index_from: int = 99,
) -> Callable[[], Step[Outcome]]:
    """A transaction that appends its name to every list in `keys`, under one lock each; from
    catalog version `index_from` on it also maintains an index of the rows."""

    def start() -> Step[Outcome]:
        node = Node(id_, config)
        return (yield from _append(node, name, keys, newest, index_from))

    return start


def _append(
    node: Node, name: str, keys: Sequence[str], newest: bool, index_from: int
) -> Step[Outcome]:
    version = yield from barrier.read_version()
    at = yield from (advance.latest(node) if newest else advance.snapshot(node))
    found = yield from read.rows([key(k) for k in keys], at)
    writes = []
    for k, row in zip(keys, found):
        old = row.columns[LIST] if row else b""
        writes.append(cells.put(key(k), {LIST: old + name.encode()}))
        if version >= index_from:
            writes.append(cells.put(INDEX + k.encode(), {LIST: old + name.encode()}))
    taken = tuple(Lock(layout.lock_row("root", k.encode())) for k in keys)
    return (yield from _end(node, Work(name.encode(), at, version, taken, tuple(writes))))


def append_newest(
    id_: int, name: str, keys: Sequence[str], config: Settings
) -> Callable[[], Step[Outcome]]:
    """The same, but the lists are read only once the locks are held, as derived rows are: nothing
    but the locks protects it."""

    def start() -> Step[Outcome]:
        node = Node(id_, config)
        at = yield from advance.snapshot(node)
        taken = tuple(Lock(layout.lock_row("root", k.encode())) for k in keys)

        def derive() -> Step[tuple[RowWrite, ...]]:
            found = yield from read.rows([key(k) for k in keys], None)
            lists = [row.columns[LIST] if row else b"" for row in found]
            return tuple(
                cells.put(key(k), {LIST: old + name.encode()}) for k, old in zip(keys, lists)
            )

        return (yield from _end(node, Work(name.encode(), at, 0, taken, (), derive=derive)))

    return start


def _end(node: Node, work: Work) -> Step[Outcome]:
    try:
        position = yield from commit(node, work)
    except Retry:
        return ("aborted",)
    except Unavailable:
        return ("unknown",)
    return ("committed", position)


def add(
    id_: int, name: str, config: Settings, fold_after: bool = False
) -> Callable[[], Step[Outcome]]:
    """A transaction that adds one to the sum 's', under a root of its own."""

    def start() -> Step[Outcome]:
        node = Node(id_, config)
        at = yield from advance.snapshot(node)
        lock = Lock(layout.lock_row("root", name.encode()))
        work = Work(name.encode(), at, 0, (lock,), (cells.add(key("s"), b"", (1,)),))
        outcome = yield from _end(node, work)
        if fold_after:
            yield from fold(key("s"))
        return outcome

    return start


def reader(
    id_: int, keys: Sequence[str], config: Settings, *, newest: bool = True
) -> Callable[[], Step[Outcome]]:
    """Reads the lists at one position, closing and helping as needed."""

    def start() -> Step[Outcome]:
        node = Node(id_, config)
        at = yield from (advance.latest(node) if newest else advance.snapshot(node))
        found = yield from read.rows([key(k) for k in keys], at)
        return ("read", at, *(row.columns[LIST] if row else b"" for row in found))

    return start


def folder(id_: int, config: Settings) -> Callable[[], Step[Outcome]]:
    def start() -> Step[Outcome]:
        yield from advance.latest(Node(id_, config))
        try:
            return ("folded", (yield from fold(key("s"))))
        except WorkExpired:
            return ("folded", 0)

    return start


def forgetter(id_: int, config: Settings) -> Callable[[], Step[Outcome]]:
    """Forgets as much as it may: old versions and the log."""

    def start() -> Step[Outcome]:
        node = Node(id_, config)
        at = yield from advance.latest(node)
        floors = yield from forget(node, TABLE, END, at, at)
        return ("forgot", floors.versions)

    return start


def fold_and_forget(id_: int, config: Settings) -> Callable[[], Step[Outcome]]:
    def start() -> Step[Outcome]:
        yield from folder(id_, config)()
        return (yield from forgetter(id_, config)())

    return start


def forget_and_append(id_: int, name: str, config: Settings) -> Callable[[], Step[Outcome]]:
    """Forgets as much as it may, then writes itself, breaking whatever is in its way."""

    def start() -> Step[Outcome]:
        yield from forgetter(id_, config)()
        return (yield from append_newest(id_ + 1, name, "x", config)())

    return start


def indexer(id_: int, keys: Sequence[str], config: Settings) -> Callable[[], Step[Outcome]]:
    """DDL: a new catalog version under which writers maintain an index; then its backfill."""

    def start() -> Step[Outcome]:
        node = Node(id_, config)
        version = yield from barrier.change_version(node, 0)
        at = yield from barrier.barrier(node, version)
        found = yield from read.rows([key(k) for k in keys], at)
        yield Begin()
        for k, row in zip(keys, found):
            if row is not None:
                marker = Put(cells.MARKER, at, b"+" + at.to_bytes(8))
                yield Mutate(INDEX + k.encode(), (marker, Put(LIST, at, row.columns[LIST])))
        return ("indexed", at)

    return start


def final_look(rows: Rows, keys: Sequence[str], config: Settings) -> tuple[Rows, dict[str, bytes]]:
    """What a fresh node finds, after it has itself committed to every key: so nothing can be
    stuck."""
    clean = settings()
    for n in range(3):
        rows, outcome = run_alone(
            rows, append(90 + n, "!", keys, clean, newest=True, index_from=1)()
        )
        if outcome[0] == "committed":
            break
    else:
        raise Retry("nobody can commit any more")
    rows, found = run_alone(rows, reader(99, keys, clean)())
    return rows, {k: value.removesuffix(b"!") for k, value in zip(keys, found[2:])}


def check_lists(wrote: dict[str, Sequence[str]], keys: Sequence[str]) -> Callable[..., list[str]]:
    """Who committed is in every list it wrote, once; who aborted in none; nobody in half of them;
    and every reader saw all or nothing of everybody."""

    def check(rows: Rows, outcomes: dict[str, Outcome]) -> list[str]:
        _, lists = final_look(rows, keys, settings())
        wrong = _wrong_lists(lists, wrote, outcomes)
        for reader_name, outcome in outcomes.items():
            if outcome[0] == "read":
                seen = dict(zip(keys, outcome[2:]))
                for problem in _wrong_snapshot(seen, lists, wrote, outcomes, outcome[1]):
                    wrong.append(f"{reader_name} at {outcome[1]}: {problem}")
        return wrong

    return check


def _wrong_lists(
    lists: dict[str, bytes], wrote: dict[str, Sequence[str]], outcomes: dict[str, Outcome]
) -> list[str]:
    wrong = []
    for name, keys in wrote.items():
        counts = {k: lists[k].count(name.encode()) for k in keys}
        if outcomes[name][0] == "committed" and any(n != 1 for n in counts.values()):
            wrong.append(f"{name} was acknowledged and is there {counts} times")
        if outcomes[name][0] == "aborted" and any(counts.values()):
            wrong.append(f"{name} was told it aborted and is there {counts} times")
        if len(set(counts.values())) > 1 or max(counts.values(), default=0) > 1:
            wrong.append(f"{name} is there in part or twice: {counts}")
    return wrong


def _wrong_snapshot(
    seen: dict[str, bytes],
    lists: dict[str, bytes],
    wrote: dict[str, Sequence[str]],
    outcomes: dict[str, Outcome],
    at: int,
) -> list[str]:
    wrong = [f"{k} is no prefix" for k, value in seen.items() if not lists[k].startswith(value)]
    for name, keys in wrote.items():
        there = {name.encode() in seen[k] for k in keys}
        if len(there) > 1:
            wrong.append(f"half of {name} is visible")
        committed = outcomes[name]
        if committed[0] == "committed" and there != {committed[1] <= at}:
            wrong.append(f"{name} committed at {committed[1]}, visible: {there}")
    return wrong


def check_sum(names: Sequence[str]) -> Callable[..., list[str]]:
    def check(rows: Rows, outcomes: dict[str, Outcome]) -> list[str]:
        rows, _ = run_alone(rows, reader(98, [], settings())())
        rows, outcome = run_alone(rows, _read_sum(Node(97, settings())))
        kinds = [outcomes[name][0] for name in names]
        least = kinds.count("committed")
        most = least + kinds.count("unknown")
        if least <= outcome[1] <= most:
            return []
        return [f"sum is {outcome[1]}, {least} to {most} commits"]

    return check


def _read_sum(node: Node) -> Step[Outcome]:
    at = yield from advance.latest(node)
    row = yield from read.row(key("s"), at)
    return ("sum", 0 if row is None or row.sum is None else row.sum.amounts[0])


def check_index(wrote: dict[str, Sequence[str]], keys: Sequence[str]) -> Callable[..., list[str]]:
    lists = check_lists(wrote, keys)

    def check(rows: Rows, outcomes: dict[str, Outcome]) -> list[str]:
        wrong = lists(rows, outcomes)
        if outcomes["ddl"][0] != "indexed":
            return wrong
        rows, found = run_alone(rows, _read_both(Node(97, settings()), keys))
        for k, base, index in found[1:]:
            if base != index:
                wrong.append(f"index of {k} has {index!r}, base has {base!r}")
        return wrong

    return check


def _read_both(node: Node, keys: Sequence[str]) -> Step[Outcome]:
    at = yield from advance.latest(node)
    base = yield from read.rows([key(k) for k in keys], at)
    index = yield from read.rows([INDEX + k.encode() for k in keys], at)
    found: list[Any] = ["both"]
    for k, left, right in zip(keys, base, index):
        found.append((k, left and left.columns[LIST], right and right.columns[LIST]))
    return tuple(found)


def prepared(keys: Sequence[str], config: Settings) -> Rows:
    """A store in which every key has a list, so that positions, log and rows are not empty."""
    rows, _ = run_alone({}, append(80, "0", keys, config)())
    rows, _ = run_alone(rows, reader(81, [], config)())
    return rows


def all_cases(*planted: str) -> dict[str, Case]:
    """Every case, by name; `planted` bugs are put back in all of them."""
    c = settings(*planted)

    def two(*, a: Sequence[str] = "x", b: Sequence[str] = "x", late: bool = False) -> Any:
        form = append_newest if late else append
        fresh = {} if late else {"newest": True}
        return (("a", form(1, "a", a, c)), ("b", form(2, "b", b, c, **fresh)))

    def lists(a: Sequence[str] = "x", b: Sequence[str] = "x") -> Any:
        return check_lists({"a": a, "b": b}, sorted({*a, *b}))

    only_a = check_lists({"a": "x"}, "x")
    a_reads = ("a", append(1, "a", "x", c))
    forgetting = (("a", append_newest(1, "a", "x", c)), ("b", forget_and_append(2, "b", c)))
    three = (*two(late=True), ("c", append_newest(3, "c", "x", c)))
    cases = [
        Case(
            "three transactions",
            {},
            three,
            check_lists(dict.fromkeys("abc", "x"), "x"),
            positions_max=4,
            ordered=True,
            switches_max=3,
        ),
        Case(
            "three transactions, on demand",
            {},
            three,
            check_lists(dict.fromkeys("abc", "x"), "x"),
            positions_max=5,
            ordered=True,
            switches_max=5,
        ),
        Case("one lock", {}, two(), lists()),
        Case("one lock, read late", {}, two(late=True), lists()),
        *(
            Case(
                f"one lock, faults on {where}",
                {},
                two(late=True),
                lists(),
                faults=1,
                faulty=("a",),
                fault_on=rows,
                positions_max=2 + (where == "log"),
                ordered=True,
            )
            for where, rows in FAULTS.items()
        ),
        Case("one lock, death", {}, two(late=True), lists(), deaths=1, mortal=("a",)),
        Case("two locks", {}, two(a="xy", b="xy", late=True), lists("xy", "xy"), positions_max=3),
        Case(
            "broken secondary",
            {},
            two(a="xy", b="y", late=True),
            lists("xy", "y"),
            deaths=1,
            mortal=("a",),
            positions_max=3,
        ),
        Case(
            "reader helps",
            {},
            (*two(late=True), ("r", reader(3, "x", c))),
            lists(),
            positions_max=2,
            ordered=True,
        ),
        Case(
            "anyone closes",
            {},
            (a_reads, ("r", reader(2, "x", c)), ("q", reader(3, "x", c))),
            only_a,
            positions_max=3,
        ),
        Case(
            "lost reply, trim",
            {},
            (("a", add(1, "a", c)), ("v", forgetter(2, c))),
            check_sum("a"),
            faults=1,
            faulty=("a",),
            fault_on=FAULTS["log"],
            forgets=True,
            positions_max=2,
            ordered=True,
        ),
        Case(
            "late cells, vacuum",
            {},
            forgetting,
            lists(),
            faults=1,
            faulty=("a",),
            fault_on=FAULTS["cells"],
            forgets=True,
            positions_max=2,
            ordered=True,
        ),
        Case("zombie, trim", {}, forgetting, lists(), forgets=True, positions_max=3),
        Case(
            "ddl",
            prepared("x", c),
            (("a", append(1, "a", "x", c, index_from=1)), ("ddl", indexer(2, "x", c))),
            check_index({"a": "x"}, "x"),
            changes_catalog=True,
        ),
        Case(
            "fold",
            {},
            (("a", add(1, "a", c)), ("b", add(2, "b", c)), ("f", folder(3, c))),
            check_sum("ab"),
            positions_max=2,
        ),
        Case(
            "fold, vacuum",
            {},
            (("a", add(1, "a", c)), ("f", fold_and_forget(2, c))),
            check_sum("a"),
            faults=1,
            faulty=("a",),
            fault_on=FAULTS["cells"],
            forgets=True,
            positions_max=1,
            ordered=True,
        ),
    ]
    return {case.name: case for case in cases}
