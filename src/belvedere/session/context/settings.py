"""Settings of a session: SET, SHOW and RESET, with PostgreSQL's names where it has one.

A setting is text to its user; `parse` turns it into the value the session works with and refuses
invalid text. SET LOCAL at the end of its transaction, and every SET of a transaction that is rolled
back, restore the earlier value.
"""

from __future__ import annotations

import datetime
import difflib
import functools
import importlib.resources
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from belvedere.errors import InvalidInput, Unsupported
from belvedere.execution.choose_tier import Tier
from belvedere.session.context.freshness import parse_freshness
from belvedere.txn.contracts import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    SERIALIZABLE,
    SNAPSHOT,
    Isolation,
)
from belvedere.values.datetimes import find_session_zone, format_offset, zone_spelling
from belvedere.values.durations import UNITS_US, parse_duration_us
from belvedere.views.cost.maintenance_tier import MaintenanceTier

_HOURS = re.compile(r"[-+]?\d{1,2}(\.\d+)?")
_ON = {"on": True, "true": True, "yes": True, "1": True}
_OFF = {"off": False, "false": False, "no": False, "0": False}

ISOLATIONS = {
    "read uncommitted": READ_UNCOMMITTED,
    "read committed": READ_COMMITTED,
    "repeatable read": SNAPSHOT,
    "snapshot": SNAPSHOT,
    "serializable": SERIALIZABLE,
}


class Setting(NamedTuple):
    name: str
    default: str
    parse: Callable[[str], Any]
    description: str
    fixed: bool = False


NAME_LENGTH_MAX = 100
"""No setting has a longer name; what is like a long one takes much memory to find."""


def parse_duration_ms(text: str) -> int:
    length_us = parse_duration_us(text, bare_unit="ms")
    if length_us is None:
        raise InvalidInput(
            "invalid duration", sqlstate="22023", text=text, hint="write it like '500 ms' or '2 s'"
        )
    return length_us // UNITS_US["ms"]


def parse_boolean(text: str) -> bool:
    known = _ON | _OFF
    if text.lower() not in known:
        raise InvalidInput("invalid boolean", sqlstate="22023", text=text)
    return known[text.lower()]


def parse_isolation(text: str) -> Isolation:
    found: Isolation = parse_choice("isolation level", ISOLATIONS, text)
    return found


def parse_choice(what: str, known: dict[str, Any], text: str) -> Any:
    if text.lower() not in known:
        raise InvalidInput(
            f"invalid {what}", sqlstate="22023", text=text, hint=f"one of {', '.join(known)}"
        )
    return known[text.lower()]


def _parse_execution_tier(text: str) -> Tier:
    found: Tier = parse_choice("tier", {tier.value: tier for tier in Tier}, text)
    return found


def _parse_maintenance_tier(text: str) -> MaintenanceTier | None:
    """The engine for batches of deferred views: a setting of all sessions of the open store."""
    found: MaintenanceTier | None = parse_choice(
        "maintenance tier", {"auto": None, **{way.value: way for way in MaintenanceTier}}, text
    )
    return found


def _parse_maintenance_share(text: str) -> float:
    """A share of one core for the maintenance worker: a setting of all sessions of the store."""
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0.0 < share <= 1.0:
        raise InvalidInput(
            "invalid share", sqlstate="22023", text=text, hint="more than 0, at most 1"
        )
    return share


def _parse_time_zone(text: str) -> datetime.tzinfo:
    """By name, or by hours east of UTC; 22023 when there is none."""
    if text.lower() in ("utc", "etc/utc", "gmt", "default", "local", "0"):
        return datetime.UTC
    if _HOURS.fullmatch(text) and abs(float(text)) < 24:
        return datetime.timezone(datetime.timedelta(hours=float(text)))
    return find_session_zone(text)


def _format_time_zone(text: str) -> str:
    """A time zone for SHOW: a name as it is written, hours as PostgreSQL spells them."""
    if text.lower() in ("default", "local"):
        return "UTC"
    if not _HOURS.fullmatch(text):
        return zone_spelling(text)
    shown = format_offset(round(float(text) * 3600))
    other = format_offset(round(-float(text) * 3600))
    return f"<{shown}>{other}"


def _make_choice_parser(*values: str) -> Callable[[str], str]:
    """A parser that accepts only these values and refuses others as unsupported."""
    known = {value.lower(): value for value in values}

    def parse_allowed(text: str) -> str:
        word = text.strip("'\"")
        if word.lower() not in known:
            raise Unsupported("value of setting", value=word, hint=f"use {values[0]}")
        return known[word.lower()]

    return parse_allowed


def format_duration_setting(text: str) -> str:
    """A time as SHOW has it: in the largest unit that it is a whole number of."""
    length_us = parse_duration_ms(text) * UNITS_US["ms"]
    if length_us == 0:
        return "0"
    unit = next(one for one in ("d", "h", "min", "s", "ms") if length_us % UNITS_US[one] == 0)
    return f"{length_us // UNITS_US[unit]}{unit}"


def _parse_search_path(text: str) -> tuple[str, ...]:
    return tuple(part.strip().strip('"') for part in text.split(",") if part.strip())


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("tier", "auto", _parse_execution_tier, "who answers: direct, duckdb or auto"),
        Setting("freshness", "session", parse_freshness, "how fresh views must be"),
        Setting("rewrite", "on", parse_boolean, "whether views answer queries that name tables"),
        Setting(
            "statement_timeout",
            "0",
            parse_duration_ms,
            "how long a statement may take; 0: any time",
        ),
        Setting(
            "idle_in_transaction_session_timeout",
            "0",
            parse_duration_ms,
            "how long a transaction of a client of the server may be idle; 0: any time",
        ),
        Setting(
            "lock_timeout",
            "0",
            parse_duration_ms,
            "how long a lock may be waited for; 0: as long as the store allows, 10 s by default",
        ),
        Setting(
            "default_transaction_isolation", "read committed", parse_isolation, "of transactions"
        ),
        Setting("default_transaction_read_only", "off", parse_boolean, "of transactions"),
        Setting("transaction_isolation", "read committed", parse_isolation, "of this transaction"),
        Setting("transaction_read_only", "off", parse_boolean, "of this transaction"),
        Setting("jit", "off", _make_choice_parser("off"), "there is none"),
        Setting(
            "search_path",
            '"$user", public',
            _parse_search_path,
            "where unqualified names are looked up",
        ),
        Setting(
            "maintenance_share",
            "1",
            _parse_maintenance_share,
            "how much of the time deferred views may take",
        ),
        Setting(
            "maintenance_tier",
            "auto",
            _parse_maintenance_tier,
            "who works out deferred views: python, duckdb, refill or auto",
        ),
        Setting("application_name", "", str, "the name the client gave itself"),
        Setting("timezone", "UTC", _parse_time_zone, "of TIMESTAMP WITH TIME ZONE"),
        Setting(
            "datestyle", "ISO, MDY", _make_choice_parser("ISO, MDY", "ISO"), "how dates are written"
        ),
        Setting(
            "intervalstyle",
            "postgres",
            _make_choice_parser("postgres"),
            "how intervals are written",
        ),
        Setting(
            "client_encoding",
            "UTF8",
            _make_choice_parser("UTF8", "UTF-8", "unicode"),
            "of text",
        ),
        Setting(
            "standard_conforming_strings",
            "on",
            _make_choice_parser("on"),
            "backslashes are plain",
        ),
        Setting("extra_float_digits", "1", int, "accepted and ignored: floats are exact"),
        Setting("client_min_messages", "notice", str, "which notices are sent"),
        Setting("row_security", "off", parse_boolean, "accepted; there is none"),
        Setting("server_version", "16.0", str, "the PostgreSQL whose dialect is spoken", True),
        Setting("server_version_num", "160000", str, "the same as a number", True),
        Setting("server_encoding", "UTF8", str, "of text", True),
        Setting("max_index_keys", "32", str, "columns of a key, at most", True),
        Setting("default_table_access_method", "heap", str, "of tables; there is one", True),
        Setting("is_superuser", "on", str, "whether the role has every right", True),
        Setting("session_authorization", "belvedere", str, "the role that the session acts for"),
        Setting("role", "none", str, "the role whose rights the session has, if it is another"),
        Setting("in_hot_standby", "off", str, "always", True),
        Setting("integer_datetimes", "on", str, "always", True),
    )
}


OF_ROLE = ("session_authorization", "role")
"""Who the session is: RESET ALL leaves it."""


class SessionSettings:
    """The values of one session. `get` gives the parsed value."""

    def __init__(self) -> None:
        self._texts = {name: setting.default for name, setting in SETTINGS.items()}
        self._values = {name: setting.parse(setting.default) for name, setting in SETTINGS.items()}
        self._before: dict[str, str] = {}
        self._local: dict[str, str] = {}
        self.tier: Tier = self._values["tier"]
        self.zone: datetime.tzinfo = datetime.UTC
        self.rewrite = True
        self.watchers: dict[str, Callable[[Any], None]] = {}  # told when their setting changes
        self.guards: dict[str, Callable[[str], None]] = {}  # refuse what a session may not set
        self._starts: dict[str, str] = {}  # what RESET goes back to, where it is not the default
        self.version = 0

    def settings_by_name(self) -> dict[str, Setting]:
        return SETTINGS

    def get(self, name: str) -> Any:
        return self._values[name]

    def get_shown_text(self, name: str) -> str:
        return self._texts[require_setting(name).name]

    def set(self, name: str, text: str | None, *, local: bool = False) -> None:
        """None: the default. The old value is stored until `restore_after_transaction`, which may
        restore it."""
        setting = require_setting(name)
        if setting.fixed:
            raise InvalidInput("setting cannot be changed", sqlstate="55P02", name=setting.name)
        value = self._starts.get(setting.name, setting.default) if text is None else text
        parsed = setting.parse(value)
        if setting.name in self.guards and value != self._texts[setting.name]:
            self.guards[setting.name](value)
        if setting.name == "timezone":
            value = _format_time_zone(value)
        elif setting.parse is parse_duration_ms:
            value = format_duration_setting(value)
        kept = self._local if local else self._before
        kept.setdefault(setting.name, self._texts[setting.name])
        self._store_setting_value(setting.name, value, parsed)
        if setting.name == "session_authorization":
            self.set("role", "none", local=local)

    def set_derived_setting(self, name: str, text: str) -> None:
        """Set what follows from something else, and what RESET goes back to."""
        self._starts[name] = text
        if self._texts[name] != text:
            self._store_setting_value(name, text, SETTINGS[name].parse(text))

    def keep_as_reset_values(self) -> None:
        """What is set now is what RESET goes back to: called when a client has connected."""
        self._starts = {
            name: text for name, text in self._texts.items() if text != SETTINGS[name].default
        }
        self._before, self._local = {}, {}

    def reset(self, name: str) -> None:
        if name == "all":
            for setting in SETTINGS.values():
                if not setting.fixed and setting.name not in OF_ROLE:
                    self.set(setting.name, None)
        else:
            self.set(name, None)

    def _store_setting_value(self, name: str, text: str, value: Any) -> None:
        self._texts[name] = text
        self._values[name] = value
        self.version += 1
        if name == "tier":
            self.tier = value
        elif name == "timezone":
            self.zone = value
        elif name == "rewrite":
            self.rewrite = value
        if name in self.watchers:
            self.watchers[name](value)

    @property
    def has_local_settings(self) -> bool:
        """Whether SET LOCAL has set something."""
        return bool(self._local)

    def restore_after_transaction(self, *, committed: bool) -> None:
        """Restore, at the end of a transaction, local settings and those of a rollback."""
        back = self._local if committed else self._local | self._before
        for name, text in back.items():
            self._store_setting_value(name, text, SETTINGS[name].parse(text))
        self._local, self._before = {}, {}


@functools.cache
def load_postgres_setting_names() -> frozenset[str]:
    """PostgreSQL's setting names: one that Belvedere lacks is unsupported, not unknown."""
    file = importlib.resources.files("belvedere.session") / "postgres_settings.txt"
    return frozenset(file.read_text().split())


def require_setting(name: str) -> Setting:
    setting = SETTINGS.get(name.lower())
    if setting is not None:
        return setting
    if name.lower() in load_postgres_setting_names():
        raise Unsupported("setting", name=name.lower())
    near = difflib.get_close_matches(name[:NAME_LENGTH_MAX].lower(), SETTINGS, n=3)
    raise InvalidInput(
        "unrecognized configuration parameter",
        sqlstate="42704",
        hint=f"did you mean {', '.join(near)}?" if near else None,
        name=name,
    )
