"""The named anomalies of Hermitage as SQL, for every engine: the cases of
tests/simulation/history/hermitage.py, which acts them out without SQL."""

from __future__ import annotations

from tests.consistency.isolation.stage import Step
from tests.simulation.history.hermitage import CASES

VERBS = {
    "set": ("UPDATE t SET v = ? WHERE id = ?", (1, 0)),
    "add": ("INSERT INTO t VALUES (? + 10, 3, ?)", (0, 1)),
    "get": ("SELECT v FROM t WHERE id = ?", (0,)),
    "over": ("SELECT id, v FROM t WHERE v >= ? AND grp > 0 ORDER BY id", (0,)),
    "all": ("SELECT id, v FROM t WHERE id > 0 ORDER BY id LIMIT 100", ()),
    "commit": ("COMMIT", ()),
    "rollback": ("ROLLBACK", ()),
}
"""The statement of a verb, and in which order it takes its numbers."""


def make_named_script(name: str, level: str) -> list[Step]:
    """The script of a case; each of its sessions begins a transaction first."""
    steps: list[Step] = []
    begun: set[int] = set()
    for part in CASES[name][1].split(";"):
        session, verb, *numbers = part.split()
        who = int(session) - 1
        if who not in begun:
            begun.add(who)
            steps.append(Step(who, f"BEGIN ISOLATION LEVEL {level}"))
        text, order = VERBS[verb]
        steps.append(Step(who, text, tuple([int(numbers[place]) for place in order])))
    return steps
