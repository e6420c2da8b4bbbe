"""The table of verbs: all that can be asked of an open store."""

from __future__ import annotations

from belvedere.interfaces.verbs import changes, maintenance, reads, state, statements, writes
from belvedere.interfaces.verbs.serving import Verb

VERBS: dict[str, Verb] = {
    **state.VERBS,
    **reads.VERBS,
    **changes.VERBS,
    **statements.VERBS,
    **writes.VERBS,
    **maintenance.VERBS,
}
