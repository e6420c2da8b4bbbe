"""Maintain: deferred views follow the log by Structured Streaming.

Spark's stream of the log only wakes the job. Each batch goes on from the watermark, under a claim
(`views.claim`): who holds the group, with which epoch, from where to where. The claim is in the
store before any work, and what a stretch adds is applied with the watermark and the next claim in
one visible step of the owner. So whatever dies, and whenever, every stretch counts exactly once.

    claim (120, 180]  ->  build  ->  advance: additions, watermark 180, claim (180, 240]

One job at a time may use a directory of checkpoints, which also names it: started again with the
same one after a crash, it takes its own claims back. A group that another living job holds is
refused. When it ends in order, the groups go back to the worker of the store's owner.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from belvedere import failpoints
from belvedere.errors import Error, InvalidInput, Unavailable, Unsupported
from belvedere.execution.spark.failures import FAILURES, meaning_of
from belvedere.pipeline import deltas
from belvedere.pipeline.checkpoint import checkpoint, remove_leftovers, work_directory
from belvedere.pipeline.inputs import Definitions, encoded_catalog
from belvedere.pipeline.store import Store
from belvedere.views.claim import Claim

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

POSITIONS_MAX = 100_000
SMALL_CHANGES = 5_000
"""A stretch of no more changes is not worth more than one task, nor Arrow columns."""

ATTEMPTS_MAX = 5
TAKEN_OVER = "55006"
CHANGED = "40001"
_OWNER_FILE = "owner"
_INTERVAL = re.compile(r"(\d{1,9}) *(ms|milliseconds?|s|seconds?|min|minutes?)")
_UNITS = {"ms": "milliseconds", "mil": "milliseconds", "s": "seconds", "sec": "seconds"}


@dataclass(frozen=True, slots=True)
class Applied:
    """One batch: `group` went from `start` to `end`, and this many keys were added to."""

    group: int
    start: int
    end: int
    additions: int
    seconds: float


def summary(batches: Sequence[Applied]) -> tuple[int, int, int, int, int, int]:
    """Group, batches, positions, additions, where it is, and the median time of a batch in ms."""
    times = sorted(one.seconds for one in batches)
    return (
        batches[-1].group,
        len(batches),
        sum(one.end - one.start for one in batches),
        sum(one.additions for one in batches),
        batches[-1].end,
        round(1000 * times[len(times) // 2]),
    )


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
        self.claims[group] = Claim(*self.store.ask("claim_take", **arguments))

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
        self.progress(Applied(group, claim.start, claim.end, additions.num_rows, took))

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


# -- the stream ------------------------------------------------------------------------------------


@contextmanager
def identity(store: Store, directory: Path | None) -> Iterator[tuple[str, Path]]:
    """The name of a job and its directory, for as long as nobody else uses it."""
    place = directory or work_directory(store) / "maintain"
    place.mkdir(parents=True, exist_ok=True)
    file = _locked(place)
    try:
        known = file.read().split()
        which = store.identity().store
        if not known:
            known = [secrets.token_hex(8), which]
            file.write(" ".join(known))
            file.flush()
            os.fsync(file.fileno())
        if known[1] != which:
            raise InvalidInput(
                "checkpoint is of another store",
                sqlstate="22023",
                checkpoint=str(place),
                hint="name another directory with --checkpoint",
            )
        yield f"spark {known[0]}", place
    finally:
        file.close()


def _locked(place: Path) -> IO[str]:
    """The job's file, locked: the lock ends with the process, however it ends."""
    file = (place / _OWNER_FILE).open("a+")
    file.seek(0)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise Unavailable(
            "another job uses this checkpoint",
            sqlstate=TAKEN_OVER,
            checkpoint=str(place),
            hint="stop it first, or name another directory with --checkpoint",
        ) from error
    return file


def run(
    spark: SparkSession,
    store: Store,
    names: Sequence[str],
    definitions: Definitions,
    *,
    once: bool = False,
    trigger: str = "200 ms",
    directory: Path | None = None,
    tasks: int | None = None,
    positions_max: int = POSITIONS_MAX,
    progress: Callable[[Applied], None] = lambda _: None,
    stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Maintain the groups of these views until `stopped`, or (`once`) up to now."""
    every = interval_of(trigger)
    with identity(store, directory) as (owner, place):
        count = tasks or spark.sparkContext.defaultParallelism
        maintainer = Maintainer(spark, store, definitions, owner, count, positions_max, progress)
        maintainer.take(names)
        try:
            for attempt in range(ATTEMPTS_MAX):
                query = start(maintainer, place, once=once, trigger=every)
                if _ended(query, stopped, last=attempt + 1 == ATTEMPTS_MAX):
                    break
        except Error as error:
            raise maintainer.failure or error from error
        finally:
            maintainer.release()


def interval_of(text: str) -> str:
    """How often the log is looked at, as Spark spells it: of '200 ms', '200 milliseconds'."""
    found = _INTERVAL.fullmatch(text.strip())
    if found is None:
        raise InvalidInput(
            "not an interval of time",
            sqlstate="22007",
            hint="such as '200 ms', '5 s' or '1 min'",
            found=text[:80],
        )
    return f"{found[1]} {_UNITS.get(found[2][:3], 'minutes')}"


def start(maintainer: Maintainer, place: Path, *, once: bool, trigger: str) -> StreamingQuery:
    """The stream that wakes the maintainer; its own rows are not looked at."""
    log = maintainer.spark.readStream.format("belvedere")
    log = log.option("database", str(maintainer.store.directory)).option("changes", "*")

    def wake(batch: DataFrame, number: int) -> None:
        try:
            maintainer.step()
        except Error as error:  # Spark would carry its text only
            maintainer.failure = error
            raise

    maintainer.step()  # what was there before the stream knew of it
    writer = log.load().writeStream.foreachBatch(wake)
    writer = writer.option("checkpointLocation", str(place / "stream"))
    chosen = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=trigger)
    return chosen.start()


def _ended(query: StreamingQuery, stopped: Callable[[], bool], *, last: bool) -> bool:
    """Waits for the end. False: the process of the stream's reader did not start in the time that
    Spark gives it, which a busy machine may take; the stream only wakes, so it begins again."""
    try:
        while not stopped():
            if query.awaitTermination(1):
                break
    except FAILURES as error:
        if not last and "failed to connect back" in str(error):
            return False
        raise meaning_of(error) from error
    finally:
        query.stop()
    return True
