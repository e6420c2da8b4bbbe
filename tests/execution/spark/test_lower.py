"""A plan as a DataFrame gives the rows the direct tier gives, native or in Python."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from belvedere.config import Config, Durability
from belvedere.database import Database
from belvedere.errors import Error
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.python.context import row_keys
from belvedere.plan import nodes as n
from belvedere.session.materialized.create import bind_simplified_definition
from belvedere.session.session import Session
from belvedere.session.statement.catalog_expressions import compile_row_expression
from belvedere.types import Row
from belvedere.views.delta.normalize import normalize_plan
from belvedere.views.delta.sessionless_run import ENVIRONMENT, make_run_with_reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from belvedere.execution.spark.dataframes import TypedFrame
    from belvedere.execution.spark.lower import SparkLowering

pytestmark = pytest.mark.slow

NATIVE = (
    "SELECT id, g + 1, v * 2, s || 'a' FROM t WHERE g > 1 AND b % 2 = 0",
    "SELECT g, count(*), sum(b), sum(v), min(d), max(s), sum(g) FROM t GROUP BY g",
    "SELECT g, count(DISTINCT d), count(*) FILTER (WHERE b > 0) FROM t GROUP BY g",
    "SELECT t.id, o.name, o.w FROM t JOIN o ON t.g = o.g WHERE o.w > 1",
    "SELECT t.id, o.name FROM t LEFT JOIN o ON t.g = o.g AND o.w > 3",
    "SELECT t.id, o.name FROM t FULL JOIN o ON t.g = o.g AND t.id < o.id",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM o WHERE o.g = t.g)",
    "SELECT DISTINCT g, d FROM t",
    "SELECT g FROM t EXCEPT SELECT g FROM o",
    "SELECT g FROM t EXCEPT ALL SELECT g FROM o",
    "SELECT g FROM t INTERSECT ALL SELECT g FROM o",
    "SELECT count(*) FROM t WHERE id < 0",
    "SELECT g, CASE WHEN b = 0 THEN NULL ELSE 10 / b END FROM t",
    "SELECT count(*) FROM o a CROSS JOIN o b",
    "SELECT id FROM t WHERE g NOT IN (SELECT g FROM o WHERE w > 2)",
    "SELECT g, d, count(*) FROM t GROUP BY GROUPING SETS ((g), (d), ())",
)
IN_PYTHON = (
    "SELECT g, avg(v), sum(x), string_agg(s, ',') FROM t GROUP BY g",
    "SELECT DISTINCT n FROM t",
    "SELECT n FROM t INTERSECT SELECT w FROM o",
    "SELECT g, v FROM t UNION SELECT w, 1.5 FROM o",
    "SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) FROM t",
    "SELECT id, rank() OVER (ORDER BY x) FROM t",
    "SELECT id, (SELECT max(w) FROM o WHERE o.g = t.g) FROM t",
    "SELECT id, v FROM t ORDER BY v DESC NULLS LAST LIMIT 5",
    "SELECT count(*), avg(x) FROM t WHERE id < 0",
    "SELECT upper(s), n * 2, x * 2, k, u, i, c FROM t WHERE x > 0.05",
    "SELECT DISTINCT ON (g) g, id, s FROM t ORDER BY g, id DESC",
    "SELECT t.id, f FROM t, LATERAL generate_series(1, t.g) f",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r",
    "SELECT a.id, b.id FROM t a JOIN t b ON a.n = b.n AND a.id < b.id",
    "SELECT a.id, b.id FROM t a LEFT JOIN t b ON a.x = b.x AND sqrt(a.id) < b.id",
)


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    config = Config(durability=Durability.OFF)
    with Database.open(
        ":memory:",
        config,
        compile_expression=compile_row_expression,
        bind=bind_simplified_definition,
    ) as made:
        shared = made.open_shared_state()
        session = Session(shared)
        session.execute(
            "CREATE TABLE t(id int PRIMARY KEY, g int, v numeric(10,2), x double precision, s text,"
            " d date, c time, u uuid, b bigint, k char(5), n numeric, i interval)"
        )
        session.execute("CREATE TABLE o(id int PRIMARY KEY, g int, w int, name varchar(20))")
        r = random.Random(1)
        for number in range(40):
            values = (
                r.choice(["null", "1", "2", "3"]),
                r.choice(["null", "1.50", "2.25", "-3.10"]),
                r.choice(["null", "1.5", "'NaN'", "0.1", "1e10", "'-0'", "0"]),
                r.choice(["null", "'abc'", "'x''y\\z'", "'ä'"]),
                f"date '2020-01-01' + {r.randrange(4)}",
                r.choice(["'10:00'", "'00:00:00.000001'"]),
                f"'{r.randrange(4):032x}'",
                str(r.randrange(-5, 5)),
                r.choice(["'ab'", "'ab  '"]),
                r.choice(["1.0", "1.00", "null", "'NaN'", "1" * 45]),
                r.choice(["'1 day'", "'24:00'", "null"]),
            )
            session.execute(f"INSERT INTO t VALUES ({number}, {', '.join(values)})")
        for number in range(20):
            g = r.choice(["null", "1", "2", "5"])
            w, name = r.randrange(5), f"'n{r.randrange(3)}'"
            session.execute(f"INSERT INTO o VALUES ({number}, {g}, {w}, {name})")
        yield made
        made.close_shared_state()


def lowered(
    spark: SparkSession, database: Database, plan: n.Node, *, native: bool = True
) -> tuple[TypedFrame, SparkLowering]:
    from belvedere.execution.spark.dataframes import FrameBuilder
    from belvedere.execution.spark.lower import SparkLowering

    frames = FrameBuilder(spark, ENVIRONMENT, digits=not native)

    def leaf(scan: n.Scan) -> TypedFrame:
        with database.begin() as reader:
            rows = list(compile_plan(database.catalog, scan)(make_run_with_reader(reader)))
        return frames.local_frame(rows, tuple(field.type for field in scan.fields))

    lowering = SparkLowering(frames, leaf, native)
    return lowering.lower_plan(plan), lowering


def bag_of(frame: TypedFrame, plan: n.Node) -> Counter[Row]:
    from belvedere.execution.spark.types import to_values

    table = frame.data.toArrow()
    assert frame.names
    columns = [
        to_values(table.column(i).combine_chunks(), one) for i, one in enumerate(frame.types)
    ]
    return Counter(map(row_keys(plan.fields), zip(*columns)))


def expected(database: Database, plan: n.Node) -> Counter[Row]:
    from belvedere.execution.spark.total_order import make_order_total

    plan = make_order_total(plan)
    with database.begin() as reader:
        rows = compile_plan(database.catalog, plan)(make_run_with_reader(reader))
        return Counter(map(row_keys(plan.fields), rows))


def plan_of(database: Database, text: str) -> n.Node:
    return normalize_plan(bind_simplified_definition(database.catalog, text))


@pytest.mark.parametrize("text", NATIVE)
def test_native_plans_give_the_rows_of_the_direct_tier(
    spark: SparkSession, database: Database, text: str
) -> None:
    plan = plan_of(database, text)
    frame, lowering = lowered(spark, database, plan)
    assert bag_of(frame, plan) == expected(database, plan)
    assert lowering.report.python_notes == []


@pytest.mark.parametrize("text", IN_PYTHON)
def test_what_spark_would_answer_differently_runs_in_python(
    spark: SparkSession, database: Database, text: str
) -> None:
    plan = plan_of(database, text)
    frame, lowering = lowered(spark, database, plan)
    assert bag_of(frame, plan) == expected(database, plan)
    assert lowering.report.python_notes
    assert "MapInArrow" in frame.data._jdf.queryExecution().toString()


@pytest.mark.parametrize("order", ["id", "id DESC"])
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("SELECT DISTINCT x::text FROM (SELECT DISTINCT x FROM rows WHERE x = 0) y", "-0"),
        ("SELECT DISTINCT n::text FROM (SELECT DISTINCT n FROM rows WHERE n = 1) y", "1.0"),
        ("SELECT x::text FROM (SELECT x FROM rows WHERE x = 0 INTERSECT SELECT 0.0) y", "-0"),
    ],
)
def test_of_equal_values_the_same_one_is_shown_in_any_order(
    spark: SparkSession, database: Database, text: str, shown: str, order: str
) -> None:
    """A LIMIT that takes all there is gives the rows their order."""
    rows = f"(SELECT * FROM t ORDER BY {order} LIMIT 1000) rows"
    plan = plan_of(database, text.replace("rows", rows))
    frame, _ = lowered(spark, database, plan)
    assert [row[0] for row in bag_of(frame, plan)] == [shown]


@pytest.mark.parametrize("text", [NATIVE[1], NATIVE[3]])
def test_every_part_can_run_in_python(spark: SparkSession, database: Database, text: str) -> None:
    plan = plan_of(database, text)
    frame, _ = lowered(spark, database, plan, native=False)
    assert bag_of(frame, plan) == expected(database, plan)


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("SELECT 10 / (b - b) FROM t", "22012"),
        ("SELECT sqrt(x - 1e300) FROM t WHERE x = 1.5", "2201F"),
        ("SELECT b * 9223372036854775807 FROM t", "22003"),
    ],
)
def test_a_task_fails_with_the_error_of_the_statement(
    spark: SparkSession, database: Database, text: str, sqlstate: str
) -> None:
    from pyspark.errors import PySparkException

    from belvedere.execution.spark.failures import translate_failure

    frame, _ = lowered(spark, database, plan_of(database, text))
    with pytest.raises(PySparkException) as failed:
        frame.data.collect()
    found: Error = translate_failure(failed.value)
    assert found.sqlstate == sqlstate
