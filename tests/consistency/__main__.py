"""Runs the monitor and the verifier at length, and prints which level held for every view.

python -m tests.consistency --runs 20 --seed 1
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from tests.consistency.monitor import (
    FRESHNESS,
    KINDS,
    REQUIRED,
    Monitor,
    Profile,
    opened,
)
from tests.consistency.verifier import Load, verify


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--transactions", type=int, default=100)
    options = parser.parse_args()
    levels: dict[str, Counter[str]] = {name: Counter() for name in REQUIRED}
    looks, failures, sums = 0, 0, 0
    for seed in range(options.seed, options.seed + options.runs):
        with opened() as shared:
            profile = Profile(writers=4, transactions=options.transactions, readers=3)
            history = Monitor(shared, profile, seed).run()
        for name, verdict in history.verdicts().items():
            levels[name][verdict.level.name.lower()] += 1
            looks += len(history.seen[name])
            if verdict.level < REQUIRED[name]:
                failures += 1
                print(f"seed {seed}, {name}: {verdict}")
        for maintenance in KINDS:
            for freshness in FRESHNESS:
                with opened() as shared:
                    found = verify(shared, maintenance, freshness, Load(4, 100, 60), seed)
                sums += len(found.sums)
                failures += bool(found.wrong)
                for one in found.wrong[:3]:
                    print(f"seed {seed}, {maintenance}, {freshness}: {one}")
        print(f"seed {seed}: {looks} looks, {sums} sums, {failures} failures so far", flush=True)
    for name, found_levels in levels.items():
        print(f"{name:<24} {dict(found_levels)}, promised {REQUIRED[name].name.lower()}")
    print(f"{looks} looks at views, {sums} sums of the verifier, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
