"""ARCHITECTURE.md is true: what it lists is there, what is planned is not, the order holds."""

from __future__ import annotations

import re
from pathlib import Path

from tools.imports import LAYERS

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "ARCHITECTURE.md").read_text()
PARTS = PAGE.partition("## The parts\n")[2].partition("\n## ")[0]
FOLDERS = PAGE.partition("## The folders of the large parts\n")[2].partition("\n## ")[0]
PLANNED = "*planned:*"


def listed(page: str) -> dict[str, bool]:
    """Part to whether it is planned, from the table of parts."""
    parts = {}
    for names, purpose in re.findall(r"^\| (`.*?) \| (.*) \|$", page, re.MULTILINE):
        for name in re.findall(r"`(\w+)/?`", names):
            parts[name] = purpose.startswith(PLANNED)
    return parts


def is_there(root: Path, name: str) -> bool:
    package = root / "src" / "belvedere" / name
    return package.with_suffix(".py").exists() or any(package.rglob("*.py"))


def test_parts_are_there_unless_planned() -> None:
    for name, planned in listed(PARTS).items():
        there = is_there(REPOSITORY, name)
        assert there != planned, f"ARCHITECTURE.md: {name}: is there: {there}, planned: {planned}"


def test_every_part_is_listed() -> None:
    layers = {name for names in LAYERS for name in names if not name.startswith("__")}
    assert listed(PARTS).keys() == layers


def test_folders_are_listed_as_the_packages_list_them() -> None:
    shown: dict[str, list[str]] = {}
    for package, folder in re.findall(r"^\| `(\w+)/(\w+)/` \|", FOLDERS, re.MULTILINE):
        shown.setdefault(package, []).append(folder)
    assert shown == {package: _list_folders(package) for package in shown}
    assert shown.keys() == {"advisor", "execution", "pipeline", "session", "sql", "txn", "views"}


def _list_folders(package: str) -> list[str]:
    """The folders of a package, in the order of its `__init__`."""
    root = REPOSITORY / "src" / "belvedere" / package
    listing = re.findall(r"^    (\w+)/ ", (root / "__init__.py").read_text(), re.MULTILINE)
    assert set(listing) == {path.parent.name for path in root.glob("*/__init__.py")}
    return listing


def test_import_order_is_the_one_that_is_checked() -> None:
    shown = re.search(r"```text\n(\(benchmarks .*?)```", PAGE, re.DOTALL)
    assert shown
    order = [tuple(re.findall(r"\w+", step)) for step in shown[1].split("/")]
    assert order == [names for names in LAYERS if not names[0].startswith("__")]


def test_planned_part_is_recognised() -> None:
    assert listed("| `a/` | *planned:* x |\n| `b`, `c` | y; *planned:* z |\n") == {
        "a": True,
        "b": False,
        "c": False,
    }
