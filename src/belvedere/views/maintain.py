"""Changes in, rows of a view's state out: the one maintenance function, for every driver.

Immediate maintenance calls it in the commit section with one transaction's changes; the deferred
worker with the changes of a stretch of the log. The rows that the view's tree gives for them are
grouped, and what each group changes by goes to the Writer as an addition. A change that touches no
column the view uses adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from belvedere import failpoints
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.catalog.relation import compiled_view
from belvedere.execution.direct.compile import compile_plan
from belvedere.execution.direct.context import Context
from belvedere.execution.run import Interrupt, Run
from belvedere.txn.border import LockRequest, ParticipantsFor, Reader, RowChange, Writer
from belvedere.types import Row
from belvedere.views.compile import Compiled, Group
from belvedere.views.linear import Amounts
from belvedere.views.source import ENVIRONMENT, NO_SERVICES, Step, Weighted
from belvedere.views.sources import source_of

Additions = dict[bytes, tuple[bytes, Amounts]]


class Maintainer:
    """Maintains one view. Holds no state between calls; also the view's commit participant."""

    def __init__(
        self, catalog: Catalog, view: View, compiled: Compiled, indexes: ParticipantsFor
    ) -> None:
        self._source = source_of(catalog, compiled.tree)
        self._stored = compiled_view(catalog, view.id)
        self._grouping = _grouping(catalog, compiled.group)
        self._indexes = indexes

    # -- as a participant ---------------------------------------------------------------------

    def locks(self, changes: Sequence[RowChange], reader: Reader) -> Iterable[LockRequest]:
        """Additions commute: nothing is locked."""
        return ()

    def check(self, changes: Sequence[RowChange], reader: Reader) -> None:
        """A view refuses nothing."""

    def writes(self, changes: Sequence[RowChange], reader: Reader, writer: Writer) -> None:
        """Add what the changes add; `reader` shows the state before them."""
        step = Step(changes, reader, self._indexes)
        self._add(self._source.delta(step), reader, writer)
        if failpoints.armed and failpoints.planted("view_delta_twice"):
            self._add(self._source.delta(step), reader, writer)

    # -- the work -----------------------------------------------------------------------------

    def fill(self, reader: Reader, writer: Writer) -> None:
        """Add all there is at `reader` to an empty state."""
        self._add(((row, 1) for row in self._source.whole(reader)), reader, writer)

    @property
    def reads_state(self) -> bool:
        """Whether a delta needs rows beside the changed ones."""
        return self._source.reads_state

    def _add(self, rows: Weighted, reader: Reader, writer: Writer) -> None:
        additions: Additions = {}
        encode_key, encode_row = self._stored.key.encode, self._stored.payload.encode
        for group, amounts, weight in self._grouping(reader, rows):
            if failpoints.armed and failpoints.planted("view_null_group_dropped"):
                if None in group:
                    continue
            key = encode_key(group)
            known = additions.get(key)
            if known is None:
                signed = tuple([weight * amount for amount in amounts])
                additions[key] = (encode_row(group), signed)
            else:
                payload, sums = known
                summed = tuple([s + weight * amount for s, amount in zip(sums, amounts)])
                additions[key] = (payload, summed)
        for key, (payload, amounts) in additions.items():
            if any(amounts):
                writer.add(key, payload, amounts)


Grouping = Callable[[Reader, Weighted], Iterator[tuple[Row, Amounts, int]]]


def _grouping(catalog: Catalog, group: Group | None) -> Grouping:
    """Rows of the tree to (stored columns, amounts, weight)."""
    if group is None:
        one = (1,)
        return lambda reader, rows: ((row, one, weight) for row, weight in rows)
    context = Context(catalog, lambda node: compile_plan(catalog, node))
    group_of = context.tuple_of(group.groups)
    arguments = [context.tuple_of(call.arguments) for call in group.calls]
    filters = [None if c.filter is None else context.truth_of(c.filter) for c in group.calls]

    def grouped(reader: Reader, rows: Weighted) -> Iterator[tuple[Row, Amounts, int]]:
        run = Run(reader, (), ENVIRONMENT, NO_SERVICES, Interrupt())
        of_row = group_of(run)
        steps = [
            (given(run), kept and kept(run), keep.amounts)
            for given, kept, keep in zip(arguments, filters, group.keeps)
        ]
        for row, weight in rows:
            amounts: Amounts = (1,)
            for given, kept, amounts_of in steps:
                if kept is not None and not kept(row):
                    amounts += (0,) * len(amounts_of(None))
                else:
                    values = given(row)
                    amounts += amounts_of(values[0] if values else True)
            yield of_row(row), amounts, weight

    return grouped
