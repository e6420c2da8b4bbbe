"""Scripts on several engines at once, and what must be the same.

- The paths of Belvedere (fast, plain, DuckDB) do the same at every level, step by step.
- Under READ COMMITTED and REPEATABLE READ so does PostgreSQL. Some differences are by design:
  from REPEATABLE READ on, an INSERT of a key that another transaction has added or removed since
  the snapshot fails with 40001 here, where PostgreSQL looks at the newest row all the same; and
  ON CONFLICT DO NOTHING does not wait here for a transaction that has removed the row, nor, from
  REPEATABLE READ on, fail when another one has changed it, or add it when another one has removed
  it; and a statement that fails with 40001 because of a row may wait first for whoever has locked
  that row, which may be a deadlock.
- Two sessions that one step wakes go on in any order, in every engine: what differs from there on
  is counted, and is no difference.
- Under SERIALIZABLE the engines choose other victims. Whatever commits in Belvedere must be what
  some serial order of the same transactions gives, the statements of the third session among them.
  In PostgreSQL those are READ COMMITTED, and have no part in such an order.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

from tests.consistency.isolation.engines import SESSIONS, PostgresEngine, open_belvedere
from tests.consistency.isolation.scripts import LEVELS, make_script
from tests.consistency.isolation.stage import DEADLOCK, WAITS, Answer, Engine, Event, Stage, Step
from tests.oracle.postgres import Postgres

RETRY = "40001"
POSTGRES = "postgres"


@dataclass(slots=True)
class Findings:
    """What the scripts did, and where engines differed."""

    scripts: int = 0
    waits: int = 0
    retries: int = 0
    deadlocks: int = 0
    by_design: int = 0
    """Scripts that were compared only up to a difference by design."""
    free_orders: int = 0
    """Scripts that were compared only up to where two sessions were woken at once."""
    differences: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        return (
            f"{self.scripts} interleavings: {self.waits} with waits, {self.retries} with 40001, "
            f"{self.deadlocks} with deadlocks, {self.by_design} left at a difference by design, "
            f"{self.free_orders} at a free order, "
            f"{len(self.differences)} differences"
        )


def open_engines(
    stack: ExitStack, directory: Path, postgres: Postgres | None, paths: Sequence[str]
) -> tuple[dict[str, Engine], Engine]:
    """Belvedere by these paths, PostgreSQL, and the judge of serial orders."""
    engines: dict[str, Engine] = {
        name: stack.enter_context(open_belvedere(directory / name, name)) for name in paths
    }
    if postgres is not None:
        engines[POSTGRES] = stack.enter_context(closing(PostgresEngine(postgres)))
    return engines, stack.enter_context(open_belvedere(directory / "judge", "fast"))


def compare(
    engines: Mapping[str, Engine], judge: Engine, seeds: Sequence[str], findings: Findings
) -> None:
    """`judge` is one more engine, on which serial orders are tried."""
    with ThreadPoolExecutor(SESSIONS) as pool:
        for seed, level in itertools.product(seeds, LEVELS):
            script = make_script(f"{seed}/{level}", level)
            told = {name: Stage(one, pool, script).act() for name, one in engines.items()}
            findings.scripts += 1
            _compare_told(f"{seed}/{level}", level, script, told, judge, findings)


def _compare_told(
    seed: str,
    level: str,
    script: Sequence[Step],
    told: Mapping[str, list[Event]],
    judge: Engine,
    findings: Findings,
) -> None:
    first, *others = told
    mine = told[first]
    answers = [event.answer for event in mine]
    findings.waits += WAITS in answers
    findings.retries += RETRY in answers
    findings.deadlocks += DEADLOCK in answers
    for name in others:
        if name == POSTGRES and level == "SERIALIZABLE":
            continue
        place = _find_difference(mine, told[name])
        if place is None:
            continue
        if name == POSTGRES and is_by_design(level, script, mine, told[name], place):
            findings.by_design += 1
            continue
        if _is_order_free(mine, place) or _is_order_free(told[name], place):
            findings.free_orders += 1
            continue
        findings.differences.append(_describe(seed, script, first, mine, name, told[name], place))
    if level == "SERIALIZABLE":
        for name, events in told.items():
            if name != POSTGRES and not _is_serializable(script, events, judge):
                shown = _tell(script, events)
                findings.differences.append(f"{seed}: {name} is not serializable\n{shown}")


def _find_difference(mine: list[Event], theirs: list[Event]) -> int | None:
    """The first place where they differ. After a deadlock, whose victim may be either, nothing is
    compared."""
    for place, (one, other) in enumerate(itertools.zip_longest(mine, theirs)):
        if one is not None and other is not None and _deadlocked_at(mine, one.at):
            return None if _deadlocked_at(theirs, one.at) else place
        if one != other:
            return place
    return None


def _deadlocked_at(events: list[Event], at: int) -> bool:
    return any(event.at == at and event.answer == DEADLOCK for event in events)


def _is_order_free(events: list[Event], place: int) -> bool:
    """Whether one step has woken two sessions or more, at this event or before it."""
    waiting = {event.step for event in events if event.answer == WAITS}
    woken = collections.Counter(
        event.at for event in events if event.step in waiting and event.answer != WAITS
    )
    until = events[min(place, len(events) - 1)].at
    return any(count > 1 and at <= until for at, count in woken.items())


def is_by_design(
    level: str, script: Sequence[Step], mine: list[Event], theirs: list[Event], place: int
) -> bool:
    """Whether a difference by design is at this place, or at another event of the same step: a
    transaction that fails wakes others before it answers."""
    if place >= min(len(mine), len(theirs)):
        return False
    at = mine[place].at
    if _deadlocked_at(theirs, at) and any(
        event.at == at and script[event.step].text.endswith("DO NOTHING") and event.answer == (0,)
        for event in mine
    ):
        return True  # it waits in PostgreSQL, which closes a circle there: either is the victim
    answers = {event.step: event.answer for event in theirs if event.at == at}
    if theirs[place].step == mine[place].step:
        answers[mine[place].step] = theirs[place].answer
    return any(
        _is_answer_by_design(level, script, mine, event, answers.get(event.step))
        for event in mine
        if event.at == at
    )


def _is_answer_by_design(
    level: str, script: Sequence[Step], mine: list[Event], event: Event, theirs: Answer | None
) -> bool:
    text, answer = script[event.step].text, event.answer
    if text.endswith("DO NOTHING") and answer == (0,):
        if theirs in (WAITS, DEADLOCK):
            return True
        if theirs in (RETRY, (1,)) and level == "REPEATABLE READ":
            return True
    if answer == DEADLOCK and theirs == RETRY and level == "REPEATABLE READ":
        return True
    if answer == WAITS and theirs == RETRY and level == "REPEATABLE READ":
        return any(one.step == event.step and one.answer == RETRY for one in mine)
    lost = answer == RETRY and text.startswith("INSERT")
    return lost and level == "REPEATABLE READ"


def _is_serializable(script: Sequence[Step], events: list[Event], judge: Engine) -> bool:
    answers = {event.step: event.answer for event in events}
    if DEADLOCK in answers.values():
        return True  # it ended there
    units = _list_committed_units(script, answers)
    last = list(range(len(script) - 2, len(script)))
    for order in itertools.permutations(units):
        if _replay(script, [*order, last], answers, judge):
            return True
    return False


def _list_committed_units(script: Sequence[Step], answers: Mapping[int, Answer]) -> list[list[int]]:
    """The steps of each transaction that has committed; a statement of its own is one too."""
    units = []
    for who in (0, 1):
        steps = [n for n, step in enumerate(script) if step.who == who]
        failed = any(isinstance(answers[n], str) for n in steps)
        if not failed and script[steps[-1]].text == "COMMIT":
            units.append(steps[1:-1])
    for n, step in enumerate(script[:-2]):
        if step.who == 2 and not isinstance(answers[n], str):
            units.append([n])
    return units


def _replay(
    script: Sequence[Step], units: Sequence[list[int]], answers: Mapping[int, Answer], judge: Engine
) -> bool:
    try:
        return all(
            judge.execute(0, script[n].text, script[n].parameters) == answers[n]
            for unit in units
            for n in unit
        )
    finally:
        judge.reset()


def _describe(
    seed: str,
    script: Sequence[Step],
    first: str,
    mine: list[Event],
    name: str,
    theirs: list[Event],
    place: int,
) -> str:
    return (
        f"{seed}: differ at event {place}\n{first}:\n{_tell(script, mine)}\n"
        f"{name}:\n{_tell(script, theirs)}"
    )


def _tell(script: Sequence[Step], events: Sequence[Event]) -> str:
    lines = []
    for event in events:
        step = script[event.step]
        lines.append(f"  {event.at:2} [{step.who}] {step.text} {step.parameters}: {event.answer}")
    return "\n".join(lines)
