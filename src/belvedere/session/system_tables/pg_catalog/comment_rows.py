"""pg_description, and the comments of a catalog by OID."""

from __future__ import annotations

from collections.abc import Iterator

from belvedere.catalog.model import Comments, PlainView, Schema, Table, View
from belvedere.session.system_tables.pg_catalog.columns import (
    load_catalog_tables,
    make_row_builder,
)
from belvedere.session.system_tables.pg_catalog.constraint_rows import find_constraints
from belvedere.session.system_tables.pg_catalog.oids import (
    CLASS_OID,
    find_object_oid,
)
from belvedere.session.system_tables.pg_catalog.relations import Relations, map_slots_to_numbers
from belvedere.types import Row

CONSTRAINT_CLASS_OID = 2606
NAMESPACE_CLASS_OID = 2615
CLASS_OIDS = {
    "pg_class": CLASS_OID,
    "pg_constraint": CONSTRAINT_CLASS_OID,
    "pg_namespace": NAMESPACE_CLASS_OID,
}
CommentKey = tuple[int, int, int]
"""The object, the catalog that lists it, the number of a column or 0."""


def find_comments(relations: Relations) -> dict[CommentKey, str]:
    """The comments, computed once for each version of the catalog."""
    cache = relations.catalog.derived_cache
    found = cache.get(Comments)
    if not isinstance(found, dict):
        found = dict(_list_comments(relations))
        cache[Comments] = found
    return found


def list_descriptions(relations: Relations) -> Iterator[Row]:
    build = make_row_builder("pg_description")
    for (oid, class_oid, number), text in find_comments(relations).items():
        yield build(objoid=oid, classoid=class_oid, objsubid=number, description=text)


def _list_comments(relations: Relations) -> Iterator[tuple[CommentKey, str]]:
    catalog = relations.catalog
    constraints = _map_constraint_names_to_oids(relations) if catalog.comments else {}
    for comments in catalog.comments.values():
        item = catalog.objects.get(comments.object)
        if item is None:
            continue
        oid = find_object_oid(item)
        if isinstance(item, Schema):
            if comments.text is not None:
                yield (oid, NAMESPACE_CLASS_OID, 0), comments.text
        elif oid in relations.by_oid:
            if comments.text is not None:
                yield (oid, CLASS_OID, 0), comments.text
            if isinstance(item, Table | PlainView | View):
                numbers = map_slots_to_numbers(item.columns)
                for slot, text in comments.columns.items():
                    if not item.columns[slot].dropped:
                        yield (oid, CLASS_OID, numbers[slot]), text
            for name, text in comments.constraints.items():
                if (oid, name) in constraints:
                    yield (constraints[oid, name], CONSTRAINT_CLASS_OID, 0), text


def _map_constraint_names_to_oids(relations: Relations) -> dict[tuple[int, str], int]:
    """OIDs of constraints by their table's and their name."""
    names = [field.name for field in load_catalog_tables()["pg_constraint"].fields]
    table, name = names.index("conrelid"), names.index("conname")
    rows = [(oid, one.row) for oid, one in find_constraints(relations).items()]
    return {(row[table], row[name]): oid for oid, row in rows}
