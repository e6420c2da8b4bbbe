"""SIGKILL at every line of what makes a directory or a file: backup, restore, dump, COPY, and the
making and promotion of views. What opens afterwards is whole, or says that it is not; and the same
command, run again, succeeds.

    python -m tests.simulation.crash.directory_kills --kills 0

kills at every line, the first, the second and the last time that it runs: a loop over rows runs its
lines some thousand times, and what is on disk between two of them differs by a row.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import belvedere
from belvedere.config import Config, Durability
from belvedere.database import SQL_COMPILERS, Database, restore_backup
from belvedere.errors import Error
from belvedere.interfaces.commands import dump
from belvedere.interfaces.shell.render import OutputFormat
from belvedere.interfaces.shell.shell import Shell
from tests.simulation.crash.processes import Child, ChildFailed, call, killed

ROWS = 300
UNFINISHED = ("has not finished", "not a belvedere store", "no such")
PACKAGE = Path(belvedere.__path__[0])
SETUP = (
    "CREATE TABLE t (id bigint PRIMARY KEY, g int, name text)",
    "CREATE MATERIALIZED VIEW now_view AS SELECT g, count(*) AS n FROM t GROUP BY g",
    "CREATE MATERIALIZED VIEW later_view WITH (maintenance = 'deferred') AS"
    " SELECT g, max(name) AS last FROM t GROUP BY g",
    *(f"INSERT INTO t SELECT i, i % 7, 'n' || i FROM generate_series({n}, {n + 99}) AS s(i)"
      for n in (1, 101, 201)),
)  # fmt: skip
MAKE_VIEW = "CREATE MATERIALIZED VIEW made AS SELECT name, sum(g) AS s FROM t GROUP BY name"
REPLACE_VIEW = (
    "CREATE OR REPLACE MATERIALIZED VIEW now_view AS"
    " SELECT g, count(*) AS n, min(id) AS low FROM t GROUP BY g"
)
PROMOTE_VIEW = "ALTER MATERIALIZED VIEW later_view SET (maintenance = 'immediate')"


@dataclass(slots=True)
class LineKiller:
    """Counts the lines that run in some files of the product, and kills at one of them. `turns`
    are the first, second and last count at which a line of a file ran."""

    files: tuple[str, ...]
    at: int = 0
    count: int = 0
    turns: dict[tuple[str, int], list[int]] = field(default_factory=dict)

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(self.files):
            return None
        if event == "line":
            self.count += 1
            if self.count == self.at:
                os.kill(os.getpid(), signal.SIGKILL)
            turns = self.turns.setdefault((frame.f_code.co_filename, frame.f_lineno), [])
            turns[2:] = []
            turns.append(self.count)
        return self.trace

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        threading.settrace(self.trace)
        sys.settrace(self.trace)
        try:
            yield
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Scenario:
    """`run` is killed at lines of `files`; `check` says what is wrong with what it left."""

    name: str
    files: tuple[str, ...]
    run: Callable[[Path], object]
    check: Callable[[Path], list[str]]


def open_store(path: Path) -> Any:
    return belvedere.connect(str(path), autocommit=True, create=False, durability="off")


def make_store(directory: Path) -> None:
    with belvedere.connect(str(directory / "store"), autocommit=True, durability="off") as con:
        for statement in SETUP:
            con.execute(statement)
    with Database.open(directory / "store", **SQL_COMPILERS) as db:
        db.back_up(directory / "kept")


def list_problems(path: Path, rows: int | None = None) -> list[str]:
    """What is wrong with a store; one that does not exist or says it is unfinished is right."""
    try:
        con = open_store(path)
    except belvedere.Error as error:
        return [] if any(word in str(error) for word in UNFINISHED) else [f"opening: {error}"]
    with con:
        found = []
        count = con.execute("SELECT count(*) FROM t").fetchone()[0]
        if rows is not None and count != rows:
            found.append(f"{count} rows, not {rows}")
        names = con.execute("SELECT name, state FROM belvedere.views").fetchall()
        found += [f"{name} is {state}" for name, state in names if state != "ready"]
        for name, _ in names:
            if not con.execute(f'VERIFY MATERIALIZED VIEW "{name}"').fetchone()[-1]:
                found.append(f"{name} is wrong")
        con.execute("INSERT INTO t VALUES (100000, 1, 'after')")
        return found


def back_up(directory: Path) -> None:
    with Database.open(directory / "store", Config(durability=Durability.OFF)) as db:
        db.back_up(directory / "copy")


def check_backup(directory: Path) -> list[str]:
    problems = []
    with contextlib.suppress(Error):
        restore_backup(directory / "copy", directory / "restored", **SQL_COMPILERS)
        problems += list_problems(directory / "restored", ROWS)
    if not problems and not (directory / "copy" / "BACKUP").exists():
        back_up(directory)
    return problems + list_problems(directory / "store")


def restore_earlier(directory: Path) -> None:
    with Database.open(directory / "store", Config(durability=Durability.OFF)) as db:
        position = db.position - 1
    restore_backup(directory / "kept", directory / "restored", position, **SQL_COMPILERS)


def check_restored(directory: Path) -> list[str]:
    problems = list_problems(directory / "restored", ROWS - 100)
    if not (directory / "restored" / "BELVEDERE").exists():
        restore_earlier(directory)
        problems += list_problems(directory / "restored", ROWS - 100)
    return problems


def write_dump(directory: Path) -> None:
    dump.write_dump(directory / "dump.sql", dump.dump_store(directory / "store", sql=True))


def check_dump(directory: Path) -> list[str]:
    if not (directory / "dump.sql").exists():
        return list_problems(directory / "store", ROWS)
    with belvedere.connect(str(directory / "again"), autocommit=True, durability="off") as con:
        if not Shell(con, OutputFormat.TABLE, io.StringIO(), sys.stderr).run_file(
            directory / "dump.sql"
        ):
            return ["the dump does not run"]
    return list_problems(directory / "again", ROWS)


def copy_out(directory: Path) -> None:
    with open_store(directory / "store") as con:
        con.execute(f"COPY t TO '{directory / 'rows.csv'}' (FORMAT csv)")


def check_copy(directory: Path) -> list[str]:
    path = directory / "rows.csv"
    if path.exists() and len(path.read_text().splitlines()) != ROWS:
        return ["the file is not whole"]
    return list_problems(directory / "store", ROWS)


def run_statement(text: str) -> Callable[[Path], None]:
    def run(directory: Path) -> None:
        with open_store(directory / "store") as con:
            con.execute(text)

    return run


def check_store(directory: Path) -> list[str]:
    return list_problems(directory / "store", ROWS)


def in_product(*names: str) -> tuple[str, ...]:
    return tuple(str(PACKAGE / name) for name in names)


MAKING = ("txn/batch_atomic/backup.py", "txn/batch_atomic/draft_directory.py", "kv/files.py")
VIEWS = (
    "views/backfill/driver.py",
    "views/service.py",
    "views/registry",
    "session/materialized",
    "catalog/edit.py",
)
SCENARIOS = (
    Scenario("backup", in_product(*MAKING), back_up, check_backup),
    Scenario(
        "restore", in_product(*MAKING, "views/backfill/driver.py"), restore_earlier, check_restored
    ),
    Scenario("dump", in_product("kv/files.py", "interfaces/commands/dump"), write_dump, check_dump),
    Scenario("copy", in_product("kv/files.py", "session/copy"), copy_out, check_copy),
    Scenario("create view", in_product(*VIEWS), run_statement(MAKE_VIEW), check_store),
    Scenario("replace view", in_product(*VIEWS), run_statement(REPLACE_VIEW), check_store),
    Scenario("promote view", in_product(*VIEWS), run_statement(PROMOTE_VIEW), check_store),
)


def count_lines(scenario: Scenario, directory: Path) -> tuple[int, list[int]]:
    """How many lines run, and at which of them each line runs first, second and last."""
    killer = LineKiller(scenario.files)
    with killer.watching():
        scenario.run(directory)
    return killer.count, sorted(at for turns in killer.turns.values() for at in turns)


def run_killed(scenario: Scenario, directory: Path, at: int) -> None:
    with LineKiller(scenario.files, at).watching():
        scenario.run(directory)


def kill_at_lines(
    scenario: Scenario, directory: Path, rng: random.Random, kills: int
) -> Iterator[str]:
    """Problems found after `kills` kills at random lines, or at every line when that is 0."""
    model, output = directory / "model", directory / "stderr"
    model.mkdir(parents=True)
    call(lambda: make_store(model), output)
    tried = directory / "counted"
    shutil.copytree(model, tried)
    total, turns = call(lambda: count_lines(scenario, tried), output)
    chosen = sorted(rng.sample(range(1, total + 1), min(kills, total))) if kills else turns
    print(f"{scenario.name}: {len(chosen)} kills at {total} lines", flush=True)
    for at in chosen:
        place = directory / f"at{at}"
        shutil.copytree(model, place)
        for problem in find_problems_after_kill(scenario, place, output, at):
            yield f"{scenario.name} line {at} of {total}: {problem}"
        shutil.rmtree(place)


def find_problems_after_kill(scenario: Scenario, place: Path, output: Path, at: int) -> list[str]:
    """One that hangs or fails is a problem as any other, and the next kills go on."""
    child = Child(partial(run_killed, scenario, place, at), output)
    try:
        status, _ = child.wait()
        if status and not killed(status):
            return [child.errors()]
        return call(partial(scenario.check, place), output)
    except ChildFailed as error:
        return [str(error)]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=8, help="of each scenario; 0: at every line")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=[one.name for one in SCENARIOS])
    given = parser.parse_args(arguments)
    failures = 0
    for scenario in SCENARIOS:
        if given.only not in (None, scenario.name):
            continue
        with tempfile.TemporaryDirectory() as directory:
            rng = random.Random(given.seed)
            for problem in kill_at_lines(scenario, Path(directory), rng, given.kills):
                failures += 1
                print(f"FAILED seed={given.seed} {problem}", flush=True)
        print(f"{scenario.name}: done", flush=True)
    print(f"{failures} failures")
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
