"""All 22 queries of TPC-H as views, over inserts, updates and deletes on every table.

    python -m tests.properties.views.workloads.tpch --lines 60000 --cycles 3        scale factor
    0.01

Every query is kept twice, immediate and deferred. A cycle is some transactions that change all
eight tables: orders with lines come and go, dimensions change what queries select and join by, and
rows that nothing refers to come and go everywhere. After every transaction (or every cycle) each
view is compared with its query.
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
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from belvedere.benchmarks.tpch import schema
from belvedere.benchmarks.tpch.generate import compute_sizes, generate_tables
from belvedere.errors import Unsupported
from belvedere.session.session import Session
from tests.properties.views.law import open_manual
from tests.unrewritten import make_unrewritten_session

KINDS = ("immediate", "deferred")
INCREMENTAL_LEAST = 20


@dataclass(slots=True)
class Counts:
    incremental: list[int] = field(default_factory=list)
    whole: list[int] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)
    comparisons: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{len(self.incremental)} incremental, done again as a whole: {self.whole},"
            f" refused: {self.refused}, {self.comparisons} comparisons, {len(self.wrong)} wrong"
        )


class Tpch:
    """The tables, loaded, with all the views there can be."""

    def __init__(self, session: Session, lines: int, seed: int) -> None:
        self._session = session
        self._rng = random.Random(f"tpch/{seed}")
        self.size = compute_sizes(lines)
        self.counts = Counts()
        self._new = 10_000_000
        self._load(seed)
        self._create()

    def _load(self, seed: int) -> None:
        with tempfile.TemporaryDirectory() as directory:
            for name, table in generate_tables(self.size, seed).items():
                self._session.execute(schema.create_table(name))
                file = Path(directory) / f"{name}.parquet"
                pq.write_table(table, file)
                self._session.execute(f"COPY {name} FROM '{file}' (FORMAT parquet)")

    def _create(self) -> None:
        counts = self.counts
        for number in schema.QUERIES:
            text = self.text(number)
            try:
                plan = self._session.execute(f"EXPLAIN CREATE MATERIALIZED VIEW v AS {text}")
                plan.convert_arrow_to_rows()
                for kind in KINDS:
                    self._session.execute(
                        f"CREATE MATERIALIZED VIEW q{number}_{kind}"
                        f" WITH (maintenance = '{kind}') AS {text}"
                    )
            except Unsupported as refused:
                counts.refused[number] = str(refused)
                continue
            told = "\n".join(str(row[0]) for row in plan.rows)
            (counts.whole if "over everything" in told else counts.incremental).append(number)

    def text(self, number: int) -> str:
        return schema.query_text(number, self.size.fraction).strip().rstrip(";")

    # -- changes ------------------------------------------------------------------------------

    def cycle(self) -> Iterator[None]:
        """Transactions over every table; one step of the iterator each."""
        for statements in (
            self._orders_come(3),
            self._dimensions_change(),
            self._orders_go(3),
            self._facts_change(),
            self._rows_come(),
            self._rows_go(),
        ):
            self._session.execute("BEGIN")
            for statement in statements:
                self._session.execute(statement)
            self._session.execute("COMMIT")
            yield

    def _orders_come(self, count: int) -> list[str]:
        found, rng = [], self._rng
        stock = self._rows("SELECT ps_partkey, ps_suppkey FROM partsupp")
        for _ in range(count):
            self._new += 1
            customer = rng.randrange(1, self.size.customers + 1)
            day = f"{rng.randrange(1993, 1998)}-0{rng.randrange(1, 10)}-1{rng.randrange(10)}"
            found.append(
                f"INSERT INTO orders VALUES ({self._new}, {customer}, 'O', 1000.5, '{day}',"
                " '1-URGENT', 'Clerk#1', 0, 'new')"
            )
            for line in range(1, rng.randrange(2, 6)):
                part, supplier = rng.choice(stock)
                found.append(
                    f"INSERT INTO lineitem VALUES ({self._new}, {part}, {supplier}, {line},"
                    f" {rng.randrange(1, 400)}, {rng.randrange(100, 90_000)}.25, 0.06, 0.02,"
                    f" '{rng.choice('RAN')}', 'O', '{day}', date '{day}' + 5, date '{day}' + 9,"
                    f" 'DELIVER IN PERSON', '{rng.choice(('AIR', 'MAIL', 'SHIP'))}', 'new')"
                )
        return found

    def _orders_go(self, count: int) -> list[str]:
        keys = [row[0] for row in self._rows("SELECT o_orderkey FROM orders")]
        gone = ", ".join(map(str, self._rng.sample(keys, count)))
        return [
            f"DELETE FROM lineitem WHERE l_orderkey IN ({gone})",
            f"DELETE FROM orders WHERE o_orderkey IN ({gone})",
        ]

    def _dimensions_change(self) -> list[str]:
        rng, size = self._rng, self.size
        part, supplier = rng.randrange(1, size.parts), rng.randrange(1, size.suppliers)
        nation = rng.randrange(25)
        return [
            f"UPDATE supplier SET s_nationkey = {nation}, s_acctbal = s_acctbal + 10"
            f" WHERE s_suppkey BETWEEN {supplier} AND {supplier + 3}",
            "UPDATE part SET p_size = 15, p_type = 'ECONOMY ANODIZED STEEL', p_brand = 'Brand#23',"
            f" p_container = 'MED BOX' WHERE p_partkey BETWEEN {part} AND {part + 3}",
            f"UPDATE partsupp SET ps_supplycost = ps_supplycost * 2 WHERE ps_partkey = {part}",
            f"UPDATE customer SET c_mktsegment = 'BUILDING', c_nationkey = {nation},"
            f" c_acctbal = 5000 WHERE c_custkey % 17 = {rng.randrange(17)}",
            f"UPDATE nation SET n_regionkey = {rng.randrange(5)} WHERE n_nationkey = {nation}",
            "UPDATE region SET r_comment = 'changed' WHERE r_regionkey = 1",
        ]

    def _facts_change(self) -> list[str]:
        rng = self._rng
        return [
            "UPDATE orders SET o_orderdate = o_orderdate + 40, o_orderpriority = '2-HIGH'"
            f" WHERE o_orderkey % 13 = {rng.randrange(13)}",
            "UPDATE lineitem SET l_quantity = l_quantity + 1, l_discount = 0.05,"
            f" l_shipmode = 'MAIL', l_receiptdate = l_commitdate + 3"
            f" WHERE l_orderkey % 11 = {rng.randrange(11)}",
            f"DELETE FROM lineitem WHERE l_orderkey % 29 = {rng.randrange(29)}",
        ]

    def _rows_come(self) -> list[str]:
        return [
            "INSERT INTO region VALUES (90, 'ATLANTIS', 'new')",
            "INSERT INTO nation VALUES (90, 'NEMO', 90, 'new')",
            "INSERT INTO supplier VALUES (900000, 'S', 'a', 90, '13-1', 100, 'new')",
            "INSERT INTO part VALUES (900000, 'forest green', 'M', 'Brand#12', 'PROMO BRUSHED TIN',"
            " 15, 'SM CASE', 100, 'new')",
            "INSERT INTO partsupp VALUES (900000, 900000, 5, 1.5, 'new')",
            "INSERT INTO customer VALUES (900000, 'C', 'a', 90, '13-1', 9000, 'BUILDING', 'new')",
        ]

    def _rows_go(self) -> list[str]:
        return [
            "DELETE FROM customer WHERE c_custkey = 900000",
            "DELETE FROM partsupp WHERE ps_partkey = 900000",
            "DELETE FROM part WHERE p_partkey = 900000",
            "DELETE FROM supplier WHERE s_suppkey = 900000",
            "DELETE FROM nation WHERE n_nationkey = 90",
            "DELETE FROM region WHERE r_regionkey = 90",
        ]

    # -- comparing ----------------------------------------------------------------------------

    def compare(self) -> None:
        counts = self.counts
        for number in (*counts.incremental, *counts.whole):
            expected = Counter(self._rows(self.text(number)))
            for kind in KINDS:
                found = Counter(self._rows(f"SELECT * FROM q{number}_{kind}"))
                counts.comparisons += 1
                if found != expected:
                    missing, more = list(expected - found)[:2], list(found - expected)[:2]
                    counts.wrong.append(f"q{number} {kind}: missing {missing}, unexpected {more}")

    def _rows(self, text: str) -> list[Any]:
        result = self._session.execute(text)
        result.convert_arrow_to_rows()
        return [tuple(row) for row in result.rows]


@contextmanager
def loaded(lines: int, seed: int) -> Iterator[Tpch]:
    """A database of its own, whose deferred views are read with what the log has for them."""
    with open_manual() as db:
        shared = db.open_shared_state()
        try:
            yield Tpch(make_unrewritten_session(shared), lines, seed)
        finally:
            db.close_shared_state()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lines", type=int, default=60_000)
    parser.add_argument("--cycles", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    started = time.monotonic()
    with loaded(options.lines, options.seed) as tpch:
        print(f"made after {time.monotonic() - started:.1f} s: {tpch.counts}", flush=True)
        tpch.compare()
        for _ in range(options.cycles):
            for _ in tpch.cycle():
                tpch.compare()
                print(f"{time.monotonic() - started:.1f} s: {tpch.counts}", flush=True)
    print(*tpch.counts.wrong[:20], sep="\n")
    few = len(tpch.counts.incremental) < INCREMENTAL_LEAST
    return 1 if tpch.counts.wrong or tpch.counts.refused or few else 0


if __name__ == "__main__":
    sys.exit(main())
