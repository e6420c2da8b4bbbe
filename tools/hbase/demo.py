"""`make demo-cluster`: two nodes, two shops and Spark on one HBase, and a kill -9 of each kind.

python -m tools.hbase.demo             starts an HBase for itself, and removes it
python -m tools.hbase.demo --url URL   on an HBase that runs: a database that is not there yet

1. a database on HBase: tables, an immediate and a deferred view
2. two processes `belvedere node`, two processes that write orders
3. one node and one writer are killed, like kill -9; the others go on
4. every order that was acknowledged is there, and both views verify
5. Spark reads the orders from HBase in its tasks, with no process between, and finds the same sums

Ends with 1, saying what differs, when anything does.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import belvedere
from belvedere.interfaces.dbapi import Connection
from tools.hbase.demo_spark import sum_orders_in_spark
from tools.hbase.single import start_single

ORDERS = 150
MANY = 10**9
FIRST_DOOMED = 10**9
WAIT_SECONDS_MAX = 180
DATABASE = "shop?lease_ms=5000&grace_ms=4000&timeout_ms=2000"
SCHEMA = (
    "CREATE TABLE customers (id bigint PRIMARY KEY, city text NOT NULL)",
    "CREATE TABLE orders (id bigint PRIMARY KEY, customer bigint NOT NULL REFERENCES customers,"
    " total bigint NOT NULL)",
    "INSERT INTO customers VALUES (0, 'Vienna'), (1, 'Graz'), (2, 'Linz'), (3, 'Graz')",
    "CREATE MATERIALIZED VIEW spent AS"
    " SELECT customer, count(*) AS orders, sum(total) AS total FROM orders GROUP BY customer",
    "CREATE MATERIALIZED VIEW by_city WITH (maintenance = 'deferred') AS"
    " SELECT c.city, count(*) AS orders, sum(o.total) AS total"
    " FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.city",
)
VIEWS = ("spent", "by_city")


class DemoFailed(Exception):
    """What is not as it should be."""


def run_demo(url: str, orders: int = ORDERS, *, with_spark: bool = True) -> None:
    """The whole story on a database that is not there yet. DemoFailed when something is lost."""
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as started:
        shop = started.enter_context(belvedere.connect(url, autocommit=True))
        _say("1. A database on HBase, with an immediate and a deferred view")
        for statement in SCHEMA:
            shop.execute(statement)
            print("  ", statement.split(" AS")[0])
        notes = [Path(scratch) / f"{number}.notes" for number in range(2)]
        _say("2. Two nodes tend it, two processes write orders")
        nodes = [_run_node(started, url) for _ in range(2)]
        doomed = started.enter_context(_start_writer(url, notes[0], FIRST_DOOMED, MANY))
        writer = started.enter_context(_start_writer(url, notes[1], 0, orders))
        _wait_until(lambda: len(read_notes(notes[:1])) >= orders // 5, "nobody writes")
        _print_nodes(shop)
        _say("3. kill -9: one node, one writer")
        for process in (nodes[0], doomed):
            process.kill()
            process.wait()
        print(f"   {len(read_notes(notes))} orders were acknowledged so far; the others go on")
        _wait_until(lambda: writer.poll() is not None, "the other writer does not finish")
        _wait_until(lambda: len(_list_nodes(shop)) == 2, "nobody notes the dead as gone")
        _print_nodes(shop)
        check_orders(shop, read_notes(notes))
        if with_spark:
            _check_with_spark(shop, url)


def check_orders(shop: Connection, acknowledged: set[int]) -> None:
    _say("4. Nothing is lost, and the views are right")
    shop.execute("SET freshness = 'latest'")
    found = {id_ for (id_,) in shop.execute("SELECT id FROM orders")}
    print(f"   {len(acknowledged)} orders acknowledged, {len(found)} in the table")
    if acknowledged - found:
        raise DemoFailed(f"lost: {sorted(acknowledged - found)}")
    for view in VIEWS:
        [verified] = shop.execute(f"VERIFY MATERIALIZED VIEW {view}").fetchall()
        print(f"   VERIFY MATERIALIZED VIEW {view}: {verified[-1]}")
        if verified[-1] is not True:
            raise DemoFailed(f"view {view} is wrong: {verified}")


def _check_with_spark(shop: Connection, url: str) -> None:
    _say("5. Spark reads the orders from HBase in its tasks, and finds the same sums")
    expected = sorted(shop.execute("SELECT * FROM spent").fetchall())
    found = sum_orders_in_spark(url)
    for customer, orders, total in found:
        print(f"   customer {customer}: {orders} orders, {total}")
    if found != expected:
        raise DemoFailed(f"Spark finds {found}, the view has {expected}")


def _say(title: str) -> None:
    print(f"\n{title}", flush=True)


def _print_nodes(shop: Connection) -> None:
    for node, here, alive in _list_nodes(shop):
        print(f"   node {node}: {'alive' if alive else 'silent'}{', this process' * here}")


def _list_nodes(shop: Connection) -> list[tuple[int, bool, bool]]:
    return shop.execute("SELECT node, here, alive FROM belvedere.nodes ORDER BY node").fetchall()


def read_notes(notes: list[Path]) -> set[int]:
    return {int(id_) for path in notes if path.exists() for id_ in path.read_text().split()}


def _start_writer(
    url: str, notes: Path, first: int, orders: int
) -> AbstractContextManager[subprocess.Popen[bytes]]:
    return _run("-m", "tools.hbase.demo_writer", url, str(notes), str(first), str(orders))


def _run_node(started: ExitStack, url: str) -> subprocess.Popen[bytes]:
    """A process `belvedere node`, once it has joined."""
    node = started.enter_context(_run("-m", "belvedere", "node", "--database", url))
    assert node.stdout is not None
    print("  ", node.stdout.readline().decode().rstrip() or "a node did not start")
    return node


@contextmanager
def _run(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Python process, which is killed in the end."""
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _wait_until(is_so: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not is_so():
        if time.monotonic() > deadline:
            raise DemoFailed(otherwise)
        time.sleep(0.1)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools.hbase.demo")
    parser.add_argument("--url", help="hbase://host:port/namespace of a database to be made")
    options = parser.parse_args()
    try:
        if options.url is not None:
            run_demo(options.url)
            return 0
        with tempfile.TemporaryDirectory(prefix="belvedere-hbase-") as home:
            _say("0. A real HBase, in one JVM")
            hbase = start_single(Path(home), detached=False)
            try:
                run_demo(f"{hbase.url}/{DATABASE}")
            finally:
                hbase.stop()
    except DemoFailed as failure:
        print(f"failed: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
