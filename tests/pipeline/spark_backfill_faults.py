"""Kills of the driver, of its Python workers and of the store's owner while views are filled.

After each kill the same backfill is asked for again. It must end, and every view must hold exactly
the rows of its query, also of what was written meanwhile. A job that died when all its files were
made is not made again: the views come with the position they were made at.

    python -m tests.pipeline.spark_backfill_faults --kills 14 --seed 1

    driver    killed when it has begun, when the files are there, when it has recorded them, and
              between two views
    worker    killed in a task that reads, before and after it wrote a file
    owner     killed when the views are emptied, when the position is held, before and after it took
              the files in, when the view has caught up, and when it is published
    any time  the owner, at some moment of the job
"""

from __future__ import annotations

import argparse
import random
import threading
from typing import TYPE_CHECKING

from belvedere.pipeline.store.client import Store
from tests.pipeline.spark_faults import Driver, Owner, bag, serve, tried, write_some

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRIVER = ("fill.begun", "fill.made", "fill.recorded", "fill.finished")
WORKER = ("fill.task", "fill.before_file", "fill.after_file")
OWNER = (
    "fill.emptied@1",
    "fill.marked@1",
    "fill.before_ingest@2",
    "fill.after_ingest@2",
    "fill.taken@1",
    "fill.caught_up@2",
    "fill.published@1",
)
ANY_TIME = "any time"
EVERY = (*DRIVER, *WORKER, *OWNER, ANY_TIME)
RECORDED = ("fill.recorded", "fill.finished", *OWNER[2:])
"""Points after which nothing is made again."""

FILLED = {
    "sums": "SELECT kind, count(*) AS n, sum(price) AS total FROM items GROUP BY kind",
    "pairs": "SELECT i.id, k.name FROM items i JOIN kinds k ON k.id = i.kind WHERE i.price > 2",
    "dearest": "SELECT kind, max(price) AS most FROM items GROUP BY kind",
}
MOMENT_S_MAX = 3.0


def drive(directory: str) -> None:
    """In a process of its own: a backfill for each line on its input."""
    from belvedere.pipeline.jobs import backfill  # heavy
    from tests.pipeline.definitions import DEFINITIONS

    def job(spark: SparkSession) -> list[str]:
        done = backfill.run_backfill(spark, Store.from_url(directory), list(FILLED), DEFINITIONS)
        return [f"{one.view}={one.snapshot}" for one in done]

    serve(job, DRIVER, WORKER)


def create(store: Store) -> None:
    for number, (name, query) in enumerate(FILLED.items()):
        kind = "deferred" if number % 2 else "immediate"
        store.execute(
            f"CREATE MATERIALIZED VIEW {name}"
            f" WITH (maintenance = '{kind}', backfill = 'later') AS {query}"
        )


def write_more(store: Store, rng: random.Random) -> None:
    """Some changes, at least one of which is one."""
    write_some(store, rng, 3)
    store.execute(
        "INSERT INTO items VALUES (1000, 1, 1) ON CONFLICT (id)"
        " DO UPDATE SET price = items.price + 1"
    )


def drop(store: Store) -> None:
    for name in FILLED:
        store.execute(f"DROP MATERIALIZED VIEW {name}")


def wrong(store: Store) -> list[str]:
    """Rows that views and queries do not share."""
    found = []
    for name, query in FILLED.items():
        rows = bag(store, f"SELECT * FROM {name}"), bag(store, query)
        if rows[0] != rows[1]:
            found.append(f"{name}: {rows[0] - rows[1]} too many, {rows[1] - rows[0]} missing")
    left = [path.name for path in (store.directory / "pipeline").glob("backfill-*")]
    return found + ([f"left behind: {left}"] if left else [])


def made_again(store: Store, said: str, before: int) -> list[str]:
    """Views that were made anew, though their files were there at position `before` or earlier."""
    snapshots = [int(word.partition("=")[2]) for word in said.split()[1:]]
    late = [snapshot for snapshot in snapshots if snapshot > before]
    return [f"made again: {said}"] if late else []


def killed(owner: Owner, driver: Driver, point: str, rng: random.Random) -> list[str]:
    """Have a job, or its owner, die at this point; what did not happen. The owner is there after
    it."""
    timer = threading.Timer(rng.random() * MOMENT_S_MAX, owner.kill)
    if point in OWNER:
        owner.die_at(point)
    if point == ANY_TIME:
        timer.start()
    said = driver.run(point)
    if point in (*OWNER, ANY_TIME):
        timer.cancel()
        if timer.ident is not None:
            timer.join()
        owner.kill()
        owner.start()
    if point == ANY_TIME:
        return []
    expected = said == "" if point in DRIVER else said.startswith("failed")
    return [] if expected else [f"nothing was killed at {point}: {said}"]


def run(kills: int, seed: int, points: list[str]) -> int:
    rng = random.Random(f"spark fill faults {seed}")

    def trial(owner: Owner, driver: Driver, store: Store, point: str) -> list[str]:
        write_some(store, rng)
        create(store)
        found = killed(owner, driver, point, rng)
        before = store.position()
        write_more(store, rng)
        said = driver.run()
        found += [] if said.startswith("done") else [f"the job after it: {said}"]
        if point == ANY_TIME and said == "done":  # all was filled before the kill
            for name in FILLED:
                store.execute(f"REFRESH MATERIALIZED VIEW {name}")
        found += wrong(store)
        found += made_again(store, said, before) if point in RECORDED else []
        drop(store)
        return found

    failed = tried(kills, points, trial, "tests.pipeline.spark_backfill_faults")
    print(f"{kills} kills while filling, {failed} with differences (seed {seed})")
    return 1 if failed else 0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=len(EVERY))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--points", nargs="*", choices=EVERY, default=list(EVERY))
    parser.add_argument("--drive", help="be the driver of jobs on this store")
    options = parser.parse_args()
    if options.drive:
        drive(options.drive)
    else:
        raise SystemExit(run(options.kills, options.seed, options.points))


if __name__ == "__main__":
    main()
