"""Unfinished builds of indexes and views, and which of them are resumed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import AnyObject, Index, ObjectState, View
from belvedere.catalog.view_options import Backfill


def list_unfinished_builds(catalog: Catalog) -> tuple[Index | View, ...]:
    """The indexes and views whose build has begun and not ended: not backfilled yet, or staged and
    not yet put in place of the view they replace."""
    return select_unfinished_builds(catalog.objects.values())


def select_unfinished_builds(objects: Iterable[AnyObject | None]) -> tuple[Index | View, ...]:
    """The unfinished builds among objects of a catalog."""
    return tuple(
        [item for item in objects if isinstance(item, Index | View) and is_unfinished_build(item)]
    )


def list_begun_builds(changed: Mapping[int, AnyObject | None], first_id: int) -> list[int]:
    """The ids, from `first_id` on, of the unfinished builds that a change of the catalog began."""
    return [
        id_
        for id_, item in changed.items()
        if id_ >= first_id and isinstance(item, Index | View) and is_unfinished_build(item)
    ]


def is_unfinished_build(item: Index | View | None) -> bool:
    if item is None or (isinstance(item, View) and waits_for_backfill_command(item)):
        return False
    return item.state is ObjectState.BUILDING or is_staged_replacement(item)


def is_staged_replacement(item: Index | View) -> bool:
    """Whether it was made to take the place of another view and has not done so."""
    return isinstance(item, View) and item.state is ObjectState.READY and item.replaces is not None


def select_builds_to_resume(left: Sequence[Index | View], *, every: bool) -> list[Index | View]:
    """The unfinished items whose build is resumed: resumable views, or with `every` all views; and
    the indexes and auxiliary views they depend on. In the order in which they are backfilled."""
    asked = [
        item for item in left if _is_resumable_view(item) or (every and not _is_replacement(item))
    ]
    views = [item for item in asked if isinstance(item, View)]
    below = {id_ for view in views for id_ in (*view.supporting_objects, *view.auxiliary_views)}
    kept = [item for item in left if item in asked or item.id in below]
    return sorted(kept, key=lambda item: item.id)


def _is_resumable_view(item: Index | View) -> bool:
    return isinstance(item, View) and item.options.backfill is Backfill.RESUMABLE


def _is_replacement(item: Index | View) -> bool:
    """Whether the view was created to replace another view, which still serves reads."""
    return isinstance(item, View) and item.replaces is not None


def waits_for_backfill_command(view: View) -> bool:
    """Whether the view waits for `belvedere pipeline backfill`, also across a restart."""
    return view.state is ObjectState.BUILDING and view.options.backfill is Backfill.LATER
