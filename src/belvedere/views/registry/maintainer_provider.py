"""What maintenance requires of the registry of views.

The registry itself (`views.registry.view_registry`) imports `views.registry.transitions` and the
code that maintains views, so these cannot import it and use this contract.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.txn.contracts import ParticipantsFor
from belvedere.views.cost.tier_selector import TierSelector
from belvedere.views.maintain.maintainer import ViewMaintainer


class MaintainerProvider(Protocol):
    """The views of a database, as those who maintain them see them."""

    indexes: ParticipantsFor
    tiers: TierSelector

    def get_view_maintainer(self, catalog: Catalog, view: View) -> ViewMaintainer: ...

    def require_view_meaning_unchanged(self, catalog: Catalog, plain_views: Sequence[int]) -> None:
        """Refuse a catalog under which a view would no longer be what it is."""
