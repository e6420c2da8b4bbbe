"""Two controls for every harness: a run that must find something, and one that must not.

A harness that cannot fail proves nothing, and one that cannot pass proves no more.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.simulation.crash.faults import damage, disk, injected, kills, power_cut
from tests.simulation.crash.processes import ChildFailed, call
from tests.simulation.crash.report import Harness

Control = Callable[[Path, int], list[str]]


def _quiet(seed: int) -> Harness:
    return Harness("control", "", seed, quiet=True)


def torn_batches(home: Path, seed: int) -> list[str]:
    """Rows and entries written apart, and a kill in between. Not every commit has both, so a few
    more are killed when the first ones had not."""
    found: list[str] = []
    for attempt in range(5):
        harness = _quiet(seed + 1000 * attempt)
        place = home / str(attempt)
        kills.at_boundaries(harness, place, 3, "torn_batch", only=("commit.after_write",))
        found = harness.failures
        if found:
            break
    return found


def no_kill(home: Path, seed: int) -> list[str]:
    """A store that was written and closed, and nothing else."""
    life = next(kills.lives(home, random.Random(seed)))
    life.start(replace(life.plan(), rounds=1)).wait()
    return life.check()


def forged_acknowledgement(home: Path, seed: int) -> list[str]:
    """A client that was told of a commit which never was."""
    life = next(kills.lives(home, random.Random(seed)))
    with life.acks.open("a") as file:
        for fact in (
            {"kind": "try", "effect": [["event", [-1], ["never", -1]]]},
            {"kind": "ack", "position": 3, "token": "", "incarnation": 1},
        ):
            file.write(json.dumps({**fact, "transaction": "00" * 16}) + "\n")
    return life.check()


def positions_reused(home: Path, seed: int) -> list[str]:
    """A recovery that goes on one position too early. The store itself may notice before any kill,
    when a backup reaches further than it should."""
    harness = _quiet(seed)
    try:
        kills.in_recovery(harness, home, 2, "position_reused")
    except ChildFailed as failed:
        return [str(failed)]
    return harness.failures


def acknowledged_early(home: Path, seed: int) -> list[str]:
    return call(lambda: _cut(home), home / "stderr", mutation="ack_before_sync")


def acknowledged_in_time(home: Path, seed: int) -> list[str]:
    return call(lambda: _cut(home), home / "stderr")


def _cut(home: Path) -> list[str]:
    machine = power_cut.Machine(home / "machine", random.Random(1))
    return power_cut.write_and_cut(machine, 5, None)


def swallowed_sync(home: Path, seed: int) -> list[str]:
    """A failed sync that is taken for a success. What the store holds depends on who was quicker,
    so a purchase may be refused, and reach no sync: then another is tried."""
    plan = injected.prepare(home / "sweep", seed)
    for attempt in range(5):
        case = injected.Case("buy", "sync.before", "raise", 1, seed + 1000 * attempt)
        struck, problems = injected.run_case(home / "sweep", plan, case, "sync_error_swallowed")
        if struck:
            return problems
    return []


def fault_that_never_strikes(home: Path, seed: int) -> list[str]:
    case = injected.Case("buy", "write", "before", 10**6, seed)
    plan = injected.prepare(home / "sweep", seed)
    struck, problems = injected.run_case(home / "sweep", plan, case)
    return problems + (["it struck"] if struck else [])


def wrong_tokens_on_a_full_disk(home: Path, seed: int) -> list[str]:
    harness = _quiet(seed)
    disk.fill_up(harness, home / "disks", 1, "token_ahead")
    return harness.failures


def one_full_disk(home: Path, seed: int) -> list[str]:
    harness = _quiet(seed)
    disk.fill_up(harness, home / "disks", 1)
    return harness.failures


def altered_row(home: Path, seed: int) -> list[str]:
    """A row changed with every checksum right: nothing but the comparison can see it."""
    return damage.altered(damage.make_specimen(home / "made", 20, seed))


def untouched(home: Path, seed: int) -> list[str]:
    return damage.judge(damage.make_specimen(home / "made", 20, seed), lambda store: None)


def cut_without_anchor(home: Path, seed: int) -> list[str]:
    """A log cut where nobody remembers how far it went."""
    specimen = damage.make_specimen(home / "made", 20, seed, "anchor_skipped")
    ends = damage.log_record_ends(damage.current_log(specimen.store).read_bytes())
    return damage.judge(specimen, lambda store: damage.cut(store, ends[-3]))


def cut_at_the_end(home: Path, seed: int) -> list[str]:
    """A log cut behind its last byte."""
    specimen = damage.make_specimen(home / "made", 20, seed)
    size = damage.current_log(specimen.store).stat().st_size
    return damage.judge(specimen, lambda store: damage.cut(store, size))


CONTROLS: dict[str, tuple[Control, Control]] = {
    "d1": (torn_batches, no_kill),
    "d2": (forged_acknowledgement, no_kill),
    "d3": (positions_reused, no_kill),
    "d4": (acknowledged_early, acknowledged_in_time),
    "d5": (swallowed_sync, fault_that_never_strikes),
    "d7": (wrong_tokens_on_a_full_disk, one_full_disk),
    "d8": (altered_row, untouched),
    "d9": (cut_without_anchor, cut_at_the_end),
}
