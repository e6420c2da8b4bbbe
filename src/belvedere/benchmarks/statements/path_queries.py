"""Queries over a large table that one good access path makes quick, with parameters for each run.

Applications page through rows, look some up by an index, and ask whether there are any. Each of
these is a few seeks in every system, or a walk over the whole table when its access path is missed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from belvedere.benchmarks.statements.kinds import Values

PATH_TABLES = (
    "CREATE TABLE region (id bigint PRIMARY KEY, name text)",
    "CREATE TABLE event (id bigint PRIMARY KEY, at bigint, region integer, kind integer,"
    " hundred integer, name text)",
)
PATH_INDEXES = (
    "CREATE INDEX event_at ON event (at)",
    "CREATE INDEX event_region ON event (region)",
    "CREATE INDEX event_kind ON event (kind)",
    "CREATE INDEX event_hundred ON event (hundred)",
)
REGION_ROWS = 20
"""Events of a region, and of a kind; of a hundred there are five times as many."""
PAGE = 20
SEMI_ROWS = 50
GOAL = "<= 3 ratio"

Draw = Callable[[random.Random, int], Values]


class PathQuery(NamedTuple):
    """`values` draws the parameters of a run from the number of events."""

    name: str
    text: str
    values: Draw
    goal: str = GOAL


def make_path_rows(rows: int, seed: int) -> dict[str, list[Values]]:
    rng = random.Random(seed)
    moments = list(range(rows))
    rng.shuffle(moments)
    regions = _count_regions(rows)
    events: list[Values] = []
    for number, moment in enumerate(moments):
        region, kind = rng.randrange(regions), rng.randrange(regions)
        hundred = rng.randrange(max(rows // 100, 1))
        events.append((number, moment * 10, region, kind, hundred, f"event {number}"))
    return {"region": [(i, f"region {i}") for i in range(regions)], "event": events}


def _count_regions(rows: int) -> int:
    return rows // REGION_ROWS


def _draw_moment(rng: random.Random, rows: int) -> Values:
    return (rng.randrange(rows * 9) + 100,)


def _draw_region(rng: random.Random, rows: int) -> Values:
    return (rng.randrange(_count_regions(rows)),)


def _draw_regions(count: int, *more: Callable[[int], int]) -> Draw:
    """Of a range of so many, and what else the query takes."""

    def draw(rng: random.Random, rows: int) -> Values:
        first = rng.randrange(_count_regions(rows) - count)
        return (first, first + count, *[one(rows) for one in more])

    return draw


_EXISTS = "EXISTS (SELECT 1 FROM event WHERE event.region = region.id AND hundred < ?)"

PATH_QUERIES = (
    PathQuery(
        "a range, ORDER BY, LIMIT",
        f"SELECT id, at, name FROM event WHERE at > ? ORDER BY at LIMIT {PAGE}",
        _draw_moment,
    ),
    PathQuery(
        "a range, ORDER BY DESC, LIMIT",
        f"SELECT id, at, name FROM event WHERE at < ? ORDER BY at DESC LIMIT {PAGE}",
        _draw_moment,
    ),
    PathQuery(
        "keyset",
        f"SELECT id, at, name FROM event WHERE (at, id) > (?, ?) ORDER BY at, id LIMIT {PAGE}",
        lambda rng, rows: (*_draw_moment(rng, rows), rng.randrange(rows)),
    ),
    PathQuery(
        "OR of two columns",
        "SELECT id, name FROM event WHERE region = ? OR kind = ?",
        lambda rng, rows: (*_draw_region(rng, rows), *_draw_region(rng, rows)),
    ),
    PathQuery(
        "IN list of an index",
        "SELECT id, name FROM event WHERE hundred IN (?, ?, ?)",
        lambda rng, rows: tuple([rng.randrange(max(rows // 100, 1)) for _ in range(3)]),
    ),
    PathQuery(
        "OFFSET of a sixth of the rows, by an index",
        f"SELECT id, at FROM event ORDER BY at LIMIT {PAGE} OFFSET ?",
        lambda rng, rows: (rows // 6,),
    ),
    PathQuery(
        "OFFSET of a sixth of the rows, by the key",
        f"SELECT id, name FROM event ORDER BY id LIMIT {PAGE} OFFSET ?",
        lambda rng, rows: (rows // 6,),
    ),
    PathQuery(
        f"EXISTS for {SEMI_ROWS} rows",
        f"SELECT id FROM region WHERE id >= ? AND id < ? AND {_EXISTS}",
        _draw_regions(SEMI_ROWS, lambda rows: rows // 200),
    ),
    PathQuery(
        f"NOT EXISTS for {SEMI_ROWS} rows",
        f"SELECT id FROM region WHERE id >= ? AND id < ? AND NOT {_EXISTS}",
        _draw_regions(SEMI_ROWS, lambda rows: rows // 200),
    ),
    PathQuery(
        "EXISTS for all rows",
        f"SELECT count(*) FROM region WHERE {_EXISTS}",
        lambda rng, rows: (rows // 2000,),
    ),
    PathQuery(
        "a few rows by an index", "SELECT id, name FROM event WHERE region = ?", _draw_region
    ),
    PathQuery(
        "a few rows of a join, by an index",
        "SELECT region.name, event.name FROM region JOIN event ON event.region = region.id"
        " WHERE region.id = ?",
        _draw_region,
    ),
    PathQuery(
        "IN (SELECT ..)",
        "SELECT id, name FROM event WHERE region IN"
        " (SELECT id FROM region WHERE id >= ? AND id < ?)",
        _draw_regions(5),
    ),
    PathQuery("the greatest below a bound", "SELECT max(at) FROM event WHERE at < ?", _draw_moment),
    PathQuery("a count by an index", "SELECT count(*) FROM event WHERE region = ?", _draw_region),
)
