"""`belvedere demo`: a shop with an immediate and a deferred view, shown in a minute.

The deferred view is maintained every ten seconds only, so that its lag can be seen; a reader that
asks for fresher rows still gets them.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from pathlib import Path

import typer
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from belvedere.interfaces.advice import AdviceOptions, give_advice
from belvedere.interfaces.commands.dump import dump_store
from belvedere.interfaces.dbapi import Connection, Cursor, connect
from belvedere.session.session import Session

SCHEMA = """\
CREATE TABLE customers (
  id bigint PRIMARY KEY,
  name text NOT NULL,
  city text NOT NULL);
CREATE TABLE orders (
  id bigint PRIMARY KEY,
  customer bigint NOT NULL REFERENCES customers (id),
  total numeric(10,2) NOT NULL);"""

IMMEDIATE = """\
CREATE MATERIALIZED VIEW spent AS
  SELECT c.id, c.name, count(*) AS orders, sum(o.total) AS total
  FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.id, c.name;"""

EXPLAIN_VIEW = f"EXPLAIN {IMMEDIATE}"

DEFERRED = """\
CREATE MATERIALIZED VIEW by_city
  WITH (maintenance = 'deferred', refresh_every = '10 s') AS
  SELECT c.city, count(o.id) AS orders, max(o.total) AS largest
  FROM customers c LEFT JOIN orders o ON o.customer = c.id GROUP BY c.city;"""

LAG = """\
SELECT name, maintenance, backlog AS behind, lag_ms::int AS lag_ms, rows
  FROM belvedere.views WHERE name IN ('spent', 'by_city');"""

CITY_ORDERS = """\
SELECT o.id, c.name, o.total FROM orders o, customers c
  WHERE o.customer = c.id AND c.city = ? ORDER BY o.total DESC LIMIT 5"""

WORKLOAD = f"""\
-- name: city_orders calls: 1000
{CITY_ORDERS};
-- name: new_order calls: 100
INSERT INTO orders VALUES (?, ?, ?);"""

CITIES = ("Vienna", "Graz", "Linz")
ORDERS = 300


def demo(keep: Path | None = None) -> None:
    """Show what Belvedere does. `--keep DIR` leaves the demo's store there."""
    console = Console()
    if keep is not None:
        if keep.exists():
            raise typer.BadParameter(f"{keep} exists already")
        _run_demo(console, keep)
        console.print(f"the store is in [bold]{keep}[/]")
        return
    directory = Path(tempfile.mkdtemp(prefix="belvedere-demo-"))
    try:
        _run_demo(console, directory / "shop.db")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _run_demo(console: Console, path: Path) -> None:
    with connect(str(path), durability="off") as connection:
        connection.autocommit = True
        story = _Story(console, connection)
        story.print_title("1. A shop, in SQL, on a key-value store")
        story.run_statement(SCHEMA)
        for number in range(1, 7):
            row = (number, f"customer {number}", CITIES[number % 3])
            connection.execute("INSERT INTO customers VALUES (?, ?, ?)", row)
        story.print_title("2. The price of a view before you buy it")
        story.run_statement(EXPLAIN_VIEW)
        story.print_title("3. One view inside every transaction, one that follows the log")
        story.run_statement(IMMEDIATE)
        story.run_statement(DEFERRED)
        story.print_title(
            f"4. Four writers, {ORDERS} orders: one view has them all, the other lags"
        )
        _write_orders(str(path))
        story.run_statement("SELECT * FROM spent ORDER BY total DESC LIMIT 3;")
        story.run_statement(LAG)
        story.print_title("5. Freshness is the reader's choice, on the same view")
        _show_freshness(story)
        story.print_title("6. Nothing is trusted that cannot be verified")
        story.run_statement("VERIFY MATERIALIZED VIEW spent;")
        story.run_statement("REFRESH MATERIALIZED VIEW by_city;")
        story.run_statement("VERIFY MATERIALIZED VIEW by_city;")
        story.print_title("7. Everything explains itself: a write, and a read")
        story.run_statement("EXPLAIN INSERT INTO orders VALUES (2000, 1, 1.00);")
        story.run_statement("EXPLAIN SELECT * FROM spent WHERE id = 1;")
        story.print_title("8. Which views are worth having (`belvedere advise`)")
        _show_advice(story)
    story.print_title("9. What the store holds (`belvedere dump`)")
    lines = [line for line in dump_store(path, 2) if not line.startswith("meta")]
    console.print("\n".join(lines[-18:]), markup=False, highlight=False)


def _write_orders(path: str) -> None:
    def write_share(worker: int) -> None:
        with connect(path, durability="off") as connection:
            connection.autocommit = True
            for number in range(worker, ORDERS, 4):
                row = (number, number % 5 + 1, f"{number % 97}.50")
                connection.execute("INSERT INTO orders VALUES (?, ?, ?)", row)

    workers = [threading.Thread(target=write_share, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def _show_freshness(story: _Story) -> None:
    query = "SELECT * FROM by_city ORDER BY city;"
    story.run_statement("INSERT INTO orders VALUES (1000, 6, 999.00);")
    story.run_statement(query, freshness="any")
    story.print_comment(
        "whatever the view has, own order or not: nothing is waited for, nothing added"
    )
    story.run_statement(query, freshness="session")
    story.print_comment("the default: the connection's own order is there, and it never goes back")
    story.run_statement(query, freshness="250 ms")
    story.print_comment("nothing committed longer ago than a quarter of a second is missing")
    story.run_statement(query, freshness="latest")
    story.print_comment("everything committed: the view, and on top of it what the log has for it")
    story.run_statement(f"EXPLAIN {query}")


def _show_advice(story: _Story) -> None:
    story.print_comment("a workload: what runs, and how often")
    story.print_text(WORKLOAD)
    answer = give_advice(story.session.shared, AdviceOptions(WORKLOAD))
    story.print_text(answer["report"])
    for statement in answer["views"]:
        story.run_statement(statement)
    story.print_comment("the query is the same, and is answered from the new view")
    query = CITY_ORDERS.replace("?", "'Graz'")
    story.run_statement(f"EXPLAIN {query}")


class _Story:
    """Runs statements on a connection and prints them with their results."""

    def __init__(self, console: Console, connection: Connection) -> None:
        self._console = console
        self._connection = connection

    def print_title(self, title: str) -> None:
        self._console.print(f"\n[bold]{title}[/]")

    def print_comment(self, text: str) -> None:
        self._console.print(f"  [dim]{text}[/]")

    @property
    def session(self) -> Session:
        found = self._connection.session
        assert isinstance(found, Session), "the demo opens its store itself"
        return found

    def print_text(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False)

    def run_statement(self, text: str, freshness: str | None = None) -> None:
        note = "" if freshness is None else f"  -- freshness = '{freshness}'"
        self._console.print(Syntax(text + note, "sql", background_color="default", word_wrap=True))
        cursor = self._connection.execute(text, freshness=freshness)
        if cursor.description is not None:
            self._console.print(_make_table(cursor))


def _make_table(cursor: Cursor) -> Table:
    table = Table()
    assert cursor.description is not None
    for column in cursor.description:
        table.add_column(column[0])
    for row in cursor.fetchall():
        # As Text: brackets in a plan are not markup.
        table.add_row(*(Text("NULL" if value is None else str(value)) for value in row))
    return table
