"""What one process has sampled of a table serves the others that use the store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belvedere.codec import keyspace
from belvedere.database import Database
from belvedere.errors import Unavailable
from belvedere.kv.cell import Cells, CellScan
from belvedere.kv.doubles.cells import MemoryCells
from belvedere.session.context import shared_samples
from belvedere.session.context.shared_samples import PlacedSample, SharedSample, merge_samples
from belvedere.session.context.shared_state import SharedState
from belvedere.session.context.table_statistics import TableStatistics
from belvedere.session.session import Session
from belvedere.txn.cluster import StoredSample
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.engine import RowAtomicEngine
from belvedere.txn.row_atomic.node import NodeSettings
from tests.txn.row_atomic.nodes import commits, open_node

ROWS = 200
PATIENT = NodeSettings(grace_seconds=0.0, work_seconds_max=60.0)


class ScanCounter(MemoryCells):
    """Counts the scans of rows of one relation."""

    def __init__(self) -> None:
        super().__init__()
        self.relation = 0
        self.count = 0

    def scan(self, scan: CellScan) -> tuple[tuple[bytes, Cells], ...]:
        self.count += scan.start.startswith(keyspace.row_prefix(self.relation))
        return super().scan(scan)


class Process:
    def __init__(self, store: MemoryCells) -> None:
        self.db: Database = open_node(store, PATIENT)
        self.shared: SharedState = self.db.open_shared_state()
        self.session = Session(self.shared)

    @property
    def statistics(self) -> TableStatistics:
        return self.shared.table_statistics

    @property
    def table(self) -> int:
        return self.db.get_compiled_table("t").table.id

    @property
    def stored(self) -> list[StoredSample]:
        assert isinstance(self.db.engine, RowAtomicEngine)
        return self.db.engine.shared_samples.read_samples(self.table)

    def run(self, statement: str) -> None:
        self.session.execute(statement)


@pytest.fixture
def store() -> ScanCounter:
    return ScanCounter()


@pytest.fixture
def one(store: ScanCounter) -> Iterator[Process]:
    made = Process(store)
    made.run("CREATE TABLE t (id INT PRIMARY KEY, kind INT, name TEXT)")
    made.run(f"INSERT INTO t SELECT i, i % 5, 'n' || i FROM generate_series(1, {ROWS}) i")
    store.relation = made.table
    yield made
    made.db.close()


@pytest.fixture
def other(one: Process, store: ScanCounter) -> Iterator[Process]:
    made = Process(store)
    yield made
    made.db.close()


def test_a_process_takes_what_another_has_sampled(
    one: Process, other: Process, store: ScanCounter
) -> None:
    assert one.statistics.row_count(one.table) == ROWS
    assert one.statistics.distinct_count(one.table, 1) == 5
    store.count = 0
    assert other.statistics.row_count(other.table) == ROWS
    assert other.statistics.column_summary(other.table, 2) == one.statistics.column_summary(
        one.table, 2
    )
    assert other.statistics.distinct_count(other.table, 1) == 5
    assert store.count == 0
    assert [each.node for each in one.stored] == [one.db.engine.node]


def test_what_is_not_valid_any_more_is_sampled_anew_and_removed(
    one: Process, other: Process, store: ScanCounter
) -> None:
    one.statistics.row_count(one.table)
    old = one.stored
    for id_ in range(1000, 1050):
        other.run(f"INSERT INTO t VALUES ({id_}, 1, 'new')")
    assert other.statistics.row_count(other.table) == ROWS + 50
    assert [each.node for each in other.stored] == [other.db.engine.node]
    assert other.stored != old
    store.count = 0
    assert one.statistics.row_count(one.table) == ROWS + 50
    assert store.count == 0


def test_a_table_of_another_definition_is_sampled_anew(one: Process, other: Process) -> None:
    one.statistics.row_count(one.table)
    other.run("ALTER TABLE t ADD COLUMN more INT")
    other.run("INSERT INTO t VALUES (1000, 1, 'new', 3)")
    assert other.statistics.row_count(other.table) == ROWS + 1


def test_one_that_was_forgotten_is_not_taken_again(one: Process, other: Process) -> None:
    one.statistics.row_count(one.table)
    assert other.statistics.row_count(other.table) == ROWS
    other.run("INSERT INTO t VALUES (1000, 1, 'new')")
    assert other.statistics.row_count(other.table) == ROWS
    other.statistics.forget_sample(other.table)
    assert other.statistics.row_count(other.table) == ROWS + 1


def test_what_two_have_sampled_at_once_is_read_as_one(
    one: Process, other: Process, store: ScanCounter
) -> None:
    version = one.db.catalog.table(one.table).version
    layouts = one.db.get_compiled_table("t").layout
    for number, process in enumerate((one, other)):
        rows = tuple(layouts.encode((i, 10 * number + i % 2, "x")) for i in range(number, 40))
        sample = SharedSample(version, 1_000.0 + number, False, False, rows)
        data = shared_samples.encode_sample(sample)
        assert isinstance(process.db.engine, RowAtomicEngine)
        exchange = process.db.engine.shared_samples
        exchange.write_sample(process.table, process.db.position - 1 + number, data, ())
    store.count = 0
    assert one.statistics.row_count(one.table) == 1_001
    found = one.statistics.column_summary(one.table, 1)
    assert found is not None
    assert set(found.common) == {0, 1, 10, 11}
    assert store.count == 0


def test_a_complete_reading_stands_for_itself(one: Process, other: Process) -> None:
    one.statistics.row_count(one.table)
    other.run("ANALYZE t")
    one.statistics._samples.clear()
    found = one.statistics._get_fresh_sample(one.table)
    assert found.complete
    assert len(found.values) == ROWS


def test_merging_keeps_the_newest_count_and_each_row_once() -> None:
    first = PlacedSample(5, SharedSample(1, 10.0, False, False, (b"a", b"b")))
    second = PlacedSample(7, SharedSample(1, 30.0, False, True, (b"b", b"c")))
    merged = merge_samples([second, first])
    assert merged == PlacedSample(5, SharedSample(1, 30.0, False, True, (b"b", b"c", b"a")))
    complete = PlacedSample(6, SharedSample(1, 20.0, True, False, (b"d",)))
    assert merge_samples([first, complete, second]) == complete
    assert merge_samples([]) is None


def test_a_large_sample_is_thinned_until_it_fits() -> None:
    rows = tuple(b"%04d" % number + bytes(10_000) for number in range(200))
    data = shared_samples.encode_sample(SharedSample(1, 1e6, False, True, rows))
    assert len(data) <= shared_samples.BYTES_MAX + 2_000
    found = shared_samples.decode_sample(data)
    assert found is not None
    assert 20 < len(found.values) < 60
    assert found.values[0] == rows[0]
    huge = SharedSample(1, 1.0, False, False, (bytes(shared_samples.BYTES_MAX + 1),))
    assert shared_samples.decode_sample(shared_samples.encode_sample(huge)) is not None


@pytest.mark.parametrize("data", [b"\xc1", b"\x90", b"garbage"])
def test_bytes_of_another_form_are_as_if_they_were_not_there(one: Process, data: bytes) -> None:
    assert isinstance(one.db.engine, RowAtomicEngine)
    one.db.engine.shared_samples.write_sample(one.table, one.db.position, data, ())
    assert one.statistics.row_count(one.table) == ROWS
    assert data not in [each.data for each in one.stored]


def test_a_sample_that_cannot_be_shared_serves_its_own_process(
    one: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(make: object) -> None:
        raise Unavailable("the store does not answer", sqlstate="08006")

    assert isinstance(one.db.engine, RowAtomicEngine)
    exchange = one.db.engine.shared_samples
    run = exchange._run
    monkeypatch.setattr(exchange, "read_samples", lambda relation: [])
    monkeypatch.setattr(exchange, "_run", refuse)
    assert one.statistics.row_count(one.table) == ROWS
    monkeypatch.setattr(exchange, "_run", run)
    assert commits(one.db).node.counts["samples not shared"] == 1


def test_a_dropped_table_leaves_no_samples(one: Process, store: ScanCounter) -> None:
    one.statistics.row_count(one.table)
    samples = CellScan(layout.SAMPLES, None)
    assert store.scan(samples)
    one.run("DROP TABLE t")
    one.run("CREATE TABLE u (a INT)")
    one.run("INSERT INTO u VALUES (1)")
    one.db.trim(one.db.position)
    gone = layout.sample_row(store.relation, 0, 0)[:5]
    assert not [row for row, _ in store.scan(samples) if row.startswith(gone)]
