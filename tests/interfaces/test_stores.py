"""Stores that a program leaves open are closed when it ends, and only then."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import weakref
from pathlib import Path

import belvedere
from belvedere.txn.batch_atomic.anchor import Anchor, AnchorState

LEFT_OPEN = """
import sys, belvedere
for path in (sys.argv[1], ":memory:", ":memory:"):
    connection = belvedere.connect(path, autocommit=True)
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
    connection.execute(
        "CREATE MATERIALIZED VIEW n WITH (maintenance = 'deferred') AS SELECT count(*) AS n FROM t"
    )
    connection.execute("INSERT INTO t SELECT g, g FROM generate_series(1, 5000) AS g")
    print(connection.execute("SELECT v % 2, count(*) FROM t GROUP BY 1").fetchall())
"""


def state_of(store: Path) -> AnchorState:
    anchor = Anchor.open(store / "anchor")
    try:
        return anchor.mark.state
    finally:
        anchor.close()


def test_what_a_program_leaves_open_is_closed(tmp_path: Path) -> None:
    store = tmp_path / "shop.db"
    done = subprocess.run(
        [sys.executable, "-c", LEFT_OPEN, str(store)], capture_output=True, text=True, check=True
    )
    assert done.stdout.count("2500") == 6
    assert done.stderr == ""
    assert state_of(store) is AnchorState.CLOSED


def test_a_fork_does_not_close_what_is_its_parents(tmp_path: Path) -> None:
    store = tmp_path / "shop.db"
    with belvedere.connect(str(store), autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
        child = os.fork()
        if not child:
            from belvedere.interfaces import stores

            signal.alarm(10)  # it would wait for threads that a fork does not have
            stores._close_all()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert state_of(store) is AnchorState.OPEN
        connection.execute("INSERT INTO t VALUES (1)")
    assert state_of(store) is AnchorState.CLOSED


def test_a_store_in_memory_that_nobody_has_is_gone() -> None:
    connection = belvedere.connect(":memory:", autocommit=True)
    connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
    seen = weakref.ref(connection)
    del connection
    gc.collect()
    assert seen() is None


def test_the_command_is_a_module_too() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "belvedere", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("belvedere ")
