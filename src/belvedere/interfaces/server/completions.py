"""CommandComplete: the tag of a statement that is complete, as clients parse it."""

from __future__ import annotations

import functools

from belvedere.interfaces.server.messages import build_message, pack_text

COMPLETIONS_MAX = 10_000
_COUNTED = frozenset({"SELECT", "UPDATE", "DELETE", "COPY", "MOVE"})


@functools.lru_cache(COMPLETIONS_MAX)
def build_completion(tag: str, affected: int, sent: int) -> bytes:
    return build_message(b"C", pack_text(build_tag(tag, affected, sent)))


def build_tag(tag: str, affected: int, sent: int) -> str:
    """The tag of a statement that is complete, as clients parse it."""
    if tag == "INSERT":
        return f"INSERT 0 {affected}"
    if tag == "CREATE TABLE AS":
        return f"SELECT {max(affected, 0)}"
    if tag in ("SELECT", "FETCH"):
        return f"{tag} {sent}"
    return f"{tag} {affected}" if tag in _COUNTED else tag
