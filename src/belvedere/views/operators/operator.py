"""Delta operators: a tree's weighted row changes in one step, and its rows at a state.

A step is a set of changes with the state before and after them. Every operator gives the inserted
rows (positive weight) and the deleted ones (negative weight); the same row may be given several
times, and the consumer adds up the weights. An operator also gives its rows with some keys at a
state: operators above it read the unchanged rows by that.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from belvedere.catalog.catalog import Catalog
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.python.context import CompileContext, row_keys
from belvedere.kv.batch import Write
from belvedere.plan import nodes as n
from belvedere.plan.fields import Field
from belvedere.txn.contracts import Participant, ParticipantsFor, Reader, RowChange, Writer
from belvedere.txn.history.derived_rows import DerivedRows
from belvedere.txn.history.readers import NewestReader, OverlayReader
from belvedere.types import Row
from belvedere.views.delta.linear_core import Expressions
from belvedere.views.delta.sessionless_run import make_run_with_reader

WeightedRows = Iterator[tuple[Row, int]]
KeyLookup = Callable[[Reader, list[Row]], Iterable[Row]]
"""A look-up of the rows at a state whose keys are among these, computed lazily. Keys are given once
each; a NULL finds NULLs."""


class DeltaStep:
    """Changes, the state before them, and the state after them, which is computed on demand."""

    def __init__(
        self,
        changes: Sequence[RowChange],
        before: Reader,
        indexes: ParticipantsFor,
        after: Reader | None = None,
        derived: DerivationCache | None = None,
    ) -> None:
        self.changes = changes
        self.before = before
        self.relations = frozenset([change.relation for change in changes])
        self.prunes_foreign_keys = isinstance(
            before, NewestReader
        )  # a commit's own state, constraints hold
        self._indexes = indexes
        self._after = after
        self._derived = derived

    @property
    def after(self) -> Reader:
        if self._after is None:
            derived = self._derived or DerivationCache(self.changes, self.before)
            self._after = derived.build_state_after(self._indexes)
        return self._after

    def split_by_relation(self) -> Iterator[DeltaStep]:
        """The same changes, one table after the other, each on the state after the previous one."""
        before = self.before
        for relation in sorted(self.relations):
            mine = [change for change in self.changes if change.relation == relation]
            step = DeltaStep(mine, before, self._indexes)
            yield step
            before = step.after


class DerivationCache:
    """A cache of the rows of indexes and auxiliary views that one step changes. Those of an
    auxiliary view are computed once, however many others depend on it: without that, each further
    one in a chain of them would double the work. `sums` holds, by view, the view's maintainer and
    the amounts that the step adds."""

    def __init__(self, changes: Sequence[RowChange], before: Reader) -> None:
        self.changes = changes
        self.before = before
        self.sums: dict[int, tuple[object, dict[Row, list[int]]]] = {}
        self._relations = frozenset([change.relation for change in changes])
        self._known: dict[int, tuple[Participant, list[Write]]] = {}

    def build_state_after(self, indexes: ParticipantsFor) -> Reader:
        """The tables and the rows that these participants derive from them, after the step."""
        before = self.before
        overlay: dict[bytes, bytes | None] = {change.key: change.new for change in self.changes}
        for participant in indexes(before.catalog, self._relations):
            overlay.update(self._get_derived_rows(participant))
        return OverlayReader(before, overlay, before.position, before.catalog)

    def _get_derived_rows(self, participant: Participant) -> list[Write]:
        known = self._known.get(id(participant))
        if known is None:
            writer = DerivedRows(self.before)
            beside: _WritesWithCache | None = getattr(
                participant, "write_additions_from_cache", None
            )
            if beside is not None:
                beside(self.changes, self.before, writer, self)
            else:
                participant.writes(self.changes, self.before, writer)
            known = self._known[id(participant)] = (participant, writer.writes())
        return known[1]


def get_derivation_cache(
    changes: Sequence[RowChange], before: Reader, writer: Writer
) -> DerivationCache:
    """The cache of this step's derived rows, shared by all participants of one commit."""
    known = writer.shared_results.get(DerivationCache)
    if isinstance(known, DerivationCache) and known.changes is changes and known.before is before:
        return known
    made = writer.shared_results[DerivationCache] = DerivationCache(changes, before)
    return made


_WritesWithCache = Callable[[Sequence[RowChange], Reader, Writer, DerivationCache], None]
"""`writes` of a participant that takes the rows derived by others from the step's cache."""


class DeltaOperator(Protocol):
    @property
    def reads_state(self) -> bool:
        """Whether a delta needs more than the changed rows themselves."""

    def compute_delta(self, step: DeltaStep) -> WeightedRows: ...

    def compute_all_rows(self, reader: Reader) -> Iterator[Row]:
        """All rows at a state, from which a backfill starts."""

    def build_key_lookup(self, keys: Expressions) -> KeyLookup:
        """A look-up of rows by these keys, which are expressions over the operator's rows."""


class KeyExtractor:
    """Extracts the keys of rows, each once: equal keys with different representations (NaN, blanks,
    intervals) count as one."""

    def __init__(self, catalog: Catalog, keys: Expressions) -> None:
        context = CompileContext(catalog, lambda node: compile_plan(catalog, node))
        self._bind_key = context.tuple_of(keys)
        self.fields = tuple(Field(f"key {i}", key.type) for i, key in enumerate(keys))
        self.canonical = row_keys(self.fields)

    def bind_key_function(self, reader: Reader) -> Callable[[Row], Row]:
        return self._bind_key(make_run_with_reader(reader))

    def extract_distinct_keys(self, rows: Iterable[Row], reader: Reader) -> list[Row]:
        of_row, canonical = self.bind_key_function(reader), self.canonical
        found: dict[Row, Row] = {}
        for row in rows:
            key = of_row(row)
            found.setdefault(canonical(key), key)
        return list(found.values())


def build_full_scan_lookup(catalog: Catalog, source: DeltaOperator, keys: Expressions) -> KeyLookup:
    """A look-up of the rows with these keys by a scan of all rows."""
    known = KeyExtractor(catalog, keys)

    def look_up_rows(reader: Reader, wanted: list[Row]) -> list[Row]:
        of_row, canonical = known.bind_key_function(reader), known.canonical
        among = {canonical(key) for key in wanted}
        return [row for row in source.compute_all_rows(reader) if canonical(of_row(row)) in among]

    return look_up_rows


def group_rows_by_weight(rows: WeightedRows) -> dict[int, list[Row]]:
    """Rows under their weight; the same row given twice stays twice."""
    found: dict[int, list[Row]] = {}
    for row, weight in rows:
        found.setdefault(weight, []).append(row)
    return found


def build_input_leaf(number: int, node: n.Node) -> n.Changes:
    """A leaf in place of a node: its rows are given when the plan is run."""
    return n.Changes(number, "rows", (), node.fields)


def chain_rows(parts: Iterator[Iterator[Row]]) -> Iterator[Row]:
    return itertools.chain.from_iterable(parts)
