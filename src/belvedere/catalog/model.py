"""The catalog's objects: their in-memory and stored form, one struct per kind.

Each object is one row of the system relation CATALOG: key = object id, value = its encoding here. A
catalog change is thus an ordinary logged change, and replaying the log rebuilds the catalog too.

Invariants
- Ids are never reused. Ids below 100 belong to the system; `Head` has id 0.
- An object is immutable; a change stores a new object under the same id. `version` is the catalog
  version that last changed it, so a commit can detect that an object it planned on has changed.
- Columns are only ever appended: `CatalogColumn.slot` is the column's position in the stored row
  for ever. A dropped column keeps its slot and is written as NULL.
- Expressions (defaults, checks, index expressions, view definitions) are stored as SQL text.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from functools import cached_property, lru_cache

import msgspec

from belvedere.catalog import view_options
from belvedere.catalog.view_options import IndexColumns, ViewForm, ViewOptions
from belvedere.catalog.view_options import Maintenance as Maintenance
from belvedere.types import Kind, SqlType

CATALOG_RELATION = 1
SEQUENCE_RELATION = 2
HEAD_ID = 0
FIRST_USER_ID = 100
OWNER_ROLE = 0
"""The role that owns the database and has every right; embedded sessions are its."""
PUBLIC_ROLE = -1
"""Every role."""


class ObjectState(enum.StrEnum):
    """The state of a table, index or view: whether queries read it and maintenance writes it."""

    BUILDING = "building"  # written by maintenance, not read
    READY = "ready"  # written and read
    DROPPED = "dropped"  # rows stay until the log is trimmed past the drop


class ReferentialAction(enum.StrEnum):
    """What a foreign key does to child rows when the parent's key is deleted or changed."""

    NO_ACTION = "no action"
    RESTRICT = "restrict"
    CASCADE = "cascade"
    SET_NULL = "set null"
    SET_DEFAULT = "set default"


class ViewKind(enum.StrEnum):
    """How a view came into being."""

    USER = "user"  # CREATE MATERIALIZED VIEW
    INDEX = "index"  # CREATE INDEX, of a view or with options
    AUXILIARY = "auxiliary"  # the maintenance of other views, which reads it


class TypeName(msgspec.Struct, frozen=True, array_like=True):
    """The stored form of a SqlType."""

    kind: str
    length: int | None = None
    precision: int | None = None
    scale: int | None = None

    @staticmethod
    def from_type(type_: SqlType) -> TypeName:
        return TypeName(type_.kind.value, type_.length, type_.precision, type_.scale)

    def to_type(self) -> SqlType:
        return SqlType(Kind(self.kind), self.length, self.precision, self.scale)


class CatalogColumn(msgspec.Struct, frozen=True, omit_defaults=True):
    """A column. `missing` is the value of rows older than the column, as a one-slot row."""

    name: str
    type_name: TypeName
    slot: int
    not_null: bool = False
    default: str | None = None
    missing: bytes | None = None
    identity: str | None = None  # 'always' or 'by default'
    generated: str | None = None  # expression of GENERATED ALWAYS AS (..) STORED
    sequence: int | None = None  # the sequence that feeds a serial or identity column
    dropped: bool = False
    hidden: bool = False  # the row id of a table without a primary key

    @property
    def type(self) -> SqlType:
        return self.type_name.to_type()


class CheckConstraint(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    expression: str


class ForeignKey(msgspec.Struct, frozen=True, omit_defaults=True):
    """`columns` and `parent_columns` are slots. `parent_index` is the unique index of the
    referenced columns, None when they are the parent's primary key; `index` serves look-ups from
    the parent, None when the primary key does."""

    name: str
    columns: tuple[int, ...]
    parent: int
    parent_columns: tuple[int, ...]
    parent_index: int | None = None
    index: int | None = None
    on_delete: ReferentialAction = ReferentialAction.NO_ACTION
    on_update: ReferentialAction = ReferentialAction.NO_ACTION
    enforced: bool = True
    deferrable: bool = False
    initially_deferred: bool = False


class CatalogObject(
    msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", kw_only=True
):
    """Fields common to all objects. `schema` is the id of the object's schema (0 for a schema)."""

    id: int
    name: str
    schema: int = 0
    version: int = 0


class Head(CatalogObject, frozen=True, omit_defaults=True, tag="head", kw_only=True):
    """One per store. Every catalog change writes it, so concurrent changes never both commit."""

    next_id: int = FIRST_USER_ID


class Schema(CatalogObject, frozen=True, omit_defaults=True, tag="schema", kw_only=True):
    pass


class Table(CatalogObject, frozen=True, omit_defaults=True, tag="table", kw_only=True):
    columns: tuple[CatalogColumn, ...]
    primary_key: tuple[int, ...]
    primary_key_name: str = ""
    checks: tuple[CheckConstraint, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    root: str | None = None  # 'self', the name of a foreign key, or None for the default rule
    partitions: int = 1
    hashed: bool = False
    state: ObjectState = ObjectState.READY
    dropped_at: int = 0


class KeyPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """A column (slot) or an expression (SQL text with its type) of an index key."""

    slot: int | None = None
    expression: str | None = None
    type_name: TypeName | None = None
    descending: bool = False
    nulls_first: bool | None = None


class Index(CatalogObject, frozen=True, omit_defaults=True, tag="index", kw_only=True):
    """A re-keyed projection of `table`: key parts, then the primary key; `include` are slots."""

    table: int
    parts: tuple[KeyPart, ...]
    include: tuple[int, ...] = ()
    unique: bool = False
    nulls_distinct: bool = True
    where: str | None = None
    constraint: bool = False  # created by UNIQUE, not by CREATE INDEX
    hidden: bool = False  # created by the system to serve a foreign key
    state: ObjectState = ObjectState.READY
    maintenance: Maintenance = Maintenance.IMMEDIATE
    digests: bool = False  # its keys keep long values by a digest; False: it is older than these
    dropped_at: int = 0


class Sequence(CatalogObject, frozen=True, omit_defaults=True, tag="sequence", kw_only=True):
    start: int = 1
    increment: int = 1
    minimum: int = 1
    maximum: int = 2**63 - 1
    cycle: bool = False
    cache: int = 32
    owner: int | None = None


class PlainView(CatalogObject, frozen=True, omit_defaults=True, tag="plain view", kw_only=True):
    definition: str
    columns: tuple[CatalogColumn, ...] = ()


class ForeignServer(
    CatalogObject, frozen=True, omit_defaults=True, tag="foreign server", kw_only=True
):
    """Where foreign tables are. Its options are those of `catalog.foreign_options`."""

    wrapper: str = "hbase"
    options: dict[str, str] = {}


class ForeignTable(
    CatalogObject, frozen=True, omit_defaults=True, tag="foreign table", kw_only=True
):
    """A table of a server that others write. `column_options` are by slot."""

    columns: tuple[CatalogColumn, ...]
    server: int
    options: dict[str, str] = {}
    column_options: tuple[dict[str, str], ...] = ()


class View(CatalogObject, frozen=True, omit_defaults=True, tag="view", kw_only=True, dict=True):
    """A materialized view. `inputs` are the tables it is made of, `widths` the number of columns
    each had when the view was defined (its definition sees no later ones); `reads` the views that
    its definition names; `group` its maintenance group (0: immediate).

    It is stored as linear state (codec.view_state): rows of `stored` columns, the first
    `key_columns` of them the key, each with `amounts` numbers, the first of which counts rows.
    `orders` gives (descending, nulls first) of the first key columns. `digests`: keys keep long
    values by a digest (`codec.scalars`); a view that is older than these does not.

    `supporting_objects` are the indexes and auxiliary views that its maintenance reads; they are
    dropped with the last view that has them. `auxiliary_views` are those that hold the parts of
    its definition, in the order of the parts. An auxiliary view is `part` number n (from 1) of
    the auxiliary views of its definition; it has no name that a user gave.

    `stored_options` is the map that `catalog.view_options` describes. Other modules read it by
    the properties `options`, `index` and `replaces`, which are parsed once for each object."""

    definition: str
    columns: tuple[CatalogColumn, ...]
    inputs: tuple[int, ...]
    widths: tuple[int, ...] = ()
    reads: tuple[int, ...] = ()
    stored: tuple[CatalogColumn, ...] = ()
    key_columns: int = 0
    amounts: int = 1
    orders: tuple[tuple[bool, bool], ...] = ()
    supporting_objects: tuple[int, ...] = msgspec.field(name="auxiliaries", default=())
    auxiliary_views: tuple[int, ...] = msgspec.field(name="supports", default=())
    part: int = 0
    group: int = 0
    maintenance: Maintenance = Maintenance.IMMEDIATE
    stored_options: dict[str, str] = msgspec.field(name="options", default_factory=dict)
    state: ObjectState = ObjectState.BUILDING
    digests: bool = False
    dropped_at: int = 0

    @cached_property
    def options(self) -> ViewOptions:
        """What the user wrote in WITH (..)."""
        return view_options.decode_options(self.stored_options)

    @cached_property
    def index(self) -> IndexColumns | None:
        """The columns of an index, also of one of its auxiliary views; None: of no index."""
        return view_options.decode_index(self.stored_options)

    @cached_property
    def replaces(self) -> int | None:
        """The view whose name this one gets once it is backfilled; None: it has its own name."""
        return view_options.decode_replaces(self.stored_options)

    @property
    def kind(self) -> ViewKind:
        if self.part:
            return ViewKind.AUXILIARY
        return ViewKind.USER if self.index is None else ViewKind.INDEX

    @property
    def noun_and_name(self) -> str:
        """What a message calls it: views and indexes are two things to the user."""
        return f"{'view' if self.index is None else 'index'} {self.name}"

    @property
    def is_unique(self) -> bool:
        """Whether it is an index that no two rows of one key may enter."""
        return self.index is not None and self.index.unique_count is not None

    @cached_property
    def form(self) -> ViewForm:
        return view_options.form_of(self.options, self.index)


class Membership(msgspec.Struct, frozen=True, array_like=True):
    """That a role is a member of another: `inherits` its rights, may `set` it as its own, may
    make others members (`admin`)."""

    role: int
    admin: bool = False
    inherits: bool = True
    sets: bool = True
    grantor: int = OWNER_ROLE


class Role(CatalogObject, frozen=True, omit_defaults=True, tag="role", kw_only=True):
    """A user or a group of users. `verifier` is what a password is checked with; the password
    itself is never stored. `settings` are what its sessions begin with."""

    login: bool = False
    superuser: bool = False
    create_role: bool = False
    inherit: bool = True
    connection_limit: int = -1
    verifier: str | None = None
    valid_until: str | None = None
    settings: dict[str, str] = {}
    memberships: tuple[Membership, ...] = ()


class Grant(msgspec.Struct, frozen=True, array_like=True):
    """What one role gave another, as letters (`catalog.rights.privileges`). The grantee may pass
    on those that are `grantable`."""

    grantee: int
    privileges: str
    grantable: str = ""
    grantor: int = OWNER_ROLE


class AccessList(CatalogObject, frozen=True, omit_defaults=True, tag="access list", kw_only=True):
    """The owner of an object, and who else may use it. `object` is its id, HEAD_ID for the
    database. `grants` None: what such an object has by default. `column_grants` are by slot. An
    object without a list belongs to the owner of the database. Kept apart from the object, so that
    a GRANT changes nothing that plans, commits and maintenance are made from."""

    object: int
    owner: int = OWNER_ROLE
    grants: tuple[Grant, ...] | None = None
    column_grants: dict[int, tuple[Grant, ...]] = {}


class Comments(CatalogObject, frozen=True, omit_defaults=True, tag="comments", kw_only=True):
    """What COMMENT ON says of an object, of its columns by slot, and of its constraints by name.
    Kept apart from the object, as its access list is."""

    object: int
    text: str | None = None
    columns: dict[int, str] = {}
    constraints: dict[str, str] = {}


class DefaultPrivileges(
    CatalogObject, frozen=True, omit_defaults=True, tag="default privileges", kw_only=True
):
    """What objects that a role will make are granted. `objects` is 'table', 'sequence' or
    'schema'; `in_schema` 0: everywhere, where `grants` replace what such objects have by default;
    otherwise they are added to it."""

    role: int
    objects: str
    in_schema: int = 0
    grants: tuple[Grant, ...] = ()


AnyObject = (
    Head
    | Schema
    | Table
    | Index
    | Sequence
    | PlainView
    | ForeignServer
    | ForeignTable
    | View
    | Role
    | AccessList
    | Comments
    | DefaultPrivileges
)
NAMELESS = (Head, Schema, Role, AccessList, Comments, DefaultPrivileges, ForeignServer)
"""Objects that are not relations: their names, if they have any, are looked up elsewhere."""
Relation = Table | Index | View

DECODED_MAX = 512  # objects that are kept decoded
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(AnyObject)


def encode(item: AnyObject) -> bytes:
    return _encoder.encode(item)


def match_slots_by_name(old: AnyObject, new: AnyObject) -> dict[int, int]:
    """The slot of each column of an object to that of the same name in what replaces it."""
    if not (isinstance(old, Table | View) and isinstance(new, Table | View)):
        return {}
    slots = {column.name: column.slot for column in new.columns if not column.dropped}
    return {c.slot: slots[c.name] for c in old.columns if c.name in slots}


def encode_all(items: Iterable[AnyObject | None]) -> list[bytes | None]:
    return [None if item is None else _encoder.encode(item) for item in items]


@lru_cache(DECODED_MAX)
def decode(data: bytes) -> AnyObject:
    """The object with this encoding. It is immutable, so all readers of one version share it: a
    change of the catalog is decoded once, however many steps of its commit look at it."""
    item: AnyObject = _decoder.decode(data)
    return item
