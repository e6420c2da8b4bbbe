"""The law of views with a third driver: immediate, deferred and Spark keep the very same rows.

Each generated view is made three times. After every batch of random transactions the deferred one
is brought forward by the local maintenance, the third by Spark; then the stored state of all three
is compared, amount for amount, and at the end each is recomputed by Spark (`pipeline.jobs.verify`).

    python -m tests.pipeline.spark_laws --cases 12 --views 5 --batches 10 --seed 1
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belvedere.catalog.model import View
from belvedere.config import Durability
from belvedere.database import Database
from belvedere.errors import InvalidInput
from belvedere.interfaces import stores
from belvedere.pipeline.jobs import verify
from belvedere.pipeline.maintain import group_driver
from belvedere.pipeline.store.client import Store
from belvedere.session.session import Session
from tests.pipeline.definitions import DEFINITIONS
from tests.properties.views.generate.cases import random_case
from tests.properties.views.generate.histories import Case
from tests.properties.views.law import stored_state
from tests.unrewritten import make_unrewritten_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEPS_PER_BATCH = 3
PREFIX_BYTES = 5
KINDS = {
    "": "",
    "_later": "WITH (maintenance = 'deferred')",
    "_spark": "WITH (maintenance = 'deferred', max_lag = '10 s')",
}
"""What is added to a view's name, and how it is made."""


@dataclass(slots=True)
class Counts:
    views: int = 0
    batches: int = 0
    compared: int = 0
    verified: int = 0
    in_python: set[str] = field(default_factory=set)


@contextmanager
def opened(directory: Path) -> Iterator[tuple[Database, Session]]:
    """A store of this process that others reach by its socket."""
    options = stores.OpenOptions(durability=Durability.OFF, memory_limit_mb=256)
    store = stores.acquire_store(str(directory), options)
    session = make_unrewritten_session(store.shared)
    try:
        yield store.database, session
    finally:
        session.close()
        stores.release_store(store)


def run_case(
    spark: SparkSession,
    case: Case,
    directory: Path,
    counts: Counts,
    recomputed_max: int | None = None,
) -> None:
    with opened(directory) as (database, session):
        for statement in case.tables:
            session.execute(statement)
        for statement in case.first:
            attempt(session, (statement,))
        names = create_views(session, case)
        counts.views += len(names)
        store = Store.from_url(str(directory))
        wait_for_groups(store, 2 * len(names))
        spark_views = [f"{name}_spark" for name in names]
        job = group_driver.GroupDriver(spark, store, DEFINITIONS, "law", 2)
        job.claim_groups(spark_views)
        for at in range(0, len(case.steps), STEPS_PER_BATCH):
            for step in case.steps[at : at + STEPS_PER_BATCH]:
                attempt(session, step.statements, commit=step.commit)
            job.advance_groups()
            for name in names:
                session.execute(f"REFRESH MATERIALIZED VIEW {name}_later")
            compare(database, names, f"seed {case.seed}, after step {at + STEPS_PER_BATCH}")
            counts.batches += 1
            counts.compared += len(names)
        some = spark_views[:recomputed_max]
        for found in verify.verify_views(spark, job.store, some, DEFINITIONS, partitions=2):
            assert found.is_correct, f"seed {case.seed}: {found}"
            counts.verified += 1
            counts.in_python.update(found.in_python)
        job.release_groups()


def create_views(session: Session, case: Case) -> list[str]:
    """Each view in all three ways."""
    made: list[str] = []
    for view in case.views:
        name, text = str(view["name"]), str(view["text"])
        for suffix, options in KINDS.items():
            query = text
            for earlier in made:
                query = query.replace(f"{earlier} ", f"{earlier}{suffix} ")
            session.execute(f"CREATE MATERIALIZED VIEW {name}{suffix} {options} AS {query}")
        made.append(name)
    return made


def wait_for_groups(store: Store, views: int) -> None:
    """A new view joins its group when both are at one position."""
    deadline = time.monotonic() + 60
    while sum(len(group["views"]) for group in store.call_owner_verb("groups")) < views:
        assert time.monotonic() < deadline, "the views did not join their groups"
        time.sleep(0.01)


def attempt(session: Session, statements: tuple[str, ...], *, commit: bool = True) -> None:
    """A transaction; one that the database refuses leaves nothing."""
    try:
        session.execute("BEGIN")
        for statement in statements:
            session.execute(statement)
        session.execute("COMMIT" if commit else "ROLLBACK")
    except InvalidInput:
        session.execute("ROLLBACK")


def compare(database: Database, names: list[str], where: str, kinds: Iterable[str] = KINDS) -> None:
    """The stored state of every view in all these ways, amount by amount."""
    with database.begin() as reader:
        for name in names:
            states: dict[str, Any] = {}
            for suffix in kinds:
                view = reader.catalog.require_relation(View, name + suffix)
                found = stored_state(reader, view)
                states[suffix] = {key[PREFIX_BYTES:]: value for key, value in found.items()}
            first, *others = states
            for other in others:
                assert states[other] == states[first], f"{where}: {name}{other} differs"


def main() -> None:
    from belvedere.pipeline.store.spark_session import build_small_job_settings, open_spark_session

    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=12)
    parser.add_argument("--views", type=int, default=5)
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--master", default="local[2]", help="also local-cluster[2,1,1024]")
    options = parser.parse_args()
    counts, usual = Counts(), group_driver.SMALL_CHANGES
    with open_spark_session(options.master, "belvedere laws", build_small_job_settings(2)) as spark:
        for seed in range(options.seed, options.seed + options.cases):
            # Every other case with an exchange between two tasks, however small its batches are.
            group_driver.SMALL_CHANGES = 0 if seed % 2 else usual
            case = random_case(seed, options.views, options.batches * STEPS_PER_BATCH)
            with tempfile.TemporaryDirectory() as directory:
                run_case(spark, case, Path(directory) / "law.db", counts)
            print(f"seed {seed}: {counts.views} views, {counts.batches} batches so far", flush=True)
    print(f"{counts.compared} states compared, {counts.verified} views recomputed, 0 differences")
    for reason in sorted(counts.in_python):
        print(f"  in Python: {reason}")


if __name__ == "__main__":
    main()
