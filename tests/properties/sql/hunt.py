"""Runs random statements on Belvedere and PostgreSQL and reports where they differ.

    python -m tests.properties.sql.hunt --statements 20000 --seed 1
    python -m tests.properties.sql.hunt --case 1/17          one case again

A case is a schema with its rows, then queries and changes in turn. Case n of seed s is always the
same. What is found is made smaller and printed as a script; once it is fixed, the script becomes a
file in found/, which is run for ever.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tests.oracle.postgres import Postgres, server
from tests.properties.sql.changes import Changes
from tests.properties.sql.compare import Difference, Pair, pair
from tests.properties.sql.queries import Queries, Query
from tests.properties.sql.schemas import indexes, rows, tables

STATEMENTS_PER_CASE = 60


@dataclass(frozen=True, slots=True)
class Find:
    """A difference, the case it came from, and a script that shows it."""

    case: str
    difference: Difference
    script: tuple[str, ...]

    def __str__(self) -> str:
        body = ";\n".join(self.script[:-1])
        return f"-- case {self.case}\n{body};\n{self.difference}"


def hunt(
    postgres: Postgres, seed: int, statements: int, note: Callable[[str], None] = lambda _: None
) -> Iterator[Find]:
    """Cases of the seed until that many statements have run. One find ends its case."""
    done = number = 0
    while done < statements:
        ran, find = run_case(
            postgres, f"{seed}/{number}", min(STATEMENTS_PER_CASE, statements - done)
        )
        done += ran
        number += 1
        note(f"case {seed}/{number - 1}: {done} statements")
        if find is not None:
            yield find


def run_case(postgres: Postgres, case: str, count: int) -> tuple[int, Find | None]:
    """How many statements ran, and the first that differs."""
    rng = random.Random(case)
    found = tables(rng)
    history = [table.definition for table in found] + indexes(rng, found)
    for table in found:
        history += rows(rng, table, rng.choice((0, 4, 8, 8, 12, 12, 16)))
    queries, changes = Queries(rng, found), Changes(rng, found)
    with pair(postgres) as engines:
        for statement in history:
            difference = engines.change(statement)
            if difference is not None:
                return 0, _find(
                    postgres, case, history[: history.index(statement)], None, difference
                )
        for ran in range(count):
            if rng.random() < 0.25:
                text, query = changes.statement(), None
                difference = engines.change(text) or _tables_differ(engines, found)
            else:
                query = queries.query()
                text = str(query)
                difference = engines.query(text, ordered=query.ordered)
            if difference is not None:
                return ran + 1, _find(postgres, case, history, query, difference)
            if query is None:
                history.append(text)
    return count, None


def _tables_differ(engines: Pair, found: Sequence[object]) -> Difference | None:
    for table in found:
        difference = engines.query(f"SELECT * FROM {table.name}", ordered=False)  # type: ignore[attr-defined]
        if difference is not None:
            return difference
    return None


# -- making it smaller -----------------------------------------------------------------------------


def _find(
    postgres: Postgres, case: str, history: list[str], query: Query | None, found: Difference
) -> Find:
    script = [*history, found.statement]
    best = _differs(postgres, script)
    if best is None:  # it needs more than its history
        return Find(case, found, tuple(script))
    while query is not None:
        smaller = next(
            (one for one in query.simpler() if _differs(postgres, [*history, str(one)])), None
        )
        if smaller is None:
            break
        query = smaller
        script = [*history, str(query)]
    script = _without(postgres, script)
    return Find(case, _differs(postgres, script) or found, tuple(script))


def _without(postgres: Postgres, script: list[str]) -> list[str]:
    """The script without the statements before the last that it does not need."""
    size = max(len(script) // 2, 1)
    while size:
        place = 0
        while place < len(script) - 1:
            shorter = script[:place] + script[min(place + size, len(script) - 1) :]
            if _differs(postgres, shorter):
                script = shorter
            else:
                place += size
        size //= 2
    return script


def _differs(postgres: Postgres, script: Sequence[str]) -> Difference | None:
    """What the last statement of the script differs in, if all before it are alike."""
    with pair(postgres) as engines:
        for statement in script[:-1]:
            if engines.change(statement) is not None:
                return None
        return engines.run(script[-1])


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="hunt", description="random statements on both engines")
    parser.add_argument("--statements", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", help="run one case again: seed/number")
    parser.add_argument("--finds", type=int, default=10, help="stop after so many")
    options = parser.parse_args(arguments)
    print(f"seed: {options.seed}")
    if options.case:
        _, find = run_case(server(), options.case, STATEMENTS_PER_CASE)
        print(find or "no difference")
        return int(find is not None)
    count = 0
    for find in hunt(server(), options.seed, options.statements):
        print(f"{find}\n", flush=True)
        count += 1
        if count >= options.finds:
            break
    print(f"{options.statements} statements, {count} differences")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
