"""The lists of docs/reference are what the code has."""

from __future__ import annotations

import pytest

from belvedere.session.context import settings
from tools import reference


def test_pages_are_as_the_code_is() -> None:
    assert reference.find_outdated_pages() == [], "run python -m tools.reference"


def test_new_setting_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    new = settings.Setting("new_setting", "on", settings.parse_boolean, "does something")
    monkeypatch.setitem(settings.SETTINGS, "new_setting", new)
    assert reference.find_outdated_pages() == ["settings.md"]
