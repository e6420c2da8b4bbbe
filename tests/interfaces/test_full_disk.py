"""A disk that becomes full: reading goes on, closing says what it must, opening is for reading."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

import belvedere
from belvedere.errors import Unavailable
from belvedere.kv.rocksdb import RocksStore
from belvedere.kv.rocksdb_gather import GatheringStore
from belvedere.txn.batch_atomic.anchor import Anchor

NOT_MOUNTED = "a file system of a few megabytes cannot be mounted"
DISK_FULL = "53100"
READ_ONLY = "25006"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A directory on a file system of 24 MB."""
    if shutil.which("mount") is None:
        pytest.skip(NOT_MOUNTED)
    mounted = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(tmp_path)]
    if subprocess.run(mounted, capture_output=True, check=False).returncode:
        pytest.skip(NOT_MOUNTED)
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def make_tables(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE t (id INT PRIMARY KEY, b TEXT)")
    con.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
    con.execute(
        "CREATE MATERIALIZED VIEW d WITH (maintenance = 'deferred') AS SELECT count(*) AS n FROM t"
    )
    con.execute("INSERT INTO t VALUES (0, 'first')")


def write_until_full(con: belvedere.Connection) -> int:
    values = random.Random(1)
    for number in range(1, 100_000):
        text = values.randbytes(10_000).hex()
        try:
            con.execute("INSERT INTO t VALUES (?, ?)", (number, text))
        except belvedere.OperationalError:
            with pytest.raises(belvedere.OperationalError):
                con.execute("INSERT INTO t VALUES (?, ?)", (number, text))
            return number
    raise AssertionError("the disk did not become full")


def require_readable(con: belvedere.Connection, rows: int) -> None:
    assert con.execute("SELECT count(*) FROM t").fetchall() == [(rows,)]
    assert con.execute("SELECT b FROM t WHERE id = 0").fetchall() == [("first",)]
    assert con.execute("SELECT n FROM v").fetchall() == [(rows,)]
    assert con.execute("SELECT n FROM d").fetchall() == [(rows,)]


def require_refused(con: belvedere.Connection) -> None:
    with pytest.raises(belvedere.OperationalError) as refused:
        con.execute("INSERT INTO t VALUES (-1, '')")
    assert refused.value.sqlstate == READ_ONLY


def test_a_full_disk_leaves_a_store_that_can_be_read(small_disk: Path) -> None:
    path = str(small_disk / "shop.db")
    con = belvedere.connect(path, autocommit=True)
    make_tables(con)
    rows = write_until_full(con)
    require_readable(con, rows)
    require_refused(con)
    require_readable(con, rows)
    with pytest.raises(belvedere.OperationalError):
        con.close()
    with belvedere.connect(path, autocommit=True) as again:
        require_readable(again, rows)
        require_refused(again)
        require_readable(again, rows)
    for log in small_disk.glob("shop.db/data/LOG*"):
        log.unlink()  # some room
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    with belvedere.connect(path, autocommit=True) as roomy:
        require_readable(roomy, rows)
        roomy.execute("INSERT INTO t VALUES (-1, '')")
        require_readable(roomy, rows + 1)


def test_a_session_that_repeats_its_statement_reads_on(tmp_path: Path) -> None:
    sync, failures = GatheringStore.sync, [Unavailable("disk is full", sqlstate=DISK_FULL)]

    def sync_or_fail(store: GatheringStore) -> None:
        if len(failures) > 1:
            raise failures[0]
        sync(store)

    with mock.patch.object(GatheringStore, "sync", sync_or_fail):
        con = belvedere.connect(str(tmp_path / "shop.db"), autocommit=True)
        make_tables(con)
        failures *= 2
        for _ in range(3):
            with pytest.raises(belvedere.OperationalError):
                con.execute("INSERT INTO t VALUES (1, '')")
        require_readable(con, 1)
        con.close()


def test_close_on_a_full_disk_raises_an_operational_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_write(*_: object, **__: object) -> None:
        raise Unavailable("disk is full", sqlstate=DISK_FULL)

    con = belvedere.connect(str(tmp_path / "shop.db"), autocommit=True)
    con.execute("CREATE TABLE t (id int PRIMARY KEY)")
    with monkeypatch.context() as full:
        full.setattr(Anchor, "write", refuse_write)
        with pytest.raises(belvedere.OperationalError) as failed:
            con.close()
    assert failed.value.sqlstate == DISK_FULL
    with belvedere.connect(str(tmp_path / "shop.db")) as again:
        assert again.execute("SELECT * FROM t").fetchall() == []


@pytest.mark.parametrize("step", ["open", "sync"])
def test_a_store_on_a_full_disk_is_opened_for_reading(tmp_path: Path, step: str) -> None:
    path = str(tmp_path / "shop.db")
    with belvedere.connect(path, autocommit=True) as con:
        make_tables(con)
    full = Unavailable("disk is full", sqlstate=DISK_FULL)
    with mock.patch.object(GatheringStore, step, side_effect=full):
        with belvedere.connect(path, autocommit=True) as con:
            require_readable(con, 1)
            require_refused(con)
    with mock.patch.object(RocksStore, "open", side_effect=full):
        with pytest.raises(belvedere.OperationalError):
            belvedere.connect(path)
    with belvedere.connect(path, autocommit=True) as con:
        con.execute("INSERT INTO t VALUES (1, '')")
        require_readable(con, 2)


def test_statistics_that_cannot_be_kept_do_not_fail_close(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    con = belvedere.connect(str(tmp_path / "shop.db"), autocommit=True)
    make_tables(con)
    (tmp_path / "shop.db" / "statements.draft").mkdir()
    con.close()
    assert "statistics of statements are not kept" in caplog.text
