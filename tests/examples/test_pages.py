"""What the pages for users show works as it stands, and prints what they say."""

from __future__ import annotations

import codeop
import re
from functools import reduce
from pathlib import Path

import pytest

import belvedere
from belvedere.session.copy import options
from belvedere.session.system_tables.tables import TABLES
from tests.examples.code_names import code_spans
from tests.examples.snippets import blocks, run_page
from tools import reference

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(
    "name", ["python", "from_postgresql", "processes", "migrations", "sqlalchemy"]
)
def test_snippets_of_a_page_run(name: str, tmp_path: Path) -> None:
    page = (DOCS / f"{name}.md").read_text()
    assert blocks(page, "python")
    run_page(page, tmp_path)


def test_the_tutorial_prints_what_it_says(tmp_path: Path) -> None:
    page = (DOCS / "tutorial.md").read_text()
    outputs = run_page(page, tmp_path)
    assert outputs["python"].splitlines() == "".join(blocks(page, "text")).splitlines()
    assert "Graz" in outputs["sh"]
    assert "maintenance: deferred, max_lag 5 minutes" in outputs["sh"]
    assert (tmp_path / "shop.sql").exists()


PAGES = [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_can_be_pasted_one_after_another(page: Path) -> None:
    compiler = codeop.CommandCompiler()
    for block in blocks(page.read_text(), "python"):
        pending: list[str] = []
        for line in [*block.splitlines(), ""]:
            pending.append(line)
            if compiler("\n".join(pending)) is not None:
                pending = []
        assert not pending, block


def test_new_option_of_copy_needs_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "SUPPORTED", options.SUPPORTED - {"quote"})
    assert reference.find_outdated_pages() == ["copy_options.md"]


def test_names_that_pages_tell_programs_to_use_can_be_reached() -> None:
    """`con.x.y`, `cursor.x` and `belvedere.X`, where it is no system table or module."""
    tables = {f"belvedere.{name}" for schema, name in TABLES if schema == "belvedere"}
    missing = []
    with belvedere.connect(":memory:") as con:
        starts = {"con": con, "cursor": con.cursor(), "belvedere": belvedere}
        for page in PAGES:
            for span in code_spans(page):
                found = re.match(r"(con|cursor|belvedere)((?:\.[A-Za-z]\w*)+)", span)
                if found is None or found[0] in tables or is_module(found[0]):
                    continue
                try:
                    reduce(getattr, found[2].split(".")[1:], starts[found[1]])
                except AttributeError:
                    missing.append(f"{page.name}: {span}")
    assert missing == []


def is_module(name: str) -> bool:
    """Whether it is a module of the package, or something in one: another test looks at those."""
    path = DOCS.parent / "src" / Path(*name.split(".")[:2])
    return name in OTHERS or path.is_dir() or path.with_suffix(".py").exists()


OTHERS = ("belvedere.store", "belvedere.statements", "belvedere.relations", "belvedere.token")
"""Loggers, a table of HBase, and a parameter of the protocol."""
