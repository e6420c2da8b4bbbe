"""The registry of all verbs, by name."""

from __future__ import annotations

from belvedere.interfaces.verbs import (
    changes,
    filling,
    maintenance,
    reads,
    state,
    statements,
    view_changes,
    writes,
)
from belvedere.interfaces.verbs.serving import Verb

VERBS: dict[str, Verb] = {
    **state.VERBS,
    **reads.VERBS,
    **changes.VERBS,
    **view_changes.VERBS,
    **statements.VERBS,
    **writes.VERBS,
    **maintenance.VERBS,
    **filling.VERBS,
}
