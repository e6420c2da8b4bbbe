"""Comments of objects: stored, and given to the object that replaces another."""

from __future__ import annotations

from msgspec.structs import replace

from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import AnyObject, Comments, match_slots_by_name


def put_comments(edit: CatalogEdit, found: Comments) -> None:
    """Store the comments of an object; those with id 0 are new, and empty ones are removed."""
    if found.text is not None or found.columns or found.constraints:
        edit.put(replace(found, id=found.id or edit.allocate_id()))
    elif found.id:
        edit.remove_object(found.id)


def rename_constraint_comment(edit: CatalogEdit, table: int, old: str, new: str | None) -> None:
    """Follow a constraint to its new name; None: it is dropped."""
    found = edit.catalog.comments.get(table)
    if found is None or old not in found.constraints:
        return
    texts = {name: text for name, text in found.constraints.items() if name != old}
    if new is not None:
        texts[new] = found.constraints[old]
    put_comments(edit, replace(found, constraints=texts))


def move_comments(edit: CatalogEdit, old: AnyObject, new: AnyObject) -> None:
    """Give the object that replaces another its comments, columns by their names."""
    found = edit.catalog.comments.get(old.id)
    if found is None:
        return
    slots = match_slots_by_name(old, new)
    columns = {slots[slot]: kept for slot, kept in found.columns.items() if slot in slots}
    put_comments(edit, replace(found, object=new.id, columns=columns))
