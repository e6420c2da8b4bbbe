"""pg_constraint, and the constraints of a catalog by OID."""

from __future__ import annotations

from collections.abc import Iterator, KeysView
from typing import NamedTuple

from belvedere.catalog.model import ForeignKey, ReferentialAction, Table
from belvedere.session.system_tables.pg_catalog.columns import make_row_builder
from belvedere.session.system_tables.pg_catalog.definitions import (
    describe_foreign_key,
    describe_key_constraint,
)
from belvedere.session.system_tables.pg_catalog.oids import (
    HASHED_OIDS,
    find_object_oid,
    find_primary_key_oid,
    hash_part_oid,
)
from belvedere.session.system_tables.pg_catalog.relations import (
    Relation,
    Relations,
    map_slots_to_numbers,
)
from belvedere.sql.parse.lexical.lexer import QUOTED, WORD, tokenize
from belvedere.types import Row
from belvedere.values.type_oids import FIRST_OBJECT_OID

_ACTIONS = {
    ReferentialAction.NO_ACTION: "a",
    ReferentialAction.RESTRICT: "r",
    ReferentialAction.CASCADE: "c",
    ReferentialAction.SET_NULL: "n",
    ReferentialAction.SET_DEFAULT: "d",
}


class Constraint(NamedTuple):
    oid: int
    text: str
    row: Row


def find_constraints(relations: Relations) -> dict[int, Constraint]:
    """The constraints by OID, computed once for each version of the catalog."""
    cache = relations.catalog.derived_cache
    found = cache.get(Constraint)
    if isinstance(found, dict):
        return found
    listed: dict[int, Constraint] = {}
    for one in _list_constraints(relations, listed.keys()):
        listed[one.oid] = one
    cache[Constraint] = listed
    return listed


def _list_constraints(relations: Relations, taken: KeysView[int]) -> Iterator[Constraint]:
    """`taken` are the OIDs of those listed before."""
    for one, table in relations.tables:
        for index in relations.indexes_by_relation.get(one.oid, ()):
            if index.shape is not None and index.shape.constraint:
                yield _make_key_constraint(one, index)
        for key in table.foreign_keys:
            oid = _choose_free_oid(hash_part_oid(table, key.name), taken)
            yield _make_foreign_key_constraint(relations, one, table, key, oid)
        for check in table.checks:
            oid = _choose_free_oid(hash_part_oid(table, check.name), taken)
            text = f"CHECK ({check.expression})"
            columns = _find_columns_in_expression(one, check.expression) or None
            row = _make_constraint_row(
                one, oid, check.name, "c", conkey=columns, conbin=check.expression
            )
            yield Constraint(oid, text, row)


def _find_columns_in_expression(table: Relation, expression: str) -> list[int]:
    """The numbers of the columns that an expression over the table's row names."""
    words = {token.text for token in tokenize(expression) if token.kind in (WORD, QUOTED)}
    return [column.number for column in table.columns if column.name in words]


def _choose_free_oid(oid: int, taken: KeysView[int]) -> int:
    while oid in taken:
        oid = oid + 1 if oid + 1 < 2 * HASHED_OIDS else HASHED_OIDS
    return oid


def _make_constraint_row(table: Relation, oid: int, name: str, kind: str, **more: object) -> Row:
    build = make_row_builder("pg_constraint")
    known: dict[str, object] = {
        "conenforced": True,
        "convalidated": True,
        "conislocal": True,
        "connoinherit": kind != "c",
        "confupdtype": " ",
        "confdeltype": " ",
        "confmatchtype": " ",
    }
    own = {"oid": oid, "conname": name, "connamespace": table.schema_oid, "contype": kind}
    return build(**(known | own | {"conrelid": table.oid} | more))


def _make_key_constraint(table: Relation, index: Relation) -> Constraint:
    assert index.shape is not None
    columns = [key.number for key in index.shape.keys]
    kind = "p" if index.shape.primary else "u"
    row = _make_constraint_row(
        table, index.oid, index.name, kind, conindid=index.oid, conkey=columns
    )
    return Constraint(index.oid, describe_key_constraint(index), row)


def _make_foreign_key_constraint(
    relations: Relations, one: Relation, table: Table, key: ForeignKey, oid: int
) -> Constraint:
    parent = relations.catalog.table(key.parent)
    own, others = map_slots_to_numbers(table.columns), map_slots_to_numbers(parent.columns)
    index = find_primary_key_oid(parent)
    if key.parent_index is not None:
        index = FIRST_OBJECT_OID + key.parent_index
    row = _make_constraint_row(
        one,
        oid,
        key.name,
        "f",
        condeferrable=key.deferrable,
        condeferred=key.initially_deferred,
        conenforced=key.enforced,
        conindid=index,
        confrelid=find_object_oid(parent),
        confupdtype=_ACTIONS[key.on_update],
        confdeltype=_ACTIONS[key.on_delete],
        confmatchtype="s",
        conkey=[own[slot] for slot in key.columns],
        confkey=[others[slot] for slot in key.parent_columns],
    )
    return Constraint(oid, describe_foreign_key(relations.catalog, table, key), row)
