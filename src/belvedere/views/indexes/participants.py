"""The participants of a commit other than views: indexes and foreign keys."""

from __future__ import annotations

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import CATALOG_RELATION
from belvedere.txn.contracts import Participant
from belvedere.txn.transaction import foreign_keys
from belvedere.views.indexes.entries import CompileExpression, build_index_participants

_CATALOG_ONLY = frozenset([CATALOG_RELATION])


def build_non_view_participants(
    catalog: Catalog, relations: frozenset[int], compile_expression: CompileExpression
) -> tuple[Participant, ...]:
    """The participants of a commit that changes these relations, cached per catalog."""
    if relations == _CATALOG_ONLY:
        return ()
    memo_key = ("participants", relations)
    found = catalog.derived_cache.get(memo_key)
    if found is None:
        found = catalog.derived_cache[memo_key] = (
            *build_index_participants(catalog, relations, compile_expression),
            *foreign_keys.foreign_key_participants(catalog, relations),
        )
    return found  # type: ignore[return-value]
