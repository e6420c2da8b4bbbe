"""Which consistency level held, from what readers saw: the model of the VMS paper.

The base tables pass through states; a view should pass through the states that its query has over
them. Each level includes the ones before it:

    convergent   the last state is right
    weak         every state that was seen is right: it is the query's at some position
    strong       and every reader saw them in order, never one from after its own snapshot
    complete     and every base state is represented: at each snapshot the view was at that very
                 state, and every state of the base tables was seen

`judge` says the highest level that held, and what broke the next one.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

State = Hashable
"""What a view shows: a bag of its rows, in some form that can be compared."""


class Level(enum.IntEnum):
    NONE = 0
    CONVERGENT = 1
    WEAK = 2
    STRONG = 3
    COMPLETE = 4


@dataclass(frozen=True, slots=True)
class Observation:
    """One read. `position` is that of the snapshot it was made at, as base tables show it."""

    reader: str
    position: int
    state: State


@dataclass(frozen=True, slots=True)
class Verdict:
    level: Level
    broken: str
    """Why it is not the next level; empty for the highest."""


def judge(states: Mapping[int, State], seen: Sequence[Observation], last: State) -> Verdict:
    """`states` are the query's, by position, all of them; `seen` are in the order of each reader;
    `last` is what the view shows when all is done."""
    final = states[max(states)]
    if last != final:
        return Verdict(Level.NONE, f"ends as {_short(last)}, not as {_short(final)}")
    known: dict[State, list[int]] = {}
    for position in sorted(states):
        known.setdefault(states[position], []).append(position)
    for one in seen:
        if one.state not in known:
            found = f"{one.reader} at {one.position} saw {_short(one.state)}, which never was"
            return Verdict(Level.CONVERGENT, found)
    broken = _out_of_order(known, seen)
    if broken:
        return Verdict(Level.WEAK, broken)
    broken = _not_represented(states, seen)
    return Verdict(Level.STRONG, broken) if broken else Verdict(Level.COMPLETE, "")


def _out_of_order(known: Mapping[State, list[int]], seen: Sequence[Observation]) -> str:
    """A state may have been at several positions: each reader is given the earliest that fits."""
    reached: dict[str, int] = {}
    for one in seen:
        least = reached.get(one.reader, 0)
        fitting = [place for place in known[one.state] if least <= place <= one.position]
        if not fitting:
            return (
                f"{one.reader} at {one.position} saw the state of {known[one.state]}"
                f" after that of {least}"
            )
        reached[one.reader] = fitting[0]
    return ""


def _not_represented(states: Mapping[int, State], seen: Sequence[Observation]) -> str:
    for one in seen:
        if one.state != states[one.position]:
            return f"{one.reader} at {one.position} did not see the state of {one.position}"
    missed = sorted(set(states) - {one.position for one in seen})
    return f"nobody looked at {missed[:5]}" if missed else ""


def _short(state: State) -> str:
    return str(state)[:120]
