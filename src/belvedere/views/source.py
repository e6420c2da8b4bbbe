"""Running a tree: the weighted rows by which it changed in one step, and its rows at a state.

A step is a set of changes with the state before and after them. Every source gives the rows that
came (positive weight) and went (negative weight); the same row may be given several times, and what
cancels is for the consumer to add up. A source also gives its rows with certain keys at a state:
that is how operators above it look at what did not change.
"""

from __future__ import annotations

import datetime
import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from belvedere.catalog.catalog import Catalog
from belvedere.execution.direct.compile import compile_plan
from belvedere.execution.direct.context import Context, row_keys
from belvedere.execution.run import Interrupt, Rows, Run, Services
from belvedere.kv.batch import Write
from belvedere.plan import nodes as n
from belvedere.plan.fields import Field
from belvedere.plan.functions.function import Environment
from belvedere.txn.border import Participant, ParticipantsFor, Reader, RowChange, Writer
from belvedere.txn.commit.derived import DerivedRows
from belvedere.txn.history.readers import NewestReader, OverlayReader
from belvedere.types import Row
from belvedere.views.core import Expressions

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
ENVIRONMENT = Environment(_EPOCH, _EPOCH, lambda: _EPOCH, random.Random(0))

Weighted = Iterator[tuple[Row, int]]
Restricted = Callable[[Reader, list[Row]], Iterable[Row]]
"""Rows at a state whose keys are among these, made as they are asked for. Keys are given once each;
a NULL finds NULLs."""


class Step:
    """Changes, the state before them, and (made when asked for) the state after them."""

    def __init__(
        self,
        changes: Sequence[RowChange],
        before: Reader,
        indexes: ParticipantsFor,
        after: Reader | None = None,
        derived: Derived | None = None,
    ) -> None:
        self.changes = changes
        self.before = before
        self.relations = frozenset([change.relation for change in changes])
        self.prunes = isinstance(before, NewestReader)  # a commit's own state, constraints hold
        self._indexes = indexes
        self._after = after
        self._derived = derived

    @property
    def after(self) -> Reader:
        if self._after is None:
            derived = self._derived or Derived(self.changes, self.before)
            self._after = derived.state(self._indexes)
        return self._after

    def by_relation(self) -> Iterator[Step]:
        """The same changes, one table after the other, each on what those before it left."""
        before = self.before
        for relation in sorted(self.relations):
            mine = [change for change in self.changes if change.relation == relation]
            step = Step(mine, before, self._indexes)
            yield step
            before = step.after


class Derived:
    """The rows of indexes and auxiliary views that one step changes. Those of an auxiliary view are
    worked out once, however many others stand on it: without that, each one more in a chain of
    them would double the work. `sums` holds what each view is changed by, beside the view's
    maintainer."""

    def __init__(self, changes: Sequence[RowChange], before: Reader) -> None:
        self.changes = changes
        self.before = before
        self.sums: dict[int, tuple[object, dict[Row, list[int]]]] = {}
        self._relations = frozenset([change.relation for change in changes])
        self._known: dict[int, tuple[Participant, list[Write]]] = {}

    def state(self, indexes: ParticipantsFor) -> Reader:
        """Tables, and what these derive from them, after the step."""
        before = self.before
        overlay: dict[bytes, bytes | None] = {change.key: change.new for change in self.changes}
        for participant in indexes(before.catalog, self._relations):
            overlay.update(self._rows(participant))
        return OverlayReader(before, overlay, before.position, before.catalog)

    def _rows(self, participant: Participant) -> list[Write]:
        known = self._known.get(id(participant))
        if known is None:
            writer = DerivedRows(self.before)
            beside: _WritesBeside | None = getattr(participant, "writes_beside", None)
            if beside is not None:
                beside(self.changes, self.before, writer, self)
            else:
                participant.writes(self.changes, self.before, writer)
            known = self._known[id(participant)] = (participant, writer.writes())
        return known[1]


def derived_beside(changes: Sequence[RowChange], before: Reader, writer: Writer) -> Derived:
    """What is derived in this step, the same for all participants of one commit."""
    known = writer.shared.get(Derived)
    if isinstance(known, Derived) and known.changes is changes and known.before is before:
        return known
    made = writer.shared[Derived] = Derived(changes, before)
    return made


_WritesBeside = Callable[[Sequence[RowChange], Reader, Writer, Derived], None]
"""`writes` of a participant that reads what others derive, which it asks of the step."""


class Source(Protocol):
    @property
    def reads_state(self) -> bool:
        """Whether a delta needs more than the changed rows themselves."""

    def delta(self, step: Step) -> Weighted: ...

    def whole(self, reader: Reader) -> Iterator[Row]:
        """All rows at a state: what a backfill starts from."""

    def restricted(self, keys: Expressions) -> Restricted:
        """How to find rows by these keys, which are over the source's rows."""


NEVER = Interrupt()
"""Nobody stops maintenance: what it began it must finish."""


def run_plan(rows: Rows, reader: Reader, deltas: dict[int, list[Row]]) -> Iterator[Row]:
    run = Run(reader, (), ENVIRONMENT, NO_SERVICES, NEVER)
    run.deltas = deltas
    return rows(run)


def bare_run(reader: Reader) -> Run:
    return Run(reader, (), ENVIRONMENT, NO_SERVICES, NEVER)


def nothing_run() -> Run:
    """For expressions that ask nothing of a run but the row."""
    nothing: Reader = None  # type: ignore[assignment]
    return bare_run(nothing)


class Keys:
    """The keys of rows, each once: equal keys that look different (NaN, blanks, intervals) are
    one."""

    def __init__(self, catalog: Catalog, keys: Expressions) -> None:
        context = Context(catalog, lambda node: compile_plan(catalog, node))
        self._of = context.tuple_of(keys)
        self.fields = tuple(Field(f"key {i}", key.type) for i, key in enumerate(keys))
        self.canonical = row_keys(self.fields)

    def of_row(self, reader: Reader) -> Callable[[Row], Row]:
        return self._of(bare_run(reader))

    def distinct(self, rows: Iterable[Row], reader: Reader) -> list[Row]:
        of_row, canonical = self.of_row(reader), self.canonical
        found: dict[Row, Row] = {}
        for row in rows:
            key = of_row(row)
            found.setdefault(canonical(key), key)
        return list(found.values())


def filtered(catalog: Catalog, source: Source, keys: Expressions) -> Restricted:
    """The rows with these keys by going through all there are."""
    known = Keys(catalog, keys)

    def rows(reader: Reader, wanted: list[Row]) -> list[Row]:
        of_row, canonical = known.of_row(reader), known.canonical
        among = {canonical(key) for key in wanted}
        return [row for row in source.whole(reader) if canonical(of_row(row)) in among]

    return rows


def by_weight(rows: Weighted) -> dict[int, list[Row]]:
    """Rows under their weight; the same row given twice stays twice."""
    found: dict[int, list[Row]] = {}
    for row, weight in rows:
        found.setdefault(weight, []).append(row)
    return found


def leaf(number: int, node: n.Node) -> n.Changes:
    """A leaf that takes the place of a node: its rows are given when the plan is run."""
    return n.Changes(number, "rows", (), node.fields)


def chained(parts: Iterator[Iterator[Row]]) -> Iterator[Row]:
    return itertools.chain.from_iterable(parts)


class _NoServices:
    """A view's definition asks nothing of a session; the compiler has seen to it."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"a view asked for {name}")


NO_SERVICES: Services = _NoServices()  # type: ignore[assignment]
