"""Base tables as of any position still in the log: the newest rows, undone by the log.

Every record holds the old rows of its changes, so the first old row of a key after position p is
the key's row at p. Only base tables and the catalog can be read so: rows of indexes and views are
not logged, and asking for them is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog, empty_catalog
from belvedere.codec import keyspace
from belvedere.codec.record import LogRecord
from belvedere.errors import Unsupported
from belvedere.txn.contracts import Reader
from belvedere.txn.history.readers import OverlayReader, ReaderWrapper


def before_images(records: Iterable[LogRecord]) -> dict[bytes, bytes | None]:
    """What every key changed by these records (in order) was before them."""
    before: dict[bytes, bytes | None] = {}
    prefixes: dict[int, bytes] = {}
    for record in records:
        for relation, key, old, _ in record.changes():
            prefix = prefixes.get(relation)
            if prefix is None:
                prefix = prefixes[relation] = keyspace.row_prefix(relation)
            before.setdefault(prefix + key, old)
    return before


def catalog_before(catalog: Catalog, before: dict[bytes, bytes | None]) -> Catalog:
    """The catalog as it was before the catalog changes among `before`."""
    prefix = keyspace.row_prefix(model.CATALOG_RELATION)
    changed: dict[int, model.AnyObject | None] = {}
    new_store = empty_catalog()
    for key, old in before.items():
        if key.startswith(prefix):
            id_ = int.from_bytes(key[-8:]) - 2**63
            changed[id_] = new_store.get(id_) if old is None else model.decode(old)
    return catalog.with_objects(changed) if changed else catalog


class PastReader(ReaderWrapper):
    """A reader of base tables at a past position."""

    def __init__(self, newest: Reader, records: Iterable[LogRecord], position: int) -> None:
        before = before_images(records)
        catalog = catalog_before(newest.catalog, before)
        super().__init__(OverlayReader(newest, before, position, catalog))

    def get(self, key: bytes) -> bytes | None:
        self._require_base(key)
        return super().get(key)

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.get(key) for key in keys]

    def _scanned_range(self, start: bytes, end: bytes) -> tuple[bytes, bytes]:
        self._require_base(start)
        return start, end

    def _require_base(self, key: bytes) -> None:
        item = self.catalog.get(int.from_bytes(key[1:5]))
        if isinstance(item, model.Index | model.View):
            raise Unsupported(
                "index or view as of a past position",
                hint="read the base tables at that position",
                name=item.name,
            )
