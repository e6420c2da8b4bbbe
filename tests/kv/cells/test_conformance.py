"""What every row-atomic store must do, HBase's rules included."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from belvedere.errors import InvalidInput, Unavailable
from belvedere.kv.cell import (
    CELL_BYTES_MAX,
    TIMESTAMP_MAX,
    Cell,
    CellDelete,
    CellScan,
    CellStore,
    CheckAndMutate,
    Get,
    Increment,
    Mutate,
    Put,
)
from belvedere.kv.cell_filter import OPERATORS, AllOf, AnyOf, CellComparison
from tests.kv.cells.stores import STORES

ROW, A, B = b"\x10row", b"a", b"b"


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> Iterator[CellStore]:
    opened = STORES[request.param]()
    yield opened
    opened.close()


def put(store: CellStore, *cells: tuple[bytes, int, bytes], row: bytes = ROW) -> None:
    store.mutate(Mutate(row, tuple(Put(*cell) for cell in cells)))


def read(
    store: CellStore, as_of: int | None = None, **more: bool
) -> list[tuple[bytes, int, bytes]]:
    return [tuple(cell) for cell in store.get(Get(ROW, as_of=as_of, **more))]


def test_a_row_that_was_never_written_has_no_cells(store: CellStore) -> None:
    assert store.get(Get(b"nothing")) == ()


def test_the_newest_version_of_each_column_is_read(store: CellStore) -> None:
    put(store, (A, 5, b"old"), (A, 9, b"new"), (B, 7, b"b"))
    assert read(store) == [(A, 9, b"new"), (B, 7, b"b")]


def test_a_read_as_of_a_timestamp_sees_no_later_cell(store: CellStore) -> None:
    put(store, (A, 5, b"old"), (A, 9, b"new"), (B, 7, b"b"))
    assert read(store, 8) == [(A, 5, b"old"), (B, 7, b"b")]
    assert read(store, 5) == [(A, 5, b"old")]
    assert read(store, 4) == []


def test_all_versions_come_newest_first(store: CellStore) -> None:
    put(store, (A, 5, b"old"), (A, 9, b"new"), (A, 7, b"mid"))
    assert [cell[1] for cell in read(store, all_versions=True)] == [9, 7, 5]
    assert [cell[1] for cell in read(store, 7, all_versions=True)] == [7, 5]


def test_only_the_named_columns_are_read(store: CellStore) -> None:
    put(store, (A, 1, b"a"), (B, 1, b"b"))
    assert store.get(Get(ROW, (B,))) == (Cell(B, 1, b"b"),)
    assert store.get(Get(ROW, ())) == ()


def test_the_same_timestamp_twice_keeps_the_last_put(store: CellStore) -> None:
    put(store, (A, 5, b"first"))
    put(store, (A, 5, b"second"))
    assert read(store, all_versions=True) == [(A, 5, b"second")]


def test_an_older_put_does_not_hide_a_newer_one(store: CellStore) -> None:
    put(store, (A, 9, b"new"))
    put(store, (A, 5, b"late"))
    assert read(store) == [(A, 9, b"new")]
    assert read(store, 6) == [(A, 5, b"late")]


def test_a_delete_hides_all_versions_up_to_its_timestamp(store: CellStore) -> None:
    put(store, (A, 5, b"x"), (A, 9, b"y"), (A, 12, b"z"))
    store.mutate(Mutate(ROW, (CellDelete(A, 9),)))
    assert read(store, all_versions=True) == [(A, 12, b"z")]
    assert read(store, 9) == [], "hidden also from a reader of the past"


def test_a_tombstone_hides_what_is_put_under_it_later(store: CellStore) -> None:
    store.mutate(Mutate(ROW, (CellDelete(A, 15),)))
    put(store, (A, 12, b"late"))
    assert read(store) == []
    put(store, (A, 16, b"above"))
    assert read(store) == [(A, 16, b"above")]


def test_an_exact_delete_hides_one_version_and_later_puts_of_it(store: CellStore) -> None:
    put(store, (A, 5, b"x"), (A, 9, b"y"))
    store.mutate(Mutate(ROW, (CellDelete(A, 9, exact=True),)))
    assert read(store) == [(A, 5, b"x")]
    put(store, (A, 9, b"again"))
    assert read(store) == [(A, 5, b"x")]
    put(store, (A, 8, b"other"))
    assert read(store) == [(A, 8, b"other")]


def test_a_delete_wins_over_a_put_of_the_same_cell_in_one_mutation(store: CellStore) -> None:
    store.mutate(Mutate(ROW, (CellDelete(A, 5), Put(A, 5, b"x"), Put(B, 5, b"b"))))
    assert read(store) == [(B, 5, b"b")]


def test_a_delete_leaves_other_columns_alone(store: CellStore) -> None:
    put(store, (A, 5, b"a"), (B, 5, b"b"))
    store.mutate(Mutate(ROW, (CellDelete(A, 9),)))
    assert read(store) == [(B, 5, b"b")]


def test_a_check_passes_only_on_the_exact_newest_value(store: CellStore) -> None:
    put(store, (A, 5, b"old"), (A, 9, b"new"))
    change = (Put(B, 1, b"done"),)
    assert not store.check_and_mutate(CheckAndMutate(ROW, A, b"old", change))
    assert not store.check_and_mutate(CheckAndMutate(ROW, A, None, change))
    assert not store.check_and_mutate(CheckAndMutate(ROW, A, b"ne", change))
    assert store.get(Get(ROW, (B,))) == ()
    assert store.check_and_mutate(CheckAndMutate(ROW, A, b"new", change))
    assert store.get(Get(ROW, (B,))) == (Cell(B, 1, b"done"),)


def test_a_check_for_absence_passes_once(store: CellStore) -> None:
    take = CheckAndMutate(ROW, A, None, (Put(A, 1, b"mine"),))
    assert store.check_and_mutate(take)
    assert not store.check_and_mutate(take)


def test_a_deleted_cell_is_absent_to_a_check_and_a_hidden_put_stays_hidden(
    store: CellStore,
) -> None:
    put(store, (A, 1, b"x"))
    store.mutate(Mutate(ROW, (CellDelete(A, 1, exact=True),)))
    assert store.check_and_mutate(CheckAndMutate(ROW, A, None, (Put(A, 1, b"zombie"),)))
    assert read(store) == []
    assert store.check_and_mutate(CheckAndMutate(ROW, A, None, (Put(A, 2, b"new"),)))
    assert read(store) == [(A, 2, b"new")]


def test_puts_and_deletes_of_one_mutation_are_seen_together(store: CellStore) -> None:
    put(store, (A, 1, b"x"))
    change = (CellDelete(A, 1, exact=True), Put(B, 2, b"y"))
    assert store.check_and_mutate(CheckAndMutate(ROW, A, b"x", change))
    assert read(store) == [(B, 2, b"y")]


def test_an_increment_counts_from_zero_and_is_read_as_eight_bytes(store: CellStore) -> None:
    assert store.increment(Increment(ROW, A)) == 1
    assert store.increment(Increment(ROW, A, 5)) == 6
    (cell,) = store.get(Get(ROW))
    assert cell.value == (6).to_bytes(8)


def test_a_multi_get_answers_in_the_order_asked(store: CellStore) -> None:
    put(store, (A, 1, b"1"), row=b"one")
    put(store, (A, 1, b"2"), row=b"two")
    found = store.multi_get((Get(b"two"), Get(b"none"), Get(b"one")))
    assert [[cell.value for cell in cells] for cells in found] == [[b"2"], [], [b"1"]]
    assert store.multi_get(()) == ()


def test_scans_are_in_key_order_with_limit_reverse_and_as_of(store: CellStore) -> None:
    for n, row in enumerate((b"c", b"a", b"b", b"a\x00", b"d")):
        put(store, (A, n + 1, row), row=row)
    every = [row for row, _ in store.scan(CellScan(b"a", None))]
    assert every == [b"a", b"a\x00", b"b", b"c", b"d"]
    assert [row for row, _ in store.scan(CellScan(b"a\x00", b"d"))] == [b"a\x00", b"b", b"c"]
    assert [row for row, _ in store.scan(CellScan(b"a", b"d", reverse=True, limit=2))] == [
        b"c",
        b"b",
    ]
    assert [row for row, _ in store.scan(CellScan(b"a", None, as_of=2))] == [b"a", b"c"]
    assert store.scan(CellScan(b"a", None, limit=0)) == ()
    assert store.scan(CellScan(b"x", b"b")) == ()


def test_a_scan_leaves_out_rows_without_a_visible_cell(store: CellStore) -> None:
    put(store, (A, 1, b"x"), row=b"r1")
    put(store, (B, 1, b"x"), row=b"r2")
    store.mutate(Mutate(b"r1", (CellDelete(A, 1),)))
    assert [row for row, _ in store.scan(CellScan(b"r", b"s", limit=1))] == [b"r2"]
    assert store.scan(CellScan(b"r", b"s", (A,))) == ()


VALUES = (b"\x00", b"'", b"''", b"a' OR (", b"b\xff", b"binary:,", b"\x80\x00", b"\xff\xff")


@pytest.mark.parametrize("name", OPERATORS)
def test_a_filter_compares_bytes_whatever_they_are(store: CellStore, name: str) -> None:
    for number, value in enumerate(VALUES):
        put(store, (A, 5, value), (B, 5, b"b"), row=b"\x10%d" % number)
    for value in VALUES:
        scan = CellScan(b"\x10", b"\x11", filter=CellComparison(A, name, value))
        expected = [b"\x10%d" % n for n, one in enumerate(VALUES) if OPERATORS[name](one, value)]
        assert [row for row, _ in store.scan(scan)] == expected


def test_a_filter_looks_at_the_newest_version_that_the_scan_sees(store: CellStore) -> None:
    put(store, (A, 5, b"old"), (A, 9, b"new"))
    is_old = CellComparison(A, "=", b"old")
    assert store.scan(CellScan(b"\x10", b"\x11", filter=is_old)) == ()
    [(row, cells)] = store.scan(CellScan(b"\x10", b"\x11", as_of=8, filter=is_old))
    assert (row, cells) == (ROW, (Cell(A, 5, b"old"),))
    store.mutate(Mutate(ROW, (CellDelete(A, 9, exact=True),)))
    assert len(store.scan(CellScan(b"\x10", b"\x11", filter=is_old))) == 1


def test_a_filter_says_what_becomes_of_rows_without_the_cell(store: CellStore) -> None:
    put(store, (A, 5, b"x"), row=b"\x101")
    put(store, (B, 5, b"x"), row=b"\x102")
    for missing, expected in ((False, [b"\x101"]), (True, [b"\x101", b"\x102"])):
        comparison = CellComparison(A, "=", b"x", passes_missing=missing)
        found = store.scan(CellScan(b"\x10", b"\x11", filter=comparison))
        assert [row for row, _ in found] == expected


def test_filters_are_joined_by_and_and_or_and_count_for_limits(store: CellStore) -> None:
    for number in range(40):
        cells = ((A, 5, bytes((number % 4,))), (B, 5, bytes((number,))), (b"c", 5, b"unread"))
        put(store, *cells, row=b"\x10" + bytes((number,)))
    low = AllOf((CellComparison(A, "=", b"\x01"), CellComparison(B, "<", b"\x0a")))
    wanted = AnyOf((low, CellComparison(B, ">=", b"\x26")))
    scan = CellScan(b"\x10", b"\x11", (A, B), filter=wanted)
    expected = [1, 5, 9, 38, 39]
    assert [row[1] for row, _ in store.scan(scan)] == expected
    assert {cell.column for _, cells in store.scan(scan) for cell in cells} == {A, B}
    for limit in (1, 3, 5, 6):
        few = CellScan(b"\x10", b"\x11", (A, B), limit=limit, filter=wanted)
        assert [row[1] for row, _ in store.scan(few)] == expected[:limit]
    back = CellScan(b"\x10", b"\x11", (A, B), limit=3, reverse=True, filter=wanted)
    assert [row[1] for row, _ in store.scan(back)] == [39, 38, 9]


@pytest.mark.parametrize(
    "changes",
    [
        (Put(A, 1, b""),),
        (Put(A, -1, b"x"),),
        (Put(A, TIMESTAMP_MAX, b"x"),),
        (Put(B, 1, b"good"), Put(A, 1, b"x" * (CELL_BYTES_MAX + 1))),
    ],
)
def test_bad_changes_are_refused_and_change_nothing(
    store: CellStore, changes: tuple[Put, ...]
) -> None:
    with pytest.raises(InvalidInput):
        store.mutate(Mutate(ROW, changes))
    with pytest.raises(InvalidInput):
        store.check_and_mutate(CheckAndMutate(ROW, A, None, changes))
    assert read(store) == []


def test_an_empty_value_cannot_be_compared_with(store: CellStore) -> None:
    with pytest.raises(InvalidInput):
        store.check_and_mutate(CheckAndMutate(ROW, A, b"", (Put(A, 1, b"x"),)))


def test_an_increment_of_something_else_is_refused(store: CellStore) -> None:
    put(store, (A, 1, b"text"))
    with pytest.raises(InvalidInput):
        store.increment(Increment(ROW, A))


def test_a_closed_store_is_unavailable(store: CellStore) -> None:
    store.close()
    store.close()
    with pytest.raises(Unavailable):
        store.get(Get(ROW))


def test_of_many_takers_exactly_one_wins(store: CellStore) -> None:
    won: list[int] = []
    start = threading.Barrier(8)

    def take(number: int) -> None:
        start.wait()
        if store.check_and_mutate(
            CheckAndMutate(ROW, A, None, (Put(A, 1, bytes((65 + number,))),))
        ):
            won.append(number)
        store.increment(Increment(b"count", A))

    threads = [threading.Thread(target=take, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert store.get(Get(ROW))[0].value == bytes((65 + won[0],))
    assert store.increment(Increment(b"count", A)) == 9
