"""Small histories with one anomaly each: what the checker is tested with.

PLANTED maps a name to (level, the kind that must be found, the history). CLEAN are histories that
look suspicious and are right.
"""

from __future__ import annotations

from typing import Any

from tests.simulation.history.events import (
    ABORTED,
    COMMITTED,
    READ_COMMITTED,
    SERIALIZABLE,
    SNAPSHOT,
    UNKNOWN,
    Op,
    Txn,
)


def txn(
    id_: str,
    *ops: tuple[str, Any, Any],
    at: tuple[int, int] = (0, 99),
    outcome: str = COMMITTED,
    session: str | None = None,
    position: int = 0,
    snapshot: int = 0,
) -> Txn:
    """`at` is when it began and ended; by default everything is at once."""
    return Txn(id_, session or id_, "", *at, outcome, snapshot, position, [Op(*op) for op in ops])


def read(key: str, *elements: int) -> tuple[str, str, list[int]]:
    return ("read", key, list(elements))


def append(key: str, element: int) -> tuple[str, str, int]:
    return ("append", key, element)


def last(**lists: list[int]) -> Txn:
    return txn("last", ("scan", None, lists), session="last look", at=(100, 101))


PLANTED: dict[str, tuple[str, str, list[Txn]]] = {
    "dirty write": (
        READ_COMMITTED,
        "dirty write",
        [
            txn("a", append("x", 1), append("y", 1001)),
            txn("b", append("x", 2), append("y", 1002)),
            last(x=[1, 2], y=[1002, 1001]),
        ],
    ),
    "aborted read": (
        READ_COMMITTED,
        "aborted read",
        [txn("a", append("x", 1), outcome=ABORTED), txn("b", read("x", 1))],
    ),
    "intermediate read": (
        READ_COMMITTED,
        "intermediate read",
        [txn("a", append("x", 1), append("x", 2)), txn("b", read("x", 1)), last(x=[1, 2])],
    ),
    "circular information flow": (
        READ_COMMITTED,
        "circular information flow",
        [
            txn("a", append("x", 1), read("y", 2)),
            txn("b", append("y", 2), read("x", 1)),
        ],
    ),
    "lost update": (
        READ_COMMITTED,
        "lost update",
        [
            txn("a", read("x"), append("x", 1)),
            txn("b", read("x"), append("x", 2)),
            last(x=[2]),
        ],
    ),
    "lost commit": (
        READ_COMMITTED,
        "lost update",
        [txn("a", append("x", 1)), txn("b", append("y", 2)), last(y=[2])],
    ),
    "torn transaction": (
        READ_COMMITTED,
        "torn transaction",
        [txn("a", append("x", 1), append("y", 2), outcome=UNKNOWN), last(x=[1])],
    ),
    "both outcomes": (
        READ_COMMITTED,
        "vanished version",
        [
            txn("a", append("x", 1), outcome=UNKNOWN),
            txn("b", read("x", 1)),
            txn("c", append("x", 2)),
            txn("d", append("x", 3)),
            last(x=[2, 3]),
        ],
    ),
    "non-repeatable read": (
        SNAPSHOT,
        "non-repeatable read",
        [txn("a", append("x", 1)), txn("b", read("x"), read("x", 1))],
    ),
    "read skew": (
        SNAPSHOT,
        "read skew",
        [
            txn("a", append("x", 1), append("y", 2)),
            txn("b", read("x", 1), read("y")),
            last(x=[1], y=[2]),
        ],
    ),
    "long fork": (
        SNAPSHOT,
        "long fork",
        [
            txn("a", append("x", 1)),
            txn("b", append("y", 2)),
            txn("c", read("x", 1), read("y")),
            txn("d", read("x"), read("y", 2)),
            last(x=[1], y=[2]),
        ],
    ),
    "stale read": (
        SNAPSHOT,
        "stale read",
        [
            txn("a", append("x", 1), at=(0, 1)),
            txn("b", read("x"), at=(2, 3)),
            last(x=[1]),
        ],
    ),
    "snapshot violation": (
        SNAPSHOT,
        "snapshot violation",
        [
            txn("a", append("x", 1), position=7),
            txn("b", read("x", 1), snapshot=6),
        ],
    ),
    "write skew": (
        SERIALIZABLE,
        "write skew",
        [
            txn("a", read("x"), append("y", 1)),
            txn("b", read("y"), append("x", 2)),
            last(x=[2], y=[1]),
        ],
    ),
    "phantom": (
        SERIALIZABLE,
        "write skew",
        [
            txn("a", ("scan", None, {}), append("x", 1)),
            txn("b", ("scan", None, {}), append("y", 2)),
            last(x=[1], y=[2]),
        ],
    ),
    "nobody on call": (SERIALIZABLE, "write skew", [txn("a", ("shift", 1, 0))]),
    "own writes": (
        READ_COMMITTED,
        "own writes not seen",
        [txn("a", append("x", 1), read("x"))],
    ),
    "read your writes": (
        READ_COMMITTED,
        "read your writes",
        [
            txn("a", append("x", 1), session="s", at=(0, 1)),
            txn("b", read("x"), session="s", at=(2, 3)),
            last(x=[1]),
        ],
    ),
    "monotonic reads": (
        READ_COMMITTED,
        "monotonic reads",
        [
            txn("w", append("x", 1), append("y", 2)),
            txn("a", read("x", 1), session="s", at=(0, 1)),
            txn("b", read("x"), session="s", at=(2, 3)),
            last(x=[1], y=[2]),
        ],
    ),
    "duplicate key": (
        READ_COMMITTED,
        "duplicate key",
        [txn("a", ("insert", 1, "ann")), txn("b", ("insert", 1, "bob"))],
    ),
    "duplicate value": (
        READ_COMMITTED,
        "duplicate value",
        [txn("a", ("claim", "v", 1)), txn("b", ("claim", "v", 2))],
    ),
    "lost insert": (
        READ_COMMITTED,
        "lost insert",
        [txn("a", ("insert", 1, 7)), txn("last", ("inserts", None, []), session="last look")],
    ),
    "aborted insert": (
        READ_COMMITTED,
        "aborted read",
        [
            txn("a", ("claim", "v", 7), outcome=ABORTED),
            txn("last", ("claims", None, [["v", 7]]), session="last look"),
        ],
    ),
    "orphan": (READ_COMMITTED, "orphan", [txn("a", ("family", None, [[1], [[10, 1], [11, 2]]]))]),
    "index differs": (
        READ_COMMITTED,
        "index differs",
        [txn("a", ("mirror", "i", [[1, 2], [1]]))],
    ),
    "wrong total": (READ_COMMITTED, "wrong total", [txn("a", ("total", None, 99))]),
    "wrong count": (
        READ_COMMITTED,
        "wrong count",
        [
            txn("a", ("add", 1, 5)),
            txn("b", ("add", 1, 2)),
            txn("last", ("count", 1, 5), session="last look"),
        ],
    ),
    "position twice": (
        READ_COMMITTED,
        "position twice",
        [txn("a", append("x", 1), position=3), txn("b", append("x", 2), position=3)],
    ),
}

TOTAL = 100

CLEAN: dict[str, tuple[str, list[Txn]]] = {
    "write skew under snapshots": (SNAPSHOT, PLANTED["write skew"][2]),
    "nobody on call under snapshots": (SNAPSHOT, PLANTED["nobody on call"][2]),
    "read skew under read committed": (READ_COMMITTED, PLANTED["read skew"][2]),
    "a moving row under read committed": (READ_COMMITTED, PLANTED["non-repeatable read"][2]),
    "an aborted append that nobody saw": (
        SERIALIZABLE,
        [txn("a", append("x", 1), outcome=ABORTED), txn("b", append("x", 2)), last(x=[2])],
    ),
    "an unknown transaction that happened": (
        SERIALIZABLE,
        [
            txn("a", append("x", 1), append("y", 2), outcome=UNKNOWN),
            txn("b", read("x", 1), read("y", 2)),
            last(x=[1], y=[2]),
        ],
    ),
    "an unknown transaction that did not": (
        SERIALIZABLE,
        [txn("a", append("x", 1), outcome=UNKNOWN), txn("b", read("x")), last()],
    ),
    "unknown transactions without lists": (
        SERIALIZABLE,
        [
            txn("a", ("insert", 1, 7), outcome=UNKNOWN),
            txn("b", ("insert", 2, 8), outcome=UNKNOWN),
            txn("c", read("x"), outcome=UNKNOWN),
            last(),
            txn("last too", ("inserts", None, [[2, 8]]), session="last look", at=(102, 103)),
        ],
    ),
    "an unknown increment": (
        SERIALIZABLE,
        [
            txn("a", ("add", 1, 5)),
            txn("b", ("add", 1, 2), outcome=UNKNOWN),
            txn("last", ("count", 1, 5), session="last look"),
        ],
    ),
    "readers and writers in order": (
        SERIALIZABLE,
        [
            txn("a", read("x"), append("x", 1), at=(0, 1), position=1, session="s"),
            txn("b", read("x", 1), append("y", 2), at=(2, 5), position=2, snapshot=1, session="t"),
            txn("c", read("y"), read("x", 1), at=(3, 4), snapshot=1, session="u"),
            txn("d", ("scan", None, {"x": [1], "y": [2]}), at=(6, 7), snapshot=2, session="s"),
            txn("e", ("total", None, TOTAL), ("family", None, [[1], [[5, 1]]]), ("shift", 1, 1)),
            txn("f", ("insert", 1, "ann")),
            txn("g", ("insert", 1, "bob"), outcome=ABORTED),
            last(x=[1], y=[2]),
        ],
    ),
}
