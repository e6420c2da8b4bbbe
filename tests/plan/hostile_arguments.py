"""Calls of every function and operator of the registry with arguments of hostile sizes.

    python -m tests.plan.hostile_arguments --calls 20 --seed 1

Each statement runs in a child process with a small memory limit, and has to end in rows or in an
error of the database. Meanwhile a thread of the child counts the longest time in which it could not
run: so long was the process held. `main` is the long form; a test runs a few calls of each.
"""

from __future__ import annotations

import argparse
import json
import random
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from belvedere.plan.functions.core.function import Function, FunctionKind, PseudoType, type_name
from belvedere.plan.functions.registry import functions_by_name
from tests.plan.functions.cases import postgres_call

MEMORY_LIMIT_MB = 64
GROWTH_MB_MAX = 400
"""What the process may grow by: the limit, what a library holds beside it, and the answer."""
HELD_S_MAX = 1.0
STATEMENT_S_MAX = 60

_TEXTS = (
    "repeat('a', 100)",
    "repeat('ab', 500000)",
    "repeat('a', 15000000)",
    "repeat('a', 2000000000)",
    "repeat('é(', 100000)",
    "repeat('9', 100000)",
    "repeat('%a', 200)",
    "repeat('(a+)+', 20)",
    "'^(a+)+$b'",
    "'%a%a%a%a%a%a%a%b'",
    "repeat('[', 100000)",
    "''",
)
HOSTILE: dict[str, tuple[str, ...]] = {
    "text": _TEXTS,
    "varchar": _TEXTS,
    "bpchar": ("repeat('a', 1000000)::bpchar", "'a'::bpchar"),
    "int2": ("32767::int2", "(-32768)::int2", "0::int2"),
    "int4": ("2147483647", "-2147483648", "100000000", "1000", "0", "-1"),
    "int8": ("9223372036854775807", "-9223372036854775807", "1000000000000", "0", "3::int8"),
    "numeric": (
        "repeat('9', 130000)::numeric",
        "('0.' || repeat('3', 16000))::numeric",
        "1e131000::numeric",
        "1e-16000::numeric",
        "1000000000::numeric",
        "1.0000000001",
        "'NaN'::numeric",
        "0.5",
        "-3.0",
    ),
    "float4": ("'NaN'::float4", "3e38::float4", "1e-40::float4"),
    "float8": (
        "'NaN'::float8",
        "'Infinity'::float8",
        "1e308::float8",
        "5e-324::float8",
        "3.0::float8",
    ),
    "bool": ("true", "false"),
    "bytea": ("repeat('a', 15000000)::bytea", "'\\x00'::bytea", "repeat('ab', 100000)::bytea"),
    "json": (
        "('[' || repeat('1,', 500000) || '1]')::json",
        "(repeat('[', 500) || repeat(']', 500))::json",
        "'{\"a\": 1}'::json",
    ),
    "date": ("'0001-01-01'::date", "'9999-12-31'::date"),
    "time": ("'23:59:59.999999'::time",),
    "timestamp": ("'0001-01-01'::timestamp", "'9999-12-31'::timestamp"),
    "timestamptz": ("'0001-01-02'::timestamptz", "'9999-12-30'::timestamptz"),
    "interval": ("'170000000 years'::interval", "'1 microsecond'::interval", "'-1 day'::interval"),
    "uuid": ("'00000000-0000-0000-0000-000000000001'::uuid",),
    "int4[]": ("array_fill(1, ARRAY[1500000])", "array_fill(1, ARRAY[2000000000])", "ARRAY[1]"),
    "text[]": ("array_fill(repeat('a', 1000), ARRAY[100000])", "ARRAY['a']"),
}
_ANY = ("int4", "text", "numeric", "int4[]")


@dataclass(frozen=True, slots=True)
class Report:
    """What one statement did in its process."""

    statement: str
    outcome: str
    growth_mb: int
    held_s: float

    @property
    def fault(self) -> str | None:
        if self.outcome.startswith("python") or self.outcome == "died or too long":
            return self.outcome
        if self.growth_mb > GROWTH_MB_MAX:
            return f"memory grew by {self.growth_mb} MB"
        return f"process held for {self.held_s} s" if self.held_s > HELD_S_MAX else None


def make_statements(calls: int, seed: int) -> Iterator[str]:
    """So many calls of every overload, each as a statement."""
    for name, overloads in sorted(functions_by_name().items()):
        for function in overloads:
            rng = random.Random(f"{seed} {function.signature}")
            for _ in range(calls):
                statement = make_statement(name, function, rng)
                if statement is not None:
                    yield statement


def make_statement(name: str, function: Function, rng: random.Random) -> str | None:
    arguments = []
    picked = rng.choice(_ANY)
    for parameter in function.arguments:
        wanted = type_name(parameter)
        if isinstance(parameter, PseudoType):
            wanted = "int4[]" if "array" in wanted and "non" not in wanted else picked
        known = HOSTILE.get(wanted) or HOSTILE.get(wanted.removesuffix("[]"))
        if known is None:
            return None
        one = rng.choice(known)
        arguments.append(one if wanted in HOSTILE else f"ARRAY[{one}]")
    if name == "cast" or function.kind is FunctionKind.WINDOW:
        return None
    if function.kind is FunctionKind.AGGREGATE:
        if function.direct is not None:
            return None
        return f"SELECT {name}({', '.join(arguments) or '*'}) FROM generate_series(1, 300) g(n)"
    call = postgres_call(function, arguments)
    return f"SELECT count(*) FROM (SELECT {call} AS v LIMIT 100000) k WHERE v IS NOT NULL"


CHILD = """
import json, resource, sys, threading, time
import belvedere
con = belvedere.connect(":memory:", autocommit=True, memory_limit_mb=int(sys.argv[1]))
con.execute("SELECT count(*) FROM generate_series(1, 10) g(n)").fetchall()
held, stop = [0.0], threading.Event()
def watch():
    last, cpu = time.perf_counter(), time.process_time()
    while not stop.wait(0.02):
        now = time.perf_counter()
        used = time.process_time()
        held[0] = max(held[0], min(now - last - 0.02, used - cpu))
        cpu = used
        last = now
threading.Thread(target=watch, daemon=True).start()
for line in sys.stdin:
    held[0] = 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    con.execute("SET statement_timeout = 20000")
    try:
        con.execute(json.loads(line)).fetchall()
        outcome = "ok"
    except belvedere.Error as error:
        outcome = error.sqlstate
    except BaseException as error:
        outcome = f"python {type(error).__name__}: {str(error)[:80]}"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    print(json.dumps([outcome, grown, round(held[0], 2)]), flush=True)
"""


def run_statements(statements: Sequence[str]) -> Iterator[Report]:
    """Run them one after the other in a child, in a new one after each that dies."""
    waiting = list(statements)
    while waiting:
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(MEMORY_LIMIT_MB)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            while waiting:
                statement = waiting.pop(0)
                child.stdin.write(json.dumps(statement) + "\n")
                child.stdin.flush()
                answer = _read_line(child)
                if answer is None:
                    yield Report(statement, "died or too long", 0, 0)
                    break
                yield Report(statement, *json.loads(answer))
        finally:
            child.kill()
            child.communicate()


def _read_line(child: subprocess.Popen[str]) -> str | None:

    assert child.stdout is not None
    ready, _, _ = select.select([child.stdout], [], [], STATEMENT_S_MAX)
    return (child.stdout.readline() or None) if ready else None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    options = parser.parse_args(arguments)
    statements = [s for s in make_statements(options.calls, options.seed) if options.only in s]
    faults = 0
    for number, report in enumerate(run_statements(statements), 1):
        if report.fault is not None:
            faults += 1
            print(f"{report.fault}: {report.statement}", flush=True)
        if not number % 200:
            print(f"{number} of {len(statements)} statements", flush=True)
    print(f"{len(statements)} statements, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
