"""Changes in, rows of a view's state out: the one maintenance function, for every driver.

Immediate maintenance calls it in the commit section with one transaction's changes; the deferred
worker with the changes of a stretch of the log; backfill with every row as an insertion. The core
is run over the old rows and over the new rows; the difference goes to the Writer as additions.

A change that touches no column the view uses adds nothing and costs one comparison.
"""

from __future__ import annotations

import datetime
import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.catalog.relation import compiled_table, compiled_view
from belvedere.execution.direct.compile import compile_plan
from belvedere.execution.direct.context import Context
from belvedere.execution.run import Interrupt, Rows, Run, Services
from belvedere.plan.functions.function import Environment
from belvedere.txn.border import LockRequest, Reader, RowChange, Writer
from belvedere.types import Row
from belvedere.views.compile import Compiled, Group
from belvedere.views.core import Leaf
from belvedere.views.delta import Term, changes_leaf, terms_of, whole_plans
from belvedere.views.linear import Amounts

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
ENVIRONMENT = Environment(_EPOCH, _EPOCH, lambda: _EPOCH, random.Random(0))

Additions = dict[bytes, tuple[bytes, Amounts]]


class Maintainer:
    """Maintains one view. Holds no state between calls; also the view's commit participant."""

    def __init__(self, catalog: Catalog, view: View, compiled: Compiled) -> None:
        self._leaves = [
            [(leaf.relation, _projector(catalog, leaf)) for leaf in branch.leaves]
            for branch in compiled.branches
        ]
        terms, self.wishes = terms_of(compiled.branches, compiled.core_fields, catalog)
        self._terms: list[tuple[Term, Rows]] = [
            (term, compile_plan(catalog, term.plan)) for term in terms
        ]
        self._compiled, self._catalog = compiled, catalog
        self._stored = compiled_view(catalog, view.id)
        self._grouping = _grouping(catalog, compiled.group)

    # -- as a participant ---------------------------------------------------------------------

    def locks(self, changes: Sequence[RowChange], reader: Reader) -> Iterable[LockRequest]:
        """Additions commute: nothing is locked."""
        return ()

    def check(self, changes: Sequence[RowChange], reader: Reader) -> None:
        """A view refuses nothing."""

    def writes(self, changes: Sequence[RowChange], reader: Reader, writer: Writer) -> None:
        """Add what the changes add; `reader` shows the state before them."""
        sides = [[_sides(changes, *leaf) for leaf in leaves] for leaves in self._leaves]
        additions: Additions = {}
        for term, rows in self._terms:
            chosen = [(number, sides[term.branch][number]) for number in term.changed]
            if all(both[0] or both[1] for _, both in chosen):
                self._run_term(additions, rows, chosen, reader)
        for key, (payload, amounts) in additions.items():
            if any(amounts):
                writer.add(key, payload, amounts)

    def fill(self, reader: Reader, writer: Writer) -> None:
        """Add all there is at `reader` to an empty state."""
        additions: Additions = {}
        compiled, catalog = self._compiled, self._catalog
        for plan in whole_plans(compiled.branches, compiled.core_fields, catalog):
            self._accumulate(additions, compile_plan(catalog, plan), {}, reader, 1)
        for key, (payload, amounts) in additions.items():
            writer.add(key, payload, amounts)

    @property
    def reads_state(self) -> bool:
        """Whether a delta needs rows beside the changed ones: whether there are joins."""
        return any(len(leaves) > 1 for leaves in self._leaves)

    # -- the work -----------------------------------------------------------------------------

    def _run_term(
        self,
        additions: Additions,
        rows: Rows,
        chosen: list[tuple[int, Sides]],
        reader: Reader,
    ) -> None:
        """Every combination of old (weight -1) and new (weight +1) rows of the changed leaves."""
        for signs in itertools.product((-1, 1), repeat=len(chosen)):
            deltas = {
                changes_leaf(number): both[sign > 0] for (number, both), sign in zip(chosen, signs)
            }
            if all(deltas.values()):
                self._accumulate(additions, rows, deltas, reader, math.prod(signs))

    def _accumulate(
        self,
        additions: Additions,
        rows: Rows,
        deltas: dict[int, list[Row]],
        reader: Reader,
        sign: int,
    ) -> None:
        run = Run(reader, (), ENVIRONMENT, NO_SERVICES, Interrupt())
        run.deltas = deltas
        encode_key, encode_row = self._stored.key.encode, self._stored.payload.encode
        for group, amounts in self._grouping(run, rows(run)):
            key = encode_key(group)
            known = additions.get(key)
            if known is None:
                signed = tuple([sign * amount for amount in amounts])
                additions[key] = (encode_row(group), signed)
            else:
                payload, sums = known
                summed = tuple([s + sign * amount for s, amount in zip(sums, amounts)])
                additions[key] = (payload, summed)


Sides = tuple[list[Row], list[Row]]
"""Old and new rows of a leaf."""


def _projector(catalog: Catalog, leaf: Leaf) -> Callable[[bytes], Row]:
    return compiled_table(catalog, leaf.relation).layout.projector(leaf.slots)


def _sides(changes: Sequence[RowChange], relation: int, project: Callable[[bytes], Row]) -> Sides:
    """The rows of the changes as a leaf sees them, as far as it sees a difference."""
    removed: list[Row] = []
    added: list[Row] = []
    for change in changes:
        if change.relation == relation:
            old = None if change.old is None else project(change.old)
            new = None if change.new is None else project(change.new)
            if old != new:
                if old is not None:
                    removed.append(old)
                if new is not None:
                    added.append(new)
    return removed, added


Grouping = Callable[[Run, Iterator[Row]], Iterator[tuple[Row, Amounts]]]


def _grouping(catalog: Catalog, group: Group | None) -> Grouping:
    """Core rows to (stored columns, amounts)."""
    if group is None:
        one = (1,)
        return lambda run, rows: ((row, one) for row in rows)
    context = Context(catalog, lambda node: compile_plan(catalog, node))
    group_of = context.tuple_of(group.groups)
    arguments = [context.tuple_of(call.arguments) for call in group.calls]
    filters = [None if c.filter is None else context.truth_of(c.filter) for c in group.calls]

    def grouped(run: Run, rows: Iterator[Row]) -> Iterator[tuple[Row, Amounts]]:
        of_row = group_of(run)
        steps = [
            (given(run), kept and kept(run), keep.amounts)
            for given, kept, keep in zip(arguments, filters, group.keeps)
        ]
        for row in rows:
            amounts: Amounts = (1,)
            for given, kept, amounts_of in steps:
                if kept is not None and not kept(row):
                    amounts += (0,) * len(amounts_of(None))
                else:
                    values = given(row)
                    amounts += amounts_of(values[0] if values else True)
            yield of_row(row), amounts

    return grouped


class _NoServices:
    """A view's definition asks nothing of a session; the compiler has seen to it."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"a view asked for {name}")


NO_SERVICES: Services = _NoServices()  # type: ignore[assignment]
