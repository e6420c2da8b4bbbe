"""Columnar copies: whatever has happened, and whoever reads, they say what a scan says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belvedere.errors import Error
from belvedere.execution.duckdb import columnar_cache as module
from belvedere.execution.duckdb import columnar_copy as copying
from belvedere.session.session import Session
from tests.execution.duckdb.columnar_reads import BAG, KINDS, Store, filled, opened, rows


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    made = filled(request.param)
    yield made
    made.close()


@pytest.fixture
def rows_store() -> Iterator[Store]:
    """One that sends rows: a copy has all columns, and becomes a table when that pays."""
    made = filled("rows")
    yield made
    made.close()


def explained(session: Session) -> str:
    result = session.execute(f"EXPLAIN {BAG}")
    return "\n".join(row[0] for row in result.rows)


def test_a_table_that_is_read_whole_is_copied_and_changes_follow(store: Store) -> None:
    session = store.session()
    assert len(rows(session)) == 50
    assert store.copies.table_names() == ("t",)
    session.execute("INSERT INTO t VALUES (51, 0, NULL)")
    session.execute("UPDATE t SET v = -1 WHERE id = 7")
    session.execute("UPDATE t SET id = 100 WHERE id = 8")
    session.execute("DELETE FROM t WHERE id = 9")
    found = rows(session)
    assert (51, 0, None) in found
    assert (7, -1, "name 7") in found
    assert (100, 80, "name 8") in found
    assert 9 not in [row[0] for row in found]


def test_the_copy_is_read_and_not_the_table(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    session = store.session()
    rows(session)
    scanned: list[object] = []
    monkeypatch.setattr(
        "belvedere.execution.duckdb.engine.DuckEngine._read_leaf",
        lambda *arguments: scanned.append(arguments),
    )
    session.execute(BAG)
    assert not scanned


def test_a_reader_at_an_older_snapshot_than_the_copy_sees_its_own_time(store: Store) -> None:
    old, new = store.session(), store.session()
    old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
    before = rows(old)
    new.execute("UPDATE t SET v = v + 1")
    new.execute("DELETE FROM t WHERE id <= 10")
    new.execute("INSERT INTO t VALUES (3, 3, 'again'), (99, 9, 'new')")
    new.execute("UPDATE t SET v = 0 WHERE id = 3")
    assert rows(new) != before
    assert rows(old) == before
    old.execute("COMMIT")
    assert rows(old) == rows(new)


def test_an_older_reader_does_not_make_the_copy_older(store: Store) -> None:
    old, new = store.session(), store.session()
    old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
    old.execute("SELECT 1 FROM t WHERE id = 1")
    new.execute("DELETE FROM t WHERE id > 25")
    assert len(rows(new)) == 25
    assert len(rows(old)) == 50
    assert len(rows(new)) == 25


def test_a_copy_lent_to_one_reader_does_not_move_for_another(store: Store) -> None:
    """The other statement brings the copy up to date between the loan and the read."""
    one, other = store.session(), store.session()
    rows(one)
    table = store.database.get_compiled_table("t").table.id
    with store.database.begin() as reader:
        run = one.make_run_context(reader, ())
        cursor = store.shared.engine._open_cursor(())
        lent = store.copies.lend_copies(cursor, {table: (1,)}, run)[table]
        other.execute("UPDATE t SET v = 0")
        assert {row[1] for row in rows(other)} == {0}
        assert cursor.execute(f"SELECT sum(s1) FROM {lent}").fetchall() == [(12750,)]
        cursor.close()


def test_own_writes_show_to_the_writer_alone(store: Store) -> None:
    mine, other = store.session(), store.session()
    before = rows(other)
    mine.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
    mine.execute("UPDATE t SET v = NULL WHERE id < 5")
    mine.execute("DELETE FROM t WHERE id = 20")
    mine.execute("INSERT INTO t VALUES (77, 7, 'mine')")
    mine.execute("UPDATE t SET name = 'twice' WHERE id = 77")
    assert (77, 7, "twice") in rows(mine)
    assert rows(other) == before
    mine.execute("ROLLBACK")
    assert rows(mine) == before


def test_own_writes_on_top_of_an_old_snapshot(store: Store) -> None:
    mine, other = store.session(), store.session()
    rows(mine)
    mine.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
    mine.execute("UPDATE t SET v = 1 WHERE id = 1")
    other.execute("UPDATE t SET v = 2 WHERE id = 2")
    other.execute("DELETE FROM t WHERE id = 3")
    rows(other)
    found = rows(mine)
    assert (1, 1, "name 1") in found
    assert (2, 20, "name 2") in found
    assert (3, 30, "name 3") in found
    mine.execute("ROLLBACK")


def test_truncate_and_what_is_inserted_afterwards(store: Store) -> None:
    session = store.session()
    rows(session)
    session.execute("TRUNCATE t")
    assert rows(session) == []
    session.execute("INSERT INTO t VALUES (5, 5, 'five')")
    assert rows(session) == [(5, 5, "five")]


def test_columns_that_are_added_and_dropped(store: Store) -> None:
    old, new = store.session(), store.session()
    old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
    before = rows(old)
    new.execute("ALTER TABLE t ADD COLUMN more int DEFAULT 42")
    assert {row[3] for row in rows(new)} == {42}
    new.execute("UPDATE t SET more = 1 WHERE id = 1")
    assert {row[3] for row in rows(new)} == {1, 42}
    new.execute("ALTER TABLE t DROP COLUMN v")
    assert (1, "name 1", 1) in rows(new)
    new.execute("INSERT INTO t VALUES (60, 'sixty', 6)")
    assert (60, "sixty", 6) in rows(new)
    assert rows(old) == before
    old.execute("ROLLBACK")
    assert rows(old) == rows(new)


def test_a_transaction_sees_its_own_definitions(store: Store) -> None:
    session = store.session()
    before = rows(session)
    session.execute("BEGIN")
    session.execute("ALTER TABLE t ADD COLUMN more int DEFAULT 1")
    session.execute("INSERT INTO t VALUES (51, 1, 'x', 2)")
    assert len(rows(session)[0]) == 4
    session.execute("ROLLBACK")
    assert rows(session) == before


def test_a_table_that_is_dropped_and_made_again(store: Store) -> None:
    session = store.session()
    rows(session)
    session.execute("DROP TABLE t")
    session.execute("CREATE TABLE t (id text PRIMARY KEY)")
    session.execute("INSERT INTO t VALUES ('a'), ('b')")
    assert rows(session) == [("a",), ("b",)]


def test_a_log_trimmed_past_the_copy_makes_a_new_one(store: Store) -> None:
    session = store.session()
    rows(session)
    for number in range(20):
        session.execute("UPDATE t SET v = ? WHERE id = 1", (number,))
    store.database.trim(store.database.position)
    assert (1, 19, "name 1") in rows(session)


def test_a_log_trimmed_past_an_old_reader(store: Store) -> None:
    old, new = store.session(), store.session()
    old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
    before = rows(old)
    for number in range(20):
        new.execute("UPDATE t SET v = ? WHERE id = 1", (number,))
    rows(new)
    store.database.trim(store.database.position)
    assert rows(old) == before
    old.execute("ROLLBACK")


def test_serializable_readers_conflict_as_without_copies(rows_store: Store) -> None:
    one, two = rows_store.session(), rows_store.session()
    rows(one)
    for session in (one, two):
        session.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
        session.execute(BAG)
    one.execute("INSERT INTO t VALUES (201, 1, '')")
    two.execute("INSERT INTO t VALUES (202, 1, '')")
    one.execute("COMMIT")
    with pytest.raises(Error) as caught:
        two.execute("COMMIT")
    assert caught.value.sqlstate == "40001"


def test_values_that_arrow_has_no_place_for_are_read_from_the_table(store: Store) -> None:
    session = store.session()
    session.execute("CREATE TABLE u (id int PRIMARY KEY, n numeric(10, 2))")
    session.execute("INSERT INTO u VALUES (1, 1.5), (2, 'NaN')")
    text = BAG.replace(" t", " u")
    assert len(rows(session, text)) == 2
    assert store.copies.table_names() == ()
    session.execute("CREATE TABLE w (id int PRIMARY KEY, n numeric(10, 2))")
    session.execute("INSERT INTO w VALUES (1, 1.5)")
    text = BAG.replace(" t", " w")
    rows(session, text)
    assert "w" in store.copies.table_names()
    session.execute("INSERT INTO w VALUES (2, 'NaN')")
    assert len(rows(session, text)) == 2
    assert "w" not in store.copies.table_names()


def test_copies_stay_within_their_budget() -> None:
    store = opened(columnar_bytes_max=130_000)
    session = store.session()
    for name in ("a", "b", "c"):
        session.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)")
        session.execute(
            f"INSERT INTO {name} SELECT n, repeat('x', 40) FROM generate_series(1, 1000) g(n)"
        )
    for name in ("a", "b", "a", "c"):
        assert len(rows(session, BAG.replace(" t", f" {name}"))) == 1000
    assert store.copies.table_names() == ("a", "c")
    assert store.copies.size_bytes <= 130_000
    session.execute("CREATE TABLE large (id int PRIMARY KEY, v text)")
    session.execute(
        "INSERT INTO large SELECT n, repeat('x', 200) FROM generate_series(1, 1000) g(n)"
    )
    assert len(rows(session, BAG.replace(" t", " large"))) == 1000
    assert "large" not in store.copies.table_names()
    store.close()


def test_no_budget_means_no_copies() -> None:
    store = opened(columnar_bytes_max=0)
    session = store.session()
    session.execute("CREATE TABLE t (id int PRIMARY KEY)")
    session.execute("INSERT INTO t VALUES (1), (2)")
    assert rows(session) == [(1,), (2,)]
    assert store.shared.engine.copies is None
    store.close()


def test_small_tables_are_not_copied() -> None:
    store = opened(columnar_rows_min=100)
    session = store.session()
    session.execute("CREATE TABLE t (id int PRIMARY KEY)")
    session.execute("INSERT INTO t SELECT n FROM generate_series(1, 99) g(n)")
    rows(session)
    assert store.copies.table_names() == ()
    session.execute("INSERT INTO t VALUES (100)")
    rows(session)
    assert store.copies.table_names() == ("t",)
    store.close()


def test_deleted_rows_are_compacted_away(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DEAD_ROWS_MIN", 60)
    session = store.session()
    rows(session)
    for number in range(5):
        session.execute("UPDATE t SET v = v + ?", (number,))
        rows(session)
    (copy,) = store.copies._copies.values()
    assert copy.dead < 100
    assert copy.name.startswith("copy_")
    assert len(rows(session)) == 50


def test_too_much_to_catch_up_makes_a_new_copy(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = store.session()
    rows(session)
    monkeypatch.setattr(module, "CATCH_UP_POSITIONS_MAX", 3)
    for number in range(10):
        session.execute("UPDATE t SET v = ? WHERE id = 1", (number,))
    assert (1, 9, "name 1") in rows(session)


def test_keys_of_several_columns_and_of_every_kind(store: Store) -> None:
    session = store.session()
    session.execute(
        "CREATE TABLE u (a text, b double precision, c numeric(8, 2), d timestamp, e uuid, f bytea,"
        " v int, PRIMARY KEY (a, b, c, d, e, f))"
    )
    for a in ("", "x'y", "b"):
        for b in ("'NaN'", "-0.0", "1e300"):
            session.execute(
                f"INSERT INTO u VALUES (?, {b}, 1.5, '2020-01-01 00:00:00.000001',"
                "'12345678-1234-1234-1234-123456789012', '\\x00ff', 1)",
                (a,),
            )
    text = BAG.replace(" t", " u")
    assert len(rows(session, text)) == 9
    session.execute("UPDATE u SET v = v + 1")
    assert {row[6] for row in rows(session, text)} == {2}
    session.execute("DELETE FROM u WHERE a = ''")
    assert len(rows(session, text)) == 6


def test_a_table_without_a_primary_key(store: Store) -> None:
    session = store.session()
    session.execute("CREATE TABLE u (v int)")
    session.execute("INSERT INTO u VALUES (1), (1), (2)")
    text = BAG.replace(" t", " u")
    assert rows(session, text) == [(1,), (1,), (2,)]
    session.execute("INSERT INTO u VALUES (1)")
    session.execute("DELETE FROM u WHERE v = 2")
    assert rows(session, text) == [(1,), (1,), (1,)]


def test_a_plain_scan_comes_from_the_copy_too(store: Store) -> None:
    session = store.session()
    rows(session)
    session.execute("UPDATE t SET v = 5 WHERE id = 5")
    found = session.execute("SELECT * FROM t")
    assert found.table is not None
    found.convert_arrow_to_rows()
    assert sorted(found.rows, key=repr) == rows(session)


def test_rows_in_key_order_are_not_taken_from_a_copy(store: Store) -> None:
    session = store.session()
    rows(session)
    session.execute("UPDATE t SET v = 5 WHERE id = 5")
    found = session.execute("SELECT id FROM t ORDER BY id")
    found.convert_arrow_to_rows()
    assert [row[0] for row in found.rows] == list(range(1, 51))


def test_explain_says_what_is_read_from_a_copy(store: Store) -> None:
    session = store.session()
    assert "reads t: scan" in explained(session)
    rows(session)
    assert "reads t: columnar copy of 50 rows" in explained(session)


def test_a_change_that_only_shows_is_a_change(store: Store) -> None:
    """0.0 and -0.0 are equal, and are not the same to look at."""
    session = store.session()
    session.execute("CREATE TABLE u (id int PRIMARY KEY, d double precision)")
    session.execute("INSERT INTO u VALUES (1, 0.0)")
    text = BAG.replace(" t", " u")
    rows(session, text)
    rows(session, text)
    session.execute("UPDATE u SET d = '-0'::double precision")
    assert repr(rows(session, text)) == "[(1, -0.0)]"


def test_own_writes_and_an_old_snapshot_over_changes_that_do_not_concern(store: Store) -> None:
    mine, other = store.session(), store.session()
    for _ in range(2):
        mine.execute("SELECT sum(v) FROM t")
    other.execute("UPDATE t SET name = 'other' WHERE id IN (1, 2, 3)")
    mine.execute("SELECT sum(v) FROM t")
    mine.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
    mine.execute("UPDATE t SET v = 0 WHERE id = 1")
    other.execute("UPDATE t SET name = 'third' WHERE id = 2")
    other.execute("UPDATE t SET v = 0 WHERE id = 3")
    for session, expected in ((other, 12720), (mine, 12740), (other, 12720)):
        found = session.execute("SELECT sum(v) FROM t")
        found.convert_arrow_to_rows()
        assert found.rows == [(expected,)]
    assert {(1, 0, "other"), (2, 20, "other"), (3, 30, "other")} < set(rows(mine))
    mine.execute("ROLLBACK")


def test_a_row_that_was_deleted_since_and_is_inserted_again_by_the_reader(store: Store) -> None:
    mine = store.session()
    mine.execute("SELECT sum(v) FROM t")
    mine.execute("DELETE FROM t WHERE id = 5")
    mine.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
    mine.execute("INSERT INTO t VALUES (5, 1, 'again')")
    found = mine.execute("SELECT sum(v), count(*) FROM t")
    found.convert_arrow_to_rows()
    assert found.rows == [(12701, 50)]
    mine.execute("ROLLBACK")


def test_columns_are_given_back_before_a_copy_is() -> None:
    store = opened(columnar_bytes_max=100_000)
    session = store.session()
    session.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    session.execute("INSERT INTO t SELECT n, repeat('x', 40) FROM generate_series(1, 1000) g(n)")
    session.execute("SELECT max(v) FROM t")
    assert "rows, 0 columns so far" in explained(session)
    assert store.copies.size_bytes <= 100_000
    store.close()


def test_a_value_without_a_place_in_arrow_hurts_only_who_reads_its_column(store: Store) -> None:
    session = store.session()
    session.execute("CREATE TABLE u (id int PRIMARY KEY, n numeric(10, 2))")
    session.execute("INSERT INTO u VALUES (1, 1.5), (2, 'NaN')")
    session.execute("SELECT sum(id) FROM u")
    assert store.copies.table_names() == ("u",)
    found = session.execute("SELECT max(n) FROM u")
    found.convert_arrow_to_rows()
    assert found.rows[0][0].is_nan()
    assert store.copies.table_names() == ()


def test_a_large_table_is_taken_in_part_by_part(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "FILL_ROWS", 100)
    monkeypatch.setattr(module, "SCAN_BATCH_ROWS", 30)
    session = store.session()
    session.execute("INSERT INTO t SELECT n, n, 'more' FROM generate_series(51, 700) g(n)")
    assert len(rows(session)) == 700
    assert store.copies.table_names() == ("t",)


def test_a_copy_that_cannot_be_finished_leaves_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "FILL_ROWS", 10)
    monkeypatch.setattr(module, "SCAN_BATCH_ROWS", 10)
    session = store.session()
    session.execute("ALTER TABLE t ADD COLUMN n numeric(5, 1)")
    session.execute("UPDATE t SET n = 'NaN' WHERE id = 45")
    assert len(rows(session)) == 50
    assert store.copies.table_names() == ()
    assert store.shared.engine._connection.execute("SHOW TABLES").fetchall() == []
