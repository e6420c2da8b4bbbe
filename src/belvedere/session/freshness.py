"""How fresh a read must be: 'any', 'session', 'latest', '250 ms', or a token from elsewhere.

Base tables are always read at the newest published position, so freshness matters to them only as a
floor (a token); views read it in full.
"""

from __future__ import annotations

import enum
import re
from typing import NamedTuple

from belvedere.errors import InvalidInput

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|min|h|d)\s*")
_UNITS_US = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
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


SESSION = Freshness(FreshnessKind.SESSION)


def parse_freshness(text: str) -> Freshness:
    word = text.strip()
    if word.lower() in ("any", "session", "latest"):
        return Freshness(FreshnessKind(word.lower()))
    found = _DURATION.fullmatch(word)
    if found is not None:
        return Freshness(FreshnessKind.BOUNDED, int(float(found[1]) * _UNITS_US[found[2]]))
    if len(word) >= _TOKEN_CHARACTERS_MIN and " " not in word:
        return Freshness(FreshnessKind.TOKEN, token=word)
    raise InvalidInput(
        "invalid freshness",
        sqlstate="22023",
        text=text,
        hint="use any, session, latest, a duration such as '250 ms', or a token",
    )
