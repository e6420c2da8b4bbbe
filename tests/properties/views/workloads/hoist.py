"""Every query of SQL Logic Test as a view: defined on empty tables, which are then loaded.

    python -m tests.properties.views.workloads.hoist                     all queries over tables,
    all files python -m tests.properties.views.workloads.hoist select1 --sample 50 --seed 7 python
    -m tests.properties.views.workloads.hoist --shard 3/20        every twentieth query, from the
    third

A round is a stretch of a file between drops of its tables. Its tables come first, then a batch of
its queries as views, immediate or deferred in turn, then the round's inserts, updates and deletes,
statement by statement; at some of them, and at the end, every view is compared with its query, as a
bag. A query that fails as such is no view's fault: the write must fail, or the view's readers, with
the same SQLSTATE. A query that is refused is counted by the reason.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from belvedere.errors import Error, InvalidInput, Unsupported
from belvedere.session.session import Session
from tests.properties.views.law import open_manual
from tests.slt import records
from tests.slt.runner import corpus
from tests.unrewritten import make_unrewritten_session

BATCH = 100
LONG_BATCH = 250
LONG_ROUND = 500
"""Views that are loaded together: more where a round has so many changes that loading it costs more
than making the views."""
CHECKS = 3
"""How often a batch is compared while its round runs; and once at the end."""
REFUSED_SHARE_MAX = 0.02
_OVER_TABLES = re.compile(r"\bfrom\b", re.IGNORECASE)
_CHANGES = ("INSERT", "UPDATE", "DELETE")
_SCHEMA = ("CREATE TABLE", "CREATE INDEX", "CREATE UNIQUE")


@dataclass(slots=True)
class Round:
    schema: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    queries: dict[str, int] = field(default_factory=dict)
    """Queries, with their numbers of columns."""


@dataclass(slots=True)
class Counts:
    queries: int = 0
    correct: int = 0
    failing: int = 0
    """Queries that fail as such, and views that fail with them."""
    refused: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @property
    def refused_share(self) -> float:
        return sum(self.refused.values()) / max(self.queries, 1)

    def __str__(self) -> str:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in self.refused.most_common())
        return (
            f"{self.queries} queries, {self.correct} correct, {self.failing} failing as queries, "
            f"{sum(self.refused.values())} refused ({reasons or 'none'}), {len(self.wrong)} wrong"
        )


def rounds(path: Path) -> Iterator[Round]:
    current = Round()
    for record in records.read(path):
        words = " ".join(record.sql.split()[:2]).upper()
        if record.is_query:
            if _OVER_TABLES.search(record.sql):
                current.queries.setdefault(record.sql, len(record.types))
        elif record.error is not None:
            continue
        elif words.startswith("DROP"):
            if current.queries:
                yield current
            current = _without(current, record.sql.split()[-1])
        elif words.startswith(_SCHEMA):
            current.schema.append(record.sql)
        elif words.startswith(_CHANGES):
            current.changes.append(record.sql)
    if current.queries:
        yield current


def of_tables(one: Round, most: int) -> Round:
    """The round without what joins more tables than that. A query of SQL Logic Test's long joins
    gives one column of each table."""
    queries = {text: width for text, width in one.queries.items() if width <= most}
    return Round(one.schema, one.changes, queries)


def _without(one: Round, table: str) -> Round:
    """What is left of a round when one of its tables goes."""
    names = re.compile(rf"(TABLE|INTO|UPDATE|DELETE FROM|ON)\s+{table}\b", re.IGNORECASE)
    return Round(
        [text for text in one.schema if not names.search(text)],
        [text for text in one.changes if not names.search(text)],
    )


def sampled(found: Sequence[Round], count: int, rng: random.Random) -> list[Round]:
    """The rounds with at most `count` of their queries in all."""
    pairs = [(number, query) for number, one in enumerate(found) for query in one.queries]
    kept = set(rng.sample(pairs, min(count, len(pairs))))
    chosen = []
    for number, one in enumerate(found):
        queries = {query: one.queries[query] for query in one.queries if (number, query) in kept}
        if queries:
            chosen.append(Round(one.schema, one.changes, queries))
    return chosen


def sharded(found: Sequence[Round], part: int, parts: int) -> list[Round]:
    """The rounds with every `parts`-th query, counted through all of them; shards make up all."""
    chosen, number = [], 0
    for one in found:
        queries = {}
        for query, width in one.queries.items():
            if number % parts == part:
                queries[query] = width
            number += 1
        if queries:
            chosen.append(Round(one.schema, one.changes, queries))
    return chosen


def shard(text: str) -> tuple[int, int]:
    """'3/20' as (2, 20)."""
    part, _, parts = text.partition("/")
    if not 1 <= int(part) <= int(parts):
        raise argparse.ArgumentTypeError(f"no such part: {text}")
    return int(part) - 1, int(parts)


def run_round(one: Round, counts: Counts) -> None:
    one = Round(one.schema, _accepted(one), one.queries)
    queries = list(one.queries.items())
    size = LONG_BATCH if len(one.changes) >= LONG_ROUND else BATCH
    for start in range(0, len(queries), size):
        _run_batch(one, queries[start : start + size], counts)


def _run_batch(one: Round, queries: Sequence[tuple[str, int]], counts: Counts) -> None:
    """When some write fails, the views that make it fail are found by halves."""
    if Hoisted(one, queries, counts).run():
        return
    if len(queries) == 1:
        Hoisted(one, queries, counts).run_alone()
        return
    middle = len(queries) // 2
    _run_batch(one, queries[:middle], counts)
    _run_batch(one, queries[middle:], counts)


def _accepted(one: Round) -> list[str]:
    """The changes that are possible as such: the files have some that PostgreSQL refuses."""
    accepted = []
    with open_manual() as db:
        shared = db.open_shared_state()
        try:
            session = make_unrewritten_session(shared)
            for statement in one.schema:
                session.execute(statement)
            for statement in one.changes:
                try:
                    session.execute(statement)
                except InvalidInput:
                    continue
                accepted.append(statement)
        finally:
            db.close_shared_state()
    return accepted


class Hoisted:
    """Some queries of a round as views in a database of their own."""

    def __init__(self, one: Round, queries: Sequence[tuple[str, int]], counts: Counts) -> None:
        self._round = one
        self._queries = queries
        self._counts = counts
        self._views: dict[str, str] = {}
        self._refused: Counter[str] = Counter()
        self._failing = 0

    def run(self) -> bool:
        """False when a write failed: nothing is counted then."""
        with open_manual() as db:
            shared = db.open_shared_state()
            try:
                session = make_unrewritten_session(shared)
                self._create(session)
                wrong = self._load(session)
            except InvalidInput:
                return False
            finally:
                db.close_shared_state()
        self._count(wrong)
        return True

    def run_alone(self) -> None:
        """One view. When a write fails, the query must fail on the rows it would have left."""
        with open_manual() as db, open_manual() as plain:
            shared, others = db.open_shared_state(), plain.open_shared_state()
            try:
                session, reference = (
                    make_unrewritten_session(shared),
                    make_unrewritten_session(others),
                )
                self._create(session)
                for statement in self._round.schema:
                    reference.execute(statement)
                wrong = self._load_beside(session, reference)
            finally:
                db.close_shared_state()
                plain.close_shared_state()
        self._count(wrong)

    def _create(self, session: Session) -> None:
        session.execute("SET tier = direct")
        for statement in self._round.schema:
            session.execute(statement)
        for number, (query, width) in enumerate(self._queries):
            columns = ", ".join(f"c{place}" for place in range(width))
            kind = ("immediate", "deferred")[number % 2]
            name = f"v{number}"
            try:
                session.execute(
                    f"CREATE MATERIALIZED VIEW {name} ({columns})"
                    f" WITH (maintenance = '{kind}') AS {query}"
                )
            except Unsupported as refused:
                self._refused[_reason(refused)] += 1
            except InvalidInput as error:
                if answer(session, query) != error.sqlstate:
                    raise AssertionError(f"{query}\nis no view: {error}") from error
                self._failing += 1
            else:
                self._views[name] = query

    def _load(self, session: Session) -> dict[str, str]:
        changes = self._round.changes
        every = max(len(changes) // CHECKS, 1)
        wrong: dict[str, str] = {}
        for number, statement in enumerate(changes, 1):
            session.execute(statement)
            if number % every == 0 or number == len(changes):
                wrong |= self._compared(session)
        return wrong

    def _load_beside(self, session: Session, reference: Session) -> dict[str, str]:
        for statement in self._round.changes:
            reference.execute(statement)
            try:
                session.execute(statement)
            except InvalidInput as error:
                for query in self._views.values():
                    if answer(reference, query) != error.sqlstate:
                        return {query: f"{statement} fails with {error}, the query does not"}
                self._failing += len(self._views)
                self._views.clear()
                return {}
        return self._compared(session)

    def _compared(self, session: Session) -> dict[str, str]:
        wrong = {}
        for name, query in self._views.items():
            expected, found = answer(session, query), answer(session, f"SELECT * FROM {name}")
            if found != expected:
                wrong[query] = f"expected {_shown(expected)}, found {_shown(found)}"
        return wrong

    def _count(self, wrong: dict[str, str]) -> None:
        counts = self._counts
        counts.queries += len(self._queries)
        counts.refused += self._refused
        counts.failing += self._failing
        counts.correct += len([query for query in self._views.values() if query not in wrong])
        counts.wrong += [f"{query}\n{how}" for query, how in wrong.items()]


def answer(session: Session, text: str) -> Counter[Any] | str:
    """Rows as a bag, or the SQLSTATE there is instead."""
    try:
        result = session.execute(text)
        result.convert_arrow_to_rows()
    except Error as error:
        return error.sqlstate
    return Counter(tuple(row) for row in result.rows)


def _reason(refused: Unsupported) -> str:
    return str(refused.facts.get("construct", refused.message))


def _shown(found: Counter[Any] | str) -> str:
    return str(found)[:200]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*")
    parser.add_argument("--sample", type=int, help="queries of each file at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tables", type=int, default=64, help="tables of a join at most")
    parser.add_argument("--shard", type=shard, default=(0, 1), metavar="K/N", help="a part of all")
    options = parser.parse_args()
    place = corpus()
    if place is None:
        print("there is no corpus")
        return 1
    total = Counts()
    for path in sorted(place.glob("*.test")):
        if options.files and path.stem not in options.files:
            continue
        started, counts = time.monotonic(), Counts()
        found = [of_tables(one, options.tables) for one in rounds(path)]
        found = sharded(found, *options.shard)
        if options.sample is not None:
            found = sampled(found, options.sample, random.Random(f"{options.seed}/{path.name}"))
        for one in found:
            run_round(one, counts)
        for text in counts.wrong[:5]:
            print(f"WRONG {text}", flush=True)
        print(f"{path.stem}: {counts} ({time.monotonic() - started:.1f} s)", flush=True)
        total.queries += counts.queries
        total.correct += counts.correct
        total.failing += counts.failing
        total.refused += counts.refused
        total.wrong += counts.wrong
    print(f"all files: {total}")
    return 1 if total.wrong or total.refused_share > REFUSED_SHARE_MAX else 0


if __name__ == "__main__":
    sys.exit(main())
