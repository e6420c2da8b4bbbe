"""All TPC-H queries give PostgreSQL's rows, to the last digit, in every tier.

BELVEDERE_TPCH_LINES sets the size: 600000 is scale factor 0.1. PostgreSQL has indexes there, or its
correlated sub-queries take hours.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from belvedere.benchmarks import queries
from belvedere.benchmarks.tpch import schema
from belvedere.benchmarks.tpch.generate import compute_sizes, generate_tables
from tests.oracle.postgres import Postgres, postgres  # noqa: F401

LINES = int(os.environ.get("BELVEDERE_TPCH_LINES", "6000"))
SEED = 4
IN_PYTHON_MAX = 20_000
"""With more lines only the tiers are compared that are meant for so many."""


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[queries.ComparedSystems]:
    with queries.open_systems(tmp_path_factory.mktemp("tpch"), LINES, seed=SEED) as opened:
        yield opened


@pytest.fixture(scope="module")
def theirs(postgres: Postgres) -> Iterator[psycopg.Connection[Any]]:  # noqa: F811
    with postgres.connect(autocommit=True) as connection:
        connection.execute("CREATE SCHEMA tpch")
        connection.execute("SET search_path = tpch")
        for name, table in generate_tables(compute_sizes(LINES), SEED).items():
            connection.execute(schema.create_table(name))  # type: ignore[arg-type]
            with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:  # type: ignore[arg-type]
                for batch in table.to_batches():
                    for row in zip(*[column.to_pylist() for column in batch.columns], strict=True):
                        copy.write_row(row)
        for place in ("lineitem (l_partkey, l_suppkey)", "partsupp (ps_suppkey)"):
            connection.execute(f"CREATE INDEX ON {place}")  # type: ignore[arg-type]
        connection.execute("ANALYZE")
        yield connection
        connection.execute("DROP SCHEMA tpch CASCADE")


@pytest.mark.parametrize("number", schema.QUERIES)
def test_query_gives_the_rows_that_postgres_gives(
    ours: queries.ComparedSystems, theirs: psycopg.Connection[Any], number: int
) -> None:
    text = ours.query_text(number)
    expected = theirs.execute(text).fetchall()  # type: ignore[arg-type]
    tiers = ("auto", "duckdb", "direct") if LINES <= IN_PYTHON_MAX else ("auto", "duckdb")
    for tier in tiers:
        ours.belvedere.execute(f"SET tier = {tier}")
        found = ours.run_belvedere(number)
        if number not in schema.TOTALLY_ORDERED:
            found, expected = sorted(found, key=repr), sorted(expected, key=repr)
        assert list(map(repr, found)) == list(map(repr, expected)), tier
