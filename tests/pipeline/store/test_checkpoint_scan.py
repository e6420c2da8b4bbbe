"""Tables read from a copy of the store are the tables at the position of the job, row for row."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from belvedere.catalog import model
from belvedere.catalog.model import Table
from belvedere.interfaces.dbapi import Connection
from belvedere.pipeline.store.checkpoint import ensure_jobs_directory, hold_checkpoint_in_directory
from belvedere.pipeline.store.checkpoint_scan import TableSource
from belvedere.pipeline.store.client import Store
from belvedere.pipeline.store.tables import (
    build_table_read_request,
    decode_catalog,
    decode_single_table_catalog,
    fetch_encoded_catalog,
)

TABLES = {
    "plain": "id int PRIMARY KEY, word text, price numeric(9,2), at timestamp",
    "hidden": "id int, word text, price numeric(9,2), at timestamp",
    "salted": "id int PRIMARY KEY, word text, price numeric(9,2), at timestamp)"
    " WITH (partitions = 4, keys = 'hashed'",
}


@pytest.fixture
def filled(connection: Connection) -> Connection:
    for name, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {name} ({columns})")
        for i in range(300):
            word = None if i % 7 == 0 else f"w{i}"
            connection.execute(
                f"INSERT INTO {name} VALUES (?, ?, ?, '2026-01-01')", (i, word, f"{i}.25")
            )
    connection.execute("ALTER TABLE plain ADD COLUMN more int DEFAULT 7")
    return connection


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("slots", [(0, 1, 2, 3), (2,), ()])
def test_rows_are_those_of_the_held_position(
    shop: Path, filled: Connection, name: str, slots: tuple[int, ...]
) -> None:
    store = Store.from_url(str(shop))
    lease = store.take_position_lease()
    catalog = decode_catalog(fetch_encoded_catalog(store, lease))
    table = catalog.require_relation(Table, name)
    relation = build_table_read_request(catalog, table.id, slots)
    splits = store.plan_relation_splits(relation, lease, 3)
    assert len(splits) == 3 or name == "salted"
    filled.execute(f"DELETE FROM {name} WHERE id < 20")
    filled.execute(f"UPDATE {name} SET word = 'new', price = price + 1 WHERE id % 5 = 0")
    filled.execute(f"INSERT INTO {name} (id, word) VALUES (1000, 'later'), (1001, 'later')")
    filled.execute(f"UPDATE {name} SET word = 'again' WHERE id % 10 = 0")
    with hold_checkpoint_in_directory(store, ensure_jobs_directory(store) / "copy") as copy:
        assert copy.position > lease.position
        alone = decode_single_table_catalog(model.encode(table))
        for split in splits:
            owner = list(
                TableSource(store, lease).scan_table_split(catalog, table.id, relation, split)
            )
            mine = list(
                TableSource(store, lease, copy).scan_table_split(alone, table.id, relation, split)
            )
            assert pa.Table.from_batches(mine).to_pylist() == (
                pa.Table.from_batches(owner).to_pylist()
            )
    assert not copy.directory.exists()
    store.release_position_lease(lease)
