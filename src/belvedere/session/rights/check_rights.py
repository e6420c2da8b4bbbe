"""The check of a bound statement: done when it is bound, and so kept with its plan.

A plan is of one catalog and one role; a GRANT or REVOKE makes another catalog, so that every
statement is bound, and checked, again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from belvedere.catalog.rights.role_rights import RoleRights
from belvedere.session.rights.data_rights import require_data_rights
from belvedere.session.rights.denials import permission_denied
from belvedere.session.rights.statement_rules import RightsCheck, check_statement_rights
from belvedere.sql import definitions as d
from belvedere.sql import statements as s
from belvedere.sql.bind.required_rights import RequiredRights

if TYPE_CHECKING:
    from belvedere.session.session import Session


def require_statement_rights(
    session: Session,
    rights: RoleRights | None,
    schema: str,
    tree: Any,
    statement: s.Statement,
    needed: RequiredRights,
) -> None:
    """42501 unless the role may run the statement, whose tree it was bound from. `rights` None: it
    may do everything, but not what the owner of a plain view may not."""
    catalog = session.catalog
    if rights is None:
        if not isinstance(statement, d.CreateView):
            require_data_rights(catalog, session.identity.find_rights(catalog), needed)
        return
    check = RightsCheck(catalog, rights, session.identity, schema)
    check_statement_rights(check, statement)
    if isinstance(tree, d.CreateTable):
        for like in tree.likes:
            item = check.find_usable_relation(like.source, schema)
            if item is not None and not rights.has(item, "r"):
                raise permission_denied(item)
    # What a plain view reads is checked when it is read, as its owner.
    if not isinstance(statement, d.CreateView):
        require_data_rights(catalog, rights, needed)
