"""Kills of the driver, of its Python workers and of the store's owner, at named points.

After each kill the job is started again and must come to the end of the log, and every view must
hold exactly the rows of its query: nothing lost, nothing twice.

    python -m tests.pipeline.spark_faults --kills 30 --seed 1
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import belvedere
from belvedere.pipeline.store import Store
from belvedere.remote.client import is_reachable

DEADLINE_S = 120.0
VIEWS = {
    "per_kind": "SELECT kind, count(*) AS n, sum(price) AS total FROM items GROUP BY kind",
    "joined": "SELECT i.id, k.name FROM items i JOIN kinds k ON k.id = i.kind WHERE i.price > 2",
    "lonely": "SELECT k.id FROM kinds k LEFT JOIN items i ON i.kind = k.id WHERE i.id IS NULL",
    "most": "SELECT kind, max(price) AS most FROM items GROUP BY kind",
}
DRIVER = ("pipeline.claimed", "pipeline.computed", "pipeline.applied")
WORKER = ("pipeline.task", "pipeline.sum")
OWNER = ("before the job", "during the job", "after the job")


# -- the owner -------------------------------------------------------------------------------------


def own(directory: str) -> None:
    """In a process of its own: has the store open until it is killed."""
    with belvedere.connect(directory, autocommit=True) as connection:
        found = connection.execute(
            "SELECT count(*) FROM information_schema.tables WHERE table_name = 'items'"
        ).fetchone()
        if found == (0,):
            set_up(connection)
        print("ready", flush=True)
        signal.pause()


def set_up(connection: belvedere.interfaces.dbapi.Connection) -> None:
    connection.execute("CREATE TABLE kinds (id int PRIMARY KEY, name text)")
    connection.execute("CREATE TABLE items (id int PRIMARY KEY, kind int, price numeric(8,2))")
    for i in range(6):
        connection.execute("INSERT INTO kinds VALUES (?, ?)", (i, f"kind {i}"))
    for name, query in VIEWS.items():
        connection.execute(
            f"CREATE MATERIALIZED VIEW {name}"
            f" WITH (maintenance = 'deferred', max_lag = '3600 s') AS {query}"
        )  # the worker is in no hurry, so that the job has something to do
    for name in [*VIEWS, *VIEWS]:  # at one position they join their group
        connection.execute(f"REFRESH MATERIALIZED VIEW {name}")


class Owner:
    """The owner's process, which may be killed and started again."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.pipeline.spark_faults", "--own", self.directory]
        self._process = subprocess.Popen(
            list(map(str, command)), stdout=subprocess.PIPE, text=True, env=environment("")
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n", "the owner did not start"
        deadline = time.monotonic() + DEADLINE_S
        while not is_reachable(self.directory):
            assert time.monotonic() < deadline, "nobody answers for the store"
            time.sleep(0.01)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(DEADLINE_S)
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None


def environment(failpoints: str) -> dict[str, str]:
    repository = Path(__file__).resolve().parent.parent.parent
    source = Path(belvedere.__file__).resolve().parent.parent
    paths = os.pathsep.join(map(str, (source, repository)))
    chosen = {"PYTHONPATH": paths, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    return {**os.environ, **chosen, "BELVEDERE_FAILPOINTS": failpoints}


# -- writes and the law ----------------------------------------------------------------------------


def write_some(store: Store, rng: random.Random, statements: int = 12) -> None:
    for _ in range(statements):
        id_, kind, price = rng.randrange(40), rng.randrange(7), rng.randrange(9)
        store.execute(
            rng.choice(
                (
                    f"INSERT INTO items VALUES ({id_}, {kind}, {price}) ON CONFLICT (id)"
                    f" DO UPDATE SET kind = {kind}, price = {price}",
                    f"DELETE FROM items WHERE id = {id_}",
                    f"UPDATE items SET price = price + 1 WHERE kind = {kind}",
                    f"UPDATE kinds SET name = 'n{price}' WHERE id = {kind}",
                )
            )
        )


def differences(store: Store) -> list[str]:
    """What is wrong: a group that is behind, and rows that views and queries do not share."""
    found = []
    for group in store.ask("groups"):
        if group["watermark"] != group["position"] or len(group["views"]) != len(VIEWS):
            found.append(f"group is behind: {group}")
    for name, query in VIEWS.items():
        rows = [bag(store, f"SET freshness = 'any'; SELECT * FROM {name}"), bag(store, query)]
        if rows[0] != rows[1]:
            found.append(f"{name}: {rows[0] - rows[1]} too many, {rows[1] - rows[0]} missing")
    return found


def bag(store: Store, sql: str) -> Counter[tuple[object, ...]]:
    table = store.execute(sql).rows
    assert table is not None
    return Counter(zip(*(column.to_pylist() for column in table.columns)))


# -- the job in a process of its own ---------------------------------------------------------------


def maintain(directory: Path, failpoints: str = "") -> subprocess.Popen[bytes]:
    """The command; what it says goes to a file beside the store."""
    command = [sys.executable, "-m", "belvedere.interfaces.cli", "pipeline", "maintain"]
    options = ["--database", str(directory), "--once", "--master", "local[2]"]
    with said(directory).open("wb") as output:
        return subprocess.Popen(
            [*command, *options], env=environment(failpoints), stdout=output, stderr=output
        )


def said(directory: Path) -> Path:
    return directory.with_suffix(".out")


def run(kills: int, seed: int, points: list[str]) -> int:
    rng = random.Random(f"spark faults {seed}")
    wrong = 0
    with tempfile.TemporaryDirectory() as directory:
        owner = Owner(Path(directory) / "faults.db")
        owner.start()
        store = Store.of(str(owner.directory))
        for number in range(kills):
            point = points[number % len(points)]
            write_some(store, rng)
            killed(owner, point, rng)
            write_some(store, rng, 3)
            code = maintain(owner.directory).wait(600)
            found = differences(store)
            if code:
                found.append(f"the job ended with {code}: {said(owner.directory).read_text()}")
            wrong += bool(found)
            print(f"kill {number + 1} at {point}: {'; '.join(found) or 'ok'}", flush=True)
        owner.kill()
    print(f"{kills} kills, {wrong} with differences (seed {seed})")
    return 1 if wrong else 0


def killed(owner: Owner, point: str, rng: random.Random) -> None:
    """A job that dies, or whose owner dies, at this point; the owner is there again after it."""
    if point not in OWNER:
        code = maintain(owner.directory, f"{point}=kill@1").wait(600)
        assert code != 0, f"nothing was killed at {point}"
        return
    if point == "before the job":
        owner.kill()
    job = maintain(owner.directory)
    if point == "during the job":
        time.sleep(rng.uniform(5, 20))
        owner.kill()
    job.wait(600)
    owner.kill()
    owner.start()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    every = [*DRIVER, *WORKER, *OWNER]
    parser.add_argument("--points", nargs="*", choices=every, default=every)
    parser.add_argument("--own", help="be the owner of this store")
    options = parser.parse_args()
    if options.own:
        own(options.own)
    else:
        raise SystemExit(run(options.kills, options.seed, options.points))


if __name__ == "__main__":
    main()
