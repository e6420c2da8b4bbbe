"""What pages and docstrings name of the code is there: files, modules, functions, classes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.examples.code_names import find_dead_code_names, is_there

REPOSITORY = Path(__file__).resolve().parents[2]
PATH = re.compile(r"`([\w/]+\.py)`")
MODULE = """
from belvedere.types import Row
LIMIT: int = 3
def run_plan(): ...
class ViewMaintainer:
    checks = False
    def __init__(self): self.tree = 1
    def writes(self): ...
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "src/belvedere/views/read").mkdir(parents=True)
    (tmp_path / "tests/views").mkdir(parents=True)
    (tmp_path / "src/belvedere/views/read/catch_up.py").write_text(MODULE)
    (tmp_path / "src/belvedere/database.py").write_text("def open_database(): ...\n")
    return tmp_path


def test_all_code_that_is_named_is_there() -> None:
    assert find_dead_code_names(REPOSITORY) == []


def test_pages_of_operators_name_the_code_and_tests_that_their_table_names() -> None:
    pages = REPOSITORY / "docs/operators"
    listed: dict[str, set[str]] = {page.name: set() for page in pages.glob("[a-z]*.md")}
    for row in re.findall(r"^\| .*\|$", (pages / "README.md").read_text(), re.MULTILINE)[1:]:
        *_, code, tests, page = row.strip("| ").split(" | ")
        assert code.startswith("`views/"), row
        assert tests.startswith("`tests/"), row
        listed[re.sub(r".*\((.*)\)", r"\1", page)].update(PATH.findall(code + tests))
    for page, wanted in listed.items():
        named = (pages / page).read_text().rpartition("\nCode: ")[2]
        assert set(PATH.findall(named)) == wanted, page


@pytest.mark.parametrize(
    "name",
    [
        "views/",
        "database.py",
        "views/read/catch_up.py",
        "views/read/catch_up",
        "views/read/*.py",
        "src/belvedere/views/",
        "tests/views",
        "views.read",
        "views.read.catch_up",
        "views.read.catch_up.run_plan(plan, reader)",
        "views.read.catch_up.LIMIT",
        "views.read.catch_up.ViewMaintainer.writes",
        "belvedere.views.read.catch_up.Row",
        "database.open_database",
        "ViewMaintainer",
        "ViewMaintainer.writes(changes, reader)",
        "ViewMaintainer.checks",
        "ViewMaintainer.tree",
    ],
)
def test_name_of_code_is_found(tree: Path, name: str) -> None:
    assert is_there(tree, name)


@pytest.mark.parametrize(
    "name",
    [
        "gone/",
        "views/gone.py",
        "views/read/gone",
        "views/read/gone*.py",
        "views/read/catch_up/",
        "tests/gone",
        "views.gone",
        "views.read.gone",
        "views.read.catch_up.gone",
        "views.read.catch_up.ViewMaintainer.gone",
        "views.read.catch_up.run_plan.gone",
        "belvedere.views.gone",
        "database.gone",
        "ViewKeeper",
        "gone.py",
        "Keeper.gone",
        "ViewMaintainer.gone(changes)",
    ],
)
def test_name_of_code_that_is_gone_is_noticed(tree: Path, name: str) -> None:
    (tree / "page.md").write_text(f"See `{name}`.\n")
    assert find_dead_code_names(tree) == [f"page.md names {name}"]


@pytest.mark.parametrize(
    "name",
    [
        "SELECT",
        "belvedere.housekeeping",
        "con.execute(sql)",
        "km/h",
        "pg_catalog.gone",
        "max_lag = '1 hour'",
        "Changes",
        "YYYYMMDD_title.md",
        "Trigger.AvailableNow",
    ],
)
def test_other_words_in_code_font_name_no_code(tree: Path, name: str) -> None:
    assert is_there(tree, name)


def test_name_in_a_docstring_is_looked_at(tree: Path) -> None:
    (tree / "src/belvedere/types.py").write_text('"""As `views/gone.py` does."""\n')
    assert find_dead_code_names(tree) == ["src/belvedere/types.py names views/gone.py"]


def test_examples_plans_and_the_change_log_are_left_out(tree: Path) -> None:
    (tree / "page.md").write_text(
        "```sql\n-- `views/gone.py`\n```\n\n| `advisor/` | *planned:* advice |\n"
    )
    (tree / "CHANGELOG.md").write_text("`views/gone.py` went.\n")
    assert find_dead_code_names(tree) == []
