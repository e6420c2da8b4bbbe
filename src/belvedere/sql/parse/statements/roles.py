"""Parses CREATE, ALTER and DROP ROLE, which are USER too: a user is a role that may log in."""

from __future__ import annotations

from typing import Any

from belvedere.errors import Unsupported
from belvedere.sql import definitions as d
from belvedere.sql.parse.lexical.lexer import STRING
from belvedere.sql.parse.lexical.token_cursor import TokenCursor
from belvedere.sql.parse.statements.ddl_clauses import parse_option_value
from belvedere.sql.parse.statements.grants import parse_role_name

ROLE_WORDS = ("role", "user")
_SWITCHES = {
    "login": ("login", True),
    "nologin": ("login", False),
    "superuser": ("superuser", True),
    "nosuperuser": ("superuser", False),
    "createrole": ("create_role", True),
    "nocreaterole": ("create_role", False),
    "inherit": ("inherit", True),
    "noinherit": ("inherit", False),
}
_DEFAULTS = ("nocreatedb", "noreplication", "nobypassrls")
"""What every role is anyway."""
_MISSING = frozenset(
    """
    createdb replication bypassrls user sysid
    """.split()
)


def parse_create_role(c: TokenCursor) -> d.CreateRole:
    user = c.expect_one_of(*ROLE_WORDS) == "user"
    name = c.parse_name()
    roles = _RoleClauses()
    options = _parse_options(c, roles, login=True if user else None)
    return d.CreateRole(name, options, tuple(roles.member_of), tuple(roles.members))


def parse_alter_role(c: TokenCursor) -> d.AlterRole:
    c.expect_one_of(*ROLE_WORDS)
    name = parse_role_name(c)
    if c.accept("rename", "to"):
        return d.AlterRole(name, new_name=c.parse_name())
    if c.accept("reset"):
        return d.AlterRole(name, setting="all" if c.accept("all") else c.parse_name())
    if c.accept("set"):
        setting = c.parse_name()
        if not c.accept_sign("="):
            c.expect("to")
        if c.accept("default"):
            return d.AlterRole(name, setting=setting)
        value = ", ".join(c.parse_comma_list(lambda: parse_option_value(c)))
        return d.AlterRole(name, setting=setting, value=value)
    return d.AlterRole(name, _parse_options(c, None, login=None))


def parse_drop_role(c: TokenCursor) -> d.DropRole:
    c.expect_one_of(*ROLE_WORDS)
    if_exists = c.accept("if", "exists")
    return d.DropRole(c.parse_comma_list(c.parse_name), if_exists)


class _RoleClauses:
    """IN ROLE, ROLE and ADMIN of CREATE ROLE."""

    def __init__(self) -> None:
        self.member_of: list[str] = []
        self.members: list[tuple[str, bool]] = []

    def accept(self, c: TokenCursor) -> bool:
        """Parse one of them, if it is there."""
        if c.accept("in"):
            c.expect_one_of("role", "group")
            self.member_of += c.parse_comma_list(lambda: parse_role_name(c))
            return True
        admin = c.is_word("admin")
        if c.accept("role") or c.accept("admin"):
            self.members += [(one, admin) for one in c.parse_comma_list(lambda: parse_role_name(c))]
            return True
        return False


def _parse_options(
    c: TokenCursor, roles: _RoleClauses | None, *, login: bool | None
) -> d.RoleOptions:
    found: dict[str, Any] = {} if login is None else {"login": login}
    c.accept("with")
    while not c.at_end:
        word = c.token.text
        if c.accept("encrypted") or c.is_word("password"):
            c.expect("password")
            found["password"] = "" if c.accept("null") else _parse_text(c)
        elif c.accept("valid", "until"):
            found["valid_until"] = _parse_text(c)
        elif c.is_any(tuple(_SWITCHES)):
            name, value = _SWITCHES[c.next_token().text]
            found[name] = value
        elif c.is_any(_DEFAULTS):
            c.next_token()
        elif c.accept("connection", "limit"):
            found["connection_limit"] = _parse_limit(c)
        elif roles is not None and roles.accept(c):
            continue
        elif c.is_any(_MISSING):
            raise Unsupported(f"role option {word.upper()}", position=c.token.start + 1)
        else:
            raise c.make_syntax_error()
    return d.RoleOptions(**found)


def _parse_limit(c: TokenCursor) -> int:
    """-1: none."""
    below = c.accept_sign("-")
    limit = c.parse_integer()
    return -1 if below and limit == 1 else limit


def _parse_text(c: TokenCursor) -> str:
    if c.token.kind != STRING:
        raise c.make_syntax_error()
    return c.next_token().text
