"""What one role may do under one catalog.

A role has the rights of the roles that it is a member of and inherits from, those of PUBLIC, and
every right on what it or one of those roles owns. A superuser has every right.

Computed once for each role and version of the catalog: a GRANT makes a new catalog.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import (
    HEAD_ID,
    PUBLIC_ROLE,
    AnyObject,
    Grant,
    Index,
    Membership,
    Sequence,
    View,
    ViewKind,
)
from belvedere.catalog.rights import builtin_roles
from belvedere.catalog.rights.builtin_roles import get_role
from belvedere.catalog.rights.privileges import KINDS, classify_object, list_default_grants


def find_role_rights(catalog: Catalog, role: int) -> RoleRights:
    key = ("role rights", role)
    found = catalog.derived_cache.get(key)
    if not isinstance(found, RoleRights):
        found = catalog.derived_cache[key] = RoleRights(catalog, role)
    return found


def find_object_owner(catalog: Catalog, item: AnyObject) -> int:
    """The owner of an object; an index and the sequence of a column are their
    table's or view's owner's."""
    if isinstance(item, Index):
        return catalog.find_owner(item.table)
    if isinstance(item, Sequence) and item.owner is not None:
        return catalog.find_owner(item.owner)
    if isinstance(item, View) and item.kind is not ViewKind.USER:
        return catalog.find_owner((*item.reads, *item.inputs)[0])
    return catalog.find_owner(item.id)


def list_grants(catalog: Catalog, item: AnyObject) -> tuple[Grant, ...]:
    """Who may use an object, by what was granted or by default."""
    kind = classify_object(item)
    if kind is None:
        return ()
    found = catalog.access_lists.get(item.id)
    if found is None or found.grants is None:
        return list_default_grants(kind, find_object_owner(catalog, item), item.id)
    return found.grants


class RoleRights:
    def __init__(self, catalog: Catalog, role: int) -> None:
        self._catalog = catalog
        self._role = get_role(catalog, role)
        self.id = role
        self.superuser = self._role is not None and self._role.superuser
        self._letters: dict[int, str] = {}
        self._column_letters: dict[tuple[int, int], str] = {}

    @cached_property
    def roles(self) -> frozenset[int]:
        """The role itself, those whose rights it has, and PUBLIC; none for a dropped role."""
        if self._role is None:
            return frozenset()
        found = find_memberships(self._catalog, self.id, lambda one: one.inherits)
        return found | {self.id, PUBLIC_ROLE}

    # -- roles --------------------------------------------------------------------------------

    def has_role(self, role: int) -> bool:
        """Whether it has the rights of that role."""
        return self.superuser or role in self.roles

    def can_set_role(self, role: int) -> bool:
        if self.superuser or role == self.id:
            return True
        return role in find_memberships(self._catalog, self.id, lambda one: one.sets)

    def is_member(self, role: int) -> bool:
        """Whether it is a member of that role, with its rights or without."""
        if self.superuser or role == self.id:
            return True
        return role in find_memberships(self._catalog, self.id, lambda one: True)

    def administers(self, role: int) -> bool:
        """Whether it may change that role and make others members of it."""
        if self.superuser:
            return True
        for held in self.roles - {PUBLIC_ROLE}:
            found = get_role(self._catalog, held)
            if found and any(one.role == role and one.admin for one in found.memberships):
                return True
        return False

    @property
    def creates_roles(self) -> bool:
        return self.superuser or (self._role is not None and self._role.create_role)

    # -- objects ------------------------------------------------------------------------------

    def owns(self, item: AnyObject) -> bool:
        return self.superuser or find_object_owner(self._catalog, item) in self.roles

    def has(self, item: AnyObject, letter: str) -> bool:
        """Whether it has a privilege on the whole object."""
        return self.superuser or letter in self.find_letters(item)

    def has_on_column(self, item: AnyObject, letter: str, slot: int) -> bool:
        return self.has(item, letter) or letter in self._find_column_letters(item, slot)

    def has_on_any_column(self, item: AnyObject, letter: str) -> bool:
        if self.has(item, letter):
            return True
        slots = self.list_granted_columns(item)
        return any(letter in self._find_column_letters(item, slot) for slot in slots)

    def list_granted_columns(self, item: AnyObject) -> tuple[int, ...]:
        """The slots of columns on which anybody was granted anything."""
        found = self._catalog.access_lists.get(item.id)
        return () if found is None else tuple(found.column_grants)

    def has_any(self, item: AnyObject) -> bool:
        """Whether it has any privilege on the object or a column of it."""
        if self.superuser or self.find_letters(item):
            return True
        return any(self.has_on_any_column(item, letter) for letter in KINDS["column"])

    def uses_schema(self, schema: int) -> bool:
        item = self._catalog.get(schema)
        return item is None or self.has(item, "U")

    @property
    def creates_in_database(self) -> bool:
        return self.has(self._catalog.objects[HEAD_ID], "C")

    def find_letters(self, item: AnyObject, slot: int | None = None) -> str:
        """The privileges it has on the whole object, and on a column."""
        known = self._letters.get(item.id)
        if known is None:
            known = self._letters[item.id] = self._collect_letters(item)
        return known if slot is None else known + self._find_column_letters(item, slot)

    def find_grantable(self, item: AnyObject, slot: int | None = None) -> str:
        """The privileges that it may grant to others, all of them for the owner."""
        kind = classify_object(item)
        if kind is None:
            return ""
        if self.owns(item):
            return KINDS[kind]
        grants = list_grants(self._catalog, item)
        if slot is not None:
            grants += self._list_column_grants(item, slot)
        return "".join(one.grantable for one in grants if one.grantee in self.roles)

    def _collect_letters(self, item: AnyObject) -> str:
        kind = classify_object(item)
        if kind is None:
            return ""
        if self.superuser:
            return KINDS[kind]
        grants = list_grants(self._catalog, item)
        letters = "".join(one.privileges for one in grants if one.grantee in self.roles)
        if builtin_roles.READ_ALL_DATA in self.roles:
            letters += {"table": "r", "schema": "U", "sequence": "r"}.get(kind, "")
        if builtin_roles.WRITE_ALL_DATA in self.roles:
            letters += {"table": "awd", "schema": "U", "sequence": "w"}.get(kind, "")
        if builtin_roles.MAINTAIN in self.roles and not isinstance(item, Sequence):
            letters += {"table": "m"}.get(kind, "")
        return letters

    def _find_column_letters(self, item: AnyObject, slot: int) -> str:
        key = (item.id, slot)
        known = self._column_letters.get(key)
        if known is None:
            grants = self._list_column_grants(item, slot)
            known = "".join(one.privileges for one in grants if one.grantee in self.roles)
            self._column_letters[key] = known
        return known

    def _list_column_grants(self, item: AnyObject, slot: int) -> tuple[Grant, ...]:
        found = self._catalog.access_lists.get(item.id)
        return () if found is None else found.column_grants.get(slot, ())


def find_memberships(
    catalog: Catalog, role: int, follows: Callable[[Membership], bool]
) -> frozenset[int]:
    """The roles that a role is a member of, by memberships that `follows` is true of."""
    found: set[int] = set()
    waiting = [role]
    while waiting:
        held = get_role(catalog, waiting.pop())
        memberships: tuple[Membership, ...] = () if held is None else held.memberships
        for one in memberships:
            if follows(one) and one.role not in found:
                found.add(one.role)
                waiting.append(one.role)
    return frozenset(found)
