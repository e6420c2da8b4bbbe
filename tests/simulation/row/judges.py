"""What must hold at the end of every interleaving. A final look by a fresh node needs every lock
and every position, so whatever is stuck shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from belvedere.errors import Retry
from belvedere.kv.cell import Step
from belvedere.txn.row_atomic import read_rows
from belvedere.txn.row_atomic.log import advance
from belvedere.txn.row_atomic.node import Node, NodeSettings
from tests.simulation.row.explorer import Outcome, Rows, run_alone
from tests.simulation.row.processes import (
    INDEX,
    LIST,
    append,
    hold_sweeper,
    key,
    reader,
    settings,
)


def final_look(
    rows: Rows, keys: Sequence[str], config: NodeSettings
) -> tuple[Rows, dict[str, bytes]]:
    """What a fresh node finds, after it has itself committed to every key: so nothing can be
    stuck."""
    clean = settings()
    rows, _ = run_alone(rows, hold_sweeper(98, clean)())
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
    at = yield from advance.latest_position(node)
    row = yield from read_rows.get_row(key("s"), at)
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
    at = yield from advance.latest_position(node)
    base = yield from read_rows.get_rows([key(k) for k in keys], at)
    index = yield from read_rows.get_rows([INDEX + k.encode() for k in keys], at)
    found: list[Any] = ["both"]
    for k, left, right in zip(keys, base, index):
        found.append((k, left and left.columns[LIST], right and right.columns[LIST]))
    return tuple(found)


def check_deleted(rows: Rows, outcomes: dict[str, Outcome]) -> list[str]:
    """One appends to 'x', another deletes it: the later one is what is there."""
    _, lists = final_look(rows, "x", settings())
    a, d = outcomes["a"], outcomes["d"]
    if a[0] != "committed" or d[0] != "committed":
        return []
    expected = b"" if d[1] > a[1] else b"a"
    return [] if lists["x"] == expected else [f"x is {lists['x']!r}, expected {expected!r}"]


def check_group(wrote: dict[str, Sequence[str]], keys: Sequence[str]) -> Callable[..., list[str]]:
    """Lists, when the first transactions are the members of one group, 'g'."""
    lists = check_lists(wrote, keys)

    def check(rows: Rows, outcomes: dict[str, Outcome]) -> list[str]:
        members = dict(zip(wrote, outcomes["g"][1:]))
        return lists(rows, {**outcomes, **members})

    return check
