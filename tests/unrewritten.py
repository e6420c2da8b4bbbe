"""Sessions whose queries are answered from the tables they name: what a view is compared with."""

from __future__ import annotations

from belvedere.session.context.shared_state import SharedState
from belvedere.session.session import Session


def make_unrewritten_session(shared: SharedState) -> Session:
    session = Session(shared)
    session.settings.set("rewrite", "off")
    return session
