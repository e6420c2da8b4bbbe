"""Named places where a test may make the program die, fail or wait.

    if failpoints.armed:
        failpoints.hit("commit.before_write")

Unarmed, a place costs one attribute look-up. Armed, the same code runs: a place only hits its
failpoint. Armed by `arm(..)` or by the environment:

    BELVEDERE_FAILPOINTS="commit.before_write=kill@3;sync.before=raise"

Actions: `kill` (SIGKILL to this process), `raise` (Unavailable 58030), `call` (a function given to
`arm`). `@n` acts at the n-th hit only. BOUNDARIES, PIPELINE_BOUNDARIES and BACKFILL_BOUNDARIES list
every name, so that a test can count what it covered; an unknown name is refused.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from belvedere.errors import InvalidInput, Unavailable

BOUNDARIES = (
    "open.before_store",
    "open.after_store",
    "open.before_incarnation",
    "open.after_incarnation",
    "commit.before_section",
    "commit.before_undo",
    "commit.before_write",
    "commit.after_write",
    "sync.before",
    "sync.after",
    "anchor.before_write",
    "anchor.after_write",
    "anchor.after_sync",
    "publish.before",
    "publish.after",
    "acknowledge.before",
    "trim.before",
    "trim.after",
    "checkpoint.before",
    "checkpoint.after",
    "catalog.before",
    "catalog.after",
    "close.before_anchor",
    "close.after_anchor",
    "maintain.before_write",
    "maintain.after_write",
    "backfill.chunk",
    "backup.marked",
    "backup.before_install",
    "backup.after_install",
    "restore.marked",
    "restore.before_rewind",
    "restore.after_rewind",
    "restore.before_install",
    "restore.after_install",
)

PIPELINE_BOUNDARIES = (
    "pipeline.claimed",
    "pipeline.task",
    "pipeline.sum",
    "pipeline.computed",
    "pipeline.applied",
)
"""Failpoints of the jobs on Spark: in the driver, and (task, sum) in its Python workers."""

BACKFILL_BOUNDARIES = (
    "fill.begun",
    "fill.task",
    "fill.before_file",
    "fill.after_file",
    "fill.made",
    "fill.recorded",
    "fill.finished",
    "fill.emptied",
    "fill.marked",
    "fill.before_ingest",
    "fill.after_ingest",
    "fill.taken",
    "fill.caught_up",
    "fill.published",
)
"""Failpoints of a backfill on Spark: in the driver, (task, file) in its Python workers, and from
`emptied` on in the owner of the store."""


@dataclass(slots=True)
class _ArmedAction:
    action: str
    at: int | None
    function: Callable[[], None] | None = None


armed = False
hits: Counter[str] = Counter()
_places: dict[str, _ArmedAction] = {}


def arm(
    name: str, action: str, *, at: int | None = None, call: Callable[[], None] | None = None
) -> None:
    """Make `name` act at its `at`-th hit from now on (every hit when None)."""
    if name not in (*BOUNDARIES, *PIPELINE_BOUNDARIES, *BACKFILL_BOUNDARIES):
        raise InvalidInput("unknown failpoint", sqlstate="42704", name=name)
    hits[name] = 0
    _places[name] = _ArmedAction(action, at, call)
    _update_armed()


def disarm_failpoint(name: str) -> None:
    """Disarm one failpoint; everything else stays armed."""
    _places.pop(name, None)
    _update_armed()


def disarm_all() -> None:
    """Disarm all failpoints."""
    _places.clear()
    hits.clear()
    _update_armed()


def hit(name: str) -> None:
    hits[name] += 1
    place = _places.get(name)
    if place is None or (place.at is not None and hits[name] != place.at):
        return
    if place.action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif place.action == "raise":
        raise Unavailable("injected failure", sqlstate="58030", place=name)
    elif place.function is not None:
        place.function()


def arm_from_environment() -> None:
    """Read BELVEDERE_FAILPOINTS; called once, on import."""
    for entry in filter(None, os.environ.get("BELVEDERE_FAILPOINTS", "").split(";")):
        name, _, action = entry.partition("=")
        action, _, at = action.partition("@")
        arm(name, action, at=int(at) if at else None)


def _update_armed() -> None:
    global armed  # noqa: PLW0603 (a module attribute is the cheapest thing to test)
    armed = bool(_places)


arm_from_environment()
