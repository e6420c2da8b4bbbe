"""asyncpg, which speaks binary only: values, pools, COPY, cursors, notifications."""

from __future__ import annotations

import asyncio
import datetime
import io
import uuid
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

import asyncpg
import pytest

ROW = (
    1, "täxt", Decimal("12.50"), datetime.date(2024, 2, 29),
    datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC), uuid.UUID(int=7), b"\0\xff", 1.25,
    '{"a": 1}', datetime.timedelta(days=1, seconds=3), datetime.time(1, 2, 3), True,
)  # fmt: skip
TABLE = """CREATE TABLE t (id int PRIMARY KEY, name text, n numeric(10,2), d date, ts timestamptz,
  u uuid, b bytea, f double precision, j json, iv interval, tm time, ok boolean)"""


def run(uri: str, action: Callable[[Any], Awaitable[None]]) -> None:
    async def connect_and_act() -> None:
        connection = await asyncpg.connect(uri)
        try:
            await connection.execute(TABLE)
            await action(connection)
        finally:
            await connection.close()

    asyncio.run(connect_and_act())


def test_values_of_every_type_come_back(uri: str) -> None:
    async def act(connection: Any) -> None:
        places = ", ".join(f"${number + 1}" for number in range(len(ROW)))
        await connection.execute(f"INSERT INTO t VALUES ({places})", *ROW)
        assert tuple(await connection.fetchrow("SELECT * FROM t")) == ROW
        await connection.executemany("INSERT INTO t (id) VALUES ($1)", [(i,) for i in range(2, 9)])
        ids = await connection.fetch("SELECT id FROM t WHERE id = ANY($1::int[])", [1, 5, 99])
        assert [one["id"] for one in ids] == [1, 5]
        assert await connection.fetchval("SELECT array['a', NULL]") == ["a", None]

    run(uri, act)


def test_rows_are_copied_in_binary(uri: str) -> None:
    async def act(connection: Any) -> None:
        records = [(number, f"row {number}") for number in range(1000)]
        await connection.copy_records_to_table("t", records=records, columns=["id", "name"])
        out = io.BytesIO()
        done = await connection.copy_from_query(
            "SELECT id, name FROM t WHERE id < $1 ORDER BY id", 10, output=out, format="binary"
        )
        assert done == "COPY 10"
        await connection.execute("DELETE FROM t")
        out.seek(0)
        await connection.copy_to_table("t", source=out, columns=["id", "name"], format="binary")
        assert [tuple(one) for one in await connection.fetch("SELECT id, name FROM t")] == (
            records[:10]
        )

    run(uri, act)


def test_transactions_nest_and_cursors_read_ahead(uri: str) -> None:
    async def act(connection: Any) -> None:
        await connection.execute("INSERT INTO t (id) SELECT generate_series(1, 100)")
        async with connection.transaction():
            with pytest.raises(asyncpg.UniqueViolationError) as told:
                async with connection.transaction():
                    await connection.execute("INSERT INTO t (id) VALUES (1)")
            assert told.value.constraint_name == "t_pkey"
            query = "SELECT id FROM t ORDER BY id"
            found = [one["id"] async for one in connection.cursor(query, prefetch=7)]
        assert found == list(range(1, 101))

    run(uri, act)


def test_a_pool_resets_its_connections(uri: str) -> None:
    async def act(connection: Any) -> None:
        async with asyncpg.create_pool(uri, min_size=1, max_size=2) as pool:
            asked = [pool.fetchval("SELECT $1::int", number) for number in range(10)]
            assert await asyncio.gather(*asked) == list(range(10))

    run(uri, act)


def test_listeners_are_called(uri: str) -> None:
    async def act(connection: Any) -> None:
        heard: asyncio.Queue[tuple[Any, ...]] = asyncio.Queue()
        await connection.add_listener("news", lambda *told: heard.put_nowait(told[2:]))
        other = await asyncpg.connect(uri)
        await other.execute("SELECT pg_notify('news', 'hello')")
        assert await asyncio.wait_for(heard.get(), 60) == ("news", "hello")
        await other.close()

    run(uri, act)


def test_a_portal_is_no_cursor_of_sql(uri: str) -> None:
    async def act(connection: Any) -> None:
        async with connection.transaction():
            cursor = await connection.cursor("SELECT 1")
            with pytest.raises(asyncpg.InvalidCursorNameError):
                await cursor.forward(1)

    run(uri, act)
