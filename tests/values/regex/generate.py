"""Random regular expressions, LIKE patterns, and texts that they have a chance with."""

from __future__ import annotations

import random

_ATOMS = (
    *("a", "b", "ab", ".", "[ab]", "[^a]", "[a-c]", "[^[:alpha:]]", "c", "é", "ü"),
    *(r"\w", r"\d", r"\s", r"\W", r"\.", "[[:alpha:]]", "[[:space:]b]", "[]a]", "[a-]"),
)
_PLACES = ("^", "$", r"\m", r"\M", r"\y", r"\Y", r"\A", r"\Z", "[[:<:]]", "[[:>:]]")
_LOOKS = ("?=", "?!", "?<=", "?<!")


def make_pattern(rng: random.Random) -> str:
    pattern = _make_part(rng, 0)
    if rng.random() < 0.1:
        return f"(?i){pattern.upper() if pattern.isalpha() else pattern}"
    if rng.random() < 0.1:
        return f"(?n){pattern}"
    return f"({rng.choice('.ab')}){pattern}\\1" if rng.random() < 0.03 else pattern


def _make_part(rng: random.Random, depth: int) -> str:
    def deeper() -> str:
        return _make_part(rng, depth + 1)

    kind = rng.random()
    if depth > 3 or kind < 0.35:
        return rng.choice(_ATOMS)
    if kind < 0.5:
        return deeper() + deeper()
    if kind < 0.65:
        return f"(?:{deeper()})" + rng.choice(["*", "+", "?", "{2}", "{1,2}", "{0,3}", "{2,}"])
    if kind < 0.75:
        return f"({deeper()}|{deeper()})"
    if kind < 0.81:
        return rng.choice(_PLACES) + deeper()
    if kind < 0.86:
        return f"({rng.choice(_LOOKS)}{deeper()}){deeper()}"
    if kind < 0.92:
        return f"({deeper()}){deeper()}"
    if kind < 0.95:
        return f"(?:{deeper()})" + rng.choice(["*?", "+?", "??", "{1,2}?"])
    return rng.choice("ab.") + rng.choice("*+?")


def make_text(rng: random.Random) -> str:
    return "".join(rng.choices("aabbcABé1_ .\n", k=rng.randrange(14)))


def make_like_pattern(rng: random.Random) -> str:
    return "".join(
        rng.choices(["a", "b", "%", "_", "%", "é", "\\", "\\%", "aa"], k=rng.randrange(9))
    )


def make_like_text(rng: random.Random) -> str:
    return "".join(rng.choices("aaabbé%\\\n", k=rng.randrange(12)))
