"""A cursor whose calls are awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from belvedere.interfaces.aio.worker import CallWorker
from belvedere.interfaces.values import Description

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from belvedere.interfaces.client.cursor import Cursor

ROWS_PER_CALL = 256


class AsyncCursor:
    """The same as `Cursor`; its rows come by `fetchone`, `async for` and the like."""

    def __init__(self, worker: CallWorker, cursor: Cursor) -> None:
        self._worker = worker
        self._cursor = cursor

    @property
    def description(self) -> list[Description] | None:
        return self._cursor.description

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    async def execute(
        self,
        sql: str,
        parameters: Sequence[Any] | Mapping[str, Any] = (),
        *,
        freshness: str | None = None,
    ) -> Self:
        cursor = self._cursor
        await self._worker.run_call(
            lambda: cursor.execute(sql, parameters, freshness=freshness), cursor.connection.cancel
        )
        return self

    async def executemany(
        self, sql: str, parameters: Iterable[Sequence[Any] | Mapping[str, Any]]
    ) -> Self:
        cursor = self._cursor
        await self._worker.run_call(
            lambda: cursor.executemany(sql, parameters), cursor.connection.cancel
        )
        return self

    async def fetchone(self) -> Any:
        return await self._worker.run_call(self._cursor.fetchone)

    async def fetchmany(self, size: int | None = None) -> list[Any]:
        return await self._worker.run_call(lambda: self._cursor.fetchmany(size))

    async def fetchall(self) -> list[Any]:
        return await self._worker.run_call(self._cursor.fetchall)

    async def fetch_arrow(self) -> pa.Table:
        return await self._worker.run_call(self._cursor.fetch_arrow)

    async def fetch_df(self) -> pd.DataFrame:
        return await self._worker.run_call(self._cursor.fetch_df)

    async def fetch_polars(self) -> pl.DataFrame:
        return await self._worker.run_call(self._cursor.fetch_polars)

    async def __aiter__(self) -> AsyncIterator[Any]:
        while rows := await self.fetchmany(ROWS_PER_CALL):
            for row in rows:
                yield row

    async def close(self) -> None:
        self._cursor.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
