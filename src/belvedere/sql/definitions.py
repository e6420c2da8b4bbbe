"""DDL statements as data, which the catalog turns into its objects.

Expressions (defaults, checks, generated columns, index expressions) are kept as normalised SQL
text, which `bind_expression` binds again whenever they are needed. A name is (schema or None,
name).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from belvedere.catalog.model import ReferentialAction
from belvedere.types import SqlType

if TYPE_CHECKING:
    from belvedere.plan.nodes import Node


class QualifiedName(NamedTuple):
    schema: str | None
    name: str

    def __str__(self) -> str:
        return self.name if self.schema is None else f"{self.schema}.{self.name}"


Options = tuple[tuple[str, str], ...]


# -- columns and constraints -----------------------------------------------------------------------


class SequenceOptions(msgspec.Struct, frozen=True):
    """None: not said."""

    start: int | None = None
    increment: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    cycle: bool | None = None
    cache: int | None = None
    type: SqlType | None = None
    owned_by: tuple[str, ...] | None = None
    restart: int | None = None
    restarts: bool = False


class ColumnClause(msgspec.Struct, frozen=True):
    """`serial`: the default comes from a sequence of its own. `identity` is 'always' or 'by
    default'."""

    name: str
    type: SqlType
    not_null: bool = False
    default: str | None = None
    serial: bool = False
    identity: str | None = None
    sequence: SequenceOptions | None = None
    generated: str | None = None


class PrimaryKeyClause(msgspec.Struct, frozen=True):
    name: str | None
    columns: tuple[str, ...]


class UniqueClause(msgspec.Struct, frozen=True):
    name: str | None
    columns: tuple[str, ...]
    nulls_distinct: bool = True
    include: tuple[str, ...] = ()


class CheckClause(msgspec.Struct, frozen=True):
    """`columns` are the columns it reads, set by the binder: its default name is
    made from them."""

    name: str | None
    expression: str
    columns: tuple[str, ...] = ()


class ForeignKeyClause(msgspec.Struct, frozen=True):
    """No parent columns: the parent's primary key."""

    name: str | None
    columns: tuple[str, ...]
    parent: QualifiedName
    parent_columns: tuple[str, ...] = ()
    on_delete: ReferentialAction = ReferentialAction.NO_ACTION
    on_update: ReferentialAction = ReferentialAction.NO_ACTION
    enforced: bool = True
    deferrable: bool = False
    initially_deferred: bool = False


Constraint = PrimaryKeyClause | UniqueClause | CheckClause | ForeignKeyClause


# -- CREATE ----------------------------------------------------------------------------------------


class LikeClause(NamedTuple):
    """The columns of another table, put before the column with this number; `including` are the
    kinds of things beyond names, types and NOT NULL, in lower case."""

    source: QualifiedName
    place: int
    including: frozenset[str] = frozenset()


class CreateTable(msgspec.Struct, frozen=True):
    """Binding replaces `likes` by the columns and constraints they stand for."""

    name: QualifiedName
    columns: tuple[ColumnClause, ...]
    constraints: tuple[Constraint, ...]
    options: Options = ()
    if_not_exists: bool = False
    likes: tuple[LikeClause, ...] = ()


class CreateTableAs(msgspec.Struct, frozen=True):
    """`plan` gives the rows; `columns` are named and typed after it."""

    name: QualifiedName
    columns: tuple[ColumnClause, ...]
    plan: Node
    options: Options = ()
    if_not_exists: bool = False
    with_data: bool = True


class IndexPart(NamedTuple):
    """A column, or an expression with its type (set by the binder)."""

    column: str | None
    expression: str | None = None
    type: SqlType | None = None
    descending: bool = False
    nulls_first: bool | None = None


class CreateIndex(msgspec.Struct, frozen=True):
    name: str | None
    table: QualifiedName
    parts: tuple[IndexPart, ...]
    include: tuple[str, ...] = ()
    unique: bool = False
    nulls_distinct: bool = True
    where: str | None = None
    options: Options = ()
    if_not_exists: bool = False
    concurrently: bool = False


class CreateSequence(msgspec.Struct, frozen=True):
    name: QualifiedName
    options: SequenceOptions
    if_not_exists: bool = False


class CreateSchema(msgspec.Struct, frozen=True):
    name: str
    if_not_exists: bool = False


class CreateServer(msgspec.Struct, frozen=True):
    name: str
    wrapper: str
    options: Options = ()
    if_not_exists: bool = False


class DropServer(msgspec.Struct, frozen=True):
    names: tuple[str, ...]
    if_exists: bool = False
    cascade: bool = False


class ForeignColumnClause(NamedTuple):
    name: str
    type: SqlType
    not_null: bool = False
    options: Options = ()


class CreateForeignTable(msgspec.Struct, frozen=True):
    name: QualifiedName
    columns: tuple[ForeignColumnClause, ...]
    server: str
    options: Options = ()
    if_not_exists: bool = False


class ViewColumn(NamedTuple):
    name: str
    type: SqlType


class CreateView(msgspec.Struct, frozen=True):
    """`query` is the text with every `*` spelled out, so that later columns do not change it."""

    name: QualifiedName
    columns: tuple[ViewColumn, ...]
    query: str
    plan: Node
    or_replace: bool = False


class CreateMaterializedView(msgspec.Struct, frozen=True):
    """As `CreateView`; `inputs` are the relations that the bound plan reads, `catalog_version` is
    that of the catalog in which it was bound."""

    name: QualifiedName
    columns: tuple[ViewColumn, ...]
    query: str
    plan: Node
    inputs: tuple[int, ...]
    options: Options = ()
    if_not_exists: bool = False
    with_data: bool = True
    or_replace: bool = False
    catalog_version: int = 0


# -- ALTER -----------------------------------------------------------------------------------------


class AddColumn(msgspec.Struct, frozen=True):
    column: ColumnClause
    constraints: tuple[Constraint, ...] = ()
    if_not_exists: bool = False


class DropColumn(msgspec.Struct, frozen=True):
    name: str
    if_exists: bool = False
    cascade: bool = False


class SetColumnType(msgspec.Struct, frozen=True):
    name: str
    type: SqlType
    using: str | None = None


class SetColumnDefault(msgspec.Struct, frozen=True):
    """None: drop the default."""

    name: str
    default: str | None


class SetColumnNotNull(msgspec.Struct, frozen=True):
    name: str
    not_null: bool


class SetColumnIdentity(msgspec.Struct, frozen=True):
    """None: drop the identity."""

    name: str
    identity: str | None
    sequence: SequenceOptions | None = None
    if_exists: bool = False


class DropColumnExpression(msgspec.Struct, frozen=True):
    name: str
    if_exists: bool = False


class AddConstraint(msgspec.Struct, frozen=True):
    constraint: Constraint


class DropConstraint(msgspec.Struct, frozen=True):
    name: str
    if_exists: bool = False
    cascade: bool = False


class Rename(msgspec.Struct, frozen=True):
    """`what` is 'table' (any relation itself), 'column' or 'constraint'."""

    what: str
    old: str
    new: str


class SetOptions(msgspec.Struct, frozen=True):
    options: Options


class ResetOptions(msgspec.Struct, frozen=True):
    names: tuple[str, ...]


class SetSchema(msgspec.Struct, frozen=True):
    schema: str


class SetOwner(msgspec.Struct, frozen=True):
    role: str


AlterAction = (
    AddColumn
    | DropColumn
    | SetColumnType
    | SetColumnDefault
    | SetColumnNotNull
    | SetColumnIdentity
    | DropColumnExpression
    | AddConstraint
    | DropConstraint
    | Rename
    | SetOptions
    | ResetOptions
    | SetSchema
    | SetOwner
)


class Alter(msgspec.Struct, frozen=True):
    """`kind` is 'table', 'foreign table', 'index', 'view', 'materialized view', 'sequence' or
    'schema'."""

    kind: str
    name: QualifiedName
    actions: tuple[AlterAction, ...]
    if_exists: bool = False


class Comment(msgspec.Struct, frozen=True):
    """COMMENT ON. `kind` as in Alter, or 'column' or 'constraint' of the relation `name`, whose own
    name is `part`. `text` None takes the comment away."""

    kind: str
    name: QualifiedName
    text: str | None
    part: str = ""


class AlterSequence(msgspec.Struct, frozen=True):
    name: QualifiedName
    options: SequenceOptions
    if_exists: bool = False


# -- others ----------------------------------------------------------------------------------------


class Drop(msgspec.Struct, frozen=True):
    """`kind` as in `Alter`."""

    kind: str
    names: tuple[QualifiedName, ...]
    if_exists: bool = False
    cascade: bool = False


class Truncate(msgspec.Struct, frozen=True):
    names: tuple[QualifiedName, ...]
    restart_identity: bool = False
    cascade: bool = False


class MaintainView(msgspec.Struct, frozen=True):
    """REFRESH, VERIFY or REPAIR MATERIALIZED VIEW; `verb` in lower case."""

    verb: str
    name: QualifiedName


class RoleOptions(msgspec.Struct, frozen=True):
    """What CREATE or ALTER ROLE says of a role; None: nothing. An empty password removes it."""

    login: bool | None = None
    superuser: bool | None = None
    create_role: bool | None = None
    inherit: bool | None = None
    connection_limit: int | None = None
    password: str | None = None
    valid_until: str | None = None


class CreateRole(msgspec.Struct, frozen=True):
    """`member_of`: IN ROLE; `members`: ROLE and ADMIN, with whether they may add others."""

    name: str
    options: RoleOptions
    member_of: tuple[str, ...] = ()
    members: tuple[tuple[str, bool], ...] = ()


class AlterRole(msgspec.Struct, frozen=True):
    """New options, a new name, or one setting (None: back to its default; 'all': every
    one) for the sessions of a role."""

    name: str
    options: RoleOptions = RoleOptions()
    new_name: str | None = None
    setting: str | None = None
    value: str | None = None


class DropRole(msgspec.Struct, frozen=True):
    names: tuple[str, ...]
    if_exists: bool = False


# -- rights ----------------------------------------------------------------------------------------


class PrivilegeClause(NamedTuple):
    """A privilege, 'all' for every one there is, of the whole object or of columns."""

    name: str
    columns: tuple[str, ...] = ()


class GrantPrivileges(msgspec.Struct, frozen=True):
    """GRANT and REVOKE of privileges. `kind` is 'table' (views too), 'sequence', 'schema' or
    'database'; `in_schemas`: `names` are schemas, and all objects of that kind in them are meant.
    `option`: WITH GRANT OPTION, GRANT OPTION FOR."""

    revokes: bool
    privileges: tuple[PrivilegeClause, ...]
    kind: str
    names: tuple[QualifiedName, ...]
    roles: tuple[str, ...]
    in_schemas: bool = False
    option: bool = False
    cascade: bool = False
    granted_by: str | None = None


class GrantRoles(msgspec.Struct, frozen=True):
    """GRANT and REVOKE of membership. `options` are 'admin', 'inherit' and 'set', as far as the
    statement says them; of REVOKE, those that are taken away, none: the membership itself."""

    revokes: bool
    roles: tuple[str, ...]
    members: tuple[str, ...]
    options: tuple[tuple[str, bool], ...] = ()
    granted_by: str | None = None


class AlterDefaultPrivileges(msgspec.Struct, frozen=True):
    """No roles: the current one; no schemas: all. `grant` names no objects."""

    roles: tuple[str, ...]
    schemas: tuple[str, ...]
    grant: GrantPrivileges


class ReassignOwned(msgspec.Struct, frozen=True):
    roles: tuple[str, ...]
    new_owner: str


class DropOwned(msgspec.Struct, frozen=True):
    roles: tuple[str, ...]
    cascade: bool = False


Definition = (
    CreateTable
    | CreateTableAs
    | CreateIndex
    | CreateSequence
    | CreateSchema
    | CreateServer
    | DropServer
    | CreateForeignTable
    | CreateRole
    | AlterRole
    | DropRole
    | GrantPrivileges
    | GrantRoles
    | AlterDefaultPrivileges
    | ReassignOwned
    | DropOwned
    | CreateView
    | CreateMaterializedView
    | Alter
    | AlterSequence
    | Comment
    | Drop
    | Truncate
    | MaintainView
)
