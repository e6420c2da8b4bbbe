"""`make hbase-up`, `-url`, `-down` and `-test`: one HBase of this checkout.

python -m tools.hbase up      start it, unless it runs; prints the URL
python -m tools.hbase url     print the URL of a database on it, nothing else
python -m tools.hbase down    stop it and remove its data; the log stays in build/hbase
python -m tools.hbase test    all tests of the row-atomic commit on it, in place of the double
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tools.hbase.artifacts import MissingTool, provide_jars
from tools.hbase.processes import StartFailed
from tools.hbase.single import load_state, save_state, start_single

HOME = Path(__file__).resolve().parents[2] / "build" / "hbase"
DATABASE = "shop"
TESTS = ("tests/txn", "tests/session", "tests/views", "tests/properties/views/test_on_cells.py")


def main(arguments: Sequence[str], home: Path = HOME) -> int:
    running = load_state(home)
    match arguments:
        case ["up"]:
            return 0 if running is not None else _start(home)
        case ["url"] if running is not None:
            print(f"{running.url}/{DATABASE}")
            return 0
        case ["url"]:
            print("HBase does not run: make hbase-up", file=sys.stderr)
            return 1
        case ["down"]:
            if running is not None:
                running.stop()
            return 0
        case ["test", *more]:
            return _run_tests(home, more)
        case _:
            print(__doc__, file=sys.stderr)
            return 2


def _run_tests(home: Path, more: Sequence[str]) -> int:
    """Run them on the HBase that is there, or on one for this run."""
    found = load_state(home)
    running = found or start_single(home, detached=False)
    command = [sys.executable, "-m", "pytest", "-q", "-k", "cells", *(more or TESTS)]
    try:
        environment = {**os.environ, "BELVEDERE_TEST_HBASE": running.url}
        return subprocess.run(command, env=environment, check=False).returncode
    finally:
        if found is None:
            running.stop()


def _start(home: Path) -> int:
    started = time.monotonic()
    try:
        provide_jars()
        fetched = time.monotonic()
        running = start_single(home, detached=True, record=True)
    except (MissingTool, StartFailed) as error:
        print(f"hbase: {error}", file=sys.stderr)
        return 1
    save_state(running)
    if fetched - started > 1:
        print(f"its jars were fetched in {fetched - started:.1f} s, once", file=sys.stderr)
    seconds = time.monotonic() - fetched
    print(f"HBase answers after {seconds:.1f} s: {running.url}/{DATABASE}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
