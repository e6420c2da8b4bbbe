"""The role of a session: who logged in, SET SESSION AUTHORIZATION, SET ROLE.

    login           who connected; the owner of the database for the embedded door
    authorization   whom the session acts for; only a superuser's can be another than the login
    role            whose rights it has: the authorization's, or one that this is a member of

The two settings `session_authorization` and `role` hold the names; the ids are derived from both
whenever one of them changes, so a rollback gives the same in whichever order it restores them.
"""

from __future__ import annotations

from collections.abc import Callable

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import OWNER_ROLE
from belvedere.catalog.rights.builtin_roles import OWNER_NAME, find_role, name_role
from belvedere.catalog.rights.role_rights import RoleRights, find_role_rights
from belvedere.errors import InvalidInput
from belvedere.session.context.settings import SessionSettings

AUTHORIZATION, ROLE, NONE = "session_authorization", "role", "none"
OF_STORE = ("maintenance_share", "maintenance_tier")
"""Settings of the open store, not only of the session: a superuser's."""


class SessionIdentity:
    """`database` is the name by which the client asked for the store."""

    def __init__(
        self, login: int = OWNER_ROLE, login_name: str = OWNER_NAME, database: str = OWNER_NAME
    ) -> None:
        self.login = login
        self.login_name = login_name
        self.database = database
        self.authorization = login
        self.role = login
        self._ids = {login_name: login}

    def follow_settings(
        self,
        settings: SessionSettings,
        catalog: Callable[[], Catalog],
        on_change: Callable[[object], None],
    ) -> None:
        """Follow the settings of a session; `catalog` gives the one that its statements see,
        `on_change` is told when the role has changed."""

        def derive_roles(_: object) -> None:
            self.authorization = self._ids[settings.get(AUTHORIZATION)]
            wanted = settings.get(ROLE)
            self.role = self.authorization if wanted == NONE else self._ids[wanted]
            superuser = find_role_rights(catalog(), self.role).superuser
            settings.set_derived_setting("is_superuser", "on" if superuser else "off")
            on_change(None)

        settings.set_derived_setting(AUTHORIZATION, self.login_name)
        settings.guards[AUTHORIZATION] = lambda name: self._check_and_note_authorization(
            catalog(), name
        )
        settings.guards[ROLE] = lambda name: self._check_and_note_role(catalog(), name)
        for name in OF_STORE:
            settings.guards[name] = lambda _: self._check_superuser(catalog())
        settings.watchers[AUTHORIZATION] = settings.watchers[ROLE] = derive_roles
        derive_roles(None)

    def _check_and_note_authorization(self, catalog: Catalog, name: str) -> None:
        if name == self.login_name:
            return
        if not find_role_rights(catalog, self.login).superuser:
            raise InvalidInput("permission denied to set session authorization", sqlstate="42501")
        self._ids[name] = self._require_role_id(catalog, name)

    def _check_and_note_role(self, catalog: Catalog, name: str) -> None:
        if name == NONE:
            return
        id_ = self._require_role_id(catalog, name)
        if not find_role_rights(catalog, self.authorization).can_set_role(id_):
            raise InvalidInput("permission denied to set role", sqlstate="42501", role=name)
        self._ids[name] = id_

    def _check_superuser(self, catalog: Catalog) -> None:
        if self.find_rights_unless_superuser(catalog) is not None:
            raise InvalidInput("permission denied to set parameter", sqlstate="42501")

    def _require_role_id(self, catalog: Catalog, name: str) -> int:
        if name == self.login_name:
            return self.login
        found = find_role(catalog, name)
        if found is None:
            raise InvalidInput("role does not exist", sqlstate="22023", role=name)
        return found.id

    def find_role_id(self, catalog: Catalog, name: str) -> int:
        """A role by its name or by a word for one's own; 42704 when there is none."""
        if name in ("current_user", "current_role"):
            return self.role
        if name == "session_user":
            return self.authorization
        if name == self.login_name:
            return self.login
        found = find_role(catalog, name)
        if found is None:
            raise InvalidInput("role does not exist", sqlstate="42704", name=name)
        return found.id

    def name_role(self, catalog: Catalog, id_: int) -> str:
        """The name of a role; the owner of the database has the name that he logged in by."""
        return self.login_name if id_ == self.login else name_role(catalog, id_)

    def find_rights_unless_superuser(self, catalog: Catalog) -> RoleRights | None:
        """What the session may do; None: everything."""
        if self.role == OWNER_ROLE:
            return None
        found = find_role_rights(catalog, self.role)
        return None if found.superuser else found

    def find_rights(self, catalog: Catalog) -> RoleRights:
        return find_role_rights(catalog, self.role)
