"""The tables, and each bulk statement with what it needs before.

Each task is done without an index, with one on the column that changes, and with the index and an
immediate view; the other systems have the same index and no view.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from belvedere.benchmarks.bulk.peers import BulkPeer

COLUMNS = "(id BIGINT PRIMARY KEY, region INTEGER NOT NULL, amount BIGINT NOT NULL, note TEXT)"
INSERT = "INSERT INTO {} VALUES (?, ?, ?, ?)"
REGIONS = 100
VALUES_ROWS = 1_000
COPIED = 10
"""How many times more rows are inserted, copied and indexed than are updated."""


@dataclass(frozen=True, slots=True)
class Variant:
    """What a table has besides its rows."""

    name: str
    index: bool
    view: bool


VARIANTS = (
    Variant("", index=False, view=False),
    Variant(", index", index=True, view=False),
    Variant(", index and view", index=True, view=True),
)


@dataclass(frozen=True, slots=True)
class Place:
    """What a task works on: a system with its tables, and how many rows a task changes."""

    peer: BulkPeer
    rows: int
    file: Path
    """Ten times `rows` rows, as comma-separated values."""

    def create_target(self, variant: Variant) -> None:
        create_table(self, "target", variant)


@dataclass(frozen=True, slots=True)
class Task:
    """`prepare` is not timed; `work` changes `factor` times as many rows as the place says."""

    name: str
    factor: float
    peer: str
    """The system of the goal."""
    ratio_max: float | None
    prepare: Callable[[Place, Variant], None]
    work: Callable[[Place], object]
    variants: tuple[Variant, ...] = VARIANTS
    slow: tuple[str, ...] = ()
    """Systems that would take minutes."""

    @property
    def goal(self) -> str:
        return "" if self.ratio_max is None else f"<= {self.ratio_max:g} ratio"


def make_row(number: int) -> tuple[int, int, int, str]:
    return number, number * 7 % REGIONS, number * 31 % 10_007, f"note {number}"


def write_rows(path: Path, rows: int) -> None:
    """The file that COPY reads; others may read it too."""
    with path.open("w") as lines:
        for number in range(rows):
            lines.write(",".join(map(str, make_row(number))) + "\n")
    path.chmod(0o644)


def create_table(place: Place, name: str, variant: Variant) -> None:
    """An empty table in place of an earlier one."""
    drop_table(place, name)
    execute = place.peer.execute
    execute(f"CREATE TABLE {name} {COLUMNS}")
    if variant.index:
        execute(f"CREATE INDEX {name}_amount ON {name} (amount)")
    if variant.view and place.peer.name == "belvedere":
        execute(
            f"CREATE MATERIALIZED VIEW {name}_regions WITH (maintenance = 'immediate') AS"
            f" SELECT region, count(*) AS n, sum(amount) AS total FROM {name} GROUP BY region"
        )


def drop_table(place: Place, name: str) -> None:
    if place.peer.name == "belvedere":
        place.peer.execute(f"DROP MATERIALIZED VIEW IF EXISTS {name}_regions")
    place.peer.execute(f"DROP TABLE IF EXISTS {name}")


def load_table(place: Place, name: str, rows: int) -> None:
    place.peer.execute(
        f"INSERT INTO {name} SELECT id, region, amount, note FROM source WHERE id < {rows}"
    )


def _load_target(place: Place, variant: Variant) -> None:
    """Rows that the last round has deleted come back."""
    [(found,)] = place.peer.execute("SELECT count(*) FROM target").fetchall()
    if found < 2 * place.rows:
        place.create_target(variant)
        load_table(place, "target", 2 * place.rows)


def _empty_target(place: Place, variant: Variant) -> None:
    place.create_target(variant)


def _drop_index(place: Place, _: Variant) -> None:
    place.peer.execute("DROP INDEX IF EXISTS source_amount")


def _update_all(place: Place) -> Any:
    return place.peer.execute("UPDATE target SET amount = amount + 1")


def _update_range(place: Place) -> Any:
    low, high = place.rows // 2, place.rows // 2 + place.rows
    return place.peer.execute(
        f"UPDATE target SET amount = amount + 1 WHERE id >= {low} AND id < {high}"
    )


def _update_scattered(place: Place) -> Any:
    return place.peer.execute("UPDATE target SET amount = amount + 1 WHERE id % 2 = 0")


def _delete_range(place: Place) -> Any:
    low, high = place.rows // 2, place.rows // 2 + place.rows
    return place.peer.execute(f"DELETE FROM target WHERE id >= {low} AND id < {high}")


def _insert_select(place: Place) -> None:
    load_table(place, "target", COPIED * place.rows)


def _copy_file(place: Place) -> None:
    place.peer.copy_file("target", place.file)


def _insert_many(place: Place) -> None:
    place.peer.insert_many(
        INSERT.format("target"), [make_row(number) for number in range(2 * place.rows)]
    )


def _create_index(place: Place) -> None:
    place.peer.execute("CREATE INDEX source_amount ON source (amount)")


def _insert_values(place: Place) -> None:
    """A text that was never seen before: its first number tells the round."""
    rows = ", ".join(str(make_row(number)) for number in range(VALUES_ROWS))
    place.peer.execute(f"INSERT INTO target VALUES {rows}")


PLAIN = VARIANTS[:1]

TASKS = (
    Task("UPDATE of all rows", 2, "sqlite3", 3, _load_target, _update_all),
    Task("UPDATE of a range", 1, "sqlite3", 3, _load_target, _update_range),
    Task("UPDATE, scattered", 1, "sqlite3", 3, _load_target, _update_scattered),
    Task("DELETE of a range", 1, "sqlite3", 3, _load_target, _delete_range),
    Task("INSERT .. SELECT", COPIED, "PostgreSQL", 2, _empty_target, _insert_select),
    Task("COPY", COPIED, "PostgreSQL", 2, _empty_target, _copy_file),
    Task("executemany", 2, "sqlite3", None, _empty_target, _insert_many, VARIANTS, ("DuckDB",)),
    Task("CREATE INDEX", COPIED, "PostgreSQL", None, _drop_index, _create_index, PLAIN),
    Task(
        "VALUES of 1,000 rows, new text", 0, "sqlite3", None, _empty_target, _insert_values, PLAIN
    ),
)
"""`factor` 0: 1,000 rows, whatever the size."""
