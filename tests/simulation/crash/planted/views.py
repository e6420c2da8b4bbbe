"""The schedules that catch planted bugs of views: cases of the law, each with its seed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.properties.views.generate.cases import random_case
from tests.properties.views.hunt import check
from tests.properties.views.law import Broken, Counts
from tests.views.deferred.test_concurrency import (
    DEFINITIONS,
    TABLES,
    make_with_a_write_between,
    opened,
)
from tests.views.sql import rows_of
from tests.views.test_laws import apply_twice, open_shop

VIEWS, STEPS = 6, 8


def law(seed: int) -> Callable[[Path], list[str]]:
    """The law over one random schema with its views and transactions."""

    def schedule(home: Path) -> list[str]:
        try:
            check(random_case(seed, VIEWS, STEPS), Counts(), postgres=False)
        except Broken as broken:
            return [str(broken)]
        return []

    return schedule


def batch_twice(home: Path) -> list[str]:
    try:
        with open_shop(":memory:") as database:
            apply_twice(database)
    except (AssertionError, pytest.fail.Exception) as error:
        return [str(error) or "a batch counted twice"]
    return []


def write_in_backfill(home: Path) -> list[str]:
    """Changes arrive after the snapshot of a backfill, and again before its view is shown."""
    with opened() as store:
        store.run(*TABLES, "INSERT INTO children VALUES (1, 1, 1)")
        make_with_a_write_between(store)
        verified = store.verified()
    return [] if verified["totals"] else ["the view has lost changes"]


def both_sides(home: Path) -> list[str]:
    """One statement changes both sides of a join."""
    with opened() as store:
        store.run(*TABLES, f"CREATE MATERIALIZED VIEW pairs AS {DEFINITIONS['pairs']}")
        store.run("INSERT INTO children VALUES (1, 1, 1), (2, 1, 2), (3, 2, 3)")
        verified = store.verified()
    return [] if verified["pairs"] else ["a pair counted twice"]


def least_goes(home: Path) -> list[str]:
    """The least and the greatest of a group are deleted."""
    with opened() as store:
        store.run(*TABLES, "INSERT INTO children VALUES (1, 1, 1), (2, 1, 2), (3, 1, 3)")
        store.run(f"CREATE MATERIALIZED VIEW extremes AS {DEFINITIONS['extremes']}")
        store.run("DELETE FROM children WHERE n <> 2")
        verified = store.verified()
    return [] if verified["extremes"] else ["a deleted minimum is still there"]


def comes_back(home: Path) -> list[str]:
    """A group loses its last row and gets another."""
    with opened() as store:
        store.run(*TABLES, f"CREATE MATERIALIZED VIEW totals AS {DEFINITIONS['totals']}")
        for _ in range(2):
            store.run("INSERT INTO children VALUES (1, 1, 1)", "DELETE FROM children")
        store.run("INSERT INTO children VALUES (1, 1, 1)")
        verified = store.verified()
    return [] if verified["totals"] else ["a group has not come back"]


def reads_by_token(home: Path) -> list[str]:
    """A deferred view is read with the token of a write that it does not have yet."""
    options = "maintenance = 'deferred', refresh_every = '1 h'"
    with opened() as store:
        store.run(*TABLES)
        store.run(f"CREATE MATERIALIZED VIEW t WITH ({options}) AS {DEFINITIONS['totals']}")
        writer, reader = store.session(), store.session()
        writer.execute("INSERT INTO children VALUES (1, 1, 7)")
        found = rows_of(reader, "SELECT * FROM t", freshness=writer.freshness_token)
    return [] if found == [(1, 1, 7)] else ["a read is behind its token"]


SCHEDULES: dict[str, Callable[[Path], list[str]]] = {
    "view_batch_twice": batch_twice,
    "view_delta_twice": law(1000),
    "view_join_after": both_sides,
    "view_padding_kept": law(1000),
    "view_deletes_ignored": least_goes,
    "view_null_group_dropped": law(1000),
    "view_flip_without_log": write_in_backfill,
    "view_snapshot_early": write_in_backfill,
    "view_build_keeps_deleted": write_in_backfill,
    "view_group_stays_gone": comes_back,
    "view_read_behind_token": reads_by_token,
}
