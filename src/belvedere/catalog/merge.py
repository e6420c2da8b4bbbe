"""Changes of the catalog that go together: what commits although the catalog is a newer one by now.

Two edits go together when one only creates objects, under names that are still free, and refers to
nothing that the other changed (`merge_created_objects`). A writer goes together with a change of
its table that leaves its rows as they are (`accepts_rows_of`).
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from belvedere.catalog.catalog import Catalog, is_dropped
from belvedere.catalog.model import (
    HEAD_ID,
    NAMELESS,
    AnyObject,
    CatalogColumn,
    Head,
    Index,
    Schema,
    Sequence,
    Table,
)

Changed = Mapping[int, AnyObject | None]


def merge_created_objects(planned: Catalog, newest: Catalog, changed: Changed) -> Changed | None:
    """The objects of an edit of `planned` as an edit of `newest`; None: it has to start over."""
    head = changed.get(HEAD_ID)
    created = [item for id_, item in changed.items() if id_ != HEAD_ID]
    theirs = _list_differences(planned, newest)
    if not isinstance(head, Head) or any(
        isinstance(planned.get(id_), Sequence) and id_ not in newest.objects for id_ in theirs
    ):
        return None  # a default may name a sequence that has gone
    taken = {name for item in theirs.values() if item is not None for name in _list_names(item)}
    for item in created:
        if not isinstance(item, Table | Index | Sequence | Schema):
            return None
        if item.id in planned.objects or item.id in newest.objects:
            return None
        if not theirs.keys().isdisjoint(_list_references(item)):
            return None
        if not taken.isdisjoint(_list_names(item)):
            return None
    version = newest.version + 1
    next_id = max(head.next_id, newest.head.next_id)
    merged: dict[int, AnyObject | None] = {
        item.id: replace(item, version=version) for item in created if item is not None
    }
    return {**merged, HEAD_ID: replace(head, version=version, next_id=next_id)}


def _list_differences(planned: Catalog, newest: Catalog) -> Changed:
    """What others changed between the two, by id (None: removed), the head left out."""
    before, after = planned.objects, newest.objects
    found: dict[int, AnyObject | None] = {
        id_: item
        for id_, item in after.items()
        if id_ != HEAD_ID and (id_ not in before or before[id_].version != item.version)
    }
    return found | dict.fromkeys(before.keys() - after.keys())


def _list_names(item: AnyObject) -> list[tuple[int, str]]:
    """The name it takes, in its name space."""
    if isinstance(item, Schema):
        return [(0, item.name)]
    if isinstance(item, NAMELESS) or is_dropped(item):
        return []
    return [(item.schema, item.name)]


def _list_references(item: Table | Index | Sequence | Schema) -> set[int]:
    """The objects that have to be as they were for this one to be right."""
    found = {item.schema}
    if isinstance(item, Index):
        found.add(item.table)
    if isinstance(item, Table):
        for key in item.foreign_keys:
            found |= {key.parent} if key.parent_index is None else {key.parent, key.parent_index}
    return found


def accepts_rows_of(planned: AnyObject | None, newest: AnyObject | None) -> bool:
    """Whether rows written for a table as it was are rows of it as it is now: it was renamed, or
    has got columns that older rows need not have."""
    if not isinstance(planned, Table) or not isinstance(newest, Table):
        return False
    count = len(planned.columns)
    added = newest.columns[count:]
    if any(
        column.generated is not None
        or column.sequence is not None
        or (column.not_null and column.missing is None)
        for column in added
    ):
        return False
    columns = tuple(map(_keep_stored_part, newest.columns[:count]))
    names = {"name": planned.name, "primary_key_name": planned.primary_key_name}
    same = replace(newest, version=planned.version, schema=planned.schema, columns=columns, **names)
    return same == replace(planned, columns=tuple(map(_keep_stored_part, planned.columns)))


def _keep_stored_part(column: CatalogColumn) -> CatalogColumn:
    """What of a column says how its values are stored, and what they may be."""
    return replace(column, name="", default=None)
