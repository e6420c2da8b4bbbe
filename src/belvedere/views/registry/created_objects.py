"""The fill of indexes and views that a transaction creates beside its other changes.

They are filled all at once, from a reader that shows the changes: by the commit, and by the
statement that creates them, so that a value which is not unique, or which a view cannot compute,
fails there. Nothing is written before they are whole, so both may be canceled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from belvedere import interrupts
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Index, View
from belvedere.codec import keyspace
from belvedere.errors import InvalidInput
from belvedere.kv.batch import Pair
from belvedere.txn.contracts import Reader, RowChange, Rows
from belvedere.txn.history.derived_rows import DerivedRows
from belvedere.txn.history.readers import OverlayReader
from belvedere.views.indexes.entries import IndexParticipant
from belvedere.views.indexes.unique_view_index import require_unique_index_rows
from belvedere.views.registry.maintainer_provider import MaintainerProvider
from belvedere.views.state.additions import EmptyReader

CHECK_EVERY = 1_000
"""Rows written between two looks whether the statement has to stop."""


class StoppableReader(OverlayReader):
    """Raises between the batches of its scans when the statement has to stop."""

    def scan(
        self,
        start: bytes,
        end: bytes,
        *,
        reverse: bool = False,
        limit: int | None = None,
        batch_rows: int = CHECK_EVERY,
    ) -> Iterator[list[Pair]]:
        for batch in super().scan(start, end, reverse=reverse, limit=limit, batch_rows=batch_rows):
            interrupts.check_statement()
            yield batch


class StoppableWriter(DerivedRows):
    """Raises now and then when the statement has to stop."""

    __slots__ = ()

    def put(self, key: bytes, value: bytes) -> None:
        self._check()
        super().put(key, value)

    def add(self, key: bytes, payload: bytes, amounts: tuple[int, ...]) -> None:
        self._check()
        super().add(key, payload, amounts)

    def _check(self) -> None:
        if not len(self.rows) % CHECK_EVERY:
            interrupts.check_statement()


def compute_created_rows(
    registry: MaintainerProvider, catalog: Catalog, ids: Iterable[int], reader: Reader
) -> Rows:
    """All rows of these indexes and views, which are ready in `catalog`; each may read those of the
    ones before it."""
    rows: Rows = {}
    for id_ in sorted(ids):
        seen = StoppableReader(reader, dict(rows), reader.position, catalog)
        writer = StoppableWriter(EmptyReader(catalog))
        item = catalog.get(id_)
        if isinstance(item, Index):
            _derive_index_entries(registry, item, seen, writer)
        elif isinstance(item, View):
            maintainer = registry.get_view_maintainer(catalog, item)
            try:
                maintainer.backfill_state(seen, writer)
            except InvalidInput as error:
                raise maintainer.build_backfill_error(seen, error) from error
            if item.is_unique:
                nothing = EmptyReader(catalog)
                require_unique_index_rows(OverlayReader(nothing, writer.rows, 0, catalog), item)
        rows.update(writer.rows)
    return rows


def _derive_index_entries(
    registry: MaintainerProvider, index: Index, reader: Reader, writer: DerivedRows
) -> None:
    batches = reader.scan(*keyspace.relation_range(index.table))
    rows = [RowChange(key, None, value) for batch in batches for key, value in batch]
    for participant in registry.indexes(reader.catalog, frozenset([index.table])):
        if isinstance(participant, IndexParticipant) and participant.index_id == index.id:
            participant.writes(rows, EmptyReader(reader.catalog), writer)
