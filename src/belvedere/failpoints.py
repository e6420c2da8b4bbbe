"""Named places where a test may make the program die, fail, wait or misbehave.

    if failpoints.armed: failpoints.hit("commit.before_write")     # a boundary
    if failpoints.armed and failpoints.planted("ack_before_sync"): # a bug put back on purpose

Unarmed, a place costs one attribute look-up. Armed by `arm(..)` or by the environment:

    BELVEDERE_FAILPOINTS="commit.before_write=kill@3;sync.before=raise"
    BELVEDERE_PLANTED="ack_before_sync,undo_skipped"

Actions: `kill` (SIGKILL to this process), `raise` (Unavailable 58030), `call` (a function given to
`arm`). `@n` acts at the n-th hit only. BOUNDARIES and PLANTED list every name, so that a test can
count what it covered; an unknown name is refused.
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
    "restore.before_rewind",
    "restore.after_rewind",
)

PIPELINE = (
    "pipeline.claimed",
    "pipeline.task",
    "pipeline.sum",
    "pipeline.computed",
    "pipeline.applied",
)
"""Places of the jobs on Spark: in the driver, and (task, sum) in its Python workers."""

FILLING = (
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
"""Places of a backfill on Spark: in the driver, (task, file) in its Python workers, and from
`emptied` on in the owner of the store."""

PLANTED = {
    "ack_before_sync": "a commit is acknowledged before the sync that covers it",
    "sync_skipped": "the sync is not done at all",
    "sync_error_swallowed": "a failed sync is taken for a success",
    "anchor_skipped": "the anchor is not written, so a lost log goes unnoticed",
    "chain_unchecked": "the hash chain of the log is not verified on open",
    "position_reused": "a restarted store hands out a position again in the same incarnation",
    "token_ahead": "a token names a position that is not durable yet",
    "undo_skipped": "before-images are not published, so snapshots move",
    "undo_after_write": "before-images are published after the write",
    "undo_purged_early": "before-images are dropped while a snapshot still needs them",
    "conflict_unchecked": "write-write conflicts are not looked for",
    "reads_unvalidated": "SERIALIZABLE does not validate its reads",
    "ranges_unvalidated": "SERIALIZABLE validates rows but not ranges",
    "unique_at_snapshot": "uniqueness is checked at the snapshot, not at p-1",
    "foreign_key_at_snapshot": "foreign keys are checked at the snapshot, not at p-1",
    "lock_order_inverted": "a deadlock is not looked for: both sides wait",
    "lock_kept": "locks stay after the transaction has ended",
    "torn_batch": "base rows and derived rows are written in two batches",
    "trim_past_consumer": "the log is trimmed past its slowest consumer",
    "retry_unknown": "a commit of unknown outcome is tried again",
    "catalog_before_data": "a catalog change is visible before it is committed",
    "length_unchecked": "a record's length field is believed",
    "decimal_key_by_text": "a numeric key is its text, so 1.0 and 1.00 are two keys",
    "negative_zero_by_bits": "a float key is its bits, so 0.0 and -0.0 are two keys",
    "savepoint_keeps_changes": "ROLLBACK TO does not take the changes back",
    "incarnation_kept": "an unclean stop without durability keeps the incarnation",
    "view_batch_twice": "a maintenance batch is applied again after a restart",
    "view_delta_twice": "a view adds each delta twice",
    "view_join_after": "the delta of a join reads the state after the changes on both sides",
    "view_padding_kept": "a row padded with NULLs stays when its first match comes",
    "view_deletes_ignored": "a group whose rows only went is not done again: its minimum stays",
    "view_null_group_dropped": "rows of the NULL group are left out",
    "view_flip_without_log": "a view becomes immediate without what the log still has for it",
    "view_snapshot_early": "a backfill claims a later position than it read at",
    "view_build_keeps_deleted": "rows deleted while a view is filled stay in it",
    "view_group_stays_gone": "a group that was emptied does not come back",
    "view_read_behind_token": "a deferred view is read though it has not reached the token",
}


@dataclass(slots=True)
class _Arming:
    action: str
    at: int | None
    function: Callable[[], None] | None = None


armed = False
hits: Counter[str] = Counter()
_places: dict[str, _Arming] = {}
_planted: set[str] = set()


def arm(
    name: str, action: str, *, at: int | None = None, call: Callable[[], None] | None = None
) -> None:
    """Make `name` act at its `at`-th hit from now on (every hit when None)."""
    if name not in (*BOUNDARIES, *PIPELINE, *FILLING):
        raise InvalidInput("unknown failpoint", sqlstate="42704", name=name)
    hits[name] = 0
    _places[name] = _Arming(action, at, call)
    _refresh()


def plant(name: str) -> None:
    """Put a named bug back, to see a test catch it."""
    if name not in PLANTED:
        raise InvalidInput("unknown planted bug", sqlstate="42704", name=name)
    _planted.add(name)
    _refresh()


def unarm(name: str) -> None:
    """This place does nothing any more; everything else stays."""
    _places.pop(name, None)
    _refresh()


def disarm() -> None:
    """Everything behaves again."""
    _places.clear()
    _planted.clear()
    hits.clear()
    _refresh()


def planted(name: str) -> bool:
    return name in _planted


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
    """Read BELVEDERE_FAILPOINTS and BELVEDERE_PLANTED; called once, on import."""
    for entry in filter(None, os.environ.get("BELVEDERE_FAILPOINTS", "").split(";")):
        name, _, action = entry.partition("=")
        action, _, at = action.partition("@")
        arm(name, action, at=int(at) if at else None)
    for name in filter(None, os.environ.get("BELVEDERE_PLANTED", "").split(",")):
        plant(name)


def _refresh() -> None:
    global armed  # noqa: PLW0603 (a module attribute is the cheapest thing to test)
    armed = bool(_places or _planted)


arm_from_environment()
