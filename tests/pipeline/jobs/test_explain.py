"""`pipeline explain` says of every operator whether it is Spark's own or ours, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from belvedere.errors import InvalidInput
from belvedere.interfaces.dbapi import Connection
from belvedere.pipeline.jobs import explain
from belvedere.pipeline.store.client import Store
from tests.pipeline.definitions import DEFINITIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def shop_tables(connection: Connection) -> Connection:
    connection.execute("CREATE TABLE kinds (id int PRIMARY KEY, name text)")
    connection.execute(
        "CREATE TABLE items (id int PRIMARY KEY, kind int, price numeric(8,2), weight real)"
    )
    return connection


def lines(spark: SparkSession, shop: Path, connection: Connection, query: str) -> list[str]:
    connection.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
    return list(explain.explain_jobs_of_views(spark, Store.from_url(str(shop)), ["v"], DEFINITIONS))


def part(found: list[str], head: str) -> list[str]:
    """The lines below a head, without their first indent."""
    start = found.index(head) + 1
    below = found[start:]
    end = next((i for i, line in enumerate(below) if not line.startswith("  ")), len(below))
    return [line[2:] for line in below[:end]]


def test_a_join_with_sums_is_sparks_own(
    spark: SparkSession, shop: Path, shop_tables: Connection
) -> None:
    found = lines(
        spark,
        shop,
        shop_tables,
        "SELECT k.name, count(*) AS n, sum(i.price) AS s FROM items i JOIN kinds k ON k.id = i.kind"
        " WHERE i.price > 2 GROUP BY k.name",
    )
    backfill = part(found, "backfill")
    assert backfill[-1] == "state: [spark] added up by Spark's aggregates"
    assert all(line.endswith(("[spark]", "[store]")) for line in backfill[:-1]), backfill
    assert any("Join" in line and line.endswith("[spark]") for line in backfill)
    assert not any("python:" in line for line in part(found, "verify")), found
    maintain = part(found, "maintain")
    assert maintain[0] == "up to 5000 changes: [python] the engine's operators, in one task"
    assert [line for line in maintain if "when" in line] == [
        "  when kinds changes",
        "  when items changes",
    ]
    joins = [line for line in maintain if "Join" in line]
    assert all("[spark: one exchange by the key; store: partners" in line for line in joins), joins
    assert "        Filter price > 2::numeric  [spark]" in maintain
    assert maintain[-2:] == [
        "  state: [spark] added up by Spark's aggregates",
        "  [spark] one exchange by the view's key, so that one task owns it",
    ]


def test_what_spark_would_answer_otherwise_is_shown_with_its_reason(
    spark: SparkSession, shop: Path, shop_tables: Connection
) -> None:
    found = lines(
        spark,
        shop,
        shop_tables,
        "SELECT upper(k.name) AS name, sum(i.weight) AS w FROM items i JOIN kinds k"
        " ON k.id = i.kind GROUP BY 1",
    )
    (aggregate,) = [line for line in part(found, "verify") if "Aggregate" in line]
    assert "python: aggregate: sum(float4) runs in Python]" in aggregate
    assert any("upper(name), row by row: upper(text)" in line for line in found), found
    assert part(found, "backfill")[-1].startswith(
        "state: [python] added up over whole Arrow columns: exact sum of real"
    )


def test_a_view_of_single_rows_says_how_its_expressions_are_evaluated(
    spark: SparkSession, shop: Path, shop_tables: Connection
) -> None:
    found = lines(
        spark,
        shop,
        shop_tables,
        "SELECT kind % 3 AS k, upper(id::text) AS u, count(*) AS n FROM items"
        " WHERE price > 1.5 GROUP BY 1, 2",
    )
    backfill = part(found, "backfill")
    assert backfill[:2] == [
        "[python] added up where the tables are read, over whole Arrow columns",
        "  [store] Scan items",
    ]
    hows = {line.strip().rpartition(": ")[0]: line.rpartition(": ")[2] for line in backfill[2:5]}
    assert sorted(hows.values()) == ["over whole columns", "over whole columns", "row by row"]
    (upper,) = [text for text, how in hows.items() if how == "row by row"]
    assert upper.startswith("upper(")


def test_operators_without_a_form_are_shown(
    spark: SparkSession, shop: Path, shop_tables: Connection
) -> None:
    found = lines(
        spark,
        shop,
        shop_tables,
        "SELECT id, rank() OVER (PARTITION BY kind ORDER BY price) AS r FROM items",
    )
    assert any(
        "Window" in line and "[python: window: window functions run in Python]" in line
        for line in part(found, "verify")
    ), found
    maintain = part(found, "maintain")
    assert "  Project id, rank as r  [spark]" in maintain
    assert any("window by touched keys  [spark: keys, one exchange" in line for line in maintain)


def test_a_join_without_a_key_is_the_engines(
    spark: SparkSession, shop: Path, shop_tables: Connection
) -> None:
    query = "SELECT i.id, k.name FROM items i JOIN kinds k ON i.kind < k.id"
    maintain = part(lines(spark, shop, shop_tables, query), "maintain")
    assert maintain[2].startswith(
        "  [python] the engine's operators on net changes by key: all rows"
    )


def test_an_unknown_view_is_refused(
    spark: SparkSession, shop: Path, connection: Connection
) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        list(
            explain.explain_jobs_of_views(
                spark, Store.from_url(str(shop)), ["nothing"], DEFINITIONS
            )
        )
