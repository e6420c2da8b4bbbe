"""The fill of indexes and views that a transaction creates beside its other changes.

They are filled all at once, from a reader that shows the changes: by the commit, and by the
statement that creates them, so that a value which is not unique, or which a view cannot compute,
fails there.
"""

from __future__ import annotations

from collections.abc import Iterable

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Index, View
from belvedere.codec import keyspace
from belvedere.errors import InvalidInput
from belvedere.txn.contracts import Reader, RowChange, Rows
from belvedere.txn.history.derived_rows import DerivedRows
from belvedere.txn.history.readers import OverlayReader
from belvedere.views.indexes.entries import IndexParticipant
from belvedere.views.indexes.unique_view_index import require_unique_index_rows
from belvedere.views.registry.maintainer_provider import MaintainerProvider
from belvedere.views.state.additions import EmptyReader


def backfill_created_objects(
    registry: MaintainerProvider, catalog: Catalog, ids: Iterable[int], reader: Reader
) -> Rows:
    """All rows of these indexes and views, which are ready in `catalog`; each may read those of the
    ones before it."""
    rows: Rows = {}
    for id_ in sorted(ids):
        seen = OverlayReader(reader, dict(rows), reader.position, catalog)
        writer = DerivedRows(EmptyReader(catalog))
        item = catalog.get(id_)
        if isinstance(item, Index):
            _backfill_index(registry, item, seen, writer)
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


def _backfill_index(
    registry: MaintainerProvider, index: Index, reader: Reader, writer: DerivedRows
) -> None:
    batches = reader.scan(*keyspace.relation_range(index.table))
    rows = [RowChange(key, None, value) for batch in batches for key, value in batch]
    for participant in registry.indexes(reader.catalog, frozenset([index.table])):
        if isinstance(participant, IndexParticipant) and participant.index_id == index.id:
            participant.writes(rows, EmptyReader(reader.catalog), writer)
