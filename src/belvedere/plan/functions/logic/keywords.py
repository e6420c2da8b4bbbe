"""pg_get_keywords: the words of PostgreSQL's grammar, from the list in `keywords.txt`."""

from __future__ import annotations

import functools
import importlib.resources

from belvedere.plan.functions.core.function import Function, FunctionKind, Volatility, scalar
from belvedere.types import BOOLEAN, TEXT, Row

KEYWORD_COLUMNS = (
    ("word", TEXT),
    ("catcode", TEXT),
    ("barelabel", BOOLEAN),
    ("catdesc", TEXT),
    ("baredesc", TEXT),
)
_CATEGORIES = {
    "U": "unreserved",
    "C": "unreserved (cannot be function or type name)",
    "T": "reserved (can be function or type name)",
    "R": "reserved",
}
_STABLE = Volatility.STABLE
_LABELS = {"bare": "can be bare label", "as": "requires AS"}


@functools.cache
def list_keywords() -> list[Row]:
    file = importlib.resources.files("belvedere.plan.functions.logic") / "keywords.txt"
    found: list[Row] = []
    entries = file.read_text().partition("\n")[2].replace("\n    ", " ").strip().split("\n")
    for entry in entries:
        head, _, words = entry.partition(":")
        category, label = head.split()
        told = (category, label == "bare", _CATEGORIES[category], _LABELS[label])
        found += [(word, *told) for word in words.split()]
    return sorted(found)


FUNCTIONS: tuple[Function, ...] = (
    scalar("pg_get_keywords() record", list_keywords, kind=FunctionKind.SET, volatility=_STABLE),
)
