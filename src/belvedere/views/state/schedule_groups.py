"""Maintenance groups by schedule: deferred views that have one schedule are one group."""

from __future__ import annotations

from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import Maintenance, View
from belvedere.catalog.view_options import Schedule


def find_or_allocate_group(edit: CatalogEdit, schedule: Schedule) -> int:
    """The maintenance group of this schedule: that of another view with the same, or a new one."""
    for view in edit.catalog.views:
        if view.maintenance is Maintenance.DEFERRED and view.group:
            if view.options.schedule == schedule:
                return view.group
    return edit.allocate_id()


def map_groups_to_schedules(views: tuple[View, ...]) -> dict[int, Schedule]:
    """The groups of these deferred views."""
    return {view.group: view.options.schedule for view in views}
