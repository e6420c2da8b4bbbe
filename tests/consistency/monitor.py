"""Writers and readers beside each other, every state that a reader saw, and its judgement.

Some writers insert, move and delete rows of two tables; readers look at four views, each kept
twice, immediate and deferred, at a freshness of their own. What the views should show at every
position is computed afterwards in Python, from the base rows as of that position: no code of the
views has a part in it. Nothing depends on how threads run: whatever they did is judged.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from belvedere.catalog.model import View
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.config import Config, Durability
from belvedere.database import Database
from belvedere.errors import Retry
from belvedere.session.context.shared_state import SharedState
from belvedere.session.materialized.create import bind_simplified_definition
from belvedere.session.session import Session
from belvedere.session.statement.catalog_expressions import compile_row_expression
from tests.consistency.levels import Level, Observation, State, Verdict, judge
from tests.unrewritten import make_unrewritten_session

WAIT_SECONDS_MAX = 60.0
GROUPS = 4
Rows = list[tuple[Any, ...]]
Tables = tuple[Rows, Rows]
"""Of `sales` (id, shop, amount) and `shops` (id, city)."""


def _totals(tables: Tables) -> Rows:
    found: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for _, shop, amount in tables[0]:
        found[shop][0] += 1
        found[shop][1] += amount
    return [(shop, count, total) for shop, (count, total) in found.items()]


def _by_city(tables: Tables) -> Rows:
    found: Counter[str] = Counter()
    cities = dict(tables[1])
    for _, shop, amount in tables[0]:
        if shop in cities:
            found[cities[shop]] += amount
    kept = {cities[shop] for _, shop, _ in tables[0] if shop in cities}
    return [(city, found[city]) for city in kept]


def _largest(tables: Tables) -> Rows:
    found: dict[int, int] = {}
    for _, shop, amount in tables[0]:
        found[shop] = max(amount, found.get(shop, amount))
    return list(found.items())


def _empty_shops(tables: Tables) -> Rows:
    busy = {shop for _, shop, _ in tables[0]}
    return [(shop,) for shop, _ in tables[1] if shop not in busy]


VIEWS: dict[str, tuple[str, Callable[[Tables], Rows]]] = {
    "totals": (
        "SELECT shop, count(*) AS n, sum(amount) AS total FROM sales GROUP BY shop",
        _totals,
    ),
    "by_city": (
        "SELECT s.city, sum(x.amount) AS total FROM sales x JOIN shops s ON s.id = x.shop"
        " GROUP BY s.city",
        _by_city,
    ),
    "largest": ("SELECT shop, max(amount) AS most FROM sales GROUP BY shop", _largest),
    "empty_shops": (
        "SELECT id FROM shops WHERE NOT EXISTS (SELECT 1 FROM sales WHERE shop = shops.id)",
        _empty_shops,
    ),
}
KINDS = ("immediate", "deferred")
NAMES = tuple(f"{name}_{kind}" for name in VIEWS for kind in KINDS)
REQUIRED = {name: Level.STRONG if "deferred" in name else Level.COMPLETE for name in NAMES}
FRESHNESS = ("any", "session", "250 ms", "latest")
STALE = ("any", "250 ms")


@dataclass(frozen=True, slots=True)
class Profile:
    writers: int = 3
    transactions: int = 30
    """Of each writer."""
    readers: int = 2


@dataclass(slots=True)
class History:
    """What was seen of every view, by its stored name, and how it ended."""

    seen: dict[str, list[Observation]] = field(default_factory=lambda: defaultdict(list))
    last: dict[str, State] = field(default_factory=dict)
    states: dict[str, dict[int, State]] = field(default_factory=lambda: defaultdict(dict))

    def verdicts(self) -> dict[str, Verdict]:
        return {name: judge(self.states[name], self.seen[name], self.last[name]) for name in NAMES}


@contextmanager
def opened(path: str = ":memory:") -> Iterator[SharedState]:
    config = Config(durability=Durability.OFF)
    with Database.open(
        path, config, compile_expression=compile_row_expression, bind=bind_simplified_definition
    ) as db:
        shared = db.open_shared_state()
        try:
            yield shared
        finally:
            db.close_shared_state()


class Monitor:
    def __init__(self, shared: SharedState, profile: Profile, seed: int) -> None:
        self._shared = shared
        self._profile = profile
        self._seed = seed
        self._turn = threading.Lock()
        self._failed: list[BaseException] = []
        self._writing = threading.Event()
        self.history = History()

    def run(self) -> History:
        self._set_up()
        first = self._database.position
        self._look(make_unrewritten_session(self._shared), "the beginning", "latest", KINDS)
        self._writing.set()
        readers = [self._thread(self._read, n) for n in range(self._profile.readers)]
        writers = [self._thread(self._write, n) for n in range(self._profile.writers)]
        for thread in writers:
            thread.join()
        self._writing.clear()
        for thread in readers:
            thread.join()
        if self._failed:
            raise self._failed[0]
        self._finish(first)
        return self.history

    @property
    def _database(self) -> Database:
        assert isinstance(self._shared.host, Database)
        return self._shared.host

    def _thread(self, work: Callable[[int], None], number: int) -> threading.Thread:
        def run() -> None:
            try:
                work(number)
            except BaseException as error:  # noqa: BLE001 (raised by the thread that joins)
                self._failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def _set_up(self) -> None:
        session = make_unrewritten_session(self._shared)
        session.execute("CREATE TABLE shops (id int PRIMARY KEY, city text NOT NULL)")
        session.execute("CREATE TABLE sales (id int PRIMARY KEY, shop int, amount int)")
        for shop in range(GROUPS):
            session.execute(f"INSERT INTO shops VALUES ({shop}, 'city {shop % 2}')")
        for name, (query, _) in VIEWS.items():
            for kind in KINDS:
                session.execute(
                    f"CREATE MATERIALIZED VIEW {name}_{kind}"
                    f" WITH (maintenance = '{kind}') AS {query}"
                )

    # -- threads ------------------------------------------------------------------------------

    def _write(self, number: int) -> None:
        """Transactions beside those of others; the moment of a commit is a writer's own, so that
        the state it leaves can be looked at before the next one comes."""
        rng, session = (
            random.Random(f"{self._seed}/{number}"),
            make_unrewritten_session(self._shared),
        )
        for count in range(self._profile.transactions):
            while True:
                try:
                    session.execute("BEGIN")
                    for _ in range(rng.randrange(1, 4)):
                        session.execute(_change(rng, number, count))
                    with self._turn:
                        session.execute("COMMIT")
                        self._look(session, f"writer {number}", "session", KINDS[:1])
                    break
                except Retry:
                    session.execute("ROLLBACK")

    def _read(self, number: int) -> None:
        session, count = make_unrewritten_session(self._shared), 0
        while self._writing.is_set() or count == 0:
            freshness = FRESHNESS[(number + count) % len(FRESHNESS)]
            self._look(session, f"reader {number}", freshness, KINDS)
            count += 1

    def _look(self, session: Session, who: str, freshness: str, kinds: tuple[str, ...]) -> None:
        """All views in one transaction: each at one position, whatever is written meanwhile."""
        session.execute(f"SET freshness = '{freshness}'")
        session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        try:
            for name in VIEWS:
                for kind in kinds:
                    state = shown(session, f"{name}_{kind}")
                    assert session.transactions.open is not None
                    position = session.transactions.open.position
                    # Who allows for old states may get one after a newer one of another level.
                    reader = f"{who}, {freshness}" if freshness in STALE else who
                    self.history.seen[f"{name}_{kind}"].append(Observation(reader, position, state))
        finally:
            session.execute("COMMIT")

    # -- afterwards ---------------------------------------------------------------------------

    def _finish(self, first: int) -> None:
        db, session = self._database, make_unrewritten_session(self._shared)
        goal, end = db.position, time.monotonic() + WAIT_SECONDS_MAX
        session.execute("SET freshness = 'any'")
        for name in NAMES:
            view = db.catalog.require_relation(View, name)
            while db.views.read_view_watermark(view) < goal:
                assert time.monotonic() < end, f"{name} does not follow"
                time.sleep(0.002)
            self.history.last[name] = shown(session, name)
        self._look(session, "the end", "any", KINDS)
        for position in range(first, goal + 1):
            tables = (self._rows("sales", position), self._rows("shops", position))
            for name, (_, compute) in VIEWS.items():
                for kind in KINDS:
                    self.history.states[f"{name}_{kind}"][position] = _bag(compute(tables))

    def _rows(self, table: str, position: int) -> Rows:
        db = self._database
        compiled = db.get_compiled_table(table)
        with db.open_past_reader(position) as reader:
            layout = compiled_table(reader.catalog, compiled.table.id)
            return [
                layout.decode(value)
                for batch in reader.scan_values(layout.start, layout.end)
                for value in batch
            ]


def _change(rng: random.Random, writer: int, count: int) -> str:
    """A writer changes its own sales only, but all meet in the same shops."""
    key = writer * 1000 + rng.randrange(8)
    shop, amount = rng.randrange(GROUPS + 1), rng.randrange(100)
    drawn = rng.random()
    if drawn < 0.5:
        return (
            f"INSERT INTO sales VALUES ({key}, {shop}, {amount})"
            f" ON CONFLICT (id) DO UPDATE SET shop = {shop}, amount = {amount}"
        )
    if drawn < 0.75:
        return f"DELETE FROM sales WHERE id = {key}"
    if drawn < 0.9:
        return f"UPDATE sales SET shop = {shop} WHERE id BETWEEN {key} AND {key + 2}"
    return f"UPDATE shops SET city = 'city {count % 3}' WHERE id = {writer % GROUPS}"


def shown(session: Session, view: str) -> State:
    result = session.execute(f"SELECT * FROM {view}")
    result.convert_arrow_to_rows()
    return _bag(result.rows)


def _bag(rows: Rows) -> State:
    return tuple(sorted(Counter(tuple(row) for row in rows).items(), key=repr))
