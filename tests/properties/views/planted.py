"""Puts every planted bug of views back, one after the other, and says whether it is caught.

python -m tests.properties.views.planted
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from belvedere import failpoints
from tests.simulation.crash.planted_views import SCHEDULES

BUGS = tuple(sorted(name for name in failpoints.PLANTED if name.startswith("view_")))


def is_caught(bug: str) -> bool:
    """Whether the schedule of this bug complains, with the bug planted."""
    failpoints.plant(bug)
    try:
        with tempfile.TemporaryDirectory() as home:
            return bool(SCHEDULES[bug](Path(home)))
    finally:
        failpoints.disarm()


def main() -> int:
    missed = [bug for bug in BUGS if bug not in SCHEDULES or not is_caught(bug)]
    for bug in BUGS:
        print(f"{bug:<28}{'NOT CAUGHT' if bug in missed else 'caught'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
