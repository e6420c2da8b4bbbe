"""The registry of all verbs, by name."""

from __future__ import annotations

from belvedere.interfaces.verbs import (
    advise,
    copies,
    sessions,
    statements,
    store,
    streams,
    subscriptions,
)
from belvedere.interfaces.verbs.maintain import backfill, maintenance_verbs
from belvedere.interfaces.verbs.peer import Verb
from belvedere.interfaces.verbs.read import changes, read_verbs, view_changes
from belvedere.interfaces.verbs.write import write_verbs

VERBS: dict[str, Verb] = {
    **advise.VERBS,
    **store.VERBS,
    **read_verbs.VERBS,
    **changes.VERBS,
    **view_changes.VERBS,
    **statements.VERBS,
    **sessions.VERBS,
    **subscriptions.VERBS,
    **streams.VERBS,
    **copies.VERBS,
    **write_verbs.VERBS,
    **maintenance_verbs.VERBS,
    **backfill.VERBS,
}
