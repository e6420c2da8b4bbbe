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
from belvedere.views.maintain import Maintainer
from belvedere.views.tiers import Tiers


class Maintainers(Protocol):
    """The views of a database, as those who maintain them see them."""

    indexes: ParticipantsFor
    tiers: Tiers

    def maintainer(self, catalog: Catalog, view: View) -> Maintainer: ...

    def require_kept(self, catalog: Catalog, plain_views: Sequence[int]) -> None:
        """Refuse a catalog under which a view would no longer be what it is."""
