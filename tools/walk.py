"""The walk of a statement through the code: `python -m tools.walk`.

It runs statements of a small shop and traces every call of a function of the package:

    calls       all calls, generators that are resumed included
    functions   different functions
    modules     different modules
    changes     how often a call is to another module, folder or part than the call before it

A reader who follows the statement goes where the calls go, so few changes say that its stages are
done one after the other. `--pairs` prints between which modules most changes are. With
`PYTHONPATH=other/src` and `python -P tools/walk.py` the same statements are traced in another tree.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import belvedere

ROOT = str(Path(belvedere.__file__).parent) + "/"
PAIRS_SHOWN = 30

TABLES = (
    "CREATE TABLE customers (id int PRIMARY KEY, city text NOT NULL)",
    "CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, amount numeric(9,2) NOT NULL)",
)
ROWS = tuple(
    text
    for i in range(3)
    for text in (
        f"INSERT INTO customers VALUES ({i}, 'c{i % 2}')",
        f"INSERT INTO orders VALUES ({i}, {i}, {2 * i})",
    )
)
CREATE = (
    "CREATE MATERIALIZED VIEW {name} {options} AS SELECT c.city, count(*) AS n,"
    " sum(o.amount) AS total FROM orders o JOIN customers c ON c.id = o.customer GROUP BY c.city"
)
INSERT = "INSERT INTO orders VALUES (?, ?, ?)"
READ = "SELECT * FROM later WHERE city = ?"


class Walk:
    """The calls of functions of the package while a statement runs, as (module, function)."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def record_call(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT):
            self.calls.append((code.co_filename[len(ROOT) : -3], code.co_qualname))

    def list_modules(self) -> list[str]:
        return [module for module, _ in self.calls]


def trace_statement(
    connection: belvedere.Connection, text: str, parameters: tuple[object, ...] = ()
) -> Walk:
    walk = Walk()
    sys.setprofile(walk.record_call)
    try:
        connection.execute(text, parameters)
    finally:
        sys.setprofile(None)
    return walk


class Changes(NamedTuple):
    """How often a walk goes to another module, folder, or part (the first folder)."""

    modules: int
    folders: int
    parts: int


def count_changes(walk: Walk) -> Changes:
    modules = walk.list_modules()
    folders = [module.rpartition("/")[0] for module in modules]
    parts = [module.split("/")[0] for module in modules]
    return Changes(*(sum(a != b for a, b in pairwise(one)) for one in (modules, folders, parts)))


def describe_walk(name: str, walk: Walk) -> str:
    changes, modules = count_changes(walk), set(walk.list_modules())
    return (
        f"{name:32} {len(walk.calls):6} calls {len(set(walk.calls)):5} functions"
        f" {len(modules):4} modules; changes of module {changes.modules:5},"
        f" folder {changes.folders:5}, part {changes.parts:5}"
    )


def trace_walks() -> dict[str, Walk]:
    """The walks of three statements, by name."""
    connection = belvedere.connect(":memory:", autocommit=True)
    for text in (*TABLES, *ROWS):
        connection.execute(text)
    walks = {
        "CREATE MATERIALIZED VIEW": trace_statement(
            connection, CREATE.format(name="by_city", options="")
        )
    }
    connection.execute(CREATE.format(name="later", options="WITH (maintenance = 'deferred')"))
    connection.execute("SET freshness = 'latest'")
    walks["cached INSERT"] = _trace_with_kept_plan(connection, INSERT, (1, 5))
    for _ in range(2):
        connection.execute(READ, ("c1",))
    connection.execute(INSERT, (9, 1, 5))
    walks["deferred read at 'latest'"] = trace_statement(connection, READ, ("c1",))
    connection.close()
    return walks


def _trace_with_kept_plan(
    connection: belvedere.Connection, text: str, values: tuple[object, ...]
) -> Walk:
    """The plan of a statement is dropped when a run of it was slow, as on a busy machine."""
    for number in itertools.count(10):
        walk = trace_statement(connection, text, (number, *values))
        if not any(function == "parse_script" for _, function in walk.calls):
            break
    return walk


def main(arguments: list[str]) -> None:
    for name, walk in trace_walks().items():
        print(describe_walk(name, walk))
        if "--pairs" in arguments:
            modules = walk.list_modules()
            pairs = Counter(pair for pair in pairwise(modules) if pair[0] != pair[1])
            for (one, other), count in pairs.most_common(PAIRS_SHOWN):
                print(f"{count:6}  {one} -> {other}")


if __name__ == "__main__":
    main(sys.argv[1:])
