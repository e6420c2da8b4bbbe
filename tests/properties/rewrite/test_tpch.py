"""TPC-H with views for some of its queries: every answer is that of the tables."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from belvedere.benchmarks.tpch import schema
from belvedere.benchmarks.tpch.generate import compute_sizes, generate_tables
from belvedere.session.session import Session
from tests.properties.rewrite.hunt import EagerPlanner
from tests.properties.views.law import open_manual

LINES = 1500
VIEWS = {
    "line_days": "SELECT l_shipdate, l_returnflag, l_linestatus, l_discount, l_quantity, "
    "count(*) AS n, sum(l_quantity) AS q, sum(l_extendedprice) AS p, sum(l_discount) AS d, "
    "count(l_quantity) AS nq, count(l_extendedprice) AS np, count(l_discount) AS nd, "
    "sum(l_extendedprice * (1 - l_discount)) AS r, sum(l_extendedprice * l_discount) AS e, "
    "sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS c "
    "FROM lineitem GROUP BY l_shipdate, l_returnflag, l_linestatus, l_discount, l_quantity",
    "customer_orders": "SELECT c_mktsegment, c_custkey, c_name, c_acctbal, c_phone, c_address, "
    "c_comment, c_nationkey, o_orderkey, o_orderdate, o_totalprice, o_shippriority, o_comment "
    "FROM customer JOIN orders ON c_custkey = o_custkey",
    "order_lines": "SELECT o_orderdate, o_custkey, o_orderkey, o_orderpriority, o_shippriority, "
    "l_shipmode, l_shipdate, l_commitdate, l_receiptdate, l_returnflag, l_suppkey, l_partkey, "
    "l_linenumber, l_extendedprice, l_discount, l_quantity "
    "FROM orders JOIN lineitem ON l_orderkey = o_orderkey",
    "part_supply": "SELECT p_partkey, p_size, p_type, p_mfgr, p_brand, p_container, ps_suppkey, "
    "ps_supplycost, ps_availqty FROM part JOIN partsupp ON p_partkey = ps_partkey",
    "nation_regions": "SELECT n_name, n_nationkey, r_name, r_regionkey FROM nation "
    "JOIN region ON n_regionkey = r_regionkey",
}
REWRITTEN = frozenset({1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 16, 18})
"""Queries that some of the views answer in part or whole, at the least."""


@contextmanager
def open_tpch(seed: int) -> Iterator[Session]:
    with open_manual() as db, tempfile.TemporaryDirectory() as directory:
        shared = db.open_shared_state()
        shared.rewrites = EagerPlanner(shared)
        try:
            session = Session(shared)
            for name, table in generate_tables(compute_sizes(LINES), seed).items():
                session.execute(schema.create_table(name))
                file = Path(directory) / f"{name}.parquet"
                pq.write_table(table, file)
                session.execute(f"COPY {name} FROM '{file}' (FORMAT parquet)")
            for name, text in VIEWS.items():
                session.execute(f"CREATE MATERIALIZED VIEW {name} AS {text}")
            yield session
        finally:
            db.close_shared_state()


def test_the_queries_of_tpch_are_answered_alike(seed: int) -> None:
    rewritten = set()
    fraction = compute_sizes(LINES).fraction
    with open_tpch(seed) as session:
        for number in schema.QUERIES:
            text = schema.query_text(number, fraction).strip().rstrip(";")
            lines = [line for (line,) in session.execute(f"EXPLAIN {text}").rows or []]
            if any(line.startswith("rewritten") for line in lines):
                rewritten.add(number)
            found = read_bag(session, text)
            session.execute("SET rewrite = off")
            assert found == read_bag(session, text), number
            session.execute("SET rewrite = on")
    assert rewritten >= REWRITTEN


def read_bag(session: Session, text: str) -> Counter[Any]:
    result = session.execute(text)
    result.convert_arrow_to_rows()
    return Counter(map(repr, result.rows or []))
