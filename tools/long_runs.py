"""The long runs: tests that take minutes to hours, by name.

    make long                      list them
    make long RUN=laws             run one
    make long RUN=laws SEED=7      options go to it as NAME=value

What CI runs is `make test`; these go further: more cases, more kills, larger data.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LongRun:
    """`commands` are arguments of Python, with `{NAME}` where an option goes."""

    name: str
    purpose: str
    commands: tuple[str, ...]
    options: Mapping[str, str]


LAW_OF_VIEWS = "-m tests.properties.views.hunt --cases {CASES} --steps 50 --seed {SEED}"

RUNS = (
    LongRun(
        "crash",
        "recovery, proved by killing and damaging",
        ("-m tests.simulation.crash --profile {PROFILE} --seed {SEED}",),
        {"PROFILE": "quick", "SEED": "1"},
    ),
    LongRun(
        "directories",
        "kills at every line of backup, restore, dump, COPY and the making of views",
        ("-m tests.simulation.crash.directory_kills --kills {KILLS} --seed {SEED}",),
        {"KILLS": "0", "SEED": "1"},
    ),
    LongRun(
        "interrupts",
        "Ctrl-C and cancel at lines of commits, backfills and DDL (COUNT=0: at every line)",
        ("-m tests.simulation.interrupts --count {COUNT} --seed {SEED}",),
        {"COUNT": "5000", "SEED": "1"},
    ),
    LongRun(
        "schedules",
        "the row-atomic commit under seeded schedules",
        ("-m tests.simulation.row.schedules --seeds {SEEDS}",),
        {"SEEDS": "10000"},
    ),
    LongRun(
        "histories",
        "concurrent sessions, and a judge of what they saw",
        ("-m tests.simulation.history --profile {PROFILE} --seed {SEED}",),
        {"PROFILE": "quick", "SEED": "1"},
    ),
    LongRun(
        "isolation",
        "interleaved transactions by every path, beside PostgreSQL",
        ("-m tests.consistency.isolation --scripts {SCRIPTS} --seed {SEED}",),
        {"SCRIPTS": "50000", "SEED": "1"},
    ),
    LongRun(
        "laws",
        "the law of views: random views, 50 transactions each, on both commit protocols",
        (
            f"{LAW_OF_VIEWS} --store rocksdb",
            f"{LAW_OF_VIEWS} --store cells",
            "-m tests.properties.views.planted",
        ),
        {"CASES": "50", "SEED": "1"},
    ),
    LongRun(
        "rewrites",
        "rewritten answers == plain answers == PostgreSQL's, for random queries and views",
        ("-m tests.properties.rewrite.hunt --queries {QUERIES} --seed {SEED}",),
        {"QUERIES": "5000", "SEED": "1"},
    ),
    LongRun(
        "hoist",
        "every query of SQL Logic Test as a view; SHARD=3/20 is a part",
        ("-m tests.properties.views.workloads.hoist --tables {TABLES} --shard {SHARD}",),
        {"TABLES": "64", "SHARD": "1/1"},
    ),
    LongRun(
        "tpch",
        "the queries of TPC-H as views at scale factor 0.01",
        ("-m tests.properties.views.workloads.tpch --lines {LINES} --seed {SEED}",),
        {"LINES": "60000", "SEED": "1"},
    ),
    LongRun(
        "nexmark",
        "the queries of Nexmark as views",
        ("-m tests.properties.views.workloads.nexmark_full --events {EVENTS} --seed {SEED}",),
        {"EVENTS": "60000", "SEED": "1"},
    ),
    LongRun(
        "consistency",
        "which consistency level views have under load",
        ("-m tests.consistency --runs {RUNS} --seed {SEED}",),
        {"RUNS": "20", "SEED": "1"},
    ),
    LongRun(
        "pipeline-laws",
        "immediate == deferred == Spark: random views, and TPC-H",
        (
            "-m tests.pipeline.spark_laws --cases 12 --views 5 --batches 10 --seed {SEED}",
            "-m tests.pipeline.spark_tpch --lines 2000 --cycles 2 --seed {SEED}",
        ),
        {"SEED": "1"},
    ),
    LongRun(
        "pipeline-faults",
        "kills of driver, workers and owner of Spark jobs; executors come and go",
        (
            "-m tests.pipeline.spark_faults --kills 30 --seed {SEED}",
            "-m tests.pipeline.spark_backfill_faults --kills 15 --seed {SEED}",
            "-m tests.pipeline.spark_elastic --seed {SEED}",
        ),
        {"SEED": "1"},
    ),
    LongRun(
        "slt",
        "the whole corpus of SQL Logic Test in every tier, and on PostgreSQL",
        ("-m tests.slt.runner --tiers postgres direct duckdb auto",),
        {},
    ),
    LongRun(
        "arguments",
        "every function with arguments of hostile sizes: memory, and how long the process is held",
        ("-m tests.plan.hostile_arguments --calls {CALLS} --seed {SEED}",),
        {"CALLS": "5", "SEED": "1"},
    ),
    LongRun(
        "dialect",
        "SQLAlchemy's dialect suite on PostgreSQL, over the wire and embedded",
        ("-m tests.interfaces.dialect_suite",),
        {},
    ),
    LongRun(
        "differential",
        "random statements compared with PostgreSQL",
        ("-m tests.properties.sql.hunt --seed {SEED} --statements {STATEMENTS}",),
        {"SEED": "1", "STATEMENTS": "20000"},
    ),
)


def main(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> int:
    known = {run.name: run for run in RUNS}
    if not arguments:
        print(list_runs())
        return 0
    if arguments[0] not in known:
        print(f"there is no long run {arguments[0]!r}\n\n{list_runs()}")
        return 2
    for command in build_commands(known[arguments[0]], environment):
        print("$ python " + " ".join(command), flush=True)
        code = subprocess.run(["nice", sys.executable, *command], check=False).returncode
        if code:
            return code
    return 0


def list_runs() -> str:
    lines = []
    for run in RUNS:
        options = " ".join(f"{name}={value}" for name, value in run.options.items())
        lines.append(f"{run.name:<17}{run.purpose}")
        lines += [f"{'':<17}{options}"] if options else []
    return "\n".join(lines)


def build_commands(run: LongRun, environment: Mapping[str, str]) -> list[list[str]]:
    """The commands of a run, with options from the environment in place of the defaults."""
    values = {name: environment.get(name) or value for name, value in run.options.items()}
    return [command.format(**values).split() for command in run.commands]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
