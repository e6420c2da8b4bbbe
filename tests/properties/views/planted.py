"""Puts every planted bug of views back, one after the other, and says whether it is caught.

python -m tests.properties.views.planted

Without the bug its schedule must find nothing, with the bug it must complain: both are run, each in
a process of its own.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.mutations.registry import ENGINE
from tests.simulation.crash.planted.recovery import SCHEDULES, caught

BELOW = (
    "catalog_before_data",
    "decimal_key_by_text",
    "negative_zero_by_bits",
    "trim_past_consumer",
)
"""Bugs below the views that make views wrong."""
OF_VIEWS = tuple(sorted(name for name in ENGINE if name.startswith("view_")))
BUGS = (*OF_VIEWS, *BELOW)


def main() -> int:
    missed = 0
    for bug in BUGS:
        with tempfile.TemporaryDirectory() as home:
            found = bug in SCHEDULES and caught(bug, Path(home))
        missed += not found
        print(f"{bug:<28}{'caught' if found else 'NOT CAUGHT'}", flush=True)
    print(f"{len(BUGS) - missed} of {len(BUGS)} planted bugs caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
