"""Views filled by a job on a row-atomic store: by its tasks, under one position."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from belvedere.catalog.model import View
from belvedere.database import SQL_COMPILERS, Database
from belvedere.errors import InvalidInput, Unavailable
from belvedere.kv.doubles.cells import MemoryCells
from belvedere.session.session import Session
from belvedere.txn.history.derived_rows import DerivedRows
from belvedere.txn.row_atomic.engine import CellStoreSetup
from belvedere.views.backfill.contracts import ExternalJob, JobBackfill
from belvedere.views.state.additions import EmptyReader
from belvedere.views.state.watermarks import read_watermark
from tests.protocols import UNHURRIED

QUERIES = {
    "per_kind": "SELECT kind, count(*) AS n, sum(price) AS total FROM items GROUP BY kind",
    "cheap": "SELECT id, price FROM items WHERE price < 25",
}


class Held(NamedTuple):
    position: int


class Filler:
    """A process that fills views, or a task of one."""

    def __init__(self, cells: MemoryCells, *, is_guest: bool = False) -> None:
        setup = CellStoreSetup(cells, UNHURRIED, is_guest=is_guest)
        self.database = Database.on_cells(setup, **SQL_COMPILERS)
        self.session = Session(self.database.open_shared_state(64), autocommit=True)
        self.backfill: JobBackfill = self.database.views.open_external_backfill(Path("/nowhere"))

    def find_view(self, name: str) -> View:
        return self.database.catalog.require_relation(View, name)

    def begin(self, name: str) -> ExternalJob:
        """A new job for a view."""
        view = self.find_view(name).id
        held = self.backfill.begin_backfill_job([view], lambda: Held(self.database.position))
        return ExternalJob(view, held.position, "")

    def write(self, job: ExternalJob) -> None:
        """What the tasks of a job do together."""
        with self.database.begin_at(job.position) as reader:
            view = reader.catalog.get(job.view)
            assert isinstance(view, View)
            writer = DerivedRows(EmptyReader(reader.catalog))
            maintainer = self.database.views.registry.get_view_maintainer(reader.catalog, view)
            maintainer.backfill_state(reader, writer)
        found = [(key, value) for key, value in writer.writes() if value is not None]
        self.backfill.write_state(job, found)

    def execute(self, sql: str) -> list[tuple[object, ...]]:
        result = self.session.execute(sql, (), "latest")
        result.convert_arrow_to_rows()
        return sorted(result.rows, key=repr)

    def require_law(self) -> None:
        for name, query in QUERIES.items():
            assert self.execute(f"SELECT * FROM {name}") == self.execute(query), name


@pytest.fixture
def cells() -> MemoryCells:
    return MemoryCells()


@pytest.fixture(params=["immediate", "deferred"])
def driver(cells: MemoryCells, request: pytest.FixtureRequest) -> Iterator[Filler]:
    made = Filler(cells)
    made.execute("CREATE TABLE items (id int PRIMARY KEY, kind int, price bigint)")
    made.execute("INSERT INTO items VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30), (4, 3, 5)")
    for name, query in QUERIES.items():
        options = f"backfill = 'later', maintenance = '{request.param}'"
        made.execute(f"CREATE MATERIALIZED VIEW {name} WITH ({options}) AS {query}")
    yield made
    made.database.close()


@pytest.fixture
def task(driver: Filler, cells: MemoryCells) -> Iterator[Filler]:
    made = Filler(cells, is_guest=True)
    yield made
    made.database.close()


def fill(driver: Filler, task: Filler, name: str) -> None:
    job = driver.begin(name)
    task.write(job)
    driver.backfill.finish_backfill_job(job, [])


def test_what_is_written_meanwhile_is_in_the_view(driver: Filler, task: Filler) -> None:
    driver.execute("INSERT INTO items VALUES (5, 1, 1), (6, 9, 9)")
    driver.execute("DELETE FROM items WHERE id = 6")  # additions that came to nothing
    for name in QUERIES:
        job = driver.begin(name)
        driver.execute("UPDATE items SET price = price + 1 WHERE id = 1")
        task.write(job)
        task.write(job)  # as a task that Spark runs again
        driver.execute("DELETE FROM items WHERE id = 3")
        driver.backfill.finish_backfill_job(job, [])
        driver.execute("INSERT INTO items VALUES (3, 2, 7)")
    driver.require_law()
    task.require_law()


def test_a_job_that_died_is_followed_by_another(driver: Filler, task: Filler) -> None:
    died = driver.begin("per_kind")
    task.write(died)
    driver.execute("DELETE FROM items WHERE kind = 2")  # a group that only the first job saw
    again = driver.begin("per_kind")
    with pytest.raises(Unavailable, match="another job has begun"):
        task.write(died)
    with pytest.raises(Unavailable, match="another job has begun"):
        driver.backfill.finish_backfill_job(died, [])
    task.write(again)
    driver.backfill.finish_backfill_job(again, [])
    fill(driver, task, "cheap")
    driver.require_law()


def test_a_view_that_is_filled_takes_no_more(driver: Filler, task: Filler) -> None:
    job = driver.begin("per_kind")
    task.write(job)
    driver.backfill.finish_backfill_job(job, [])
    with pytest.raises(InvalidInput, match="view is filled already"):
        driver.begin("per_kind")
    if driver.find_view("per_kind").group:
        return
    with driver.database.begin() as reader:
        assert read_watermark(reader, job.view) is None, "the log is not held for it any more"
    with pytest.raises(Unavailable, match="another job has begun"):
        task.write(job)
