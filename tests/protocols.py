"""Both commit protocols under the same tests.

A test that opens a database in memory runs twice: on the batch-atomic commit, and on the row-atomic
one over the memory double of a store that makes single rows atomic and nothing more. It does not
know which. What belongs to one of them is in BATCH_ONLY, with the reason.

A conftest takes part by importing `commit_protocol` and `pytest_generate_tests` from here.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from belvedere.config import Config
from belvedere.database import MEMORY, Database
from belvedere.kv.doubles.cells import MemoryCells
from belvedere.txn.row_atomic.engine import CellStoreSetup
from belvedere.txn.row_atomic.node import NodeSettings
from tests.hbase import slices

BATCH, CELLS = "batch", "cells"
UNHURRIED = NodeSettings(
    lease_seconds=300.0,
    work_seconds_max=60.0,
    grace_seconds=0.0,
    lock_wait_seconds_max=60.0,
    lock_poll_seconds=0.002,
    close_seconds_min=0.02,
)
"""Nobody is taken for dead because the machine is slow; and the double delays no request, so that
there is no grace to wait out."""


def open_on_cells(config: Config | None = None, **more: Any) -> Database:
    """A node alone on a store of its own: the double, or a part of a real HBase where the
    environment names one."""
    if slices.is_asked_for():
        settings = replace(UNHURRIED, snapshot_seconds_max=0.02)
        return Database.on_cells(CellStoreSetup(slices.open_slice(), settings), config, **more)
    return Database.on_cells(CellStoreSetup(MemoryCells(), UNHURRIED), config, **more)


def runs_on_cells(metafunc: pytest.Metafunc) -> bool:
    path = str(Path(metafunc.module.__file__).relative_to(Path(__file__).parent))
    name = metafunc.function.__name__
    return not any(
        path == file and fnmatch.fnmatchcase(name, pattern) for file, pattern, _ in BATCH_ONLY
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "commit_protocol" in metafunc.fixturenames:
        on_disk = "tmp_path" in metafunc.fixturenames  # a directory is a batch store either way
        both = runs_on_cells(metafunc) and not on_disk
        protocols = (BATCH, CELLS) if both else (BATCH,)
        metafunc.parametrize("commit_protocol", protocols, indirect=True)


@pytest.fixture(autouse=True)
def commit_protocol(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which commit protocol databases in memory have."""
    if request.param == CELLS:
        monkeypatch.setattr(Database, "open", staticmethod(opener_on_cells(Database.open)))
    return str(request.param)


def opener_on_cells(on_disk: Callable[..., Database]) -> Callable[..., Database]:
    """What stands in for `Database.open`: in memory is on cells, on disk is as before."""

    def open_(path: str | Path, config: Config | None = None, **more: Any) -> Database:
        if str(path) != MEMORY:
            return on_disk(path, config, **more)
        more.pop("create", None)
        more.pop("accept_data_loss", None)
        return open_on_cells(config, **more)

    return open_


BATCH_ONLY = (
    ("session/statement/test_many_rows.py", "*serializable*", "SERIALIZABLE is refused by name"),
    ("session/rights/test_grants.py", "*rewrite_of_the_table*", "ALTER TABLE that writes all rows"),
    ("session/ddl/test_comments.py", "*written_anew*", "ALTER TABLE that writes all rows"),
    ("session/ddl/test_concurrent_ddl.py", "*commit*", "catalog changes that go together"),
    ("session/ddl/test_concurrent_ddl.py", "*past_a_constraint*", "rows that stay as checked"),
    # Only a commit section writes what one row derives at once.
    ("views/codegen/test_single_row.py", "*", "the short way of one row"),
    # A node on cells fills views at a snapshot of the cells: see
    # views/backfill/row_atomic_backfill.py.
    ("views/backfill/test_backfill_views.py", "*", "fills by walking a table in steps"),
    ("views/backfill/test_column_backfill.py", "*", "fills by columns"),
    # SERIALIZABLE is refused by name: see tests/txn/row_atomic/test_same_contract.py.
    (
        "txn/transaction/test_transaction.py",
        "test_write_skew_is_refused_when_serializable*",
        "serializable",
    ),
    (
        "txn/transaction/test_transaction.py",
        "test_a_range_that_was_read_must_not_change",
        "serializable",
    ),
    (
        "txn/transaction/test_transaction.py",
        "test_an_empty_range_and_an_absent_row_are_reads_too",
        "serializable",
    ),
    (
        "txn/transaction/test_transaction.py",
        "test_changes_outside_what_was_read_do_no_harm",
        "serializable",
    ),
    (
        "txn/transaction/test_transaction.py",
        "test_reads_through_an_index_are_validated",
        "serializable",
    ),
    (
        "txn/transaction/test_transaction.py",
        "test_a_serializable_reader_that_writes_nothing*",
        "serializable",
    ),
    (
        "txn/transaction/test_transaction.py",
        "test_rollback_to_keeps_locks_and_the_read_set",
        "serializable",
    ),
    (
        "txn/batch_atomic/test_commit.py",
        "test_a_derived_row_that_was_read_must_not_change*",
        "serializable",
    ),
    # A transaction under an older catalog is told to run again: see the same file.
    (
        "txn/transaction/test_foreign_keys.py",
        "test_a_unique_index_made_later_is_enforced*",
        "older catalog",
    ),
    (
        "txn/transaction/test_schema_change.py",
        "test_an_index_made_meanwhile_is_maintained*",
        "older catalog",
    ),
    # These stop at places in the batch commit, look into its undo index, or break its store.
    (
        "txn/transaction/test_schema_change.py",
        "test_an_index_is_filled_while_writers_go_on",
        "failpoints of the section",
    ),
    (
        "txn/transaction/test_schema_change.py",
        "test_a_foreign_key_holds_while_the_index*",
        "failpoints of the section",
    ),
    ("txn/batch_atomic/test_commit.py", "test_a_refused_commit_takes_no_position*", "undo index"),
    (
        "txn/batch_atomic/test_commit.py",
        "test_after_a_failed_write_reads_go_on*",
        "failpoints of the section",
    ),
    (
        "txn/batch_atomic/test_commit.py",
        "test_housekeeping_that_fails_does_not_undo*",
        "housekeeping of the section",
    ),
    (
        "txn/batch_atomic/test_change_log.py",
        "test_a_read_that_trimming_overtakes_says_so",
        "takes records from the store",
    ),
    # Many writers append: records are no chain, and positions may be closed.
    (
        "txn/batch_atomic/test_change_log.py",
        "test_records_are_dense_and_hold_old_and_new_rows",
        "chain of hashes",
    ),
    # Cells are made rows by their table, which is gone.
    (
        "txn/batch_atomic/test_change_log.py",
        "test_rows_of_a_dropped_table_go_when*",
        "reads rows of a dropped table",
    ),
    # Older versions of everything are in the store, so that indexes have a past.
    ("txn/batch_atomic/test_change_log.py", "test_indexes_have_no_past", "they have"),
    (
        "txn/batch_atomic/test_replay.py",
        "test_a_store_in_memory_cannot_be_backed_up",
        "another error says so",
    ),
    # A commit of the row-atomic store cannot bring the state along: ALTER makes the view anew.
    (
        "views/test_statements.py",
        "test_a_switch_beside_pending_changes_loses_none",
        "switches by itself",
    ),
    (
        "session/materialized/test_subscription.py",
        "test_a_switch_and_a_repair_are_in*",
        "switches by itself",
    ),
    (
        "session/materialized/test_subscription.py",
        "test_what_a_switch_applies_is_in*",
        "switches by itself",
    ),
    # These reach into how the batch commit fills a view: see
    # tests/views/registry/test_row_atomic_locks.py.
    (
        "views/deferred/test_concurrency.py",
        "test_a_backfill_that_loses_changes_would_be_noticed",
        "backfill",
    ),
    (
        "views/deferred/test_concurrency.py",
        "test_what_is_written_during_a_backfill_is_in_the_view",
        "backfill",
    ),
    # Schedules, ages and slow views are told by the clock, and by one position a commit; batches
    # of maintenance take positions here. What is different on nodes is in test_cells.py.
    ("views/deferred/test_batch.py", "*", "clock"),
    ("session/materialized/test_freshness_policy.py", "*", "clock, and positions"),
    ("views/deferred/test_pace.py", "*", "knows no database"),
    ("views/test_docs.py", "*", "pages are printed once"),
    ("session/statement/test_hostile.py", "*", "says nothing of the store"),
    ("session/statement/test_statements.py", "test_a_plan_for_few_rows_is_made_anew*", "clock"),
    # These count reads of a batch store.
    ("views/read/test_deferred_readers.py", "test_a_row_of_a_view_is_one_get", "counts reads"),
    ("views/cost/test_cost_estimate.py", "*", "counts reads"),
    ("views/compile/test_auxiliary_views.py", "test_a_change_costs_the_same*", "counts reads"),
    ("views/delta/test_foreign_key_joins.py", "test_an_inserted_parent_costs*", "counts reads"),
    ("txn/transaction/test_root_keys.py", "*", "counts locks of the batch commit"),
    ("views/state/test_root_locks.py", "*", "counts locks of the batch commit"),
    ("views/indexes/test_entries.py", "*", "opens a batch store by itself"),
    ("test_cells*.py", "*", "opens nodes by itself"),
    ("views/deferred/test_crash.py", "*", "kills the owner of a directory"),
)
"""File and test to the reason why it does not run on the row-atomic commit."""
