"""Statements about roles, owners and grants, as changes of the catalog."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from belvedere.catalog.edit import CatalogEdit
from belvedere.session.context.notices import add_notice_unless_silenced
from belvedere.session.ddl import grants, owners
from belvedere.session.ddl.roles import make_role_change
from belvedere.sql import definitions as d

if TYPE_CHECKING:
    from belvedere.session.session import Session

Change = Callable[[CatalogEdit], None]


def try_make_rights_change(
    session: Session, statement: Any, drop: owners.DropObject
) -> tuple[str, Change] | None:
    """The tag of a statement about roles and rights, and what it does; None: it is another one.
    `drop` drops one object."""
    identity = session.identity
    match statement:
        case d.CreateRole() | d.AlterRole() | d.DropRole() | d.GrantRoles():
            return make_role_change(statement, identity)
        case d.GrantPrivileges():
            tag = "REVOKE" if statement.revokes else "GRANT"
            notice = partial(add_notice_unless_silenced, session)
            return tag, lambda edit: grants.change_privileges(edit, statement, identity, notice)
        case d.AlterDefaultPrivileges():
            return "ALTER DEFAULT PRIVILEGES", lambda edit: grants.change_default_privileges(
                edit, statement, identity
            )
        case d.Alter() if any(isinstance(one, d.SetOwner) for one in statement.actions):
            tag = f"ALTER {statement.kind.upper()}"
            return tag, lambda edit: owners.change_owner(edit, statement, identity)
        case d.ReassignOwned():
            return "REASSIGN OWNED", lambda edit: owners.reassign_owned(edit, statement, identity)
        case d.DropOwned():
            return "DROP OWNED", lambda edit: owners.drop_owned(edit, statement, identity, drop)
        case _:
            return None
