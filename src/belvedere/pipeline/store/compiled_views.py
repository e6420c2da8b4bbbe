"""The compiled views of a catalog, cached in each process: the driver and every Python worker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.errors import Corruption
from belvedere.pipeline.store.tables import DefinitionCompiler, decode_catalog
from belvedere.txn.contracts import Participant, Reader
from belvedere.views.compile.compile_view import MaintenancePlan
from belvedere.views.indexes.entries import build_index_participants
from belvedere.views.maintain.maintainer import ViewMaintainer
from belvedere.views.registry.view_registry import ViewRegistry


class CompiledViews:
    """The compiled views of a catalog and their maintainers. A Python worker caches it between
    tasks."""

    def __init__(self, catalog: Catalog, definitions: DefinitionCompiler) -> None:
        self.catalog = catalog
        self._definitions = definitions
        self._view_registry = ViewRegistry(definitions.bind, self.build_plain_index_participants)
        self.indexes = self._view_registry.indexes
        self.changes_only_reader: Reader = _ChangesOnlyReader(catalog)

    def build_plain_index_participants(
        self, catalog: Catalog, relations: frozenset[int]
    ) -> tuple[Participant, ...]:
        """The participants that derive indexes only, without auxiliary views."""
        return build_index_participants(catalog, relations, self._definitions.compile_expression)

    def require_views_by_id(self, ids: Sequence[int]) -> list[View]:
        found = [self.catalog.get(id_) for id_ in ids]
        if not all(isinstance(one, View) for one in found):
            raise Corruption("a view is not in the catalog of its batch", ids=list(ids))
        return [one for one in found if isinstance(one, View)]

    def get_view_maintainer(self, view: View) -> ViewMaintainer:
        return self._view_registry.get_view_maintainer(self.catalog, view)

    def get_maintenance_plan(self, view: View) -> MaintenancePlan:
        """The compiled form of the view, from which its state is maintained."""
        return self._view_registry.get_maintenance_plan(self.catalog, view)


@lru_cache(maxsize=4)
def get_compiled_views(
    objects: tuple[bytes, ...], definitions: DefinitionCompiler
) -> CompiledViews:
    return CompiledViews(decode_catalog(objects), definitions)


class _ChangesOnlyReader:
    """The reader for views that need only their changes: any read is a bug, and raises."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.position = 0

    def get(self, key: bytes) -> bytes | None:
        raise AssertionError("a view that needs no state looked at a row")

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        raise AssertionError("a view that needs no state looked at rows")

    def scan(self, start: bytes, end: bytes, **_: object) -> Iterator[list[tuple[bytes, bytes]]]:
        raise AssertionError("a view that needs no state looked at a range")

    def scan_values(self, start: bytes, end: bytes, **_: object) -> Iterator[list[bytes]]:
        raise AssertionError("a view that needs no state looked at a range")
