"""Walk every case, the large ones too, and put every bug back, printing what was found.

python -m tests.simulation.row.explore [--quick]
"""

from __future__ import annotations

import argparse
import sys

from tests.mutations.registry import ROW, mutated
from tests.simulation.row.cases import ON_DEMAND, all_cases
from tests.simulation.row.explorer import Explorer
from tests.simulation.row.test_explorer import CATCHES

STATES_MAX = 30_000_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out the large cases")
    quick = parser.parse_args().quick
    states = failed = 0
    for name, case in all_cases().items():
        if quick and name in ON_DEMAND:
            continue
        report = Explorer(case).run(STATES_MAX)
        print(report.summary(), flush=True)
        states += report.states
        failed += bool(report.violation)
    print(f"{states} states explored, {failed} cases with violations")
    for bug, mutation in ROW.items():
        with mutated(bug):
            report = Explorer(all_cases()[CATCHES[bug]]).run(STATES_MAX)
        print(f"put back {bug} ({mutation.meaning}):\n{report.summary()}")
        failed += not report.violation
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
