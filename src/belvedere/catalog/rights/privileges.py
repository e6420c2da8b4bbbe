"""The privileges there are, as PostgreSQL has them: one letter each.

| letter | privilege | on |
|---|---|---|
| a r w | INSERT SELECT UPDATE | tables, views, columns; r and w: sequences |
| d D x t m | DELETE TRUNCATE REFERENCES TRIGGER MAINTAIN | tables and views; x: columns |
| U C | USAGE CREATE | sequences (U), schemas (both), databases (C) |
| T c | TEMPORARY CONNECT | databases |

An access list is printed as in PostgreSQL: `ann=r*w/bob` is what bob gave ann, who may pass on what
a star follows; nobody before the equals sign is everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from belvedere.catalog.catalog import PUBLIC_ID
from belvedere.catalog.model import (
    PUBLIC_ROLE,
    AnyObject,
    ForeignTable,
    Grant,
    Head,
    PlainView,
    Schema,
    Sequence,
    Table,
    View,
)

LETTERS = {
    "insert": "a",
    "select": "r",
    "update": "w",
    "delete": "d",
    "truncate": "D",
    "references": "x",
    "trigger": "t",
    "usage": "U",
    "create": "C",
    "temporary": "T",
    "temp": "T",
    "connect": "c",
    "maintain": "m",
}
NAMES = {letter: name for name, letter in LETTERS.items() if name != "temp"}
KINDS = {
    "table": "arwdDxtm",
    "sequence": "rwU",
    "schema": "UC",
    "database": "CTc",
    "column": "arwx",
}
"""All privileges on a kind of object, in the order in which they are printed."""
_ORDER = "".join(NAMES)


def classify_object(item: AnyObject) -> str | None:
    """The kind of object that a grant is about; None: it has no privileges of its own."""
    match item:
        case Table() | ForeignTable() | View() | PlainView():
            return "table"
        case Sequence():
            return "sequence"
        case Schema():
            return "schema"
        case Head():
            return "database"
        case _:
            return None


def list_default_grants(kind: str, owner: int, id_: int) -> tuple[Grant, ...]:
    """What an object has that nobody granted anything on."""
    own = Grant(owner, KINDS[kind], "", owner)
    if kind == "database":
        return (Grant(PUBLIC_ROLE, "Tc", "", owner), own)
    if id_ == PUBLIC_ID:
        return (own, Grant(PUBLIC_ROLE, "U", "", owner))
    return (own,)


def sort_letters(letters: Iterable[str]) -> str:
    return "".join(sorted(set(letters), key=_ORDER.index))


def print_grant(grant: Grant, name_role: Callable[[int], str]) -> str:
    """A grant as an item of PostgreSQL's access lists."""
    letters = "".join(
        f"{letter}*" if letter in grant.grantable else letter for letter in grant.privileges
    )
    grantee = "" if grant.grantee == PUBLIC_ROLE else name_role(grant.grantee)
    return f"{_quote_role(grantee)}={letters}/{_quote_role(name_role(grant.grantor))}"


def _quote_role(name: str) -> str:
    plain = all(one.isalnum() or one == "_" for one in name)
    return name if plain else '"' + name.replace('"', '""') + '"'
