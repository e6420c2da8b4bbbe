"""Several processes on one store: the first has it open, the others go through it."""

from __future__ import annotations

import datetime
import decimal
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

import belvedere
from belvedere.interfaces.commands.dump import dump_store
from belvedere.interfaces.remote import RemoteSession
from belvedere.types import Interval
from tests.interfaces.conftest import connect_remotely

VALUES = (
    True,
    7,
    2**40,
    decimal.Decimal("100000000000000000000000000000.50"),
    1.5,
    "text",
    b"\x00\xff",
    datetime.date(2026, 11, 17),
    datetime.time(1, 2, 3, 4),
    datetime.datetime(2026, 11, 17, 1, 2, 3),
    datetime.datetime(2026, 11, 17, 1, 2, 3, tzinfo=datetime.UTC),
    datetime.timedelta(days=1, seconds=2),
    uuid.UUID(int=42),
    None,
)
COLUMNS = (
    "b boolean, i int, l bigint, n numeric, f float8, t text, y bytea, d date, c time, "
    "s timestamp, z timestamptz, v interval, u uuid, x text"
)
OWNER = """
import sys, belvedere
con = belvedere.connect(sys.argv[1], autocommit=True)
con.execute("CREATE TABLE IF NOT EXISTS t (id int PRIMARY KEY)")
con.execute("INSERT INTO t VALUES (1)")
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def owner(shop: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the store open, with one row in t."""
    command = [sys.executable, "-c", OWNER, str(shop)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
        process.kill()


def run_python(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_a_second_process_reads_and_writes(shop: Path, owner: subprocess.Popen[str]) -> None:
    with belvedere.connect(str(shop)) as con:
        assert isinstance(con.session, RemoteSession)
        assert con.session.owner_pid == owner.pid
        con.execute(f"CREATE TABLE w (id int PRIMARY KEY, {COLUMNS})")
        con.execute(f"INSERT INTO w VALUES (1{', ?' * len(VALUES)})", VALUES)
        con.commit()
        con.execute("INSERT INTO t VALUES (2)")
        con.rollback()
        assert con.execute("SELECT * FROM w").fetchall() == [(1, *VALUES)]
    with belvedere.connect(str(shop)) as con:
        assert con.execute("SELECT id FROM t").fetchall() == [(1,)]
        assert con.execute("SELECT count(*) FROM w").fetchone() == (1,)


def test_parameters_keep_their_types(con: belvedere.Connection) -> None:
    for number, value in enumerate(VALUES[:-1]):
        assert con.execute(f"SELECT ? AS a{number}", (value,)).fetchone() == (value,)
    assert con.execute("SELECT ?::int[]", ([1, None, 3],)).fetchone() == ([1, None, 3],)
    con.execute("CREATE TABLE v (i interval)")
    con.execute("INSERT INTO v VALUES (?)", (Interval(1, 2, 3),))
    assert con.execute("SELECT i::text FROM v").fetchone() == ("1 mon 2 days 00:00:00.000003",)
    with pytest.raises(belvedere.Error) as refused:
        con.execute("SELECT ?", (object(),))
    assert refused.value.sqlstate == "42804"


def test_statements_and_results_of_any_length(con: belvedere.Connection) -> None:
    text = "é" * 2_000_000
    assert con.execute("SELECT ?::text", (text,)).fetchone() == (text,)
    assert con.execute(f"SELECT length('{text}')").fetchone() == (2_000_000,)
    rows = con.execute("SELECT g, g::text FROM generate_series(1, 50000) AS g").fetchall()
    assert rows == [(g, str(g)) for g in range(1, 50_001)]


def test_time_zones_are_those_of_the_session(con: belvedere.Connection) -> None:
    for zone in ("Europe/Vienna", "+5", "UTC"):
        con.execute(f"SET TIME ZONE '{zone}'")
        shown = con.execute("SELECT timestamptz '2026-11-17 12:00Z'").fetchone()
        assert shown == (datetime.datetime(2026, 11, 17, 12, tzinfo=datetime.UTC),)
        text = con.execute("SELECT (timestamptz '2026-11-17 12:00Z')::timestamp").fetchone()
        assert text == (shown[0].replace(tzinfo=None),)


def test_the_option_refuses_another_process(shop: Path, owner: subprocess.Popen[str]) -> None:
    with pytest.raises(belvedere.OperationalError, match=f"pid={owner.pid}") as refused:
        belvedere.connect(str(shop), allow_remote=False)
    assert refused.value.sqlstate == "55006"


@pytest.mark.parametrize("door", ["here", "in the owner"])
@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"durability": "off"}, "durability"),
        ({"memory_limit_mb": 64}, "memory_limit_mb"),
        ({"config": belvedere.Config(lock_wait_ms_max=1)}, "lock_wait_ms_max"),
    ],
)
def test_other_settings_than_those_of_the_open_store_are_refused(
    request: pytest.FixtureRequest, shop: Path, door: str, given: dict[str, object], name: str
) -> None:
    if door == "here":
        belvedere.connect(str(shop), autocommit=True)  # left open to the end of the test
    else:
        request.getfixturevalue("owner")
    with pytest.raises(belvedere.ProgrammingError, match=f"another {name}") as refused:
        belvedere.connect(str(shop), **given)  # type: ignore[arg-type]
    assert refused.value.sqlstate == "55006"
    same = {"memory_limit_mb": 1024, "durability": "full", "config": belvedere.Config()}
    with belvedere.connect(str(shop), **same) as con:  # type: ignore[arg-type]
        assert con.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("door", ["embedded", "remote"])
def test_a_read_only_connection_changes_nothing(shop: Path, door: str) -> None:
    with belvedere.connect(str(shop), durability="off", autocommit=True) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY)")
        con.execute("CREATE SEQUENCE s")
        con.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
        con.execute("INSERT INTO t VALUES (1)")
        position = con.execute("SELECT max(position) FROM belvedere.log").fetchone()
        reader = (
            belvedere.connect(str(shop), durability="off", autocommit=True, read_only=True)
            if door == "embedded"
            else connect_remotely(shop, read_only=True)
        )
        with reader:
            for _ in range(2):  # the second time by the cached plan
                for statement in (
                    "INSERT INTO t VALUES (2)",
                    "UPDATE t SET id = 3 WHERE id = 1",
                    "DELETE FROM t",
                    "TRUNCATE t",
                    "CREATE TABLE other (id int)",
                    "CREATE MATERIALIZED VIEW w AS SELECT id FROM t",
                    "CREATE TABLE other AS SELECT 1 AS a",
                    "REFRESH MATERIALIZED VIEW v",
                    "DROP TABLE t",
                    "SELECT nextval('s')",
                    "SELECT setval('s', 7)",
                    "SELECT * FROM t FOR UPDATE",
                    "BEGIN READ WRITE",
                    "SET default_transaction_read_only = off; INSERT INTO t VALUES (2)",
                ):
                    with pytest.raises(belvedere.ProgrammingError) as refused:
                        reader.execute(statement)
                    assert refused.value.sqlstate == "25006", statement
                    reader.rollback()
            with pytest.raises(belvedere.ProgrammingError, match="read-only"):
                reader.subscribe("v")
            assert reader.execute("SELECT n FROM v").fetchall() == [(1,)]
            assert reader.execute("VERIFY MATERIALIZED VIEW v").fetchone() is not None
        assert con.execute("SELECT max(position) FROM belvedere.log").fetchone() == position


def test_the_end_of_the_owner_is_said_and_the_next_connect_takes_over(
    shop: Path, owner: subprocess.Popen[str]
) -> None:
    con = belvedere.connect(str(shop))
    con.execute("INSERT INTO t VALUES (2)")
    con.commit()
    con.execute("INSERT INTO t VALUES (3)")
    owner.kill()
    owner.wait()
    with pytest.raises(belvedere.OperationalError, match="hung up") as lost:
        con.execute("SELECT 1")
    assert (lost.value.sqlstate, lost.value.detail) == ("08006", "the transaction is lost")
    assert "connect again" in str(lost.value.hint)
    for call in (con.commit, lambda: con.execute("SELECT 1")):
        with pytest.raises(belvedere.OperationalError, match="hung up"):
            call()
    con.rollback()
    con.close()
    with belvedere.connect(str(shop)) as con:
        assert not isinstance(con.session, RemoteSession)
        assert con.execute("SELECT id FROM t ORDER BY id").fetchall() == [(1,), (2,)]


def test_a_commit_that_the_owner_does_not_answer_is_unknown(
    shop: Path, owner: subprocess.Popen[str]
) -> None:
    con = belvedere.connect(str(shop))
    con.execute("INSERT INTO t VALUES (2)")
    owner.kill()
    owner.wait()
    with pytest.raises(belvedere.OperationalError) as lost:
        con.commit()
    assert lost.value.sqlstate == "08007"
    con.close()


WRITER = """
import sys, belvedere
path, first = sys.argv[1], int(sys.argv[2])
left = list(range(first, first + 40))
while left:
    try:
        with belvedere.connect(path, autocommit=True) as con:
            con.execute("CREATE TABLE IF NOT EXISTS t (id int PRIMARY KEY)")
            while left:
                con.execute("INSERT INTO t VALUES (?) ON CONFLICT DO NOTHING", (left[0],))
                left.pop(0)
    except belvedere.OperationalError as error:
        if not error.sqlstate.startswith("08") and error.sqlstate != "40001":
            raise
"""


def test_processes_that_come_and_go_lose_nothing(shop: Path) -> None:
    commands = [[sys.executable, "-c", WRITER, str(shop), str(n * 100)] for n in range(4)]
    running = [subprocess.Popen(command) for command in commands]
    assert [process.wait(timeout=120) for process in running] == [0] * 4
    with belvedere.connect(str(shop)) as con:
        assert con.execute("SELECT count(*) FROM t").fetchone() == (160,)


def test_a_statement_is_canceled_from_another_thread(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE big AS SELECT g FROM generate_series(1, 3000) AS g")
    timer = threading.Timer(0.3, con.cancel)
    timer.start()
    with pytest.raises(belvedere.OperationalError) as canceled:
        con.execute("SET tier = 'direct'; SELECT count(*) FROM big a, big b, big c")
    timer.join()
    assert canceled.value.sqlstate == "57014"
    assert con.execute("SELECT 1").fetchone() == (1,)


INTERRUPTED = """
import sys, belvedere
con = belvedere.connect(sys.argv[1], autocommit=True)
con.execute("SET application_name = 'kept'")
con.execute("SET tier = 'direct'")
print("ready", flush=True)
try:
    con.execute("SELECT count(*) FROM generate_series(1, 3000) a, generate_series(1, 3000) b, "
                "generate_series(1, 3000) c")
except KeyboardInterrupt:
    print(con.execute("SHOW application_name").fetchone(), flush=True)
"""


def test_an_interrupt_stops_the_statement_and_keeps_the_session(
    shop: Path, owner: subprocess.Popen[str]
) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(shop)]
    with subprocess.Popen(command, stdout=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)  # so that the statement has begun; else the interrupt ends the process
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "('kept',)\n"


def test_a_forked_child_is_refused(tmp_path: Path) -> None:
    with belvedere.connect(str(tmp_path / "owned.db")):
        with connect_remotely(tmp_path / "owned.db") as con:
            child = os.fork()
            if not child:
                try:
                    con.execute("SELECT 1")
                except belvedere.Error as error:
                    os._exit(7 if error.sqlstate == "08003" else 1)
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            assert con.execute("SELECT 1").fetchone() == (1,)


def test_notices_and_tokens_cross(con: belvedere.Connection) -> None:
    con.execute("DROP TABLE IF EXISTS nosuch")
    assert con.notices == ['table "nosuch" does not exist, skipping']
    con.execute("CREATE TABLE t (id int PRIMARY KEY)")
    assert con.execute("SELECT 1 FROM t", freshness=con.token).fetchall() == []


def test_a_failed_transaction_is_known(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE t (id int PRIMARY KEY)")
    con.autocommit = False
    with pytest.raises(belvedere.DataError):
        con.execute("SELECT 1 / (g - 1) FROM generate_series(1, 2) AS g")
    with pytest.raises(belvedere.ProgrammingError) as aborted:
        con.execute("SELECT 1")
    assert aborted.value.sqlstate == "25P02"
    con.rollback()
    con.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(belvedere.ProgrammingError, match="inside a transaction"):
        con.autocommit = True
    con.commit()
    con.autocommit = True
    assert con.execute("SELECT * FROM t").fetchall() == [(1,)]


def test_changes_of_a_view_cross(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE t (id int PRIMARY KEY, n numeric)")
    con.execute("CREATE MATERIALIZED VIEW v AS SELECT id, n FROM t")
    with con.subscribe("v", timeout_s=0) as changes:
        con.execute("INSERT INTO t VALUES (1, 1.50), (2, NULL)")
        con.execute("DELETE FROM t WHERE id = 2")
        found = [(change.row, change.weight) for change in changes]
        assert found == [((1, decimal.Decimal("1.50")), 1), ((2, None), 1), ((2, None), -1)]
        reached = changes.position
    con.execute("INSERT INTO t VALUES (3, 3)")
    with con.subscribe("v", reached) as changes:
        assert [change.row[0] for change in changes.poll()] == [3]
    with pytest.raises(belvedere.ProgrammingError, match="does not exist"):
        con.subscribe("nosuch")


@pytest.mark.parametrize("sql", [False, True])
def test_dump_of_a_store_in_use(shop: Path, sql: bool) -> None:
    with belvedere.connect(str(shop), autocommit=True) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        con.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        beside = list(dump_store(shop, sql=sql))
        command = [sys.executable, "-m", "belvedere.interfaces.cli", "dump", str(shop)]
        done = subprocess.run([*command, *["--sql"] * sql], capture_output=True, text=True)
        assert done.stdout.splitlines() == ("\n".join(beside) + "\n").splitlines()
        con.execute("INSERT INTO t VALUES (3, 'c')")
        assert not list((shop / "pipeline").glob("checkpoint-*"))
        con.execute("DELETE FROM t WHERE id = 3")
    assert any("'b'" in line or '"b"' in line for line in beside)
    if sql:
        alone = list(dump_store(shop, sql=True))
        assert alone[1:] == beside[1:]
