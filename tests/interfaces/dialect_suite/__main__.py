"""The whole dialect suite on PostgreSQL, over the wire and embedded, compared.

python -m tests.interfaces.dialect_suite [--doors wire embedded]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from tests.interfaces.dialect_suite import judge, runs


def main() -> int:
    parser = argparse.ArgumentParser(prog="dialect_suite")
    parser.add_argument("--doors", nargs="+", default=["wire", "embedded"])
    options = parser.parse_args()
    with runs.open_postgres() as url:
        expected = runs.run_suite(url, requirements=runs.POSTGRES_REQUIREMENTS)
    passing = Counter(expected.values())[runs.PASSED]
    print(f"postgresql: {passing} of {len(expected)} pass", flush=True)
    failures = 0
    for door in options.doors:
        with runs.DOORS[door]() as url:
            missed = judge.list_missed(expected, runs.run_suite(url))
        share = 1 - len(missed) / passing
        print(f"{door}: {passing - len(missed)} of these {passing} pass, {share:.1%}", flush=True)
        problems = [f"not explained: {one}" for one in judge.list_unexplained(missed, door)]
        problems += [f"explains nothing: {one}" for one in judge.list_stale(missed, door)]
        problems += [f"under {judge.SHARE_MIN:.0%}"] if share < judge.SHARE_MIN else []
        print(*problems, sep="\n")
        failures += len(problems)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
