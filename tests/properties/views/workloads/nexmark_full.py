"""Nexmark's queries as views over a long stream of events, some of which change and go.

    python -m tests.properties.views.workloads.nexmark_full --events 60000 --cycles 3

Persons, auctions and bids come in the benchmark's proportion of 2 : 6 : 92, ten events a second:
sellers and bidders are persons of late, and bids are mostly for the newest auctions. Every query is
kept twice, immediate and deferred. A cycle is some transactions that change all four tables: the
stream goes on, events come late, are corrected, are taken back and come again. After each of them
every view is compared with its query.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from belvedere.errors import Unsupported
from belvedere.session.session import Session
from tests.properties.views.law import open_manual
from tests.properties.views.workloads.nexmark import QUERIES, TABLES
from tests.unrewritten import make_unrewritten_session

KINDS = ("immediate", "deferred")
START = datetime(2026, 1, 1, 7)
STEP = timedelta(milliseconds=100)
LASTS = timedelta(minutes=5)
RECENT = 40
"""Who sells, bids and is bid for is mostly one of so many newest."""
SIDE_ROWS = 500


@dataclass(slots=True)
class Counts:
    incremental: list[str] = field(default_factory=list)
    whole: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    comparisons: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{len(self.incremental)} incremental, done again as a whole: {self.whole},"
            f" refused: {self.refused}, {self.comparisons} comparisons, {len(self.wrong)} wrong"
        )


class Stream:
    """Events by their number; rows as the tables have them."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._number = 0
        self.last = {"person": 0, "auction": 0, "bid": 0}

    def take(self, count: int, late: timedelta = timedelta()) -> dict[str, list[tuple[Any, ...]]]:
        """The next events, all of them late by so much."""
        found: dict[str, list[tuple[Any, ...]]] = {name: [] for name in self.last}
        for _ in range(count):
            place = self._number % 50
            table = "person" if place == 0 else "auction" if place < 4 else "bid"
            self.last[table] += 1
            at = START + STEP * self._number - late
            found[table].append(getattr(self, f"_{table}")(self.last[table], at))
            self._number += 1
        return found

    def recent(self, table: str) -> int:
        """A key of the newest, or now and then any."""
        last = max(self.last[table], 1)
        first = max(last - RECENT, 1) if self._rng.random() < 0.9 else 1
        return self._rng.randrange(first, last + 1)

    def _person(self, key: int, at: datetime) -> tuple[Any, ...]:
        state = self._rng.choice(("OR", "ID", "CA", "NY", "WA"))
        return key, f"name {key}", f"{key}@mail", f"city {key % 7}", state, at

    def _auction(self, key: int, at: datetime) -> tuple[Any, ...]:
        rng = self._rng
        lasts = LASTS * rng.random()
        item, seller = f"item {key}", self.recent("person")
        return key, item, rng.randrange(50), 99, at, at + lasts, seller, rng.randrange(5)

    def _bid(self, key: int, at: datetime) -> tuple[Any, ...]:
        rng = self._rng
        channel = rng.choice(("Apple", "google", "Baidu", f"channel-{key % 10}"))
        url = f"https://x/{key % 5}/y{key % 3}" + f"?channel_id={key % 10}" * (key % 4 > 0)
        auction, bidder = self.recent("auction"), self.recent("person")
        return key, auction, bidder, rng.randrange(1, 1000), channel, url, at


class Nexmark:
    """The tables, loaded, with all the views there can be."""

    def __init__(self, session: Session, events: int, seed: int) -> None:
        self._session = session
        self._rng = random.Random(f"nexmark/{seed}")
        self._stream = Stream(self._rng)
        self.counts = Counts()
        self._load(events)
        self._create()

    def _load(self, events: int) -> None:
        loaded = self._stream.take(events)
        loaded["side_input"] = [(key, f"v{key}") for key in range(1, SIDE_ROWS + 1)]
        with tempfile.TemporaryDirectory() as directory:
            for statement in TABLES:
                self._session.execute(statement)
            for name, rows in loaded.items():
                columns = {f"c{place}": list(one) for place, one in enumerate(zip(*rows))}
                file = Path(directory) / f"{name}.parquet"
                pq.write_table(pa.table(columns), file)
                self._session.execute(f"COPY {name} FROM '{file}' (FORMAT parquet)")

    def _create(self) -> None:
        counts = self.counts
        for name, text in QUERIES.items():
            try:
                plan = self._session.execute(f"EXPLAIN CREATE MATERIALIZED VIEW v AS {text}")
                plan.convert_arrow_to_rows()
                for kind in KINDS:
                    self._session.execute(
                        f"CREATE MATERIALIZED VIEW {name}_{kind}"
                        f" WITH (maintenance = '{kind}') AS {text}"
                    )
            except Unsupported as refused:
                counts.refused[name] = str(refused)
                continue
            told = "\n".join(str(row[0]) for row in plan.rows)
            (counts.whole if "over everything" in told else counts.incremental).append(name)

    # -- changes ------------------------------------------------------------------------------

    def cycle(self) -> Iterator[None]:
        """Transactions over every table; one step of the iterator each."""
        taken = self._gone()
        for statements in (
            self._come(200),
            self._come(50, late=timedelta(minutes=2)),
            self._corrected(),
            [f"DELETE FROM {table} WHERE id IN ({keys})" for table, keys in taken.items()],
            self._come(50),
            self._side_input(),
        ):
            self._session.execute("BEGIN")
            for statement in statements:
                self._session.execute(statement)
            self._session.execute("COMMIT")
            yield

    def _come(self, count: int, late: timedelta = timedelta()) -> list[str]:
        return [
            f"INSERT INTO {table} VALUES ({', '.join(map(_literal, row))})"
            for table, rows in self._stream.take(count, late).items()
            for row in rows
        ]

    def _gone(self) -> dict[str, str]:
        """Keys of each table that are taken back: some of the newest."""
        keys = {}
        for table, count in (("person", 3), ("auction", 9), ("bid", 60)):
            drawn = {self._stream.recent(table) for _ in range(count)}
            keys[table] = ", ".join(map(str, drawn))
        return keys

    def _corrected(self) -> list[str]:
        rng, stream = self._rng, self._stream
        return [
            f"UPDATE bid SET price = price + 7 WHERE id % 311 = {rng.randrange(311)}",
            f"UPDATE bid SET auction = {stream.recent('auction')},"
            f" bidder = {stream.recent('person')}, channel = 'APPLE'"
            f" WHERE id BETWEEN {stream.last['bid'] - 30} AND {stream.last['bid']}",
            "UPDATE bid SET date_time = date_time + interval '75 seconds'"
            f" WHERE id % 499 = {rng.randrange(499)}",
            f"UPDATE auction SET category = 2, expires = expires + interval '1 minute',"
            f" seller = {stream.recent('person')} WHERE id % 97 = {rng.randrange(97)}",
            f"UPDATE person SET state = 'CA', name = 'new' WHERE id % 53 = {rng.randrange(53)}",
        ]

    def _side_input(self) -> list[str]:
        key = self._stream.recent("auction")
        return [
            f"DELETE FROM side_input WHERE key % 7 = {self._rng.randrange(7)}",
            f"INSERT INTO side_input VALUES ({key}, 'come') ON CONFLICT (key)"
            " DO UPDATE SET value = 'changed'",
            "UPDATE side_input SET value = value || '!' WHERE key % 5 = 1",
        ]

    # -- comparing ----------------------------------------------------------------------------

    def compare(self) -> None:
        counts = self.counts
        for name in (*counts.incremental, *counts.whole):
            expected = self._rows(QUERIES[name])
            if not expected:
                counts.wrong.append(f"{name}: there is nothing to compare")
            for kind in KINDS:
                found = self._rows(f"SELECT * FROM {name}_{kind}")
                counts.comparisons += 1
                if found != expected:
                    missing, more = list(expected - found)[:2], list(found - expected)[:2]
                    counts.wrong.append(f"{name} {kind}: missing {missing}, unexpected {more}")

    def _rows(self, text: str) -> Counter[Any]:
        result = self._session.execute(text)
        result.convert_arrow_to_rows()
        return Counter(tuple(row) for row in result.rows)


def _literal(value: object) -> str:
    return str(value) if isinstance(value, int) else f"'{value}'"


@contextmanager
def loaded(events: int, seed: int) -> Iterator[Nexmark]:
    """A database of its own, whose deferred views are read with what the log has for them."""
    with open_manual() as db:
        shared = db.open_shared_state()
        try:
            yield Nexmark(make_unrewritten_session(shared), events, seed)
        finally:
            db.close_shared_state()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=60_000)
    parser.add_argument("--cycles", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    started = time.monotonic()
    with loaded(options.events, options.seed) as nexmark:
        print(f"made after {time.monotonic() - started:.1f} s: {nexmark.counts}", flush=True)
        nexmark.compare()
        for _ in range(options.cycles):
            for _ in nexmark.cycle():
                nexmark.compare()
                print(f"{time.monotonic() - started:.1f} s: {nexmark.counts}", flush=True)
    print(*nexmark.counts.wrong[:20], sep="\n")
    return 1 if nexmark.counts.wrong or nexmark.counts.refused else 0


if __name__ == "__main__":
    sys.exit(main())
