"""The numbers (OIDs) of objects in the system catalogs, the same after every restart.

| objects | OID |
|---|---|
| schemas, tables, views, indexes, sequences, roles | their object id after FIRST_OBJECT_OID |
| the index of a primary key, which is the table itself | its table's, after PRIMARY_KEY_OIDS |
| checks, foreign keys, defaults, which have no id | a hash of table and name, after HASHED_OIDS |
| types, access methods, collations, PostgreSQL's own tables | PostgreSQL's |

OIDs of different catalogs may be equal, as in PostgreSQL.
"""

from __future__ import annotations

import zlib

from belvedere.catalog.catalog import PUBLIC_ID
from belvedere.catalog.model import OWNER_ROLE, CatalogObject, Schema, Table
from belvedere.catalog.rights import builtin_roles
from belvedere.values.type_oids import FIRST_OBJECT_OID

PRIMARY_KEY_OIDS = 1 << 30
HASHED_OIDS = 1 << 31
OWNER_OID = 10
DATABASE_OID = 5
BTREE_OID = 403
HEAP_OID = 2
DEFAULT_TABLESPACE_OID = 1663
DEFAULT_COLLATION_OID = 100
INTERNAL_LANGUAGE_OID = 12
CLASS_OID = 1259
SYSTEM_SCHEMA_OIDS = {"pg_catalog": 11, "belvedere": 13_001, "information_schema": 13_002}
PUBLIC_SCHEMA_OID = 2200
_ROLE_OIDS = {
    OWNER_ROLE: OWNER_OID,
    builtin_roles.READ_ALL_DATA: 6181,
    builtin_roles.WRITE_ALL_DATA: 6182,
    builtin_roles.MONITOR: 3373,
    builtin_roles.READ_SERVER_FILES: 4569,
    builtin_roles.WRITE_SERVER_FILES: 4570,
    builtin_roles.MAINTAIN: 6337,
}


def find_object_oid(item: CatalogObject) -> int:
    if isinstance(item, Schema):
        return find_schema_oid(item.id)
    return FIRST_OBJECT_OID + item.id


def find_schema_oid(schema: int) -> int:
    return PUBLIC_SCHEMA_OID if schema == PUBLIC_ID else FIRST_OBJECT_OID + schema


def find_role_oid(role: int) -> int:
    """By the id of a role; predefined ones have PostgreSQL's."""
    return _ROLE_OIDS.get(role, FIRST_OBJECT_OID + role)


def find_primary_key_oid(table: Table) -> int:
    return PRIMARY_KEY_OIDS + FIRST_OBJECT_OID + table.id


def hash_part_oid(table: Table, part: str) -> int:
    return hash_name_oid(f"{table.id} {part}")


def hash_name_oid(name: str) -> int:
    return HASHED_OIDS + (zlib.crc32(name.encode()) & (HASHED_OIDS - 1))
