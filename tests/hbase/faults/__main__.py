"""Run it: `python -m tests.hbase.faults --kills 20 --servers 5 --gateways 3`.

A cluster of two region servers and two gateways, four writers, a reader that checks every moment,
and one fault after another: a writer killed at a step of its commit, a region server or a gateway
killed, a region server paused beyond the timeout of requests, a region split or moved. Ends with
`held` and the counts, or with the first thing that does not hold. The writers' notes stay beside
the logs, in build/hbase-faults.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import belvedere
from tests.hbase.faults import judge
from tools.hbase.cluster import HBaseCluster, start_cluster

WRITERS = 4
SERVERS = 2
STEPS = 7
IDS_PER_WRITER = 1_000_000
PAUSE_SECONDS = (1.7, 1.7, 4.0)
"""Longer than the gateways wait for a region server, so that they ask again for what it has done;
the last one longer than its session too, so that others have its regions when it goes on."""
PROGRESS_SECONDS_MAX = 120
LOGS = Path(__file__).resolve().parents[3] / "build" / "hbase-faults"
FIND_ACCOUNT = "SELECT id FROM belvedere.tables WHERE name = 'account'"


class FaultRun:
    def __init__(self, cluster: HBaseCluster, notes: Path) -> None:
        self.cluster = cluster
        self.url = cluster.url + "/faults"
        self.counts: Counter[str] = Counter()
        self.admin = cluster.open_admin()
        self.account_prefix = b""
        self._directory = notes
        self._started = 0
        self._writers: list[subprocess.Popen[bytes]] = []
        self._over = threading.Event()
        self.failure: BaseException | None = None

    def start_writer(self, *more: str) -> subprocess.Popen[bytes]:
        self._started += 1
        notes = self._directory / f"{self._started}.notes"
        command = [sys.executable, "-m", "tests.hbase.faults.writer", self.url, str(notes)]
        command += [str(self._started * IDS_PER_WRITER), *more]
        return subprocess.Popen(command)

    def run_faults(self, faults: list[str]) -> None:
        self._writers = [self.start_writer() for _ in range(WRITERS - 1)]
        reader = threading.Thread(target=self._check_all_the_time)
        reader.start()
        try:
            for fault in faults:
                if self.failure is not None:
                    break
                print(f"{fault} ..", flush=True)
                getattr(self, fault)()
                self.counts[fault] += 1
        finally:
            for writer in self._writers:
                writer.kill()
                writer.wait()
            self._over.set()
            reader.join()
        if self.failure is not None:
            raise self.failure

    def kill_writer(self) -> None:
        """The fourth writer dies at a step of its commit."""
        number = self.counts["kill_writer"]
        after = ["--after"] if number // STEPS % 2 else []
        doomed = self.start_writer("--die-at", str(number % STEPS + 1), *after)
        self._writers.append(doomed)
        self._wait_until(lambda: doomed.poll() is not None, "a writer does not come to its end")

    def kill_server(self) -> None:
        number = self.counts["kill_server"] % 2
        self.cluster.kill(f"server{number}")
        self._wait_until(
            lambda: self.admin.count_live_servers() < SERVERS, "nobody misses the region server"
        )
        self._wait_for_progress()
        self.cluster.start_server(number)
        self._wait_for_servers()
        self._wait_for_progress()

    def kill_gateway(self) -> None:
        number = self.counts["kill_gateway"] % 2
        self.cluster.kill(f"gateway{number}")
        self._wait_for_progress()
        self.cluster.start_gateway(number)

    def pause_server(self) -> None:
        self.cluster.pause("server0")
        time.sleep(PAUSE_SECONDS[self.counts["pause_server"] % len(PAUSE_SECONDS)])
        self.cluster.resume("server0")
        self._wait_for_progress()
        self._wait_for_servers()

    def split_region(self) -> None:
        """Split the rows of accounts, a different one every time."""
        number = self.counts["split_region"] * 3 + 2
        key = self.account_prefix + b"\x01\x80" + number.to_bytes(7)
        self.admin.split_table("faults:rows", key)
        self._wait_for_progress()

    def move_regions(self) -> None:
        for table in ("faults:rows", "faults:system"):
            self.admin.move_regions(table)
        self._wait_for_progress()

    def _wait_for_progress(self) -> None:
        """Until some transfer that began after this was acknowledged."""
        before = self._count_acknowledged()
        self._wait_until(
            lambda: self._count_acknowledged() >= before + WRITERS, "writers make no progress"
        )

    def _wait_for_servers(self) -> None:
        """Until the master knows all region servers again. Without it, the next fault could take
        the last one that there is."""
        self._wait_until(
            lambda: self.admin.count_live_servers() == SERVERS, "a region server does not come back"
        )

    def _wait_until(self, is_so: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + PROGRESS_SECONDS_MAX
        while not is_so():
            if self.failure is not None:
                raise self.failure
            assert time.monotonic() < deadline, otherwise
            self.counts["servers started again"] += self.cluster.restart_ended_servers()
            time.sleep(0.1)

    def _count_acknowledged(self) -> int:
        return len(judge.read_notes(self._directory.glob("*.notes")).told["ack"])

    def _check_all_the_time(self) -> None:
        try:
            with belvedere.connect(self.url, autocommit=True) as con:
                while not self._over.wait(0.2):
                    try:
                        judge.check_moment(con)
                        self.counts["moments checked"] += 1
                    except belvedere.OperationalError:
                        self.counts["moments without an answer"] += 1
        except BaseException as failure:  # noqa: BLE001 - raised again by the run
            self.failure = failure


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.hbase.faults")
    parser.add_argument("--kills", type=int, default=20, help="writers killed at a step")
    parser.add_argument("--servers", type=int, default=5, help="region servers killed")
    parser.add_argument("--gateways", type=int, default=3, help="gateways killed")
    parser.add_argument("--pauses", type=int, default=3, help="region servers paused")
    parser.add_argument("--moves", type=int, default=3, help="regions split, and moved")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    faults = ["kill_writer"] * options.kills + ["kill_server"] * options.servers
    faults += ["kill_gateway"] * options.gateways + ["pause_server"] * options.pauses
    faults += ["split_region", "move_regions"] * options.moves
    random.Random(options.seed).shuffle(faults)
    notes = LOGS / "notes"
    shutil.rmtree(notes, ignore_errors=True)
    notes.mkdir(parents=True)
    cluster = start_cluster(LOGS, servers=SERVERS)
    try:
        run = FaultRun(cluster, notes)
        with belvedere.connect(run.url, autocommit=True) as con:
            judge.make_tables(con)
            [(id_,)] = con.execute(FIND_ACCOUNT).fetchall()
            run.account_prefix = b"\x10" + id_.to_bytes(4)
            run.run_faults(faults)
            ended = judge.check_end(con, notes.glob("*.notes"))
        run.admin.close()
    finally:
        cluster.stop()
    print("held:", dict(ended), dict(run.counts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
