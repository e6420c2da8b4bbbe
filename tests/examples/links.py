"""Links between the Markdown pages of a tree: which are dead, and which pages they reach; and the
pages that code and pages name by their path.

A link leads to a file or directory, and to a heading of it by `#anchor`, spelled as GitHub spells
it. A directory stands for its README.md. Links inside code, and to other sites, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
_FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_CODE_SPAN = re.compile(r"`[^`\n]*`")
_NAMED = re.compile(r"(?<![\w/])docs/[\w/]+\.md")
_INDEX = "README.md"


@dataclass(frozen=True, slots=True)
class Link:
    """`target` is the page or other file; `anchor` is a heading of it, or empty."""

    page: Path
    written: str
    target: Path
    anchor: str


def find_pages(root: Path) -> list[Path]:
    """Every Markdown page of the repository, without hidden and built directories."""
    return sorted(
        path
        for path in root.rglob("*.md")
        if not any(part.startswith(".") or part == "build" for part in path.relative_to(root).parts)
    )


def find_links(page: Path) -> Iterator[Link]:
    text = _CODE_SPAN.sub("", _FENCED.sub("", page.read_text()))
    for written in _LINK.findall(text):
        if "://" in written or written.startswith("mailto:"):
            continue
        name, _, anchor = written.partition("#")
        target = (page.parent / name).resolve() if name else page
        if target.is_dir() and (target / _INDEX).exists():
            target /= _INDEX
        yield Link(page, written, target, anchor)


def find_dead_links(root: Path) -> list[str]:
    return [
        f"{page.relative_to(root)} links to {link.written}"
        for page in find_pages(root)
        for link in find_links(page)
        if not link.target.exists() or (link.anchor and link.anchor not in anchors(link.target))
    ]


def find_dead_names(root: Path) -> list[str]:
    """Places in the product, its tools and its pages that name a page which is not there."""
    code = [path for part in ("src", "tools") for path in sorted((root / part).rglob("*.py"))]
    return [
        f"{path.relative_to(root)} names {name}"
        for path in [*find_pages(root), *code]
        for name in _NAMED.findall(path.read_text())
        if not (root / name).exists()
    ]


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page; a heading that comes again gets -1, -2, .."""
    if page.suffix != ".md":
        return set()
    found: set[str] = set()
    for heading in _HEADING.findall(_FENCED.sub("", page.read_text())):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        again = 0
        while (numbered := f"{anchor}-{again}" if again else anchor) in found:
            again += 1
        found.add(numbered)
    return found


def find_unreached_pages(root: Path) -> list[str]:
    """Pages under docs/ that no chain of links leads to from README.md."""
    waiting = [(root / _INDEX).resolve()]
    reached = set(waiting)
    while waiting:
        for link in find_links(waiting.pop()):
            if link.target.suffix == ".md" and link.target.exists() and link.target not in reached:
                reached.add(link.target)
                waiting.append(link.target)
    return [
        str(page.relative_to(root))
        for page in find_pages(root / "docs")
        if page.resolve() not in reached
    ]
