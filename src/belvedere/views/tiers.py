"""The choice of the tier that computes a batch of a deferred view: Python or DuckDB.

Sizes decide. A change costs Python microseconds and nothing else; DuckDB (`views.large`) takes some
milliseconds for a statement and next to nothing for a row:

    python    changes x the cost of one, by the kind of the view
    duckdb    a statement for old rows and one for new, and the rows of the tables these are joined
              with
    refill    a statement, the rows of all the view's tables, and its stored state; where all views
              of a batch are refilled, the log does not even have to be decoded

The cheapest is taken (`views.cost_model`), by what the batches of this process have shown
(`views.costs`). `SET maintenance_tier` asks for one of them, which is taken where it is possible: a
view says in EXPLAIN, and after a batch in `belvedere.views`, what was done and why.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from belvedere.catalog.model import View
from belvedere.execution.duck.engine import DuckEngine
from belvedere.txn.border import Reader, RowChange
from belvedere.txn.commit.derived import DerivedRows
from belvedere.views import cost_model
from belvedere.views.additions import Nothing, Recorder, differences
from belvedere.views.cost_model import (
    ADDED_CHANGE_S,
    estimate_change_s,
    estimate_refill_s,
    estimate_sums_s,
)
from belvedere.views.costs import Costs
from belvedere.views.maintain import Maintainer
from belvedere.views.sizes import Sizes, Span
from belvedere.views.tree import Core, Tree, inputs_of
from belvedere.views.way import Way

CHANGES_MIN = 5_000
"""Fewer changes are computed in Python, without estimating costs."""

ROWS_MAX = 5_000_000
"""The most table rows that are read for a batch: DuckDB gets them as columns in memory."""

STATE_COUNTED_MAX = 5_000
"""A count of state entries stops here: a view with so many may have as many as its tables rows."""

CLOSED = "DuckDB is not open"


class Choice(NamedTuple):
    """The tier chosen for a batch. `seconds` is its expected time on the machine of the
    constants."""

    way: Way
    reason: str
    seconds: float = 0.0


class Tiers:
    """Chooses and runs tiers for an open store. Knows the DuckDB engine, once one is attached;
    estimated row counts of relations; and the tier that was set (None: the cheapest)."""

    def __init__(self) -> None:
        self.engine: DuckEngine | None = None
        self.sizes = Sizes()
        self.wanted: Way | None = None
        self.costs = Costs()
        self._users = 0
        self._unused = threading.Condition()

    def attach(self, engine: DuckEngine, rows_of: Callable[[int], float]) -> None:
        self.engine, self.sizes.count = engine, rows_of

    def detach(self) -> None:
        """Stop using DuckDB; returns when its last use has ended."""
        with self._unused:
            self.engine = None
            self._unused.wait_for(lambda: not self._users)

    @contextmanager
    def _using(self) -> Iterator[DuckEngine | None]:
        with self._unused:
            engine = self.engine
            self._users += 1
        try:
            yield engine
        finally:
            with self._unused:
                self._users -= 1
                self._unused.notify_all()

    def refusal(self, maintainer: Maintainer) -> str | None:
        """Why DuckDB cannot compute a view's batches; None: it can."""
        if self.engine is None:
            return CLOSED
        return maintainer.large.refused

    # -- choosing -----------------------------------------------------------------------------

    @property
    def refills_at_least(self) -> float:
        """With fewer logged changes than this no view is refilled."""
        if self.engine is None or self.wanted not in (None, Way.REFILL):
            return math.inf
        return CHANGES_MIN if self.wanted is None else 1

    def refills_not_below(self, view: View, maintainer: Maintainer, span: Span) -> float:
        """With fewer logged changes than this the view is not refilled, however small it and its
        tables are, which nobody has asked yet."""
        return self._refills_from(view, maintainer, estimate_refill_s(0, 0))

    def refills_from(self, view: View, maintainer: Maintainer, span: Span) -> float:
        """From how many logged changes on a refill is cheaper than decoding them."""
        return self._refills_from(view, maintainer, self._refill_s(view, maintainer, span))

    def _refills_from(self, view: View, maintainer: Maintainer, seconds: float) -> float:
        least = self.refills_at_least
        if least == math.inf or self.refusal(maintainer) is not None:
            return math.inf
        if self.wanted is Way.REFILL:
            return least
        expected = self.costs.expected
        each = expected(view.id, Way.PYTHON, cost_model.DECODE_S) + min(
            expected(view.id, Way.PYTHON, estimate_change_s(maintainer.tree)),
            expected(view.id, Way.DUCKDB, ADDED_CHANGE_S if maintainer.large.sums else math.inf),
        )
        return max(least, expected(view.id, Way.REFILL, seconds) / each)

    def choose(
        self,
        view: View,
        maintainer: Maintainer,
        changes: Sequence[RowChange],
        span: Span,
        *,
        at_end: bool,
    ) -> Choice:
        """Choose the tier of a batch. `at_end`: the tables can be read as they are after these
        changes."""
        count = len(changes)
        seconds = count * estimate_change_s(maintainer.tree)
        if self.wanted is Way.PYTHON:
            return Choice(Way.PYTHON, "set maintenance_tier = python", seconds)
        if self.wanted is None and count < CHANGES_MIN:
            return Choice(Way.PYTHON, _changes(count), seconds)
        refused = self.refusal(maintainer)
        if refused is not None:
            return Choice(Way.PYTHON, f"{_changes(count)}; {refused}", seconds)
        costs = self._costs(view, maintainer, changes, span, at_end=at_end)
        if self.wanted is not None:
            asked = [self.wanted, *(way for way in (Way.DUCKDB, Way.REFILL) if way in costs)]
            way = next((way for way in asked if way in costs), Way.PYTHON)
            return Choice(way, f"set maintenance_tier = {self.wanted}", costs[way])
        here = {way: self.costs.expected(view.id, way, cost) for way, cost in costs.items()}
        way = min(here, key=lambda one: here[one])
        for other in here.keys() - {way}:
            self.costs.passed_over(view.id, other)
        shown = ", ".join(f"{way} {cost * 1e3:.0f} ms" for way, cost in here.items())
        return Choice(way, f"{_changes(count)}: {shown}", costs[way])

    def _costs(
        self,
        view: View,
        maintainer: Maintainer,
        changes: Sequence[RowChange],
        span: Span,
        *,
        at_end: bool,
    ) -> dict[Way, float]:
        """The estimated seconds of each possible tier, on the machine of the constants. Relations
        are not counted for a batch that is computed faster than they could be counted."""
        count, expected = len(changes), self.costs.expected
        costs = {Way.PYTHON: count * estimate_change_s(maintainer.tree)}
        shortest = min(
            expected(view.id, way, cost_model.STATEMENT_S) for way in (Way.DUCKDB, Way.REFILL)
        )
        if self.wanted is None and expected(view.id, Way.PYTHON, costs[Way.PYTHON]) <= shortest:
            return costs
        if maintainer.large.sums and maintainer.takes_singly(changes):
            others = set(view.inputs) - {change.relation for change in changes[:1]}
            rows = self._rows(others, span) if _has_partners(maintainer.tree) else 0
            costs[Way.DUCKDB] = estimate_sums_s(count, rows)
        if at_end:
            costs[Way.REFILL] = self._refill_s(view, maintainer, span)
        return {way: cost for way, cost in costs.items() if cost < math.inf}

    def _rows(self, relations: Iterable[int], span: Span) -> float:
        """About how many rows these relations have; infinitely many when they are more than
        ROWS_MAX, unless a tier was set."""
        rows = sum(self.sizes.table(relation, span) for relation in relations)
        return rows if rows <= ROWS_MAX or self.wanted is not None else math.inf

    def _refill_s(self, view: View, maintainer: Maintainer, span: Span) -> float:
        rows = self._rows(inputs_of(maintainer.tree), span)
        stored = self.sizes.state(view.id)
        if stored >= STATE_COUNTED_MAX:
            stored = max(stored, rows)
        return estimate_refill_s(rows, stored)

    def explained(self, view: View, maintainer: Maintainer, position: int) -> str:
        """One line of EXPLAIN: which tier computes batches of a view that begin at a position."""
        if self.wanted is not None:
            return f"batches: {self.wanted} where it can be, set maintenance_tier"
        refused = self.refusal(maintainer)
        if refused is not None:
            return f"batches: Python: {refused}"
        parts = []
        if maintainer.large.sums:
            expected = self.costs.expected
            python_s = expected(view.id, Way.PYTHON, estimate_change_s(maintainer.tree))
            gain_s = python_s - expected(view.id, Way.DUCKDB, ADDED_CHANGE_S)
            least = expected(view.id, Way.DUCKDB, estimate_sums_s(0, 0)) / max(gain_s, 1e-9)
            parts.append(f"added up by DuckDB from about {max(CHANGES_MIN, least):.0f} changes on")
        whole = self.refills_from(view, maintainer, Span(position, position))
        if whole < math.inf:
            parts.append(f"computed anew by DuckDB from about {whole:.0f} on")
        return "; ".join(["batches: Python", *([", ".join(parts)] if parts else [])])

    # -- computing ----------------------------------------------------------------------------

    def work_out(
        self,
        view: View,
        maintainer: Maintainer,
        changes: Sequence[RowChange],
        before: Reader,
        reader: Reader,
        recorder: Recorder,
        span: Span,
        *,
        at_end: bool,
    ) -> Choice:
        """Record what the changes add, by the tier chosen; `before` is the state before them, or
        `reader` where that is not needed."""
        choice = self.choose(view, maintainer, changes, span, at_end=at_end)
        started = time.perf_counter()
        refused = self._by_duckdb(choice, view, maintainer, changes, reader, recorder, span)
        if refused is not None:
            seconds = len(changes) * estimate_change_s(maintainer.tree)
            choice = Choice(Way.PYTHON, f"{_changes(len(changes))}; {refused}", seconds)
            started = time.perf_counter()
        if choice.way is Way.PYTHON:
            after = reader if before is not reader else None
            maintainer.writes(changes, before, recorder, after=after)
        if choice.way is not Way.REFILL:  # a refill records its own cost
            taken = time.perf_counter() - started
            self.costs.note(view.id, choice.way, choice.seconds, taken, len(changes))
        return choice

    def _by_duckdb(
        self,
        choice: Choice,
        view: View,
        maintainer: Maintainer,
        changes: Sequence[RowChange],
        reader: Reader,
        recorder: Recorder,
        span: Span,
    ) -> str | None:
        """Record the same by DuckDB, if that was chosen; returns why DuckDB could not."""
        if choice.way is Way.REFILL:
            return self.refill(view, maintainer, reader, recorder, len(changes), span)
        if choice.way is Way.DUCKDB:
            with self._using() as engine:
                found = maintainer.large.summed(engine, changes, reader) if engine else CLOSED
            if isinstance(found, str):
                return found
            maintainer.write_sums(found, recorder)
        return None

    def refill(
        self,
        view: View,
        maintainer: Maintainer,
        reader: Reader,
        recorder: Recorder,
        changes: int,
        span: Span,
    ) -> str | None:
        """Record the additions that turn the stored state into what the tables at `reader` give,
        after so many changes; returns why that was not possible."""
        started = time.perf_counter()
        with self._using() as engine:
            found = maintainer.large.whole(engine, reader) if engine else CLOSED
        if isinstance(found, str):
            return found
        wanted = DerivedRows(Nothing(reader.catalog))
        maintainer.write_sums(found, wanted)
        recorder.additions += differences(reader, view, dict(wanted.writes()))
        taken = time.perf_counter() - started
        seconds = self._refill_s(view, maintainer, span)
        self.costs.note(view.id, Way.REFILL, seconds, taken, changes)
        return None


def _changes(count: int) -> str:
    return f"{count} change{'' if count == 1 else 's'}"


def _has_partners(tree: Tree) -> bool:
    return not isinstance(tree, Core) or any(len(b.leaves) > 1 for b in tree.branches)
