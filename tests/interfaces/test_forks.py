"""A forked child is refused at every door, before anything is written, and its parent is unhurt."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import belvedere
from belvedere.database import Database
from belvedere.errors import Error
from belvedere.interfaces.client.connection import Connection
from belvedere.interfaces.remote import RemoteSession
from belvedere.pipeline import Store
from belvedere.session.session import Session
from belvedere.txn.batch_atomic.anchor import Anchor, AnchorState

REFUSED = 77
OTHERWISE = 78
HUNG_S = 30


@pytest.fixture(params=["disk", "memory", "remote"])
def connection(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connection]:
    path = ":memory:" if request.param == "memory" else str(tmp_path / "shop.db")
    with belvedere.connect(path, autocommit=True) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        con.execute("INSERT INTO t VALUES (1, 'one')")
        con.execute(
            "CREATE MATERIALIZED VIEW n WITH (keep_changes = '100') AS SELECT count(*) AS n FROM t"
        )
        if request.param != "remote":
            yield con
            return
        session = RemoteSession(Path(path))
        with Connection(session, lambda: None) as remote:
            yield remote


def run_in_child(action: Callable[[], object]) -> int:
    """The exit status of a forked child that does this: whether it was refused as it should be."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal.alarm(HUNG_S)
    try:
        action()
    except (belvedere.Error, Error) as error:
        right = error.sqlstate == "08003" and error.hint == "connect in the forked process"
        os._exit(REFUSED if right else OTHERWISE)
    except BaseException:  # noqa: BLE001 (a child of a test must not go on as a second test run)
        traceback.print_exc()
        os._exit(OTHERWISE)
    os._exit(0)


def require_works(connection: Connection, id_: int) -> None:
    connection.execute("INSERT INTO t VALUES (?, 'parent')", (id_,))
    connection.rollback()
    rows = connection.execute("SELECT count(*), max(id) FROM t WHERE v <> 'child'").fetchall()
    assert rows[0][1] == id_
    assert connection.execute("SELECT n FROM n").fetchall() == [(rows[0][0],)]


DOORS: dict[str, Callable[[Connection], Callable[[], object]]] = {
    "execute": lambda con: lambda: con.execute("INSERT INTO t VALUES (2, 'child')"),
    "read": lambda con: lambda: con.execute("SELECT * FROM t WHERE id = 1"),
    "cursor": lambda con: con.cursor,
    "commit": lambda con: con.commit,
    "rollback": lambda con: con.rollback,
    "cancel": lambda con: con.cancel,
    "token": lambda con: lambda: con.token,
    "notices": lambda con: lambda: con.notices,
    "autocommit": lambda con: lambda: setattr(con, "autocommit", False),
    "executemany": lambda con: lambda: con.executemany("INSERT INTO t VALUES (?, ?)", [(2, "x")]),
    "subscribe": lambda con: lambda: con.subscribe("n"),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_child_is_refused_at_every_door_of_a_connection(
    connection: Connection, door: str
) -> None:
    assert run_in_child(DOORS[door](connection)) == REFUSED
    require_works(connection, 3)


def test_a_child_is_refused_what_was_taken_before_the_fork(connection: Connection) -> None:
    cursor = connection.cursor()
    changes = connection.subscribe("n", timeout_s=0.01)
    session = connection.session
    taken: dict[str, Callable[[], Any]] = {
        "cursor": lambda: cursor.execute("INSERT INTO t VALUES (2, 'child')"),
        "subscription": lambda: next(changes),
        "poll": changes.poll,
        "session": lambda: session.execute("INSERT INTO t VALUES (2, 'child')"),
    }
    for name, use in taken.items():
        assert run_in_child(use) == REFUSED, name
    require_works(connection, 3)
    assert [change.row for change in changes] == [(1,), (2,)]


FETCHES: dict[str, Callable[[Any], Any]] = {
    "fetchone": lambda cursor: cursor.fetchone(),
    "fetchmany": lambda cursor: cursor.fetchmany(2),
    "fetchall": lambda cursor: cursor.fetchall(),
    "iteration": lambda cursor: next(cursor),
    "Arrow": lambda cursor: cursor.fetch_arrow(),
    "pandas": lambda cursor: cursor.fetch_df(),
}


@pytest.mark.parametrize("factory", [None, belvedere.dict_row], ids=["tuples", "dicts"])
def test_a_child_is_refused_rows_that_its_parent_has_fetched(
    connection: Connection, factory: Any
) -> None:
    connection.row_factory = factory
    cursor = connection.execute("SELECT g, v FROM t, generate_series(1, 9) AS s(g)")
    cursor.fetchone()

    def fetch_in_every_way() -> None:
        for name, fetch in FETCHES.items():
            with pytest.raises(belvedere.Error) as caught:
                fetch(cursor)
            assert caught.value.sqlstate == "08003", name

    assert run_in_child(fetch_in_every_way) == 0
    assert len(cursor.fetchall()) == 8
    connection.row_factory = None
    require_works(connection, 3)


def test_a_child_is_refused_an_open_stream_and_copy(connection: Connection) -> None:
    with connection.stream("SELECT g FROM generate_series(1, 99) AS s(g)") as rows:
        assert next(rows) == (1,)
        assert run_in_child(lambda: next(rows)) == REFUSED
        assert run_in_child(lambda: rows.close()) == 0
        assert len(list(rows)) == 98
    with connection.cursor().copy("COPY t TO STDOUT") as copy:
        assert run_in_child(lambda: copy.read()) == REFUSED
        assert copy.read() == b"1\tone\n"
    with connection.cursor().copy("COPY t FROM STDIN") as copy:
        copy.write_row((2, "parent"))
        assert run_in_child(lambda: copy.write_row((4, "child"))) == REFUSED
        assert run_in_child(lambda: type(copy).__exit__(copy, None)) == 0
    assert connection.execute("SELECT id FROM t ORDER BY id").fetchall() == [(1,), (2,)]


def test_a_child_fetches_rows_of_its_own_connection(tmp_path: Path) -> None:
    path = str(tmp_path / "shop.db")
    with belvedere.connect(path, autocommit=True) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY)")
        con.execute("INSERT INTO t VALUES (1), (2)")

        def fetch_in_grandchild_too(depth: int = 2) -> None:
            with belvedere.connect(path, autocommit=True) as own:
                cursor = own.execute("SELECT id FROM t ORDER BY id")
                assert cursor.fetchone() == (1,)
                if depth:
                    assert run_in_child(lambda: fetch_in_grandchild_too(depth - 1)) == 0
                    assert run_in_child(lambda: cursor.fetchone()) == REFUSED
                assert cursor.fetch_arrow().to_pylist() == [{"id": 2}]
                assert cursor.fetchall() == [(2,)]

        assert run_in_child(fetch_in_grandchild_too) == 0


def test_a_child_is_refused_in_an_open_transaction(connection: Connection) -> None:
    connection.execute("BEGIN")
    connection.execute("INSERT INTO t VALUES (2, 'parent')")
    assert run_in_child(connection.commit) == REFUSED
    assert run_in_child(lambda: connection.execute("ROLLBACK")) == REFUSED
    connection.execute("COMMIT")
    require_works(connection, 3)


def test_a_child_is_refused_the_parts_of_a_database(tmp_path: Path) -> None:
    with belvedere.connect(str(tmp_path / "shop.db"), autocommit=True) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        con.execute("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM t")
        session = con.session
        assert isinstance(session, Session)
        host = session.host
        assert isinstance(host, Database)
        transaction = host.begin()
        uses: dict[str, Callable[[], Any]] = {
            "begin": host.begin,
            "commit": transaction.commit,
            "write": lambda: transaction.write(b"k", None, b"v"),
            "get": lambda: transaction.get(b"k"),
            "scan": lambda: list(transaction.scan(b"a", b"z")),
            "schema": lambda: host.change_schema(lambda edit: None),
            "store": lambda: host.store,
            "position": lambda: host.position,
            "trim": host.trim,
            "session": lambda: Session(session.shared).execute("SELECT 1"),
        }
        for name, use in uses.items():
            assert run_in_child(use) == REFUSED, name
        transaction.rollback()
        require_works(con, 3)


def test_a_child_may_close_what_it_inherited(connection: Connection) -> None:
    def leave() -> None:
        connection.close()
        with connection:
            pass

    assert run_in_child(leave) == 0
    require_works(connection, 3)


def test_a_child_connects_for_itself_through_its_parent(tmp_path: Path) -> None:
    path = str(tmp_path / "shop.db")
    with belvedere.connect(path, autocommit=True) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        con.execute("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM t")

        def connect_again() -> None:
            with belvedere.connect(path, autocommit=True) as own:
                own.execute("INSERT INTO t VALUES (1, 'own')")
            assert Store.from_url(path).position() > 0

        assert run_in_child(connect_again) == 0
        assert con.execute("SELECT v FROM t").fetchall() == [("own",)]
        require_works(con, 3)


def use_inherited(connection: Connection) -> None:
    try:
        connection.execute("INSERT INTO t VALUES (2, 'child')")
    except belvedere.Error as error:
        sys.exit(REFUSED if error.sqlstate == "08003" else OTHERWISE)


def test_a_child_of_multiprocessing_is_refused(connection: Connection) -> None:
    process = multiprocessing.get_context("fork").Process(target=use_inherited, args=(connection,))
    process.start()
    process.join(HUNG_S)
    assert process.exitcode == REFUSED
    require_works(connection, 3)


PRELOAD = """
import os, sys, belvedere

con = belvedere.connect(sys.argv[1], autocommit=True)   # as a server that loads before it forks
con.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
con.execute("CREATE MATERIALIZED VIEW n WITH (maintenance = 'deferred') AS SELECT count(*) FROM t")
con.execute("INSERT INTO t SELECT g, 'x' FROM generate_series(1, 20000) AS g")
print(con.execute("SELECT v, count(*) FROM t GROUP BY 1").fetchall(), flush=True)   # DuckDB too
scan = con.session.host.store.scan(b"", None)
next(scan)                                              # an iterator of RocksDB
children = []
for number in range(3):
    child = os.fork()
    if not child:
        try:
            con.execute("INSERT INTO t VALUES (-1, 'child')")
        except belvedere.Error as error:
            os.write(1, error.sqlstate.encode() + bytes([10]))
        with belvedere.connect(sys.argv[1], autocommit=True) as own:
            own.execute("INSERT INTO t VALUES (?, 'worker')", (-2 - number,))
        sys.exit(0)       # a normal end: collects, destroys and runs what is to run at the end
    children.append(child)
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
print(con.execute("SELECT count(*), min(id) FROM t").fetchall(), flush=True)
"""


def test_a_server_that_loads_before_it_forks(tmp_path: Path) -> None:
    store = tmp_path / "shop.db"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PRELOAD, str(store)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "[('x', 20000)]",
        "08003",
        "08003",
        "08003",
        "[(20003, -4)]",
    ]
    assert read_state(store) is AnchorState.CLOSED


ORPHAN = """
import os, sys, belvedere

con = belvedere.connect(sys.argv[1], autocommit=True)
con.execute("CREATE TABLE t (id int PRIMARY KEY)")
read, write = os.pipe()
if os.fork():
    os._exit(0)                       # the parent dies without closing
os.close(write)
print("child", flush=True)
sys.stdin.read()                      # and its child lives on
"""


def test_a_child_that_outlives_its_parent_does_not_hold_the_store(tmp_path: Path) -> None:
    store = tmp_path / "shop.db"
    command = [sys.executable, "-c", ORPHAN, str(store)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "child\n"
        process.wait(HUNG_S)
        with belvedere.connect(str(store), autocommit=True, allow_remote=False) as con:
            con.execute("INSERT INTO t VALUES (1)")
    assert read_state(store) is AnchorState.CLOSED


def read_state(store: Path) -> AnchorState:
    anchor = Anchor.open(store / "anchor")
    try:
        return anchor.mark.state
    finally:
        anchor.close()
