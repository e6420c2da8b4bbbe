"""Driver of maintenance groups on Spark: claims groups of deferred views and advances them.

A claim (`views.state.claims`) names the owner of the group, an epoch, and the positions from and
to. It is in the store before any work, and the owner of the store applies the additions of a log
range with the watermark and the next claim in one atomic step. So, whichever process dies at
whatever moment, every range counts exactly once.

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
from belvedere.execution.spark.failures import FAILURES, translate_failure
from belvedere.pipeline.maintain import batch
from belvedere.pipeline.store.client import Store
from belvedere.pipeline.store.store_copy import hold_store_copy, remove_copies_of_ended_jobs
from belvedere.pipeline.store.tables import DefinitionCompiler, fetch_encoded_catalog
from belvedere.views.state.claims import Claim

POSITIONS_MAX = 100_000
SMALL_CHANGES = 5_000
"""A log range of at most so many changes runs in one task, without Arrow columns."""

ATTEMPTS_MAX = 5
TAKEN_OVER = "55006"
CHANGED = "40001"
RECENT = 1_000
"""The number of batches whose durations are kept."""


@dataclass(frozen=True, slots=True)
class AppliedBatch:
    """An applied batch: it advanced `group` from `start` to `end` and added to `additions` keys."""

    group: int
    start: int
    end: int
    additions: int
    seconds: float


@dataclass(slots=True)
class GroupProgress:
    """Progress of a group, by the names of its views, since it was claimed."""

    views: tuple[str, ...]
    at: int
    batches: int = 0
    positions: int = 0
    additions: int = 0
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))

    def record_applied_batch(self, one: AppliedBatch) -> None:
        self.batches += 1
        self.positions += one.end - one.start
        self.additions += one.additions
        self.at = one.end
        self.recent.append(one.seconds)

    @property
    def median_batch_ms(self) -> int | None:
        """The median duration of the recent batches."""
        times = sorted(self.recent)
        return round(1000 * times[len(times) // 2]) if times else None


@dataclass(slots=True)
class GroupDriver:
    """Claims groups and advances them batch by batch. Lives in Spark's driver process."""

    spark: SparkSession
    store: Store
    definitions: DefinitionCompiler
    owner: str
    tasks: int
    positions_max: int = POSITIONS_MAX
    progress: Callable[[AppliedBatch], None] = lambda _: None
    clock: Callable[[], float] = time.monotonic
    claims: dict[int, Claim] = field(default_factory=dict)
    names: dict[int, list[str]] = field(default_factory=dict)
    group_progress: dict[int, GroupProgress] = field(default_factory=dict)
    failure: Error | None = None

    def claim_groups(self, names: Sequence[str]) -> None:
        """Claim the groups of these views, or all deferred groups without names. When one is
        refused, none stays claimed."""
        remove_copies_of_ended_jobs(self.store)
        wanted = self._find_groups_of_views(names)
        self._attach_new_views(wanted)
        try:
            for group in wanted:
                self._claim_group(group)
        except Error:
            self.release_groups()
            raise
        if failpoints.armed:
            failpoints.hit("pipeline.claimed")

    def advance_groups(self) -> int:
        """Advance every group to the newest position of now; returns the number of batches."""
        done = 0
        goal = self.store.position()
        for group in list(self.claims):
            while self.claims[group].start < goal:
                self._advance_group_with_retries(group)
                done += 1
        return done

    def release_groups(self) -> None:
        """Release all claims, so that the worker maintains the groups again."""
        for group, claim in list(self.claims.items()):
            del self.claims[group]
            try:
                self.store.call_owner_verb("claim_release", claim=list(claim))
            except Unavailable as error:
                if error.sqlstate != TAKEN_OVER:  # another job's by now
                    raise

    # -- groups -------------------------------------------------------------------------------

    def _find_groups_of_views(self, names: Sequence[str]) -> list[int]:
        known = self.store.call_owner_verb("groups")
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

    def _attach_new_views(self, wanted: Sequence[int]) -> None:
        """Make the worker attach new views that are still detached from their group: it advances
        them until both are at one position. A view for which this fails stays with the worker."""
        for _ in range(ATTEMPTS_MAX):
            groups = [one for one in self.store.call_owner_verb("groups") if one["group"] in wanted]
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

    def _claim_group(self, group: int) -> None:
        arguments = {"group": group, "owner": self.owner, "positions_max": self.positions_max}
        claim = self.claims[group] = Claim(*self.store.call_owner_verb("claim_take", **arguments))
        self.group_progress.setdefault(group, GroupProgress(tuple(self.names[group]), claim.start))

    # -- one batch ----------------------------------------------------------------------------

    def _advance_group_with_retries(self, group: int) -> None:
        """Process the next log range of a group; retry when the catalog changed meanwhile."""
        for attempt in range(ATTEMPTS_MAX):
            try:
                self._compute_and_apply_batch(group)
                return
            except Error as error:
                if error.sqlstate not in (TAKEN_OVER, CHANGED) or attempt + 1 == ATTEMPTS_MAX:
                    raise
                self._claim_group(group)  # refused when another job holds it

    def _compute_and_apply_batch(self, group: int) -> None:
        began = self.clock()
        claim = self.claims[group]
        if claim.start == claim.end:
            renewed = self.store.call_owner_verb(
                "claim_renew", claim=list(claim), positions_max=self.positions_max
            )
            claim = self.claims[group] = Claim(*renewed)
        additions = self._compute_claim_additions(claim)
        if failpoints.armed:
            failpoints.hit("pipeline.computed")
        moved = self.store.send_verb_batches(
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
        applied = AppliedBatch(group, claim.start, claim.end, additions.num_rows, took)
        self.group_progress[group].record_applied_batch(applied)
        self.progress(applied)

    def _compute_claim_additions(self, claim: Claim) -> pa.Table:
        lease = self.store.take_position_lease()
        try:
            objects = fetch_encoded_catalog(self.store, lease)
        finally:
            self.store.release_position_lease(lease)
        members = next(
            g["views"] for g in self.store.call_owner_verb("groups") if g["group"] == claim.group
        )
        if not members or claim.start == claim.end:
            return _build_additions_table([])
        small = self._is_small_log_range(claim)
        inputs = batch.BatchInputs(
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
            return self._compute_batch_additions(inputs)
        try:
            return self._compute_batch_additions(inputs._replace(columns=True))
        except (InvalidInput, Unsupported):  # a value without a carrier, or of a row deleted since
            return self._compute_batch_additions(inputs)

    def _compute_batch_additions(self, inputs: batch.BatchInputs) -> pa.Table:
        linear = batch.choose_views_summed_in_columns(inputs)
        if not batch.needs_unchanged_rows(inputs, linear):
            return _run_additions_job(inputs, linear)
        with hold_store_copy(self.store) as copy:
            return _run_additions_job(inputs._replace(checkpoint=copy), linear)

    def _is_small_log_range(self, claim: Claim) -> bool:
        return (
            SMALL_CHANGES > 0
            and self.store.last_position_within_rows(claim.start, SMALL_CHANGES) >= claim.end
        )


def _run_additions_job(inputs: batch.BatchInputs, linear: frozenset[int]) -> pa.Table:
    changes = batch.create_change_frames(inputs, share=True)
    try:
        return batch.build_additions_frame(inputs, linear, changes).toArrow()
    except FAILURES as error:
        raise translate_failure(error) from error
    finally:
        changes.unpersist_change_frames()


def _build_additions_table(rows: list[tuple[bytes, bytes]]) -> pa.Table:
    keys, values = zip(*rows) if rows else ((), ())
    return pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})
