"""The options of a materialized view (WITH ..), parsed once.

    maintenance     'immediate' or 'deferred': inside the commit, or after it
    placement       'local': one entry for each partition of the base table, combined on read
    join            'colocated': rows of the joined tables next to each other under the join key,
                    joined on read
    max_lag         '500 ms', a goal: maintenance is delayed to gather changes, but not beyond it
    refresh_every   '5 s', a period: the view is maintained only then
    strict          false: a definition without a delta is recomputed as a whole
    keep_changes    for how many positions subscribers can read the view's changes
    backfill        'later': another process backfills the view; 'resumable': a backfill interrupted
                    by the death of the process is resumed

The catalog stores the texts as the user wrote them, in one map from names to texts. The same map
holds what the system records of a view (`IndexColumns`, the view it replaces), under names that no
user can write because `check_options` refuses them:

    index               the columns of the relation below an index: their slots, as '2,0,1'
    index keys          how many of these columns CREATE INDEX named
    unique              how many columns of a unique index are its key
    takes the place of  the id of the view that this one replaces once it is backfilled
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from belvedere.errors import InvalidInput
from belvedere.values.durations import parse_duration_us

FORM_NAMES = ("placement", "join", "strict")
"""Options that decide how a definition is compiled."""

SCHEDULE_NAMES = ("max_lag", "refresh_every")
OPTION_NAMES = (
    "maintenance",
    "placement",
    "join",
    "max_lag",
    "refresh_every",
    "strict",
    "keep_changes",
    "backfill",
)
GOAL_US = 40_000
"""The lag that a deferred view without a schedule aims at."""

_INDEX, _INDEX_KEYS, _UNIQUE = "index", "index keys", "unique"
_REPLACES = "takes the place of"
_SYSTEM_NAMES = frozenset((_INDEX, _INDEX_KEYS, _UNIQUE, _REPLACES))
_CHOICES = {
    "placement": ("remote", "local"),
    "join": ("materialized", "colocated"),
    "strict": ("true", "false"),
}
_TRUTH = {"on": "true", "off": "false", "1": "true", "0": "false", "yes": "true", "no": "false"}


CLOSE = "close"
"""The schedule of a view without one, as `belvedere.views` shows it and `max_lag` takes it."""


class Maintenance(enum.StrEnum):
    IMMEDIATE = "immediate"
    DEFERRED = "deferred"


class Backfill(enum.StrEnum):
    """How a view is backfilled that its statement does not backfill to the end."""

    LATER = "later"
    RESUMABLE = "resumable"


class Schedule(NamedTuple):
    """When a deferred view is maintained. At most one of the two is given; without either the view
    follows the log closely (GOAL_US), gathering the changes of a few milliseconds."""

    max_lag_us: int | None = None
    refresh_every_us: int | None = None

    @property
    def goal_s(self) -> float:
        """The largest age of a change that the view does not show yet."""
        return (self.max_lag_us or GOAL_US) / 1e6

    @property
    def period_s(self) -> float | None:
        return None if self.refresh_every_us is None else self.refresh_every_us / 1e6


class ViewForm(NamedTuple):
    """How the rows of a definition are stored."""

    local: bool = False
    colocated: bool = False
    strict: bool = True
    is_index: bool = False  # rows in the order of the columns, whatever they come from


class IndexColumns(NamedTuple):
    """The columns of a view that CREATE INDEX made. `slots` are those of the relation below, in the
    order of the index; the statement named the first `key_count` of them (None: not noted). In a
    unique index no two rows have equal values in the first `unique_count`."""

    slots: tuple[int, ...]
    key_count: int | None = None
    unique_count: int | None = None


class ViewOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a view; `texts` are what the user wrote, in that order."""

    texts: dict[str, str] = {}
    maintenance: Maintenance = Maintenance.IMMEDIATE
    schedule: Schedule = Schedule()
    local: bool = False
    colocated: bool = False
    strict: bool = True
    keep_changes: int | None = None
    backfill: Backfill | None = None

    def select_texts(self, names: Iterable[str]) -> dict[str, str]:
        """The texts that the user wrote for those of these options that are given."""
        wanted = frozenset(names)
        return {name: text for name, text in self.texts.items() if name in wanted}

    def with_text(self, name: str, text: str) -> ViewOptions:
        return parse_options({**self.texts, name: text})


NO_OPTIONS = ViewOptions()


def form_of(options: ViewOptions, index: IndexColumns | None) -> ViewForm:
    return ViewForm(options.local, options.colocated, options.strict, index is not None)


# -- what a user writes ----------------------------------------------------------------------------


def check_options(texts: Mapping[str, str]) -> ViewOptions:
    """Check the options of WITH (..) or SET (..); 22023 for an option that no view has."""
    check_option_names(texts)
    options = parse_options(texts)
    if options.maintenance is Maintenance.IMMEDIATE and texts.keys() & set(SCHEDULE_NAMES):
        raise InvalidInput(
            "a schedule is for deferred views",
            sqlstate="22023",
            hint="add maintenance = 'deferred', or leave out max_lag and refresh_every",
        )
    return options


def check_option_names(names: Iterable[str]) -> None:
    """22023 for an option that no view has."""
    for name in names:
        if name not in OPTION_NAMES:
            raise InvalidInput(
                "unknown option of a materialized view",
                sqlstate="22023",
                hint="known are " + ", ".join(OPTION_NAMES),
                name=name,
            )


def parse_options(texts: Mapping[str, str]) -> ViewOptions:
    """Parse the texts of options; 22023 for a text that is not valid."""
    local, colocated, strict = _parse_form(texts)
    texts = {k: v for k, v in texts.items() if (k, v.lower()) != ("max_lag", CLOSE)}
    return ViewOptions(
        texts=texts,
        local=local,
        colocated=colocated,
        strict=strict,
        backfill=_parse_backfill(texts.get("backfill")),
        schedule=_parse_schedule(texts.get("max_lag"), texts.get("refresh_every")),
        keep_changes=_parse_positions(texts.get("keep_changes")),
        maintenance=_parse_maintenance(texts.get("maintenance")),
    )


def _parse_form(texts: Mapping[str, str]) -> tuple[bool, bool, bool]:
    chosen = {name: _parse_choice(name, texts[name]) for name in FORM_NAMES if name in texts}
    local = chosen.get("placement") == "local"
    colocated = chosen.get("join") == "colocated"
    if local and colocated:
        raise InvalidInput(
            "a co-located join cannot be local",
            sqlstate="22023",
            detail="its tables are partitioned by different keys",
        )
    return local, colocated, chosen.get("strict", "true") == "true"


def _parse_choice(name: str, text: str) -> str:
    given = text.lower()
    if name == "strict":
        given = _TRUTH.get(given, given)
    if given not in _CHOICES[name]:
        raise InvalidInput(
            f"invalid {name}",
            sqlstate="22023",
            hint="use " + " or ".join(f"'{one}'" for one in _CHOICES[name]),
            found=text,
        )
    return given


def _parse_backfill(text: str | None) -> Backfill | None:
    try:
        return None if text is None else Backfill(text)
    except ValueError:
        raise InvalidInput(
            "invalid backfill", sqlstate="22023", hint="use 'later' or 'resumable'", found=text
        ) from None


def _parse_schedule(max_lag: str | None, refresh_every: str | None) -> Schedule:
    if max_lag is not None and refresh_every is not None:
        raise InvalidInput(
            "a view has either max_lag or refresh_every",
            sqlstate="22023",
            hint="max_lag is a goal, refresh_every a period",
        )
    return Schedule(
        None if max_lag is None else duration_us(max_lag),
        None if refresh_every is None else duration_us(refresh_every),
    )


def duration_us(text: str) -> int:
    length = parse_duration_us(text)
    if not length:
        raise InvalidInput(
            "invalid duration",
            sqlstate="22023",
            text=text,
            hint="write it like '500 ms' or '5 s'; more than nothing",
        )
    return length


def _parse_positions(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or not int(text):
        raise InvalidInput(
            "keep_changes is a number of positions", sqlstate="22023", found=text, hint="100000"
        )
    return int(text)


def _parse_maintenance(text: str | None) -> Maintenance:
    try:
        return Maintenance.IMMEDIATE if text is None else Maintenance(text.lower())
    except ValueError:
        raise InvalidInput(
            "invalid maintenance",
            sqlstate="22023",
            hint="use 'immediate' or 'deferred'",
            found=text,
        ) from None


# -- what the catalog stores -----------------------------------------------------------------------


def encode_options(
    options: ViewOptions, index: IndexColumns | None = None, replaces: int | None = None
) -> dict[str, str]:
    """The map that the catalog stores."""
    stored = dict(options.texts)
    if index is not None:
        stored[_INDEX] = ",".join(map(str, index.slots))
        if index.key_count is not None:
            stored[_INDEX_KEYS] = str(index.key_count)
        if index.unique_count is not None:
            stored[_UNIQUE] = str(index.unique_count)
    if replaces is not None:
        stored[_REPLACES] = str(replaces)
    return stored


def decode_options(stored: Mapping[str, str]) -> ViewOptions:
    return parse_options({name: t for name, t in stored.items() if name not in _SYSTEM_NAMES})


def decode_index(stored: Mapping[str, str]) -> IndexColumns | None:
    if _INDEX not in stored:
        return None
    keys, unique = stored.get(_INDEX_KEYS), stored.get(_UNIQUE)
    return IndexColumns(
        tuple(map(int, stored[_INDEX].split(","))),
        None if keys is None else int(keys),
        None if unique is None else int(unique),
    )


def decode_replaces(stored: Mapping[str, str]) -> int | None:
    replaces = stored.get(_REPLACES)
    return None if replaces is None else int(replaces)
