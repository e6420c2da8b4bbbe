"""A reader of README.md reaches every page, and no link of any page is dead."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples.links import anchors, find_dead_links, find_dead_names, find_unreached_pages

REPOSITORY = Path(__file__).resolve().parents[2]


def write_pages(root: Path, **pages: str) -> Path:
    """README.md, and `docs/name.md` for each other name."""
    (root / "docs").mkdir()
    for name, text in pages.items():
        (root / "README.md" if name == "readme" else root / f"docs/{name}.md").write_text(text)
    return root


def test_no_link_is_dead() -> None:
    assert find_dead_links(REPOSITORY) == []


def test_no_page_is_named_that_is_not_there() -> None:
    assert find_dead_names(REPOSITORY) == []


def test_every_page_is_reached_from_the_readme() -> None:
    assert find_unreached_pages(REPOSITORY) == []


@pytest.mark.parametrize(
    "link", ["docs/gone.md", "docs/a.md#gone", "#gone", "gone/", "docs/a.md#in-code"]
)
def test_dead_link_is_noticed(tmp_path: Path, link: str) -> None:
    root = write_pages(tmp_path, readme=f"# Top\n[x]({link})\n", a="# A\n```\n# In code\n```\n")
    assert find_dead_links(root) == [f"README.md links to {link}"]


@pytest.mark.parametrize(
    "link", ["docs/a.md", "docs/a.md#b-and-c", "#top", "docs", "https://example.com/gone.md"]
)
def test_link_that_leads_somewhere_is_none(tmp_path: Path, link: str) -> None:
    root = write_pages(tmp_path, readme=f"# Top\n[x]({link})\n", a="# A\n\n## `B` and *c*!\n")
    assert find_dead_links(root) == []


def test_name_of_a_page_that_is_not_there_is_noticed(tmp_path: Path) -> None:
    root = write_pages(tmp_path, readme="see `docs/a.md` and `docs/gone.md`\n", a="# A\n")
    (root / "src").mkdir()
    (root / "src/module.py").write_text('"""As docs/b/gone.md says."""\n')
    assert find_dead_names(root) == [
        "README.md names docs/gone.md",
        "src/module.py names docs/b/gone.md",
    ]


def test_links_in_code_are_no_links(tmp_path: Path) -> None:
    page = "`[x](gone.md)`\n\n```text\n[x](gone.md)\n```\n"
    assert find_dead_links(write_pages(tmp_path, readme=page)) == []


def test_page_is_reached_through_an_index(tmp_path: Path) -> None:
    root = write_pages(
        tmp_path, readme="[docs](docs/)", README="[a](a.md)", a="[top](../README.md)", b="[a](a.md)"
    )
    assert find_unreached_pages(root) == ["docs/b.md"]


def test_headings_that_come_again_are_numbered(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One\n## Two\n## Two\n## What `is` [here](x.md)?\n")
    assert anchors(page) == {"one", "two", "two-1", "what-is-here"}
