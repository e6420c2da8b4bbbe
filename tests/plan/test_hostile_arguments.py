"""Functions with arguments of hostile sizes, in a process of their own with a memory limit."""

from __future__ import annotations

import random

from tests.plan.hostile_arguments import make_statements, run_statements

SAMPLE = 60

MEMORY = (
    "SELECT string_agg(repeat('x', 1000000), ',') FROM generate_series(1, 2000)",
    "SELECT repeat('x', 500000000) || repeat('y', 500000000)",
    "SELECT replace(repeat('a', 10000000), 'a', repeat('b', 200))",
    "SELECT lpad('a', 250000000, 'b')",
    "SELECT regexp_replace(repeat('a', 1000000), 'a', repeat('b', 200), 'g')",
    "SELECT array_fill(1, ARRAY[100000000])",
    "SELECT format('%1000000000s', 'a')",
    "SELECT array_to_string(array_fill('abc'::text, ARRAY[100000]), repeat(',', 1000))",
)


def test_functions_stay_within_the_memory_limit() -> None:
    reports = list(run_statements(MEMORY))
    assert {report.outcome for report in reports} <= {"53200", "22023"}
    assert [report for report in reports if report.fault is not None] == []


def test_no_function_fails_in_python_or_outgrows_its_memory(rng: random.Random) -> None:
    """A sample; `make long RUN=arguments` runs many calls of every function."""
    statements = rng.sample(list(make_statements(1, rng.randrange(1000))), SAMPLE)
    faults = [report for report in run_statements(statements) if report.fault is not None]
    assert [fault for fault in faults if not fault.fault.startswith("process held")] == []
