from __future__ import annotations

import datetime

import pytest

from belvedere.errors import InvalidInput
from belvedere.execution.choose_tier import Tier
from belvedere.session.context.freshness import Freshness, FreshnessKind, parse_freshness
from belvedere.session.context.settings import SessionSettings


@pytest.fixture
def settings() -> SessionSettings:
    return SessionSettings()


def test_a_setting_is_text_outside_and_a_value_inside(settings: SessionSettings) -> None:
    settings.set("tier", "DIRECT")
    assert settings.get_shown_text("tier") == "DIRECT"
    assert settings.tier is Tier.DIRECT
    settings.set("statement_timeout", "2 s")
    assert settings.get("statement_timeout") == 2_000
    settings.set("statement_timeout", "1 hour 30 minutes")
    assert settings.get("statement_timeout") == 5_400_000
    assert settings.get_shown_text("statement_timeout") == "90min"
    settings.set("statement_timeout", "2 s")


def test_default_and_reset_go_back(settings: SessionSettings) -> None:
    settings.set("tier", "duckdb")
    settings.set("tier", None)
    assert settings.tier is Tier.AUTO
    settings.set("tier", "duckdb")
    settings.reset("all")
    assert settings.tier is Tier.AUTO


def test_rollback_takes_settings_back_and_commit_keeps_them(settings: SessionSettings) -> None:
    settings.set("tier", "direct")
    settings.restore_after_transaction(committed=False)
    assert settings.tier is Tier.AUTO
    settings.set("tier", "direct")
    settings.restore_after_transaction(committed=True)
    assert settings.tier is Tier.DIRECT


def test_local_settings_end_with_the_transaction(settings: SessionSettings) -> None:
    settings.set("tier", "direct", local=True)
    settings.restore_after_transaction(committed=True)
    assert settings.tier is Tier.AUTO


def test_an_unknown_setting_gets_the_nearest_names(settings: SessionSettings) -> None:
    with pytest.raises(InvalidInput) as caught:
        settings.set("freshnes", "any")
    assert caught.value.sqlstate == "42704"
    assert "freshness" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("name", "value", "sqlstate"),
    [
        ("tier", "fast", "22023"),
        ("statement_timeout", "soon", "22023"),
        ("server_version", "9", "55P02"),
        ("freshness", "now", "22023"),
        ("freshness", "5", "22023"),
        ("freshness", "1 hour ago", "22023"),
    ],
)
def test_wrong_values_change_nothing(
    settings: SessionSettings, name: str, value: str, sqlstate: str
) -> None:
    before = settings.get_shown_text(name)
    with pytest.raises(InvalidInput) as caught:
        settings.set(name, value)
    assert caught.value.sqlstate == sqlstate
    assert settings.get_shown_text(name) == before


def test_time_zones_are_known_by_name_and_hours(settings: SessionSettings) -> None:
    settings.set("timezone", "europe/berlin")
    assert settings.get_shown_text("timezone") == "Europe/Berlin"
    assert str(settings.zone) == "Europe/Berlin"
    settings.set("timezone", "-3")
    assert settings.zone.utcoffset(None) == datetime.timedelta(hours=-3)
    with pytest.raises(InvalidInput) as caught:
        settings.set("timezone", "Nowhere/Land")
    assert caught.value.sqlstate == "22023"
    settings.restore_after_transaction(committed=False)
    assert settings.zone is datetime.UTC


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("any", Freshness(FreshnessKind.ANY)),
        (" Latest ", Freshness(FreshnessKind.LATEST)),
        ("250 ms", Freshness(FreshnessKind.BOUNDED, 250_000)),
        ("1 hour", Freshness(FreshnessKind.BOUNDED, 3_600_000_000)),
        ("PT5M", Freshness(FreshnessKind.BOUNDED, 300_000_000)),
        ("2 h", Freshness(FreshnessKind.BOUNDED, 7_200_000_000)),
        ("1.5s", Freshness(FreshnessKind.BOUNDED, 1_500_000)),
        ("a" * 54, Freshness(FreshnessKind.TOKEN, token="a" * 54)),
    ],
)
def test_freshness_is_read(text: str, expected: Freshness) -> None:
    assert parse_freshness(text) == expected
