"""The law, run on one case: after every transaction each view equals its query, as a bag.

Compared are, after every transaction: the immediate view; the deferred view read at 'latest', with
what the log still has for it; the query by Python operators; the query by DuckDB; the query by
PostgreSQL, which gets the same statements; and inside some transactions, before they end, view and
query as that transaction sees them. At every tenth step the stored state of all views is compared
with one that is made anew. Between, deferred views are caught up at random, so the log is cut
anywhere; by the seed of the case their batches are worked out in Python, by sums in DuckDB, by
computing the view anew in DuckDB, or as it comes. The store is in memory, on RocksDB, or the memory
double of one with row-atomic cells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import psycopg

from belvedere.catalog.model import Maintenance, View
from belvedere.catalog.relation_codecs import compiled_view
from belvedere.codec import accumulator
from belvedere.config import Config, Durability
from belvedere.database import Database
from belvedere.errors import Error, InvalidInput, Unsupported
from belvedere.kv.rocksdb_gather import GatheringStore
from belvedere.session.context.shared_state import SharedState
from belvedere.session.materialized.create import bind_simplified_definition
from belvedere.session.session import Session
from belvedere.session.statement.catalog_expressions import compile_row_expression
from belvedere.txn.batch_atomic import recovery
from belvedere.txn.contracts import Reader
from belvedere.txn.history.derived_rows import DerivedRows
from belvedere.views.registry.view_registry import EmptyReader
from belvedere.views.service import ViewService
from tests.properties.views.bags import Bag, Overflow, bag, exact_bag
from tests.properties.views.generate.histories import Case, Step
from tests.properties.views.generate.schemas import Column
from tests.protocols import open_on_cells
from tests.unrewritten import make_unrewritten_session

AS_TEXT = ("date", "timestamp", "timestamptz", "time", "uuid", "bytea")
OUT_OF_RANGE = "22003"


class Broken(AssertionError):
    """The law does not hold."""


@dataclass(slots=True)
class Counts:
    cases: int = 0
    views: int = 0
    steps: int = 0
    comparisons: int = 0
    postgres: int = 0
    states: int = 0
    refused: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Kept:
    """A view that was made, twice."""

    name: str
    query: str
    exact: str
    columns: tuple[Column, ...]

    @property
    def portable(self) -> str:
        listed = []
        for column in self.columns:
            if column.type == "interval":
                listed.append(f"extract(epoch FROM q.{column.name})")
            else:
                cast = "::text" if column.type in AS_TEXT else ""
                if column.type == "real" and column.kind == "plain":
                    cast = "::double precision"
                listed.append(f"q.{column.name}{cast}")
        return f"SELECT {', '.join(listed)} FROM ({self.exact}) q"


Answer = Bag | str
"""Rows, or the SQLSTATE with which there are none."""


MEMORY, ROCKSDB, GATHERING, CELLS = STORES = ("memory", "rocksdb", "gathering", "cells")


@contextmanager
def open_manual(store: str = MEMORY) -> Iterator[Database]:
    """A database whose deferred views move when the test says so."""
    config = Config(durability=Durability.OFF)
    more: dict[str, Any] = {
        "compile_expression": compile_row_expression,
        "bind": bind_simplified_definition,
    }
    with ExitStack() as stack:
        stack.enter_context(
            mock.patch.object(ViewService, "start_or_wake_worker", return_value=None)
        )
        if store == CELLS:
            db = open_on_cells(config, **more)
        else:
            if store == GATHERING:  # and never synced: much of what is read is on its way
                gathers = mock.patch.object(recovery, "RocksStore", GatheringStore)
                stack.enter_context(gathers)
            home = None if store == MEMORY else stack.enter_context(TemporaryDirectory())
            db = Database.open(":memory:" if home is None else home, config, **more)
        yield stack.enter_context(db)


TIERS = ("duckdb", "refill", "python", "auto")
FORMS = {"local": "placement = 'local'", "colocated": "join = 'colocated'"}


class Law:
    def __init__(
        self,
        case: Case,
        counts: Counts,
        postgres: psycopg.Connection[Any] | None = None,
        store: str = MEMORY,
    ) -> None:
        self._case = case
        self._store = store
        self._counts = counts
        self._postgres = postgres
        self._views: list[Kept] = []
        self._refused: list[str] = []
        self._forms: dict[str, dict[str, str]] = {}

    def run(self) -> None:
        case, counts = self._case, self._counts
        with open_manual(self._store) as db:
            shared = db.open_shared_state()
            try:
                self._open(db, shared)
                self._set_up()
                for number, step in enumerate(case.steps):
                    with self._blame(f"step {number}: {'; '.join(step.statements)}"):
                        self._step(step, number)
                    counts.steps += 1
            finally:
                db.close_shared_state()
        counts.cases += 1
        counts.views += len(self._views)

    def _open(self, db: Database, shared: SharedState) -> None:
        self._db = db
        self._writer = make_unrewritten_session(shared)
        tier = TIERS[self._case.seed % len(TIERS)]
        self._writer.execute(f"SET maintenance_tier = {tier}")
        self._direct = make_unrewritten_session(shared)
        self._direct.execute("SET tier = direct")
        self._duck = make_unrewritten_session(shared)
        self._duck.execute("SET tier = duckdb")
        self._sessions = (self._direct, self._duck, self._writer)

    @contextmanager
    def _blame(self, place: str) -> Iterator[None]:
        try:
            yield
        except Broken as error:
            raise Broken(f"seed {self._case.seed}, {place}\n{error}") from None
        except (Error, AssertionError, TypeError, ValueError, KeyError) as error:
            raise Broken(f"seed {self._case.seed}, {place}\n{error!r}") from error

    # -- beginning ----------------------------------------------------------------------------

    def _set_up(self) -> None:
        case = self._case
        for ddl in case.tables:
            self._writer.execute(ddl)
        if self._postgres is not None:
            for ddl in case.tables_deferrable:
                self._postgres.execute(ddl)
        for statement in case.first:
            self._both((statement,), commit=True)
        for view in case.views:
            with self._blame(f"view {view['text']}"):
                self._create(view)
        with self._blame("after the backfill"):
            self._compare(-1, postgres=True)

    def _create(self, view: dict[str, Any]) -> None:
        columns = tuple(Column(*column) for column in view["columns"])
        later = str(view["text"])
        if any(f" {name} " in later for name in self._refused):
            self._refused.append(view["name"])
            return
        for earlier in self._views:
            later = later.replace(f"{earlier.name} ", f"{earlier.name}_later ")
        try:
            self._writer.execute(f"CREATE MATERIALIZED VIEW {view['name']} AS {view['text']}")
        except Unsupported as refused:
            reason = str(refused.facts.get("construct", refused.message))
            self._counts.refused[reason] = self._counts.refused.get(reason, 0) + 1
            self._refused.append(view["name"])
            return
        # Views of one group go by columns only where all of them can: half of the cases have groups
        # of one view each.
        alone = self._case.seed // len(TIERS) % 2
        own = f", refresh_every = '{len(self._views) + 2} h'" if alone else ""
        # Two that are equal have the same rows and groups, so that columns add them up together.
        for name in ("later", "beside") if alone else ("later",):
            self._writer.execute(
                f"CREATE MATERIALIZED VIEW {view['name']}_{name}"
                f" WITH (maintenance = 'deferred'{own}) AS {later}"
            )
        for _ in range(2):  # a new view follows the log by itself until it is where its group is
            self._db.views.deferred.advance_groups([self._view(f"{view['name']}_later").group])
        self._views.append(Kept(view["name"], view["query"], view["exact"], columns))
        self._create_forms(view)

    def _create_forms(self, view: dict[str, Any]) -> None:
        """The view in every other form that takes its definition."""
        for form, option in FORMS.items():
            name = f"{view['name']}_{form}"
            try:
                self._writer.execute(
                    f"CREATE MATERIALIZED VIEW {name} WITH ({option}) AS {view['text']}"
                )
            except Unsupported:
                continue
            self._forms.setdefault(view["name"], {})[form] = name

    # -- one step -----------------------------------------------------------------------------

    def _step(self, step: Step, number: int) -> None:
        self._both(step.statements, commit=step.commit, look=step.look_inside)
        self._compare(number, postgres=True)
        for index in step.catch_up:
            if index < len(self._views):
                self._db.views.catch_up_view(self._view(f"{self._views[index].name}_later"))
        if number % 10 == 9:
            self._compare_state()

    def _both(self, statements: Sequence[str], *, commit: bool, look: bool = False) -> None:
        """The transaction here, and in PostgreSQL: both succeed or both fail."""
        failed = self._here(statements, commit=commit, look=look)
        if self._postgres is None:
            return
        if failed == OUT_OF_RANGE:
            self._require_overflow(self._postgres, statements)
            return
        there = None
        try:
            with self._postgres.transaction(force_rollback=not commit):
                for statement in statements:
                    self._postgres.execute(statement)
        except psycopg.Error as error:
            there = error.sqlstate
        if (failed is None) != (there is None):
            raise Broken(f"here {failed}, PostgreSQL {there}")

    def _require_overflow(
        self, postgres: psycopg.Connection[Any], statements: Sequence[str]
    ) -> None:
        """A write fails by a view when a sum the view needs at once has no float: so it must be."""
        with postgres.transaction(force_rollback=True):
            for statement in statements:
                postgres.execute(statement)
            for view in self._views:
                try:
                    exact_bag(postgres.execute(view.portable).fetchall(), view.columns)
                except Overflow:
                    return
        raise Broken("here 22003, and no sum overflows")

    def _here(self, statements: Sequence[str], *, commit: bool, look: bool) -> str | None:
        writer = self._writer
        try:
            if len(statements) > 1 or look or not commit:
                writer.execute("BEGIN")
            for statement in statements:
                writer.execute(statement)
            if look:
                self._compare_inside()
            if writer.transactions.open is not None:
                writer.execute("COMMIT" if commit else "ROLLBACK")
        except InvalidInput as error:
            if writer.transactions.open is not None:
                writer.execute("ROLLBACK")
            return error.sqlstate
        return None

    # -- comparing ----------------------------------------------------------------------------

    def _compare(self, number: int, *, postgres: bool) -> None:
        for view in self._views:
            direct = self._expected(self._direct, view)
            found = {
                "duckdb": self._expected(self._duck, view),
                "immediate": _answer(self._direct, f"SELECT * FROM {view.name}", view.columns),
                "deferred": _answer(self._direct, f"SELECT * FROM {view.name}_later", view.columns),
            }
            for form, name in self._forms.get(view.name, {}).items():
                found[form] = _answer(self._direct, f"SELECT * FROM {name}", view.columns)
            if number % 5 == 0:
                text = f"SELECT * FROM {view.name} "
                found["immediate by duckdb"] = _answer(self._duck, text, view.columns)
            if postgres and self._postgres is not None:
                self._compare_postgres(view)
            _require_equal(view, direct, found)
            self._counts.comparisons += len(found)

    def _compare_inside(self) -> None:
        """View and query as the open transaction sees them, its own changes included."""
        for view in self._views:
            expected = self._expected(self._writer, view)
            found = {
                f"{kind} inside": _answer(self._writer, f"SELECT * FROM {name}  ", view.columns)
                for kind, name in (("immediate", view.name), ("deferred", f"{view.name}_later"))
            }
            _require_equal(view, expected, found)
            self._counts.comparisons += len(found)

    def _expected(self, session: Session, view: Kept) -> Answer:
        # A plan is kept for a text and a tier; another text for each lets all of them be kept.
        result = session.execute(view.exact + " " * self._sessions.index(session))
        result.convert_arrow_to_rows()
        try:
            return exact_bag(result.rows, view.columns)
        except Overflow:
            return OUT_OF_RANGE

    def _compare_postgres(self, view: Kept) -> None:
        """Both engines answer the same text; what psycopg cannot hold is cast to text in it."""
        assert self._postgres is not None
        columns = [replace(c, type="text") if c.type in AS_TEXT else c for c in view.columns]
        here = self._direct.execute(view.portable)
        here.convert_arrow_to_rows()
        rows = self._postgres.execute(view.portable).fetchall()
        answers = []
        for found in (here.rows, rows):
            try:
                answers.append(exact_bag(found, columns))
            except Overflow:
                answers.append(OUT_OF_RANGE)
        _require_equal(view, answers[0], {"postgres": answers[1]})
        self._counts.postgres += 1

    # -- hidden state -------------------------------------------------------------------------

    def _compare_state(self) -> None:
        """Keys and amounts that are stored, against those a backfill would make."""
        for view in self._db.catalog.views:
            if view.maintenance is Maintenance.DEFERRED:
                self._db.views.catch_up_view(view)
        with self._db.begin() as reader:
            for view in reader.catalog.views:
                made = DerivedRows(EmptyReader(reader.catalog))
                self._db.views.registry.get_view_maintainer(reader.catalog, view).backfill_state(
                    reader, made
                )
                expected = {k: accumulator.decode(v)[1] for k, v in made.writes() if v}
                if expected != stored_state(reader, view):
                    raise Broken(f"state of view {view.name} is not what a backfill makes")
                self._counts.states += 1

    def _view(self, name: str) -> View:
        return self._db.catalog.require_relation(View, name)


def stored_state(reader: Reader, view: View) -> dict[bytes, tuple[int, ...]]:
    stored = compiled_view(reader.catalog, view.id)
    pairs = (pair for batch in reader.scan(stored.start, stored.end) for pair in batch)
    return {key: accumulator.decode(value)[1] for key, value in pairs}


def _answer(session: Session, text: str, columns: Sequence[Column]) -> Answer:
    inside = session.transactions.open is not None
    if inside:
        session.execute("SAVEPOINT look")
    try:
        result = session.execute(text)
    except InvalidInput as error:
        if inside:
            session.execute("ROLLBACK TO look")
        return error.sqlstate
    result.convert_arrow_to_rows()
    return bag(result.rows, columns)


def _require_equal(view: Kept, expected: Answer, found: dict[str, Answer]) -> None:
    for who, rows in found.items():
        if rows == expected:
            continue
        lines = [f"{who} differs for view {view.name} = {view.query}"]
        if isinstance(rows, Counter) and isinstance(expected, Counter):
            lines.append(f"missing: {sorted((expected - rows).items())[:6]}")
            lines.append(f"unexpected: {sorted((rows - expected).items())[:6]}")
        else:
            lines.append(f"expected {str(expected)[:300]}, found {str(rows)[:300]}")
        raise Broken("\n".join(lines))
