"""Changes in, rows of a view's state out: the one maintenance function, for every driver.

Immediate maintenance calls it in the commit section with one transaction's changes; the deferred
worker with the changes of a stretch of the log. The rows that the view's tree gives for them are
grouped, and what each group changes by goes to the Writer as an addition. A change that touches no
column the view uses adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from belvedere import failpoints
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.catalog.relation import compiled_view
from belvedere.codec import keyspace
from belvedere.txn.border import LockRequest, ParticipantsFor, Reader, RowChange, Writer
from belvedere.types import Row
from belvedere.views.compile import Compiled
from belvedere.views.grouping import entries, entry_function
from belvedere.views.linear import Amounts
from belvedere.views.quick import Quick
from belvedere.views.source import Step, Weighted
from belvedere.views.sources import source_of

PREFIX = keyspace.ROW_PREFIX_BYTES
Additions = dict[bytes, tuple[bytes, Amounts]]


class Maintainer:
    """Maintains one view. Holds no state between calls; also the view's commit participant."""

    checks = False  # a view refuses nothing

    def __init__(
        self, catalog: Catalog, view: View, compiled: Compiled, indexes: ParticipantsFor
    ) -> None:
        self._source = source_of(catalog, compiled.tree)
        self._stored = compiled_view(catalog, view.id)
        self._entry_of = entry_function(catalog, compiled.group)
        self._quick = Quick(catalog, compiled.tree, compiled.group)
        self._indexes = indexes

    # -- as a participant ---------------------------------------------------------------------

    def locks(self, changes: Sequence[RowChange], reader: Reader) -> Iterable[LockRequest]:
        """Additions commute: nothing is locked."""
        return ()

    def check(self, changes: Sequence[RowChange], reader: Reader) -> None:
        """A view refuses nothing."""

    def writes(
        self,
        changes: Sequence[RowChange],
        reader: Reader,
        writer: Writer,
        after: Reader | None = None,
    ) -> None:
        """Add what the changes add; `reader` shows the state before them, `after`, where it is
        known already, the state after them."""
        if len(changes) == 1 and not failpoints.armed:
            legs = self._quick.legs.get(changes[0].key[:PREFIX], ())
            if len(legs) == 1 and changes[0].old is None:  # most writes: one row comes
                entry = legs[0].comes(changes[0], reader.get)
                if entry is not None:
                    group, amounts = entry
                    key = self._stored.key.encode(group)
                    writer.add(key, self._stored.payload.encode(group), amounts)
                return
        self._add(self._delta(changes, reader, after), writer)
        if failpoints.armed and failpoints.planted("view_delta_twice"):
            self._add(self._delta(changes, reader, after), writer)

    # -- the work -----------------------------------------------------------------------------

    def fill(self, reader: Reader, writer: Writer) -> None:
        """Add all there is at `reader` to an empty state."""
        rows = ((row, 1) for row in self._source.whole(reader))
        self._add(entries(self._entry_of, rows), writer)

    @property
    def reads_state(self) -> bool:
        """Whether a delta needs rows beside the changed ones."""
        return self._source.reads_state

    def rows(self, changes: Sequence[RowChange], reader: Reader) -> Weighted:
        """The delta itself, before it is grouped: for people."""
        return self._source.delta(Step(changes, reader, self._indexes))

    def _delta(
        self, changes: Sequence[RowChange], reader: Reader, after: Reader | None
    ) -> Iterator[tuple[Row, Amounts, int]]:
        if self._quick.covers(changes):
            return self._quick.entries(changes, reader.get)
        step = Step(changes, reader, self._indexes, after)
        return entries(self._entry_of, self._source.delta(step))

    def _add(self, found: Iterator[tuple[Row, Amounts, int]], writer: Writer) -> None:
        additions: Additions = {}
        encode_key, encode_row = self._stored.key.encode, self._stored.payload.encode
        for group, amounts, weight in found:
            if failpoints.armed and failpoints.planted("view_null_group_dropped"):
                if None in group:
                    continue
            key = encode_key(group)
            known = additions.get(key)
            if known is None:
                signed = amounts if weight == 1 else tuple([weight * one for one in amounts])
                additions[key] = (encode_row(group), signed)
            else:
                payload, sums = known
                summed = tuple([s + weight * amount for s, amount in zip(sums, amounts)])
                additions[key] = (payload, summed)
        for key, (payload, amounts) in additions.items():
            if any(amounts):
                writer.add(key, payload, amounts)
