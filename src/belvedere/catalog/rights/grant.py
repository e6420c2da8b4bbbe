"""GRANT and REVOKE as changes of a list of grants.

There is one grant for each pair of grantee and grantor. What a role passed on goes with its own
right to pass it on: REVOKE refuses that (2BP01), or revokes it too with CASCADE.
"""

from __future__ import annotations

from collections.abc import Iterable

from belvedere.catalog.model import PUBLIC_ROLE, Grant
from belvedere.catalog.rights.privileges import sort_letters
from belvedere.errors import InvalidInput

Grants = tuple[Grant, ...]


def add_privileges(
    grants: Grants,
    grantor: int,
    grantee: int,
    letters: str,
    *,
    grantable: bool,
    owner: int | None = None,
) -> Grants:
    """With what one role gives another; `owner`, where given, needs no option to give."""
    if grantable and grantee == PUBLIC_ROLE:
        raise InvalidInput("grant options can only be granted to roles", sqlstate="0LP01")
    if grantable and owner is not None and grantor != owner:
        _require_no_circle(grants, grantor, grantee, letters, owner)
    old = _find_grant(grants, grantor, grantee)
    passed_on = old.grantable + (letters if grantable else "")
    new = Grant(grantee, sort_letters(old.privileges + letters), sort_letters(passed_on), grantor)
    return _replace_grant(grants, old, new)


def _require_no_circle(
    grants: Grants, grantor: int, grantee: int, letters: str, owner: int
) -> None:
    """0LP01 when the grantor has his options from the grantee alone."""
    left = grants
    for one in grants:
        if one.grantee == grantee and one.grantable:
            left = remove_privileges(
                left,
                one.grantor,
                grantee,
                one.grantable,
                only_option=True,
                cascade=True,
                owner=owner,
            )
    held = {letter for one in left if one.grantee == grantor for letter in one.grantable}
    if not set(letters) <= held:
        raise InvalidInput(
            "grant options cannot be granted back to your own grantor", sqlstate="0LP01"
        )


def remove_privileges(
    grants: Grants,
    grantor: int,
    grantee: int,
    letters: str,
    *,
    only_option: bool,
    cascade: bool,
    owner: int,
) -> Grants:
    """Without what one role gave another; `only_option`: without the right to pass it on."""
    old = _find_grant(grants, grantor, grantee)
    lost = sort_letters(set(old.grantable) & set(letters))
    privileges = old.privileges if only_option else _without(old.privileges, letters)
    new = Grant(grantee, privileges, _without(old.grantable, letters), grantor)
    grants = _replace_grant(grants, old, new)
    if lost and grantee != owner:
        grants = _remove_dependents(grants, grantee, lost, cascade, owner)
    return grants


def _remove_dependents(
    grants: Grants, grantor: int, letters: str, cascade: bool, owner: int
) -> Grants:
    kept = {letter for one in grants if one.grantee == grantor for letter in one.grantable}
    gone = "".join(letter for letter in letters if letter not in kept)
    for one in grants:
        if one.grantor == grantor and set(one.privileges) & set(gone):
            if not cascade:
                raise InvalidInput(
                    "dependent privileges exist", sqlstate="2BP01", hint="use CASCADE"
                )
            grants = remove_privileges(
                grants, grantor, one.grantee, gone, only_option=False, cascade=True, owner=owner
            )
    return grants


def _find_grant(grants: Grants, grantor: int, grantee: int) -> Grant:
    for one in grants:
        if one.grantor == grantor and one.grantee == grantee:
            return one
    return Grant(grantee, "", "", grantor)


def _replace_grant(grants: Grants, old: Grant, new: Grant) -> Grants:
    """In the place that it had; one without privileges goes."""
    changed = [new if one is old else one for one in grants]
    if old not in grants:
        changed.append(new)
    return tuple(one for one in changed if one.privileges)


def _without(letters: str, gone: Iterable[str]) -> str:
    return "".join(one for one in letters if one not in gone)
