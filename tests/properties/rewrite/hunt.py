"""Rewritten answers compared with plain ones and with PostgreSQL's, over many seeds.

    python -m tests.properties.rewrite.hunt --queries 5000 --seed 1

A case is a schema with rows, a set of views, a history of changes, and queries. Each query runs
with rewriting, without it, and on PostgreSQL: after the history, and inside a transaction of every
isolation that has changes of its own. The answers are equal as bags. Deferred views are refreshed
after the history, and behind after that. Which plan is cheapest depends on how many rows there are;
here any view that answers a block is taken, so that answers are compared. Each view that is passed
over by its signature is matched once more without it.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import psycopg

from belvedere.catalog.catalog import Catalog
from belvedere.errors import Error
from belvedere.plan import nodes as n
from belvedere.session.context.shared_state import SharedState
from belvedere.session.session import Session
from belvedere.views.rewrite import planner
from belvedere.views.rewrite.compensate import Compensation
from belvedere.views.rewrite.planner import RewritePlanner, match_candidate
from belvedere.views.rewrite.signature import SignatureConflict
from tests.exact import EXACT, make_callers_context_useless
from tests.properties.rewrite.blocks import BlockSource, RandomBlock
from tests.properties.rewrite.schemas import RowSource, random_tables
from tests.properties.views.hunt import fresh_schema
from tests.properties.views.law import MEMORY, STORES, open_manual

VIEWS, QUERIES, CHANGES, ROWS = 5, 20, 30, 12
WHOLE = (
    "SELECT x.b, count(*) AS n FROM {t} AS x GROUP BY x.b HAVING count(*) > 1",
    "SELECT x.a, sum(x.id) * 2 AS n FROM {t} AS x GROUP BY x.a",
    "SELECT x.id, x.a FROM {t} AS x ORDER BY x.id DESC LIMIT 4",
    "SELECT x.id FROM {t} AS x WHERE EXISTS (SELECT 1 FROM t0 AS y WHERE y.b = x.b AND y.id > 2)",
    "SELECT x.id, x.b FROM {t} AS x WHERE x.b > (SELECT avg(y.b) FROM t0 AS y)",
    "SELECT x.b FROM {t} AS x UNION SELECT y.a FROM t0 AS y WHERE y.a IS NOT NULL",
    "SELECT x.id, count(*) OVER (PARTITION BY x.b) AS n FROM {t} AS x",
    "SELECT x.b, count(y.id) AS n FROM {t} AS x LEFT JOIN t0 AS y ON x.b = y.id AND y.a > 0 "
    "GROUP BY x.b HAVING count(*) > 0",
)
"""Queries that are no blocks: views for that very query."""

ISOLATIONS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
Answer = Counter[tuple[str, ...]] | str


class Differs(AssertionError):
    """An answer that is not that of the plain query."""


class EagerPlanner(RewritePlanner):
    """Takes any view that answers a block: each plan that it is asked about is cheaper."""

    def __init__(self, shared: SharedState) -> None:
        super().__init__(shared.host.views.registry, shared.table_statistics)
        self._cost = 1e18
        self.taken = 0

    def estimate_plan_cost(self, optimized: n.Node, catalog: Catalog) -> float:
        self._cost *= 0.999
        return self._cost


def match_also_without_signature(query: Any, signature: Any, candidate: Any, catalog: Any) -> Any:
    """What signatures refuse must not match."""
    found = match_candidate(query, signature, candidate, catalog)
    if isinstance(found, SignatureConflict):
        with patch.object(planner, "find_signature_conflict", return_value=None):
            made = match_candidate(query, signature, candidate, catalog)
        if isinstance(made, Compensation):
            reason = found.describe_refusal(catalog)
            raise Differs(f"{candidate.rows.name} is passed over ({reason}) and answers {query}")
    return found


@dataclass
class RewriteCounts:
    queries: int = 0
    rewritten: int = 0
    comparisons: int = 0
    with_postgres: int = 0
    refused: Counter[str] = field(default_factory=Counter)


class RewriteCase:
    """One seed. `postgres` None: rewritten and plain answers are compared only."""

    def __init__(
        self,
        seed: int,
        counts: RewriteCounts,
        postgres: psycopg.Connection[Any] | None,
        store: str = MEMORY,
    ) -> None:
        self._rng = random.Random(seed)
        self._seed = seed
        self._counts = counts
        self._postgres = postgres
        self._store = store
        self._views: list[str] = []
        self._deferred: list[str] = []
        self._whole: list[str] = []

    def run(self) -> None:
        with open_manual(self._store) as db:
            shared = db.open_shared_state()
            shared.rewrites = EagerPlanner(shared)
            try:
                self._db, self._session = db, Session(shared)
                with patch.object(planner, "match_candidate", match_also_without_signature):
                    self._run_case()
            finally:
                db.close_shared_state()

    def _run_case(self) -> None:
        rng = self._rng
        tables = random_tables(rng)
        rows, blocks = RowSource(rng, tables, ROWS), BlockSource(rng, tables)
        for table in tables:
            self._execute(table.ddl)
        for statement in rows.list_first_inserts():
            self._execute(statement)
        views = self._create_views(blocks)
        self._create_whole_views([table.name for table in tables])
        for _ in range(CHANGES):
            self._execute(rows.random_change())
        queries = [self._random_text(blocks, views) for _ in range(QUERIES)]
        for name in self._deferred:  # one that is behind answers nothing, as later ones are
            self._session.execute(f"REFRESH MATERIALIZED VIEW {name}")
        for text in queries:
            self._note_rewriting(text)
            self._compare(text, "after the history")
        self._compare_whole_queries("after the history")
        for isolation in ISOLATIONS:
            if isolation == "SERIALIZABLE" and self._store == "cells":
                continue
            self._compare_in_transaction(isolation, rows, rng.sample(queries, 4))
        for _ in range(3):
            self._execute(rows.random_change())
        for text in rng.sample(queries, 4):
            self._compare(text, "after the transactions")
        self._compare_whole_queries("after the transactions")

    def _create_views(self, blocks: BlockSource) -> list[RandomBlock]:
        made = []
        for number in range(VIEWS):
            block = blocks.random_view()
            deferred = self._rng.random() < 0.2
            options = "WITH (maintenance = 'deferred')" if deferred else ""
            definition = block.sql(names=True)
            try:
                self._session.execute(
                    f"CREATE MATERIALIZED VIEW v{number} {options} AS {definition}"
                )
            except Error as error:
                raise Differs(f"seed {self._seed}: {error}\n{definition}") from error
            self._views.append(definition)
            if deferred:
                self._deferred.append(f"v{number}")
            made.append(block)
        return made

    def _create_whole_views(self, tables: list[str]) -> None:
        rng = random.Random(self._seed)  # of their own: the blocks of a seed stay the same
        for number, form in enumerate(rng.sample(WHOLE, 2)):
            text = form.format(t=rng.choice(tables))
            self._session.execute(f"CREATE MATERIALIZED VIEW w{number} AS {text}")
            self._views.append(text)
            self._whole.append(text)

    def _compare_whole_queries(self, place: str) -> None:
        for text in self._whole:
            self._compare(text if "ORDER" in text else f"{text} ORDER BY 1", place)

    def _random_text(self, blocks: BlockSource, views: list[RandomBlock]) -> str:
        text = blocks.random_query(views).sql(self._rng)
        match self._rng.randrange(12):
            case 0:
                return f"SELECT count(*) FROM ({text}) AS q"
            case 1 if "ORDER BY" not in text:
                return f"SELECT * FROM ({text}) AS q UNION ALL {text}"
            case 2:
                return f"SELECT id FROM t0 WHERE EXISTS ({text}) AND id < 3"
            case _:
                return text

    def _compare_in_transaction(self, isolation: str, rows: RowSource, queries: list[str]) -> None:
        begin = f"BEGIN ISOLATION LEVEL {isolation}"
        self._session.execute(begin)
        if self._postgres is not None:
            self._postgres.execute(begin)
        for number, text in enumerate(queries):
            self._execute_in_transaction(rows.random_change(), number)
            self._compare(text, f"inside a transaction, {isolation}")
        self._compare_whole_queries(f"inside a transaction, {isolation}")
        end = self._rng.choice(("COMMIT", "ROLLBACK"))
        self._session.execute(end)
        if self._postgres is not None:
            self._postgres.execute(end)

    def _execute_in_transaction(self, statement: str, number: int) -> None:
        """A change that fails is taken back alone."""
        savepoint, back = f"SAVEPOINT s{number}", f"ROLLBACK TO s{number}"
        self._session.execute(savepoint)
        if self._postgres is not None:
            self._postgres.execute(savepoint)
        if not self._execute(statement):
            self._session.execute(back)
            if self._postgres is not None:
                self._postgres.execute(back)

    def _execute(self, statement: str) -> bool:
        """Run a change on both; what one refuses the other refuses too."""
        mine = theirs = ""
        try:
            self._session.execute(statement)
        except Error as error:
            mine = str(error.sqlstate)
        if self._postgres is None:
            return not mine
        try:
            self._postgres.execute(statement)  # type: ignore[call-overload]
        except psycopg.Error as error:
            theirs = str(error.sqlstate)
        if bool(mine) != bool(theirs):
            raise Differs(f"seed {self._seed}: {statement}: {mine!r}, PostgreSQL {theirs!r}")
        return not mine

    def _note_rewriting(self, text: str) -> None:
        counts = self._counts
        counts.queries += 1
        lines = [line for (line,) in self._session.execute(f"EXPLAIN {text}").rows or []]
        if any(line.startswith("rewritten to view") for line in lines):
            counts.rewritten += 1
        for line in lines:
            if " not used: " in line:
                counts.refused[line.partition(" not used: ")[2][:30]] += 1

    def _compare(self, text: str, place: str) -> None:
        self._counts.comparisons += 1
        session, exact = self._session, ".u" not in text
        answers = {"rewritten": _answer(session, text, exact)}
        session.settings.set("rewrite", "off")
        answers["plain"] = _answer(session, text, exact)
        session.settings.set("rewrite", "on")
        if self._postgres is not None:
            answers["PostgreSQL"] = _postgres_answer(self._postgres, text, exact)
            self._counts.with_postgres += 1
        if (
            len(
                {
                    repr(sorted(one.items()) if isinstance(one, Counter) else one)
                    for one in answers.values()
                }
            )
            > 1
        ):
            self._report(text, place, answers)

    def _report(self, text: str, place: str, answers: dict[str, Answer]) -> None:
        lines = [f"seed {self._seed}, {place}: {text}"]
        lines += [f"  v{i}: {one}" for i, one in enumerate(self._views)]
        lines += [
            f"  {who}: {sorted(one.items()) if isinstance(one, Counter) else one}"
            for who, one in answers.items()
        ]
        lines += [f"  {line}" for (line,) in self._session.execute(f"EXPLAIN {text}").rows or []]
        raise Differs("\n".join(lines))


def _answer(session: Session, text: str, exact: bool) -> Answer:
    inside = session.transactions.open is not None
    if inside:
        session.execute("SAVEPOINT look")
    try:
        result = session.execute(text)
    except Error as error:
        if inside:
            session.execute("ROLLBACK TO look")
        return str(error.sqlstate)
    result.convert_arrow_to_rows()
    return _to_bag(result.rows or [], exact)


def _postgres_answer(connection: psycopg.Connection[Any], text: str, exact: bool) -> Answer:
    connection.execute("SELECT 1")
    try:
        with connection.transaction():
            return _to_bag(connection.execute(text).fetchall(), exact)  # type: ignore[call-overload]
    except psycopg.Error as error:
        return str(error.sqlstate)


def _to_bag(rows: Any, exact: bool) -> Counter[tuple[str, ...]]:
    return Counter(tuple([_canonical(value, exact) for value in row]) for row in rows)


def _canonical(value: Any, exact: bool) -> str:
    """`exact`: numbers as they look, otherwise by value. 0 and -0 are one group: either shows."""
    match value:
        case float():
            return "nan" if math.isnan(value) else repr(value + 0.0)
        case Decimal() if not exact:
            return str(value.normalize(EXACT)) if value else "0"
        case _:
            return repr(value)


def check_cases(
    seeds: range, counts: RewriteCounts, *, postgres: bool = True, store: str = MEMORY
) -> None:
    for seed in seeds:
        if postgres:
            with fresh_schema(f"rewrite_{seed % 7}") as connection:
                RewriteCase(seed, counts, connection, store).run()
        else:
            RewriteCase(seed, counts, None, store).run()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", choices=STORES, default=MEMORY)
    parser.add_argument("--no-postgres", action="store_true")
    parser.add_argument("--keep-going", action="store_true")
    options = parser.parse_args()
    make_callers_context_useless()
    counts, failures, started = RewriteCounts(), 0, time.monotonic()
    first = options.seed * 1_000_000
    for seed in range(first, first + math.ceil(options.queries / QUERIES)):
        try:
            check_cases(
                range(seed, seed + 1), counts, postgres=not options.no_postgres, store=options.store
            )
        except Differs as error:
            failures += 1
            print(f"FAILED {error}", flush=True)
            if not options.keep_going:
                break
    spent = time.monotonic() - started
    print(
        f"{counts.queries} queries, {counts.rewritten} rewritten, {counts.comparisons} compared, "
        f"{counts.with_postgres} of them with PostgreSQL, {failures} failures, {spent:.0f} s"
    )
    for reason, count in counts.refused.most_common(20):
        print(f"{count:>7} {reason}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
