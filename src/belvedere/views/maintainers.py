"""What maintenance needs of whoever knows the views of a database.

The registry itself (`views.keep`) takes part in catalog changes by `views.flip`, so that the code
below it cannot import it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.txn.border import ParticipantsFor
from belvedere.views.maintain import ViewMaintainer
from belvedere.views.tiers import TierSelector


class Maintainers(Protocol):
    """The views of a database, as those who maintain them see them."""

    indexes: ParticipantsFor
    tiers: TierSelector

    def maintainer_for(self, catalog: Catalog, view: View) -> ViewMaintainer: ...

    def require_views_unchanged(self, catalog: Catalog, plain_views: Sequence[int]) -> None:
        """Refuse a catalog under which a view would no longer be what it is."""
