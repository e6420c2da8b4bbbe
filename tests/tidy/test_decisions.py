"""Every decision record has the five parts that docs/decisions/README.md names, in its order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DIRECTORY = Path(__file__).resolve().parents[2] / "docs" / "decisions"
RECORDS = sorted(DIRECTORY.glob("[0-9]*.md"))
PARTS = re.findall(r"\*\*(\w+)\*\* \(", (DIRECTORY / "README.md").read_text())


def find_parts(record: str) -> list[str]:
    return re.findall(r"^## (.+)$", record, re.MULTILINE)


def test_the_page_names_five_parts() -> None:
    assert len(PARTS) == 5
    assert RECORDS


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_a_record_has_the_five_parts(record: Path) -> None:
    assert find_parts(record.read_text()) == PARTS


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_a_record_is_named_by_its_day(record: Path) -> None:
    assert re.fullmatch(r"20\d{6}_[a-z_]+", record.stem)
