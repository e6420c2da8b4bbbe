"""The asynchronous door: nothing blocks the loop, and no thread is left behind."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import belvedere
import belvedere.aio
from belvedere.interfaces.aio.worker import CallWorker
from tests.interfaces.conftest import connect_remotely

SLOW = "SELECT count(*) FROM generate_series(1, 1000000000) AS g WHERE g < 0"


def run_alone(main: Coroutine[Any, Any, None]) -> None:
    """Run a program, and require that it leaves no thread of the door behind."""
    asyncio.run(main)
    for thread in threading.enumerate():
        if thread.name.startswith("belvedere aio"):
            thread.join(10)
            assert not thread.is_alive(), thread.name


def test_statements_rows_and_transactions() -> None:
    async def main() -> None:
        async with await belvedere.aio.connect(":memory:") as con:
            await con.execute("CREATE TABLE t (id int PRIMARY KEY, a text)")
            await con.executemany("INSERT INTO t VALUES (:id, :a)", [{"id": 1, "a": "x"}])
            await con.commit()
            await con.insert("t", pa.table({"id": [2, 3]}))
            await con.rollback()
            con.row_factory = belvedere.dict_row
            cursor = await con.execute("SELECT * FROM t")
            assert cursor.rowcount == 1
            assert await cursor.fetchone() == {"id": 1, "a": "x"}
            assert await cursor.fetchall() == []
            assert [row async for row in await con.execute("SELECT id FROM t")] == [{"id": 1}]
            async with con.cursor(row_factory=belvedere.tuple_row) as other:
                assert (await (await other.execute("SELECT 1 AS b")).fetch_arrow()).num_rows == 1
            with pytest.raises(belvedere.ProgrammingError, match="nosuch"):
                await con.execute("SELECT nosuch")
        with pytest.raises(belvedere.InterfaceError, match="closed"):
            await con.execute("SELECT 1")

    run_alone(main())


def test_the_loop_goes_on_while_a_statement_runs() -> None:
    async def main() -> None:
        con = await belvedere.aio.connect(":memory:", autocommit=True)
        statement = asyncio.create_task(con.execute(SLOW))
        for _ in range(20):  # each turn of the loop while the statement runs
            await asyncio.sleep(0)
        assert not statement.done()
        statement.cancel()
        with pytest.raises(asyncio.CancelledError):
            await statement
        assert await (await con.execute("SELECT 1")).fetchall() == [(1,)]
        await con.close()

    run_alone(main())


def test_a_timeout_stops_the_statement() -> None:
    async def main() -> None:
        async with await belvedere.aio.connect(":memory:", autocommit=True) as con:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(con.execute(SLOW), 0.05)
            assert await (await con.execute("SELECT 2")).fetchone() == (2,)

    run_alone(main())


def test_tasks_share_a_connection() -> None:
    async def main() -> None:
        async with await belvedere.aio.connect(":memory:", autocommit=True) as con:
            await con.execute("CREATE TABLE t (id int PRIMARY KEY)")
            await asyncio.gather(
                *(con.execute("INSERT INTO t VALUES (?)", (i,)) for i in range(50))
            )
            assert await (await con.execute("SELECT count(*) FROM t")).fetchone() == (50,)

    run_alone(main())


def test_streams_are_asynchronous_iterators() -> None:
    async def main() -> None:
        async with await belvedere.aio.connect(":memory:", autocommit=True) as con:
            sql = "SELECT g FROM generate_series(1, ?) AS g"
            stream = await con.stream(sql, (5000,))
            assert [row async for row in stream] == [(i,) for i in range(1, 5001)]
            async with await con.stream(sql, (10**9,)) as endless:
                async for row in endless:
                    assert row == (1,)
                    break

    run_alone(main())


def test_subscriptions_are_asynchronous_iterators(tmp_path: Path) -> None:
    async def main() -> None:
        async with await belvedere.aio.connect(str(tmp_path / "s"), autocommit=True) as con:
            await con.execute("CREATE TABLE t (id int PRIMARY KEY)")
            async with await con.subscribe("t") as changes:
                waiting = asyncio.create_task(anext(changes))
                await con.execute("INSERT INTO t VALUES (1)")
                assert (await waiting)[1:] == ((1,), 1)
                assert changes.position > 0
            async with await con.subscribe("t", timeout_s=0) as changes:
                assert [change async for change in changes] == []

    run_alone(main())


def test_the_store_of_another_process(tmp_path: Path) -> None:
    async def main() -> None:
        connection = connect_remotely(tmp_path / "owned")
        con = belvedere.aio.AsyncConnection(CallWorker(), connection)
        async with con:
            assert [row async for row in await con.stream("SELECT 1")] == [(1,)]
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(con.execute(SLOW), 0.05)
            assert await (await con.execute("SELECT 2")).fetchone() == (2,)

    with belvedere.connect(str(tmp_path / "owned"), durability="off"):
        run_alone(main())


def test_a_failed_connect_leaves_nothing() -> None:
    async def main() -> None:
        with pytest.raises(belvedere.NotSupportedError):
            await belvedere.aio.connect("postgresql://x")

    run_alone(main())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_is_refused_and_does_not_wait(tmp_path: Path) -> None:
    async def main() -> None:
        async with await belvedere.aio.connect(str(tmp_path / "s"), autocommit=True) as con:
            child = os.fork()
            if not child:
                try:
                    await con.execute("SELECT 1")
                except belvedere.Error as error:
                    os._exit(7 if error.sqlstate == "08003" else 1)
                os._exit(2)
            _, status = os.waitpid(child, 0)  # noqa: ASYNC222 - the loop has nothing else to do
            assert os.waitstatus_to_exitcode(status) == 7

    run_alone(main())
