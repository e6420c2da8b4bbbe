"""Seeded interleavings on Belvedere, by every path, and on PostgreSQL, side by side.

python -m tests.consistency.isolation --scripts 50000 --seed 7
python -m tests.consistency.isolation --only 7/15664      one script, at each level
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.consistency.isolation.compare import Findings, compare, open_engines
from tests.consistency.isolation.scripts import LEVELS
from tests.oracle.postgres import server

ROUND = 500


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="isolation", description=__doc__)
    parser.add_argument("--scripts", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", metavar="SEED/N")
    options = parser.parse_args(arguments)
    findings = Findings()
    seeds = [f"{options.seed}/{n}" for n in range(-(-options.scripts // len(LEVELS)))]
    if options.only is not None:
        seeds = [options.only]
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        engines, judge = open_engines(stack, Path(directory), server(), ("fast", "plain"))
        for start in range(0, len(seeds), ROUND):
            compare(engines, judge, seeds[start : start + ROUND], findings)
            print(findings.summary, flush=True)
            if findings.differences:
                break
    print(*findings.differences[:5], sep="\n\n")
    return 1 if findings.differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
