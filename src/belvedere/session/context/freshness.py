"""Freshness of a read: 'any', 'session', 'latest', '250 ms', or a token of another session.

Base tables of an embedded store are always read at the newest published position, so freshness
matters to them only as a floor (a token); views read it in full. On a store that other processes
write too, tables are read at a position of the last moments, unless the newest is asked for.
"""

from __future__ import annotations

import enum
import functools
from typing import NamedTuple

from belvedere.errors import InvalidInput
from belvedere.values.durations import parse_duration_us

_TOKEN_CHARACTERS_MIN = 40


class FreshnessKind(enum.StrEnum):
    ANY = "any"
    SESSION = "session"
    LATEST = "latest"
    BOUNDED = "bounded"
    TOKEN = "token"


class Freshness(NamedTuple):
    kind: FreshnessKind
    bound_us: int = 0
    token: str = ""

    @property
    def wants_newest(self) -> bool:
        """Whether what other processes have committed must not be missed."""
        return self.kind in (FreshnessKind.LATEST, FreshnessKind.BOUNDED)


SESSION = Freshness(FreshnessKind.SESSION)


@functools.lru_cache(maxsize=64)
def parse_freshness(text: str) -> Freshness:
    word = text.strip()
    if word.lower() in ("any", "session", "latest"):
        return Freshness(FreshnessKind(word.lower()))
    bound_us = parse_duration_us(word)
    if bound_us is not None:
        return Freshness(FreshnessKind.BOUNDED, bound_us)
    if len(word) >= _TOKEN_CHARACTERS_MIN and " " not in word:
        return Freshness(FreshnessKind.TOKEN, token=word)
    raise InvalidInput(
        "invalid freshness",
        sqlstate="22023",
        text=text,
        hint="use any, session, latest, a duration such as '250 ms', or a token",
    )
