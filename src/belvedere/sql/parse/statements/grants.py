"""Parses GRANT, REVOKE, ALTER DEFAULT PRIVILEGES, REASSIGN OWNED and DROP OWNED."""

from __future__ import annotations

from msgspec.structs import replace

from belvedere.errors import Unsupported
from belvedere.sql import definitions as d
from belvedere.sql.parse.lexical.token_cursor import TokenCursor
from belvedere.sql.parse.statements.ddl_clauses import parse_qualified_name

_PLURALS = {"tables": "table", "sequences": "sequence", "schemas": "schema"}
_MISSING = frozenset(
    """
    domain foreign function functions language large parameter procedure procedures routine
    routines tablespace type types
    """.split()
)
_SELF = ("current_role", "current_user", "session_user")
_OPTIONS = ("admin", "inherit", "set")


def parse_grant(c: TokenCursor) -> d.GrantPrivileges | d.GrantRoles:
    c.expect("grant")
    return _parse_grant_or_revoke(c, revokes=False)


def parse_revoke(c: TokenCursor) -> d.GrantPrivileges | d.GrantRoles:
    c.expect("revoke")
    return _parse_grant_or_revoke(c, revokes=True)


def _parse_grant_or_revoke(c: TokenCursor, *, revokes: bool) -> d.GrantPrivileges | d.GrantRoles:
    if revokes:
        for word in _OPTIONS:
            if c.accept(word, "option", "for"):
                return _parse_membership(c, c.parse_comma_list(c.parse_name), revokes, word)
    option = revokes and c.accept("grant", "option", "for")
    privileges = _parse_privileges(c)
    if c.is_word("on"):
        return _parse_privilege_grant(c, privileges, revokes, option)
    if option or any(one.columns for one in privileges):
        raise c.make_syntax_error()
    return _parse_membership(c, tuple(one.name for one in privileges), revokes)


def _parse_privileges(c: TokenCursor) -> tuple[d.PrivilegeClause, ...]:
    """Privileges, or names of roles: what comes after them tells."""
    return c.parse_comma_list(lambda: _parse_privilege(c))


def _parse_privilege(c: TokenCursor) -> d.PrivilegeClause:
    for word in ("select", "create", "references"):  # reserved words
        if c.accept(word):
            return d.PrivilegeClause(word, _parse_columns(c))
    if c.accept("all"):
        c.accept("privileges")
        return d.PrivilegeClause("all", _parse_columns(c))
    return d.PrivilegeClause(c.parse_name(), _parse_columns(c))


def _parse_columns(c: TokenCursor) -> tuple[str, ...]:
    return c.parse_name_list() if c.is_sign("(") else ()


def _parse_privilege_grant(
    c: TokenCursor, privileges: tuple[d.PrivilegeClause, ...], revokes: bool, option: bool
) -> d.GrantPrivileges:
    c.expect("on")
    kind, names, in_schemas = _parse_objects(c)
    grant = d.GrantPrivileges(revokes, privileges, kind, names, (), in_schemas, option)
    return _parse_grantees(c, grant)


def _parse_objects(c: TokenCursor) -> tuple[str, tuple[d.QualifiedName, ...], bool]:
    if c.accept("all"):
        if c.is_any(_MISSING):
            raise Unsupported(f"GRANT ON ALL {c.token.text.upper()}", position=c.token.start + 1)
        kind = _PLURALS[c.expect_one_of("tables", "sequences")]
        c.expect("in", "schema")
        return kind, _parse_plain_names(c), True
    for kind in ("sequence", "schema", "database"):
        if c.accept(kind):
            if kind == "sequence":
                return kind, c.parse_comma_list(lambda: parse_qualified_name(c)), False
            return kind, _parse_plain_names(c), False
    if c.is_any(_MISSING) and c.peek().text not in (",", "to", "from"):
        raise Unsupported(f"GRANT ON {c.token.text.upper()}", position=c.token.start + 1)
    c.accept("table")
    return "table", c.parse_comma_list(lambda: parse_qualified_name(c)), False


def _parse_plain_names(c: TokenCursor) -> tuple[d.QualifiedName, ...]:
    return tuple(d.QualifiedName(None, name) for name in c.parse_comma_list(c.parse_name))


def _parse_grantees(c: TokenCursor, grant: d.GrantPrivileges) -> d.GrantPrivileges:
    c.expect("from" if grant.revokes else "to")
    roles = c.parse_comma_list(lambda: parse_role_name(c))
    option = grant.option or (not grant.revokes and c.accept("with", "grant", "option"))
    granted_by = parse_role_name(c) if c.accept("granted", "by") else None
    cascade = grant.revokes and _parse_cascade(c)
    return replace(grant, roles=roles, option=option, granted_by=granted_by, cascade=cascade)


def parse_role_name(c: TokenCursor) -> str:
    """A role, or the word for one's own."""
    c.accept("group")
    for word in _SELF:
        if c.accept(word):
            return word
    return c.parse_name()


def _parse_cascade(c: TokenCursor) -> bool:
    if c.accept("cascade"):
        return True
    c.accept("restrict")
    return False


# -- membership ------------------------------------------------------------------------------------


def _parse_membership(
    c: TokenCursor, roles: tuple[str, ...], revokes: bool, lost: str | None = None
) -> d.GrantRoles:
    c.expect("from" if revokes else "to")
    members = c.parse_comma_list(lambda: parse_role_name(c))
    options: tuple[tuple[str, bool], ...] = () if lost is None else ((lost, False),)
    if not revokes and c.accept("with"):
        options = c.parse_comma_list(lambda: _parse_membership_option(c))
    granted_by = parse_role_name(c) if c.accept("granted", "by") else None
    if revokes:
        _parse_cascade(c)
    return d.GrantRoles(revokes, roles, members, options, granted_by)


def _parse_membership_option(c: TokenCursor) -> tuple[str, bool]:
    word = c.expect_one_of(*_OPTIONS)
    return word, c.expect_one_of("option", "true", "false") != "false"


# -- default privileges, owners --------------------------------------------------------------------


def parse_default_privileges(c: TokenCursor) -> d.AlterDefaultPrivileges:
    """After ALTER DEFAULT PRIVILEGES."""
    roles: tuple[str, ...] = ()
    schemas: tuple[str, ...] = ()
    while c.is_any(("for", "in")):
        if c.accept("for"):
            c.expect_one_of("role", "user")
            roles = c.parse_comma_list(lambda: parse_role_name(c))
        else:
            c.expect("in", "schema")
            schemas = c.parse_comma_list(c.parse_name)
    revokes = c.expect_one_of("grant", "revoke") == "revoke"
    option = revokes and c.accept("grant", "option", "for")
    privileges = _parse_privileges(c)
    c.expect("on")
    if c.is_any(_MISSING):
        raise Unsupported(f"default privileges of {c.token.text}", position=c.token.start + 1)
    kind = _PLURALS[c.expect_one_of(*_PLURALS)]
    grant = d.GrantPrivileges(revokes, privileges, kind, (), (), False, option)
    return d.AlterDefaultPrivileges(roles, schemas, _parse_grantees(c, grant))


def parse_reassign(c: TokenCursor) -> d.ReassignOwned:
    c.expect("reassign", "owned", "by")
    roles = c.parse_comma_list(lambda: parse_role_name(c))
    c.expect("to")
    return d.ReassignOwned(roles, parse_role_name(c))


def parse_drop_owned(c: TokenCursor) -> d.DropOwned:
    """After DROP."""
    c.expect("owned", "by")
    return d.DropOwned(c.parse_comma_list(lambda: parse_role_name(c)), _parse_cascade(c))
