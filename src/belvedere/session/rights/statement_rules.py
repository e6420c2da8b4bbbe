"""The rights that each kind of statement needs, besides those on the data that it names.

Every kind has an entry in RULES: one without is refused to everybody but superusers, and a test
compares the list with that of all statements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import AnyObject, Index, Schema, Table
from belvedere.catalog.rights.builtin_roles import READ_SERVER_FILES, WRITE_SERVER_FILES, find_role
from belvedere.catalog.rights.role_rights import RoleRights
from belvedere.session.rights import role_rules
from belvedere.session.rights.data_rights import require_schema_usage
from belvedere.session.rights.denials import not_allowed, not_the_owner, permission_denied
from belvedere.session.rights.identity import SessionIdentity
from belvedere.sql import definitions as d
from belvedere.sql import statements as s

PUBLIC = "public"


@dataclass(frozen=True, slots=True)
class RightsCheck:
    """What a rule looks at: the catalog, the role's rights, the session's current schema."""

    catalog: Catalog
    rights: RoleRights
    identity: SessionIdentity
    schema: str = PUBLIC

    def find_usable_relation(
        self, name: d.QualifiedName, default: str = PUBLIC
    ) -> AnyObject | None:
        """The relation of that name; None: the statement will say that there is none."""
        schema = name.schema or default
        if all(one.name != schema for one in self.catalog.schemas):
            return None
        item = self.catalog.find_relation(name.name, schema)
        if item is not None:
            require_schema_usage(self.catalog, self.rights, item.schema)
        return item

    def find_schema(self, name: str) -> Schema | None:
        return next((one for one in self.catalog.schemas if one.name == name), None)

    def require_owner(self, item: AnyObject | None) -> None:
        if item is not None and not self.rights.owns(item):
            raise not_the_owner(item)

    def require_owner_or_schema_owner(self, item: AnyObject | None) -> None:
        """To drop an object, its schema's owner is as good as its own."""
        if item is not None and not self.rights.owns(self.catalog.objects[item.schema]):
            self.require_owner(item)

    def require_any_privilege(self, item: AnyObject | None, letters: str) -> None:
        """One of these privileges."""
        if item is not None and not any(self.rights.has(item, letter) for letter in letters):
            raise permission_denied(item)

    def require_create_in_schema(self, schema: str | None) -> None:
        self.require_any_privilege(self.find_schema(schema or PUBLIC), "C")


Rule = Callable[[RightsCheck, Any], None]


def _allow_anybody(check: RightsCheck, statement: Any) -> None:
    """What needs no right, or is checked where it is done."""


# -- objects ---------------------------------------------------------------------------------------


def _check_create_table(check: RightsCheck, statement: d.CreateTable | d.CreateTableAs) -> None:
    check.require_create_in_schema(statement.name.schema)
    if isinstance(statement, d.CreateTable):
        for constraint in statement.constraints:
            _check_reference(check, constraint)


def _check_reference(check: RightsCheck, constraint: d.Constraint) -> None:
    """A foreign key needs REFERENCES on the columns that it is to."""
    if not isinstance(constraint, d.ForeignKeyClause):
        return
    parent = check.find_usable_relation(constraint.parent)
    if not isinstance(parent, Table) or check.rights.has(parent, "x"):
        return
    named = {c.slot for c in parent.columns if c.name in constraint.parent_columns}
    slots = named or set(parent.primary_key)
    if not all(check.rights.has_on_column(parent, "x", slot) for slot in slots):
        raise permission_denied(parent)


def _check_create_index(check: RightsCheck, statement: d.CreateIndex) -> None:
    check.require_owner(check.find_usable_relation(statement.table))
    check.require_create_in_schema(statement.table.schema)


def _check_create_view(
    check: RightsCheck, statement: d.CreateView | d.CreateMaterializedView
) -> None:
    check.require_create_in_schema(statement.name.schema)
    if statement.or_replace:
        check.require_owner(check.find_usable_relation(statement.name))


def _check_create_sequence(check: RightsCheck, statement: d.CreateSequence) -> None:
    check.require_create_in_schema(statement.name.schema)


def _check_create_schema(check: RightsCheck, statement: d.CreateSchema) -> None:
    if not check.rights.creates_in_database:
        raise permission_denied(check.catalog.head)


def _check_foreign_object(
    check: RightsCheck, statement: d.CreateServer | d.DropServer | d.CreateForeignTable
) -> None:
    """A server is reached with the rights of who runs this program."""
    raise not_allowed("create or drop what is on other servers", hint="only a superuser may")


def _check_alter(check: RightsCheck, statement: d.Alter) -> None:
    if statement.kind == "schema":
        item: AnyObject | None = check.find_schema(statement.name.name)
    else:
        item = check.find_usable_relation(statement.name)
    check.require_owner(item)
    for action in statement.actions:
        match action:
            case d.Rename() if action.what == "table" and statement.kind == "schema":
                _check_create_schema(check, d.CreateSchema(action.new))
            case d.Rename() if action.what == "table":
                check.require_create_in_schema(statement.name.schema)
            case d.SetSchema():
                check.require_create_in_schema(action.schema)
            case d.AddConstraint():
                _check_reference(check, action.constraint)
            case d.AddColumn():
                for constraint in action.constraints:
                    _check_reference(check, constraint)
            case d.SetOwner():
                _check_new_owner(check, action.role)


def _check_new_owner(check: RightsCheck, name: str) -> None:
    role = find_role(check.catalog, name)
    if role is not None and not check.rights.can_set_role(role.id):
        raise not_allowed("give an object to a role that one cannot SET ROLE to")


def _check_comment(check: RightsCheck, statement: d.Comment) -> None:
    if statement.kind == "schema":
        check.require_owner(check.find_schema(statement.name.name))
    else:
        check.require_owner(check.find_usable_relation(statement.name))


def _check_alter_sequence(check: RightsCheck, statement: d.AlterSequence) -> None:
    check.require_owner(check.find_usable_relation(statement.name))


def _check_drop(check: RightsCheck, statement: d.Drop) -> None:
    for name in statement.names:
        if statement.kind == "schema":
            check.require_owner(check.find_schema(name.name))
        else:
            check.require_owner_or_schema_owner(check.find_usable_relation(name))


def _check_truncate(check: RightsCheck, statement: d.Truncate) -> None:
    for name in statement.names:
        check.require_any_privilege(check.find_usable_relation(name), "D")


def _check_maintain_view(check: RightsCheck, statement: d.MaintainView) -> None:
    """REFRESH, VERIFY and REPAIR; EXPLAIN of a view needs the right to read it."""
    check.require_any_privilege(
        check.find_usable_relation(statement.name), "r" if statement.verb == "explain" else "m"
    )


def _check_reindex(check: RightsCheck, statement: s.Reindex) -> None:
    if statement.kind in ("table", "index"):
        item = check.find_usable_relation(statement.name, check.schema)
        if isinstance(item, Index):
            item = check.catalog.get(item.table)
        if item is not None and not check.rights.owns(item):
            check.require_any_privilege(item, "m")
    elif statement.kind == "schema":
        check.require_owner(check.find_schema(statement.name.name))
    else:
        raise not_allowed("reindex the database")


def _check_lock_table(check: RightsCheck, statement: s.LockTable) -> None:
    weak = {"access share": "rawdDm", "row exclusive": "awdDm"}
    for name in statement.names:
        check.require_any_privilege(
            check.find_usable_relation(name), weak.get(statement.mode, "wdDm")
        )


def _check_copy(check: RightsCheck, statement: s.Copy) -> None:
    """Files are read and written by the server, with the rights of the system user who runs it."""
    if statement.path is None:
        return
    reads = statement.direction == "from"
    if not check.rights.has_role(READ_SERVER_FILES if reads else WRITE_SERVER_FILES):
        role = "pg_read_server_files" if reads else "pg_write_server_files"
        raise not_allowed("COPY from or to a file", hint=f"use STDIN or STDOUT, or GRANT {role}")


def _check_explain(check: RightsCheck, statement: s.Explain) -> None:
    check_statement_rights(check, statement.statement)


def _check_analyze(check: RightsCheck, statement: s.Analyze | s.Vacuum) -> None:
    """Tables that the role may not maintain are skipped where it is done."""
    for name in statement.names:
        check.find_usable_relation(name, check.schema)


# -- roles and grants ------------------------------------------------------------------------------


def _check_create_role(check: RightsCheck, statement: d.CreateRole) -> None:
    role_rules.require_right_to_create_role(check.catalog, check.rights, statement)


def _check_alter_role(check: RightsCheck, statement: d.AlterRole) -> None:
    own = ("current_role", "current_user") if check.rights.id == check.identity.role else ()
    role_rules.require_right_to_alter_role(check.catalog, check.rights, statement, own)


def _check_drop_role(check: RightsCheck, statement: d.DropRole) -> None:
    role_rules.require_right_to_drop_role(check.catalog, check.rights, statement)


def _check_grant_roles(check: RightsCheck, statement: d.GrantRoles) -> None:
    role_rules.require_right_to_grant_roles(check.catalog, check.rights, statement)


def _check_change_of_owned(check: RightsCheck, statement: d.DropOwned | d.ReassignOwned) -> None:
    names = list(statement.roles)
    if isinstance(statement, d.ReassignOwned):
        names.append(statement.new_owner)
    for name in names:
        role = check.identity.find_role_id(check.catalog, name)
        if not check.rights.has_role(role):
            raise not_allowed("change objects of that role")


def _check_default_privileges(check: RightsCheck, statement: d.AlterDefaultPrivileges) -> None:
    for name in statement.roles:
        role = check.identity.find_role_id(check.catalog, name)
        if not check.rights.has_role(role):
            raise not_allowed("change default privileges of that role")


_FREE = (
    s.DataPlan,
    s.Begin,
    s.Commit,
    s.Rollback,
    s.Savepoint,
    s.ReleaseSavepoint,
    s.RollbackTo,
    s.SetTransaction,
    s.SetConstraints,
    s.SetVariable,
    s.ShowVariable,
    s.ResetVariable,
    s.Prepare,
    s.Execute,
    s.Deallocate,
    s.Discard,
    s.DeclareCursor,
    s.FetchCursor,
    s.CloseCursor,
    s.Listen,
    s.Unlisten,
    s.Notify,
    d.GrantPrivileges,
)
RULES: dict[type, Rule] = {
    **dict.fromkeys(_FREE, _allow_anybody),
    d.CreateTable: _check_create_table,
    d.CreateTableAs: _check_create_table,
    d.CreateIndex: _check_create_index,
    d.CreateSequence: _check_create_sequence,
    d.CreateSchema: _check_create_schema,
    d.CreateServer: _check_foreign_object,
    d.DropServer: _check_foreign_object,
    d.CreateForeignTable: _check_foreign_object,
    d.CreateView: _check_create_view,
    d.CreateMaterializedView: _check_create_view,
    d.Alter: _check_alter,
    d.AlterSequence: _check_alter_sequence,
    d.Comment: _check_comment,
    d.Drop: _check_drop,
    d.Truncate: _check_truncate,
    d.MaintainView: _check_maintain_view,
    d.CreateRole: _check_create_role,
    d.AlterRole: _check_alter_role,
    d.DropRole: _check_drop_role,
    d.GrantRoles: _check_grant_roles,
    d.AlterDefaultPrivileges: _check_default_privileges,
    d.ReassignOwned: _check_change_of_owned,
    d.DropOwned: _check_change_of_owned,
    s.LockTable: _check_lock_table,
    s.Reindex: _check_reindex,
    s.Copy: _check_copy,
    s.Explain: _check_explain,
    s.Analyze: _check_analyze,
    s.Vacuum: _check_analyze,
}


def check_statement_rights(check: RightsCheck, statement: s.Statement) -> None:
    rule = RULES.get(type(statement))
    if rule is None:
        raise not_allowed(f"run {type(statement).__name__}", hint="only a superuser may")
    rule(check, statement)
