"""The pages about views show what the program prints: `--update` writes them anew.

A ```sql block is run and the rows of its last statement are what the ```text block after it holds;
a ```delta block runs one statement and prints the rows by which the named view changes, before they
are grouped. A README only lists the pages beside it.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from belvedere.session.session import Session
from tests.views.sql import Store, opened, rows_of

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [
    *sorted((DOCS / "operators").glob("[a-z]*.md")),
    *sorted((DOCS / "views").glob("[a-z]*.md")),
    DOCS / "freshness.md",
    DOCS / "life_of_a_row.md",
    DOCS / "maintenance.md",
]
BLOCK = re.compile(r"```(sql|delta \w+)\n(.*?)```\n```text\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_what_the_program_prints(page: Path, update_golden: bool) -> None:
    text = page.read_text()
    with opened(rewrite=True) as store:
        session = store.session()
        shown = BLOCK.sub(lambda found: written(store, session, found), text)
    if update_golden:
        page.write_text(shown)
    assert shown == text or update_golden


def test_every_page_has_an_example() -> None:
    for page in PAGES:
        assert BLOCK.search(page.read_text()), page.name


def written(store: Store, session: Session, found: re.Match[str]) -> str:
    kind, body = found[1], found[2]
    lines = printed(session, body) if kind == "sql" else delta(store, session, kind[6:], body)
    return f"```{kind}\n{body}```\n```text\n" + "".join(f"{line}\n" for line in lines) + "```"


def printed(session: Session, body: str) -> list[str]:
    rows: list[tuple[object, ...]] = []
    for statement in filter(None, map(str.strip, body.split(";"))):
        rows = rows_of(session, statement)
    return [" | ".join("NULL" if value is None else str(value) for value in row) for row in rows]


def delta(store: Store, session: Session, view: str, statement: str) -> list[str]:
    """The rows that come and go, those that cancel left out."""
    with store.db.begin() as before:
        session.execute("BEGIN")
        session.execute(statement)
        transaction = session.transactions.open
        assert transaction is not None
        maintainer = store.db.views.registry.get_view_maintainer(before.catalog, store.view(view))
        weights: Counter[str] = Counter()
        for row, weight in maintainer.compute_delta_rows(transaction.changes, before):
            weights[", ".join("NULL" if v is None else str(v) for v in row)] += weight
        session.execute("COMMIT")
    lines = [f"{weight:+d}  {row}" for row, weight in weights.items() if weight]
    return sorted(lines, key=lambda line: (line[0] != "-", line)) or ["nothing"]
