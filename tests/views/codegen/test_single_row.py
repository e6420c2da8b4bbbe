"""The generated way of a commit of one row gives the very rows that the generic way gives, and its
look-up chains those that the plans give."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from unittest import mock

import pytest

from belvedere.catalog.relation_codecs import CompiledTable
from belvedere.errors import InvalidInput
from belvedere.txn.contracts import RowChange, Rows, SingleRowWrites
from belvedere.txn.history.derived_rows import DerivedRows
from belvedere.views.codegen.lookup_chain import TreeLookupChains
from belvedere.views.indexes.entries import build_index_participants, refuse_index_expression
from tests.views.sql import Store, opened

DEEP = "v" + " + 1" * 40
VIEWS = {
    "sums": "SELECT g, count(*) AS n, sum(v) AS s, avg(v) AS a FROM t GROUP BY g",
    "chosen": "SELECT g, count(v) FILTER (WHERE v > 1) AS n FROM t WHERE x IS NOT NULL GROUP BY g",
    "all_rows": "SELECT count(*) AS n, sum(v) AS s, sum(x) AS y FROM t",
    "looks": "SELECT d, count(*) AS n FROM t GROUP BY d",
    "texts": "SELECT d::text AS look, count(*) AS n FROM t GROUP BY d::text",
    "floats": "SELECT x, sum(x) AS s FROM t GROUP BY x",
    "blanks": "SELECT c, count(*) AS n FROM t GROUP BY c",
    "plain": "SELECT id, v, d FROM t WHERE v > 0",
    "duplicates": "SELECT v FROM t",
    "no_columns": "SELECT 1 AS one FROM t",
    "united": "SELECT id FROM t UNION ALL SELECT id FROM p",
    "key_moved": "SELECT id + 1 AS id FROM t",
    "deep": f"SELECT g, sum({DEEP}) AS s FROM t WHERE {DEEP} > 3 GROUP BY g",
    "joined": "SELECT t.id, t.v, p.name FROM t JOIN p ON p.id = t.parent",
    "joined_sums": "SELECT p.kind, count(*) AS n, sum(t.v) AS s FROM t JOIN p ON p.id = t.parent"
    " WHERE t.v < p.kind GROUP BY p.kind",
    "deep_joined": f"SELECT p.kind, sum(p.kind + {DEEP}) AS s FROM t JOIN p ON p.id = t.parent"
    " GROUP BY p.kind",
    "far": "SELECT q.id, count(*) AS n FROM t JOIN p ON p.id = t.parent JOIN q ON q.id = p.kind"
    " GROUP BY q.id",
}
COLUMNS: dict[str, list[object]] = {
    "g": ["NULL", "'a'", "'b'"],
    "v": ["NULL", "0", "1", "2", "7"],
    "d": ["NULL", "1.0", "1.00", "2.5"],
    "x": ["NULL", "0.0", "'-0'", "1.5", "'NaN'"],
    "c": ["NULL", "'a'", "'a '", "'b'"],
    "parent": ["NULL", "1", "2", "99"],
}


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with opened() as made:
        made.run(
            "CREATE TABLE q (id int PRIMARY KEY)",
            "CREATE TABLE p (id int PRIMARY KEY, kind int, name text)",
            "CREATE TABLE t (id int PRIMARY KEY, g text, v int, d numeric, x double precision,"
            " c char(3), parent int)",
            "CREATE INDEX ON t (g, v)",
            "CREATE UNIQUE INDEX ON t (id, d)",
            "INSERT INTO q VALUES (1), (5)",
            "INSERT INTO p VALUES (1, 5, 'one'), (2, NULL, 'two')",
            "CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES p, v int)",
            "CREATE MATERIALIZED VIEW children AS SELECT parent, sum(v) AS s FROM child"
            " GROUP BY parent",
            *[f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in VIEWS.items()],
        )
        yield made


def one_row(rng: random.Random, id_: int) -> str:
    values = ", ".join(str(rng.choice(choices)) for choices in COLUMNS.values())
    return f"({id_}, {values})"


def stored_rows(store: Store, table: CompiledTable) -> list[bytes]:
    with store.db.begin() as reader:
        return [v for batch in reader.scan_values(table.start, table.end) for v in batch]


def short_way(store: Store, name: str) -> SingleRowWrites:
    maintainer = store.db.views.registry.get_view_maintainer(store.db.catalog, store.view(name))
    alone = maintainer.single_row_writes(store.db.get_compiled_table("t").start)
    assert alone is not None, name
    return alone


@pytest.mark.parametrize("name", VIEWS)
def test_one_row_gives_the_same_both_ways(store: Store, name: str, rng: random.Random) -> None:
    store.run("DELETE FROM t", *[f"INSERT INTO t VALUES {one_row(rng, i)}" for i in range(20)])
    alone, table = short_way(store, name), store.db.get_compiled_table("t")
    maintainer = store.db.views.registry.get_view_maintainer(store.db.catalog, store.view(name))
    there = stored_rows(store, table)
    store.run("DELETE FROM t WHERE id >= 14")  # those were there, and may come
    kept, gone = there[:14], there[14:]
    changes: list[tuple[bytes | None, bytes | None]] = [(None, row) for row in gone]
    for before, other in itertools.product(kept, there):
        after = table.encode((table.decode(before)[0], *table.decode(other)[1:]))
        changes += [(before, after), (before, None)]
    differing = 0
    with store.db.begin() as reader:
        for old, new in changes:
            row = table.decode(old or new or b"")
            found: Rows = {}
            alone(old, new, reader.get, found)
            writer = DerivedRows(reader)
            maintainer.writes([RowChange(table.key_of(row), old, new)], reader, writer)
            assert found == dict(writer.writes()), (row, old, new)
            differing += bool(found)
    assert differing > 10


@pytest.mark.parametrize("name", VIEWS)
def test_lookup_chains_give_what_plans_give(store: Store, name: str, rng: random.Random) -> None:
    """Several rows of one table, as a commit of several rows or a batch of the log has them."""
    rows = ", ".join(one_row(rng, i) for i in range(60))
    store.run("DELETE FROM t", f"INSERT INTO t VALUES {rows}")
    table = store.db.get_compiled_table("t")
    there = [table.decode(row) for row in stored_rows(store, table)]
    store.run("DELETE FROM t WHERE id >= 40")
    inserts = [RowChange(table.key_of(row), None, table.encode(row)) for row in there[40:]]
    deletes = [RowChange(table.key_of(row), table.encode(row), None) for row in there[:20]]
    updates = [
        RowChange(table.key_of(row), table.encode(row), table.encode((row[0], *other[1:])))
        for row, other in zip(there[20:40], rng.sample(there, 20), strict=True)
    ]
    maintainer = store.db.views.registry.get_view_maintainer(store.db.catalog, store.view(name))
    differing = 0
    with store.db.begin() as reader:
        for changes in (inserts, deletes, updates, inserts + deletes + updates):
            by_chains, by_plans = DerivedRows(reader), DerivedRows(reader)
            assert maintainer.has_independent_changes(changes)
            maintainer.writes(changes, reader, by_chains)
            with mock.patch.object(TreeLookupChains, "covers_changed_tables", return_value=False):
                maintainer.writes(changes, reader, by_plans)
            assert dict(by_chains.writes()) == dict(by_plans.writes())
            differing += bool(by_chains.writes())
    assert differing > 1


def test_indexes_give_the_same_both_ways(store: Store, rng: random.Random) -> None:
    store.run("DELETE FROM t", *[f"INSERT INTO t VALUES {one_row(rng, i)}" for i in range(9)])
    table, catalog = store.db.get_compiled_table("t"), store.db.catalog
    there = stored_rows(store, table)
    made = build_index_participants(catalog, frozenset([table.table.id]), refuse_index_expression)
    assert len(made) >= 2
    for participant, old, new in itertools.product(made, [None, *there], [None, *there]):
        if old is None and new is None:
            continue
        row = table.decode(old or new or b"")
        new = new and table.encode((row[0], *table.decode(new)[1:]))
        if old is None:
            new = table.encode((100, *row[1:]))
        alone = participant.single_row_writes(table.start)
        assert alone is not None
        rows: Rows = {}
        with store.db.begin() as reader:
            alone(old, new, reader.get, rows)
            writer = DerivedRows(reader)
            participant.writes([RowChange(table.key_of(row), old, new)], reader, writer)
        assert rows == dict(writer.writes())


def reads_of(
    store: Store, alone: SingleRowWrites, old: bytes | None, new: bytes | None
) -> list[int]:
    """The relations that were asked for a row, in order."""
    asked = []
    with store.db.begin() as reader:

        def get(key: bytes) -> bytes | None:
            asked.append(int.from_bytes(key[1:5]))
            return reader.get(key)

        alone(old, new, get, {})
    return asked


def test_a_partner_is_read_once_and_a_missing_one_ends_it(store: Store) -> None:
    store.run("DELETE FROM t", "INSERT INTO t VALUES (1, 'a', 1, 1, 1, 'a', 1)")
    table, partner = store.db.get_compiled_table("t"), store.db.get_compiled_table("p").table.id
    view = store.view("joined_sums")
    alone = short_way(store, "joined_sums")
    (old,) = stored_rows(store, table)
    row = table.decode(old)
    changed = {slot.name: i for i, slot in enumerate(table.table.columns)}

    def like(**values: object) -> bytes:
        return table.encode(tuple(values.get(name, row[slot]) for name, slot in changed.items()))

    assert reads_of(store, alone, old, like(v=2)) == [partner, view.id]
    assert reads_of(store, alone, old, like(parent=2)) == [partner, partner, view.id]
    assert reads_of(store, alone, None, like(parent=99)) == [partner]
    assert reads_of(store, alone, None, like(parent=None)) == []
    assert reads_of(store, alone, old, like(g="b", d=None)) == []


def test_a_row_that_holds_the_key_is_written_unread(store: Store) -> None:
    store.run("DELETE FROM t", "INSERT INTO t VALUES (1, 'a', 1, 1, 1, 'a', 1)")
    table, partner = store.db.get_compiled_table("t"), store.db.get_compiled_table("p").table.id
    (old,) = stored_rows(store, table)
    row = table.decode(old)
    new = table.encode((*row[:2], 5, *row[3:]))
    assert reads_of(store, short_way(store, "plain"), old, new) == []
    assert reads_of(store, short_way(store, "joined"), old, new) == [partner]
    twice = store.view("duplicates").id
    assert reads_of(store, short_way(store, "duplicates"), old, new) == [twice, twice]


def test_a_commit_of_one_row_takes_the_short_way(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the generic way was taken")

    store.run("DELETE FROM t", "INSERT INTO t VALUES (1, 'a', 1, 1, 1, 'a', 1)")
    monkeypatch.setattr("belvedere.views.maintain.maintainer.ViewMaintainer.writes", refuse)
    store.run("UPDATE t SET v = 3 WHERE id = 1", "DELETE FROM t WHERE id = 1")
    store.run("INSERT INTO child VALUES (1, 1, 5)", "UPDATE child SET v = 6 WHERE id = 1")
    with pytest.raises(InvalidInput) as violated:
        store.run("UPDATE child SET parent = 9 WHERE id = 1")
    assert violated.value.sqlstate == "23503"
    monkeypatch.undo()
    assert store.run("SELECT * FROM children") == [(1, 6)]
    verified = store.verified()
    assert set(verified) >= set(VIEWS)
    assert all(verified.values())


def test_rows_from_before_a_column_was_added_count_with_its_default() -> None:
    """They are shorter, so that nothing of them may be read in place."""
    with opened() as store:
        store.run(
            "CREATE TABLE old (id int PRIMARY KEY, g int NOT NULL, v int NOT NULL)",
            "INSERT INTO old VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30)",
            "ALTER TABLE old ADD COLUMN w int NOT NULL DEFAULT 7",
            "CREATE MATERIALIZED VIEW by_g AS SELECT g, sum(v) AS v, sum(w) AS w FROM old"
            " GROUP BY g",
            "UPDATE old SET v = 11 WHERE id = 1",
            "UPDATE old SET w = 8, g = 2 WHERE id = 2",
            "DELETE FROM old WHERE id = 3",
        )
        assert store.run("SELECT * FROM by_g ORDER BY g") == [(1, 11, 7), (2, 20, 8)]
        assert all(store.verified().values())
