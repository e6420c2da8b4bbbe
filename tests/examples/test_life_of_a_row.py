"""docs/life_of_a_row.md is true: what it names is called, in the order in which it says so.

A walk is a section of the page. Its steps are the full names in it, such as
`session.session.Session.execute`; a class alone, or a member of a class without its module, is an
aside and is not followed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from unittest import mock

import pytest

import belvedere
from belvedere.database import Database
from belvedere.interfaces.dbapi import Connection
from belvedere.views.service import ViewService

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = Path(belvedere.__file__).resolve().parent
PAGE = (REPOSITORY / "docs/life_of_a_row.md").read_text()
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
VIEW = """AS SELECT c.city, count(*) AS orders, sum(o.total) AS total
  FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.city"""
INSERT = "INSERT INTO orders VALUES (?, 7, 9.90)"

Step = tuple[str, str]
"""The file of a function, from the package on, and its name in it."""


def read_walk(heading: str) -> list[Step]:
    """The functions that a section names, in their order, each once."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    assert section, heading
    names = re.findall(r"`([\w.]+)`", FENCED.sub("", section))
    return list(dict.fromkeys(step for name in names if (step := _find_step(name)) is not None))


def _find_step(name: str) -> Step | None:
    parts = name.split(".")
    for length in range(1, len(parts)):
        file = PACKAGE.joinpath(*parts[:length]).with_suffix(".py")
        if file.exists():
            return "/".join(parts[:length]) + ".py", ".".join(parts[length:])
    return None


def follow(walk: list[Step], action: Callable[[], object]) -> list[Step]:
    """The steps of a walk in the order in which an action calls them first."""
    wanted, called = set(walk), dict[Step, None]()

    def on_event(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)):
            step = str(Path(code.co_filename).relative_to(PACKAGE)), code.co_qualname
            if step in wanted:
                called.setdefault(step)

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        action()
    finally:
        sys.setprofile(before)
    return list(called)


@contextmanager
def shop(maintenance: str = "immediate") -> Iterator[Connection]:
    """The shop of the page, without a worker."""
    with mock.patch.object(ViewService, "start_or_wake_worker", return_value=None):
        con = belvedere.connect(":memory:", autocommit=True)
        try:
            con.execute("CREATE TABLE customers (id int PRIMARY KEY, city text)")
            con.execute(
                "CREATE TABLE orders"
                " (id int PRIMARY KEY, customer int NOT NULL, total numeric(12,2))"
            )
            con.execute("INSERT INTO customers VALUES (7, 'Vienna')")
            option = f"WITH (maintenance = '{maintenance}')"
            con.execute(f"CREATE MATERIALIZED VIEW by_city {option} {VIEW}")
            yield con
        finally:
            con.close()


def insert_in_transaction(con: Connection) -> None:
    con.execute("BEGIN")
    con.execute(INSERT, (1,))
    con.execute("COMMIT")


def read_view(con: Connection) -> None:
    assert con.execute("SELECT * FROM by_city").fetchall()


def advance_views(con: Connection) -> None:
    database = con.session.host
    assert isinstance(database, Database)
    assert database.views.deferred.advance_groups([view.group for view in database.catalog.views])


def verify_view(con: Connection) -> None:
    con.execute("VERIFY MATERIALIZED VIEW by_city")


WALKS: dict[str, tuple[str, Callable[[Connection], object]]] = {
    "The first time, in a transaction": ("immediate", insert_in_transaction),
    "The same statement again, by itself": ("immediate", lambda con: con.execute(INSERT, (9,))),
    "Reading": ("immediate", read_view),
    "Deferred views": ("deferred", advance_views),
    "Reading a deferred view at 'latest'": ("deferred", read_view),
    "Trust": ("immediate", verify_view),
}


@pytest.mark.parametrize("heading", WALKS)
def test_functions_of_a_walk_are_called_in_the_order_of_the_page(heading: str) -> None:
    maintenance, action = WALKS[heading]
    walk = read_walk(heading)
    assert len(walk) > 2
    with shop(maintenance) as con:
        if not heading.startswith("The first"):
            con.execute(INSERT, (2,))
            con.execute(INSERT, (3,))
        assert follow(walk, lambda: action(con)) == walk


def test_step_that_is_not_called_or_comes_too_early_is_noticed() -> None:
    walk = read_walk("The same statement again, by itself")
    with shop() as con:
        con.execute(INSERT, (1,))
        assert (
            follow([*walk, ("database.py", "Database.trim")], lambda: con.execute(INSERT, (2,)))
            == walk
        )
        swapped = [walk[1], walk[0], *walk[2:]]
        assert follow(swapped, lambda: con.execute(INSERT, (3,))) != swapped
