"""`belvedere demo`: a shop, two views, and what makes them worth having, in a minute."""

from __future__ import annotations

import shutil
import tempfile
import threading
from pathlib import Path

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from belvedere.interfaces.commands.dump import dump
from belvedere.interfaces.dbapi import Connection, Cursor, connect

SCHEMA = """\
CREATE TABLE customers (id bigint PRIMARY KEY, name text NOT NULL, city text NOT NULL);
CREATE TABLE orders (
  id bigint PRIMARY KEY,
  customer bigint NOT NULL REFERENCES customers (id),
  total numeric(10,2) NOT NULL);"""

IMMEDIATE = """\
CREATE MATERIALIZED VIEW spent AS
  SELECT c.id, c.name, count(*) AS orders, sum(o.total) AS total
  FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.id, c.name;"""

DEFERRED = """\
CREATE MATERIALIZED VIEW by_city WITH (maintenance = 'deferred') AS
  SELECT c.city, count(o.id) AS orders, max(o.total) AS largest
  FROM customers c LEFT JOIN orders o ON o.customer = c.id GROUP BY c.city;"""

CITIES = ("Vienna", "Graz", "Linz")
ORDERS = 300


def demo(keep: Path | None = None) -> None:
    """Show what Belvedere does. `--keep DIR` leaves the demo's store there."""
    console = Console()
    directory = Path(tempfile.mkdtemp(prefix="belvedere-demo-"))
    try:
        _tell(console, directory / "shop.db")
        if keep is not None:
            shutil.copytree(directory / "shop.db", keep)
            console.print(f"the store is in [bold]{keep}[/]")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _tell(console: Console, path: Path) -> None:
    with connect(str(path), durability="off") as connection:
        connection.autocommit = True
        story = _Story(console, connection)
        story.chapter("1. A shop, in SQL, on a key-value store")
        story.run(SCHEMA)
        for number in range(1, 7):
            row = (number, f"customer {number}", CITIES[number % 3])
            connection.execute("INSERT INTO customers VALUES (?, ?, ?)", row)
        story.chapter("2. A view inside every transaction, and one that follows the log")
        story.run(IMMEDIATE)
        story.run(DEFERRED)
        story.chapter(f"3. Four writers, {ORDERS} orders")
        _write_orders(str(path))
        story.run("SELECT * FROM spent ORDER BY total DESC LIMIT 3;")
        story.chapter("4. Freshness is the reader's choice")
        _freshness(story)
        story.chapter("5. Nothing is trusted that cannot be verified")
        story.run("VERIFY MATERIALIZED VIEW spent;")
        story.run("VERIFY MATERIALIZED VIEW by_city;")
        story.run("EXPLAIN SELECT * FROM orders WHERE id = 7;")
    story.chapter("6. What the store holds (`belvedere dump`)")
    lines = [line for line in dump(path, 2) if not line.startswith("meta")]
    console.print("\n".join(lines[-18:]), markup=False, highlight=False)


def _write_orders(path: str) -> None:
    def write(worker: int) -> None:
        with connect(path, durability="off") as connection:
            connection.autocommit = True
            for number in range(worker, ORDERS, 4):
                row = (number, number % 5 + 1, f"{number % 97}.50")
                connection.execute("INSERT INTO orders VALUES (?, ?, ?)", row)

    workers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def _freshness(story: _Story) -> None:
    story.run("INSERT INTO orders VALUES (1000, 6, 999.00);")
    query = "SELECT * FROM by_city ORDER BY city;"
    for wanted in ("any", "session", "250 ms", "latest"):
        story.run(query, freshness=wanted)


class _Story:
    """Prints statements and what they answer."""

    def __init__(self, console: Console, connection: Connection) -> None:
        self._console = console
        self._connection = connection

    def chapter(self, title: str) -> None:
        self._console.print(f"\n[bold]{title}[/]")

    def run(self, text: str, freshness: str | None = None) -> None:
        note = "" if freshness is None else f"  -- freshness = '{freshness}'"
        self._console.print(Syntax(text + note, "sql", background_color="default"))
        cursor = self._connection.execute(text, freshness=freshness)
        if cursor.description is not None:
            self._console.print(_table(cursor))


def _table(cursor: Cursor) -> Table:
    table = Table()
    assert cursor.description is not None
    for column in cursor.description:
        table.add_column(column[0])
    for row in cursor.fetchall():
        table.add_row(*("NULL" if value is None else str(value) for value in row))
    return table
