"""The maintainer: groups of deferred views, held under claims and brought forward on Spark.

A claim (`views.claim`) says who holds the group, with which epoch, from where to where. It is in
the store before any work, and what a stretch adds is applied with the watermark and the next claim
in one visible step of the owner. So whatever dies, and whenever, every stretch counts exactly once.

    claim (120, 180]  ->  build  ->  advance: additions, watermark 180, claim (180, 240]
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import SparkSession

from belvedere import failpoints
from belvedere.errors import Error, InvalidInput, Unavailable, Unsupported
from belvedere.execution.spark.failures import FAILURES, meaning_of
from belvedere.pipeline import deltas
from belvedere.pipeline.checkpoint import checkpoint, remove_leftovers
from belvedere.pipeline.inputs import Definitions, encoded_catalog
from belvedere.pipeline.store import Store
from belvedere.views.claim import Claim

POSITIONS_MAX = 100_000
SMALL_CHANGES = 5_000
"""A stretch of no more changes is not worth more than one task, nor Arrow columns."""

ATTEMPTS_MAX = 5
TAKEN_OVER = "55006"
CHANGED = "40001"
RECENT = 1_000
"""Of how many batches the time is remembered."""


@dataclass(frozen=True, slots=True)
class Applied:
    """One batch: `group` went from `start` to `end`, and this many keys were added to."""

    group: int
    start: int
    end: int
    additions: int
    seconds: float


@dataclass(slots=True)
class Kept:
    """What became of a group, by the names of its views, since it was taken."""

    views: tuple[str, ...]
    at: int
    batches: int = 0
    positions: int = 0
    additions: int = 0
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))

    def note(self, one: Applied) -> None:
        self.batches += 1
        self.positions += one.end - one.start
        self.additions += one.additions
        self.at = one.end
        self.recent.append(one.seconds)

    @property
    def median_ms(self) -> int | None:
        """How long a batch took of late."""
        times = sorted(self.recent)
        return round(1000 * times[len(times) // 2]) if times else None


@dataclass(slots=True)
class Maintainer:
    """The driver's side: claims of groups, and how each is brought forward."""

    spark: SparkSession
    store: Store
    definitions: Definitions
    owner: str
    tasks: int
    positions_max: int = POSITIONS_MAX
    progress: Callable[[Applied], None] = lambda _: None
    clock: Callable[[], float] = time.monotonic
    claims: dict[int, Claim] = field(default_factory=dict)
    names: dict[int, list[str]] = field(default_factory=dict)
    kept: dict[int, Kept] = field(default_factory=dict)
    failure: Error | None = None

    def take(self, names: Sequence[str]) -> None:
        """Claim the groups of these views, all deferred groups without names. Nothing stays
        claimed when one is refused."""
        remove_leftovers(self.store)
        wanted = self._groups(names)
        self._gather(wanted)
        try:
            for group in wanted:
                self._take(group)
        except Error:
            self.release()
            raise
        if failpoints.armed:
            failpoints.hit("pipeline.claimed")

    def step(self) -> int:
        """Bring every group to what is published now; returns how many batches it took."""
        done = 0
        goal = self.store.position()
        for group in list(self.claims):
            while self.claims[group].start < goal:
                self._batch(group)
                done += 1
        return done

    def release(self) -> None:
        """Give all groups back to the worker."""
        for group, claim in list(self.claims.items()):
            del self.claims[group]
            try:
                self.store.ask("claim_release", claim=list(claim))
            except Unavailable as error:
                if error.sqlstate != TAKEN_OVER:  # somebody else's by now
                    raise

    # -- groups -------------------------------------------------------------------------------

    def _groups(self, names: Sequence[str]) -> list[int]:
        known = self.store.ask("groups")
        self.names = {one["group"]: one["names"] for one in known}
        if not names:
            return list(self.names)
        short = {name: name.rpartition(".")[2] for name in names}
        found = []
        for name, last in short.items():
            group = next((g for g, several in self.names.items() if last in several), None)
            if group is None:
                raise InvalidInput(
                    "no such deferred view",
                    sqlstate="42P01",
                    view=name,
                    hint="ALTER MATERIALIZED VIEW .. SET (maintenance = 'deferred')",
                )
            found.append(group)
        return list(dict.fromkeys(found))

    def _gather(self, wanted: Sequence[int]) -> None:
        """Views that are new, and still beside their group, join it when both are at one position:
        the worker is asked to bring them there. What cannot (it fails) stays with the worker."""
        for _ in range(ATTEMPTS_MAX):
            groups = [one for one in self.store.ask("groups") if one["group"] in wanted]
            late = [
                name
                for one in groups
                if not one["owner"] and len(one["views"]) < len(one["names"])
                for name in one["full_names"]
            ]
            if not late:
                return
            for name in late:
                with contextlib.suppress(Error):
                    self.store.execute(f"REFRESH MATERIALIZED VIEW {name}")

    def _take(self, group: int) -> None:
        arguments = {"group": group, "owner": self.owner, "positions_max": self.positions_max}
        claim = self.claims[group] = Claim(*self.store.ask("claim_take", **arguments))
        self.kept.setdefault(group, Kept(tuple(self.names[group]), claim.start))

    # -- one batch ----------------------------------------------------------------------------

    def _batch(self, group: int) -> None:
        """The next stretch of a group, again when the catalog changed under it."""
        for attempt in range(ATTEMPTS_MAX):
            try:
                self._attempt(group)
                return
            except Error as error:
                if error.sqlstate not in (TAKEN_OVER, CHANGED) or attempt + 1 == ATTEMPTS_MAX:
                    raise
                self._take(group)  # refused when another job holds it

    def _attempt(self, group: int) -> None:
        began = self.clock()
        claim = self.claims[group]
        if claim.start == claim.end:
            renewed = self.store.ask(
                "claim_renew", claim=list(claim), positions_max=self.positions_max
            )
            claim = self.claims[group] = Claim(*renewed)
        additions = self._additions(claim)
        if failpoints.armed:
            failpoints.hit("pipeline.computed")
        moved = self.store.put(
            "claim_advance",
            additions.schema,
            additions.to_batches(),
            claim=list(claim),
            positions_max=self.positions_max,
        )
        self.claims[group] = Claim(*moved)
        if failpoints.armed:
            failpoints.hit("pipeline.applied")
        took = self.clock() - began
        applied = Applied(group, claim.start, claim.end, additions.num_rows, took)
        self.kept[group].note(applied)
        self.progress(applied)

    def _additions(self, claim: Claim) -> pa.Table:
        lease = self.store.lease()
        try:
            objects = encoded_catalog(self.store, lease)
        finally:
            self.store.release(lease)
        members = next(g["views"] for g in self.store.ask("groups") if g["group"] == claim.group)
        if not members or claim.start == claim.end:
            return _table([])
        small = self._is_small(claim)
        inputs = deltas.Inputs(
            self.spark,
            self.store,
            claim.start,
            claim.end,
            tuple(members),
            objects,
            self.definitions,
            1 if small else self.tasks,
        )
        if small:
            return self._made(inputs)
        try:
            return self._made(inputs._replace(columns=True))
        except (InvalidInput, Unsupported):  # a value without a column, or of a row that went again
            return self._made(inputs)

    def _made(self, inputs: deltas.Inputs) -> pa.Table:
        linear = deltas.linear_views(inputs)
        if not deltas.needs_state(inputs, linear):
            return _collected(inputs, linear)
        with checkpoint(self.store) as copy:
            return _collected(inputs._replace(checkpoint=copy), linear)

    def _is_small(self, claim: Claim) -> bool:
        return SMALL_CHANGES > 0 and self.store.reach(claim.start, SMALL_CHANGES) >= claim.end


def _collected(inputs: deltas.Inputs, linear: frozenset[int]) -> pa.Table:
    changes = deltas.changes_of(inputs, share=True)
    try:
        return deltas.build(inputs, linear, changes).toArrow()
    except FAILURES as error:
        raise meaning_of(error) from error
    finally:
        changes.unpersist()


def _table(rows: list[tuple[bytes, bytes]]) -> pa.Table:
    keys, values = zip(*rows) if rows else ((), ())
    return pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})
