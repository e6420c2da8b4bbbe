"""Functions with arguments of hostile sizes, in a process of their own with a memory limit."""

from __future__ import annotations

import random

from tests.plan.hostile_arguments import make_statements, run_statements

SAMPLE = 60
DUCKDB_GROWTH_MB_MAX = 350
"""Of a limit of 64 MB: DuckDB's own memory, the vectors of two threads, the result and its copy."""

MEMORY = (
    "SELECT string_agg(repeat('x', 1000000), ',') FROM generate_series(1, 2000)",
    "SELECT repeat('x', 500000000) || repeat('y', 500000000)",
    "SELECT replace(repeat('a', 10000000), 'a', repeat('b', 200))",
    "SELECT lpad('a', 250000000, 'b')",
    "SELECT regexp_replace(repeat('a', 1000000), 'a', repeat('b', 200), 'g')",
    "SELECT array_fill(1, ARRAY[100000000])",
    "SELECT format('%1000000000s', 'a')",
    "SELECT array_to_string(array_fill('abc'::text, ARRAY[100000]), repeat(',', 1000))",
    "SELECT json_agg(array_fill(1, ARRAY[1500000])) FROM generate_series(1, 300)",
    "SELECT json_object_agg(n, repeat('x', 1000000)) FROM generate_series(1, 300) g(n)",
    "SELECT json_agg(r) FROM (SELECT n, repeat('x', 1000000) AS t"
    " FROM generate_series(1, 300) g(n)) r",
)


BADLY_MADE = (
    "SELECT lcm(repeat('9', 130000)::numeric, ('0.' || repeat('3', 16000))::numeric)",
    "SELECT pg_get_viewdef(repeat('9', 100000))",
    "SELECT length(pg_size_pretty(repeat('9', 130000)::numeric))",
    "SELECT stddev_pop(1e131000::numeric) FROM generate_series(1, 3) n",
    "SELECT var_samp(1e131000::numeric * n) FROM generate_series(1, 3) n",
    "SELECT avg(n * 1e131071::numeric) FROM generate_series(1, 9) n",
    "SELECT to_char(3::int8, repeat('a', 1500000))",
    "SELECT to_date('2024-01-01', repeat('a', 1500000))",
    "SELECT to_regtype(repeat('(', 100000))",
    "SELECT length(array_to_string(array_fill(1, ARRAY[150000]), repeat('a', 100)))",
    "SELECT current_setting(repeat('a', 15000000), true)",
    "SELECT length(repeat('a', 15000000) || n) FROM generate_series(1, 3) n",
)
"""What has once ended in an error of Python, or taken minutes or much memory."""

VECTORS = (
    "SELECT max(length(repeat('x', 500000 + id))) FROM t",
    "SELECT sum(length(replace(s, 'x', repeat('y', 1000)))) FROM t",
    "SELECT array_agg(repeat('a', 1000000 + id)) FROM t",
    "SELECT id % 7, array_agg(s || s || s || s || s || s || s || s) FROM t GROUP BY 1",
    "SELECT a.id, b.id, a.s FROM t a, t b",
    "SELECT array_agg(id) OVER (ORDER BY id) FROM t",
)
"""Over 10,000 texts of a thousand characters, in DuckDB."""


def test_functions_stay_within_the_memory_limit() -> None:
    reports = list(run_statements(MEMORY))
    assert {report.outcome for report in reports} <= {"53200", "22023"}
    assert [report for report in reports if report.fault is not None] == []


def test_statements_of_duckdb_stay_within_the_memory_limit() -> None:
    tables = (
        "CREATE TABLE t (id int PRIMARY KEY, s text)",
        "INSERT INTO t SELECT g, repeat('x', 1000) FROM generate_series(1, 10000) g",
        "SET tier = duckdb",
        "SELECT count(*), min(s) FROM t WHERE id < 5000",
    )
    reports = list(run_statements([*tables, *VECTORS]))[len(tables) :]
    assert [one.outcome for one in reports] == ["ok", "ok", *["53200"] * 4]
    assert sum(one.growth_mb for one in reports) <= DUCKDB_GROWTH_MB_MAX


def test_functions_that_were_badly_made_end_in_rows_or_errors() -> None:
    assert [one for one in run_statements(BADLY_MADE) if one.fault is not None] == []


def test_no_function_fails_in_python_or_outgrows_its_memory(rng: random.Random) -> None:
    """A sample; `make long RUN=arguments` runs many calls of every function."""
    statements = rng.sample(list(make_statements(1, rng.randrange(1000))), SAMPLE)
    faults = [report for report in run_statements(statements) if report.fault is not None]
    assert [fault for fault in faults if not fault.fault.startswith("process held")] == []
