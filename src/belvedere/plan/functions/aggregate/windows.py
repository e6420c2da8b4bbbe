"""Window functions. Aggregates serve as window functions too, over the rows of the frame.

The Python form gets a complete partition in order and returns one value per row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from belvedere.plan.functions.core.function import Function, WindowPartition, window
from belvedere.plan.functions.core.sql_form import error_sql
from belvedere.values.failures import bad_argument


def row_number(partition: WindowPartition) -> list[int]:
    return list(range(1, len(partition.arguments) + 1))


def _peer_starts(partition: WindowPartition) -> list[int]:
    """The number of the first row of each row's peer group."""
    starts: list[int] = []
    start = 0
    for i, peer in enumerate(partition.peers):
        if i and peer != partition.peers[i - 1]:
            start = i
        starts.append(start)
    return starts


def rank(partition: WindowPartition) -> list[int]:
    return [start + 1 for start in _peer_starts(partition)]


def dense_rank(partition: WindowPartition) -> list[int]:
    ranks: list[int] = []
    for i, peer in enumerate(partition.peers):
        changed = i and peer != partition.peers[i - 1]
        ranks.append(ranks[-1] + bool(changed) if i else 1)
    return ranks


def percent_rank(partition: WindowPartition) -> list[float]:
    count = len(partition.peers)
    return [start / (count - 1) if count > 1 else 0.0 for start in _peer_starts(partition)]


def cume_dist(partition: WindowPartition) -> list[float]:
    count = len(partition.peers)
    ends: list[float] = [0.0] * count
    end = count
    for i in range(count - 1, -1, -1):
        if i < count - 1 and partition.peers[i] != partition.peers[i + 1]:
            end = i + 1
        ends[i] = end / count
    return ends


def ntile(partition: WindowPartition) -> list[int | None]:
    """Buckets of sizes as equal as possible, larger ones first, by the first row's argument."""
    count = len(partition.arguments)
    buckets = partition.arguments[0][0] if count else 1
    if buckets is None:
        return [None] * count
    if buckets <= 0:
        raise bad_argument("argument of ntile must be greater than zero", "22014")
    size, larger = divmod(count, buckets)
    border = larger * (size + 1)
    return [
        i // (size + 1) + 1 if i < border else larger + (i - border) // size + 1
        for i in range(count)
    ]


def _shift_form(sign: int) -> Callable[[WindowPartition], list[Any]]:
    def shift(partition: WindowPartition) -> list[Any]:
        rows = partition.arguments
        found: list[Any] = []
        for i, row in enumerate(rows):
            offset = row[1] if len(row) > 1 else 1
            if offset is None:
                found.append(None)
                continue
            at = i + sign * offset
            if 0 <= at < len(rows):
                found.append(rows[at][0])
            else:
                found.append(row[2] if len(row) > 2 else None)
        return found

    return shift


def first_value(partition: WindowPartition) -> list[Any]:
    return [partition.arguments[frame[0]][0] if frame else None for frame in partition.frames]


def last_value(partition: WindowPartition) -> list[Any]:
    return [partition.arguments[frame[-1]][0] if frame else None for frame in partition.frames]


def nth_value(partition: WindowPartition) -> list[Any]:
    found: list[Any] = []
    for row, frame in zip(partition.arguments, partition.frames):
        number = row[1]
        if number is not None and number <= 0:
            raise bad_argument("argument of nth_value must be greater than zero", "22016")
        inside = number is not None and number <= len(frame)
        found.append(partition.arguments[frame[number - 1]][0] if inside else None)
    return found


def _shift_functions(name: str, sign: int) -> list[Function]:
    form = _shift_form(sign)
    return [
        window(f"{name}(anyelement) anyelement", form, f"[[{name}(_0)]]"),
        window(f"{name}(anyelement,int4) anyelement", form, f"[[{name}(_0, _1)]]"),
        window(
            f"{name}(anycompatible,int4,anycompatible) anycompatible",
            form,
            f"[[{name}(_0, _1, _2)]]",
        ),
    ]


# DuckDB returns NULL for a number that PostgreSQL refuses.
_NTH_SQL = (
    f"[[nth_value(_0, CASE WHEN _1 <= 0 THEN {error_sql('22016', 'not positive')} ELSE _1 END)]]"
)

FUNCTIONS: tuple[Function, ...] = (
    window("row_number() int8", row_number, "[[row_number()]]"),
    window("rank() int8", rank, "[[rank()]]"),
    window("dense_rank() int8", dense_rank, "[[dense_rank()]]"),
    window("percent_rank() float8", percent_rank, "[[percent_rank()]]"),
    window("cume_dist() float8", cume_dist, "[[cume_dist()]]"),
    window("ntile(int4) int4", ntile, "CAST([[ntile(_0)]] AS INTEGER)"),
    *_shift_functions("lag", -1),
    *_shift_functions("lead", 1),
    window("first_value(anyelement) anyelement", first_value, "[[first_value(_0)]]"),
    window("last_value(anyelement) anyelement", last_value, "[[last_value(_0)]]"),
    window("nth_value(anyelement,int4) anyelement", nth_value, _NTH_SQL),
)
