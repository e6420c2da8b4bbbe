"""When a deferred view is maintained: the options `max_lag` and `refresh_every`.

    max_lag = '500 ms'      a goal: work is put off so that changes gather, but not past it
    refresh_every = '5 s'   periodic: the view moves only then
    neither                 follow closely (GOAL_US), gathering the changes of a few milliseconds

Views of one schedule are one maintenance group.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from belvedere.catalog.edit import Edit
from belvedere.catalog.model import Maintenance, View
from belvedere.errors import InvalidInput

MAX_LAG = "max_lag"
REFRESH_EVERY = "refresh_every"
OPTIONS = (MAX_LAG, REFRESH_EVERY)
GOAL_US = 40_000
"""What a view without a schedule aims at."""

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|min|h|d)\s*")
_UNITS_US = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}


class Schedule(NamedTuple):
    """One of the two is given, or neither."""

    max_lag_us: int | None = None
    refresh_every_us: int | None = None

    @property
    def goal_s(self) -> float:
        """How old the oldest change may get that the view does not show."""
        return (self.max_lag_us or GOAL_US) / 1e6

    @property
    def period_s(self) -> float | None:
        return None if self.refresh_every_us is None else self.refresh_every_us / 1e6


def parsed_us(text: str) -> int | None:
    """A duration such as '250 ms' in microseconds; None for anything else."""
    found = _DURATION.fullmatch(text)
    return None if found is None else int(float(found[1]) * _UNITS_US[found[2]])


def duration_us(text: str) -> int:
    length = parsed_us(text)
    if not length:
        raise InvalidInput(
            "invalid duration",
            sqlstate="22023",
            text=text,
            hint="write it like '500 ms' or '5 s'; more than nothing",
        )
    return length


def schedule_of(options: Mapping[str, str]) -> Schedule:
    if MAX_LAG in options and REFRESH_EVERY in options:
        raise InvalidInput(
            "a view has either max_lag or refresh_every",
            sqlstate="22023",
            hint="max_lag is a goal, refresh_every a period",
        )
    lag, every = options.get(MAX_LAG), options.get(REFRESH_EVERY)
    return Schedule(
        None if lag is None else duration_us(lag), None if every is None else duration_us(every)
    )


def group_for(edit: Edit, schedule: Schedule) -> int:
    """The maintenance group of this schedule: that of another view, or a new one."""
    for view in edit.catalog.views:
        if view.maintenance is Maintenance.DEFERRED and view.group:
            if schedule_of(view.options) == schedule:
                return view.group
    return edit.allocate()


def schedules(views: tuple[View, ...]) -> dict[int, Schedule]:
    """The groups of these deferred views."""
    return {view.group: schedule_of(view.options) for view in views}
