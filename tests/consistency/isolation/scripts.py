"""Random scripts of two transactions and a third session, from a seed.

Where Belvedere restarts a statement that had to wait, PostgreSQL goes on with the rows that it had
found, each as it is now. The two differ only where other rows than those have come to match, and
docs/isolation.md names it; so here conditions are on keys and on columns that nobody changes, and
no transaction removes a row and adds another one under the same key.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from tests.consistency.isolation.stage import Step

LEVELS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")


class Kind(NamedTuple):
    text: str
    draw: Callable[[random.Random], tuple[int, ...]]


def _key(rng: random.Random) -> int:
    return rng.choice((1, 1, 2, 3))


def _amount(rng: random.Random) -> int:
    return rng.randrange(1, 9)


def _u_key(rng: random.Random) -> int:
    return rng.choice((1, 2))


READS = (
    Kind("SELECT v FROM t WHERE id = ?", lambda rng: (_key(rng),)),
    Kind("SELECT id, v FROM t WHERE id > ? ORDER BY id LIMIT 2", lambda rng: (rng.randrange(3),)),
    Kind("SELECT id, grp, v FROM t ORDER BY id", lambda rng: ()),
    Kind("SELECT id, v FROM t WHERE grp = ? ORDER BY id", lambda rng: (rng.choice((1, 2)),)),
    Kind("SELECT s FROM m WHERE grp = ?", lambda rng: (rng.choice((1, 2)),)),
    Kind("SELECT sum(s), sum(n) FROM m", lambda rng: ()),
    Kind("SELECT v FROM u WHERE id = ?", lambda rng: (_u_key(rng),)),
    Kind("SELECT id, v FROM u ORDER BY id LIMIT 5", lambda rng: ()),
    Kind("SELECT count(*), sum(v) FROM u", lambda rng: ()),
)
LOCKS = (
    Kind("SELECT v FROM t WHERE id = ? FOR UPDATE", lambda rng: (_key(rng),)),
    Kind("SELECT v FROM t WHERE id = ? FOR UPDATE NOWAIT", lambda rng: (_key(rng),)),
    Kind("SELECT v FROM t WHERE id = ? FOR UPDATE SKIP LOCKED", lambda rng: (_key(rng),)),
    Kind("SELECT id, v FROM t WHERE grp = ? ORDER BY id FOR UPDATE", lambda rng: (1,)),
)
SINGLE_WRITES = (
    Kind("UPDATE t SET v = v + ? WHERE id = ?", lambda rng: (_amount(rng), _key(rng))),
    Kind("UPDATE t SET v = v * 2 + 1 WHERE id = ? RETURNING v", lambda rng: (_key(rng),)),
    Kind(
        "UPDATE t SET v = v + 100 WHERE id = ? AND v < ?",
        lambda rng: (_key(rng), rng.randrange(5, 60)),
    ),
    Kind("UPDATE u SET v = v + ? WHERE id = ?", lambda rng: (_amount(rng), _u_key(rng))),
    Kind("INSERT INTO u VALUES (?, ?)", lambda rng: (_u_key(rng), _amount(rng))),
    Kind(
        "INSERT INTO u VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET v = u.v + excluded.v",
        lambda rng: (_u_key(rng), _amount(rng)),
    ),
    Kind(
        "INSERT INTO u VALUES (?, ?) ON CONFLICT DO NOTHING",
        lambda rng: (_u_key(rng), _amount(rng)),
    ),
    Kind("DELETE FROM u WHERE id = ?", lambda rng: (_u_key(rng),)),
)
GROUP_WRITES = (
    Kind("UPDATE t SET v = v + ? WHERE grp = ?", lambda rng: (_amount(rng), 1)),
    Kind("UPDATE t SET v = v + 1 WHERE id IN (?, ?)", lambda rng: (1, 3)),
    Kind("UPDATE t SET v = v + 1 WHERE id >= ? AND id < ?", lambda rng: (1, 3)),
)
LAST = ("SELECT id, grp, v FROM t ORDER BY id", "SELECT id, v FROM u ORDER BY id LIMIT 5")
EVERY = (*READS, *LOCKS, *SINGLE_WRITES, *GROUP_WRITES)


def make_script(seed: str, level: str) -> list[Step]:
    rng = random.Random(seed)
    serializable = level == "SERIALIZABLE"
    parts = [_make_transaction(rng, who, level, savepoints=not serializable) for who in (0, 1)]
    parts.append(_make_single_statements(rng))
    script: list[Step] = []
    while any(parts):
        part = rng.choice([one for one in parts if one])
        script.append(part.pop(0))
    return script + [Step(2, text) for text in LAST]


def _make_transaction(rng: random.Random, who: int, level: str, *, savepoints: bool) -> list[Step]:
    steps = [Step(who, f"BEGIN ISOLATION LEVEL {level}")]
    saved, removed = False, set[int]()
    while len(steps) < rng.randrange(3, 6):
        if savepoints and rng.random() < 0.12:
            steps.append(Step(who, "ROLLBACK TO s" if saved else "SAVEPOINT s"))
            saved = True
            continue
        kinds = rng.choice((READS, READS, LOCKS, SINGLE_WRITES, SINGLE_WRITES, GROUP_WRITES))
        kind = rng.choice(kinds)
        step = Step(who, kind.text, kind.draw(rng))
        if _brings_back(step, removed) or (level == "SERIALIZABLE" and "SKIP" in step.text):
            continue  # what is skipped depends on locks, so no serial order explains it
        steps.append(step)
    steps.append(Step(who, "ROLLBACK" if rng.random() < 0.2 else "COMMIT"))
    return steps


def _brings_back(step: Step, removed: set[int]) -> bool:
    """Whether the step adds a row under a key that its transaction has removed."""
    if step.text.startswith("DELETE"):
        removed.add(step.parameters[0])
    return step.text.startswith("INSERT") and step.parameters[0] in removed


def _make_single_statements(rng: random.Random) -> list[Step]:
    steps = []
    for _ in range(rng.randrange(3)):
        kind = rng.choice(rng.choice((READS, SINGLE_WRITES)))
        steps.append(Step(2, kind.text, kind.draw(rng)))
    return steps
