"""All queries of TPC-H as views that Spark maintains, against the same views kept at once.

    python -m tests.pipeline.spark_tpch --lines 2000 --cycles 2 --seed 1

After every cycle of changes over all eight tables the stored state of both is compared, amount by
amount; at the end Spark recomputes every view (`pipeline.jobs.verify`).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from belvedere.pipeline.jobs import verify
from belvedere.pipeline.maintain import group_driver
from belvedere.pipeline.store.client import Store
from belvedere.pipeline.store.spark_session import build_small_job_settings, open_spark_session
from tests.pipeline.spark_laws import DEFINITIONS, compare, opened, wait_for_groups
from tests.properties.views.workloads.tpch import Tpch

SUFFIXES = ("_immediate", "_deferred")


def run(lines: int, cycles: int, seed: int) -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        opened(Path(directory) / "tpch.db") as (database, writer),
        open_spark_session("local[2]", "belvedere tpch", build_small_job_settings(2)) as spark,
    ):
        tpch = Tpch(writer, lines, seed)
        names = [f"q{n}" for n in (*tpch.counts.incremental, *tpch.counts.whole)]
        store = Store.from_url(str(Path(directory) / "tpch.db"))
        wait_for_groups(store, len(names))
        job = group_driver.GroupDriver(spark, store, DEFINITIONS, "tpch", 2)
        job.claim_groups([])
        for number in range(cycles):
            for _ in tpch.cycle():
                pass
            job.advance_groups()
            compare(database, names, f"cycle {number}", SUFFIXES)
            print(f"cycle {number}: {len(names)} views are the same in both", flush=True)
        wanted = [f"{name}_deferred" for name in names]
        started = time.monotonic()
        for found in verify.verify_views(spark, store, wanted, DEFINITIONS):
            assert found.is_correct, found
            print(f"{found.view}: {found.rows} rows; in Python: {list(found.in_python)}")
        print(
            f"{len(wanted)} views recomputed in {time.monotonic() - started:.0f} s, 0 differences"
        )
        job.release_groups()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--cycles", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    group_driver.SMALL_CHANGES = 0  # two tasks and an exchange, however little there is
    run(options.lines, options.cycles, options.seed)


if __name__ == "__main__":
    main()
