"""A connection whose calls are awaited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from belvedere.interfaces import dbapi
from belvedere.interfaces.aio.cursor import AsyncCursor
from belvedere.interfaces.aio.iterators import AsyncStream, AsyncSubscription
from belvedere.interfaces.aio.worker import CallWorker

if TYPE_CHECKING:
    from belvedere.interfaces.client.row_factories import RowFactory


async def connect(url: str, **options: Any) -> AsyncConnection:
    """Connect as `belvedere.connect` does, with the same options."""
    worker = CallWorker()
    try:
        connection = await worker.run_call(lambda: dbapi.connect(url, **options))
    except BaseException:
        worker.end_thread()
        raise
    return AsyncConnection(worker, connection)


class AsyncConnection:
    """One session. Tasks may share it: their calls run one after another."""

    def __init__(self, worker: CallWorker, connection: dbapi.Connection) -> None:
        self._worker = worker
        self._connection = connection

    @property
    def connection(self) -> dbapi.Connection:
        """The connection that the calls use, for what has no asynchronous form."""
        return self._connection

    @property
    def row_factory(self) -> RowFactory | None:
        return self._connection.row_factory

    @row_factory.setter
    def row_factory(self, factory: RowFactory | None) -> None:
        self._connection.row_factory = factory

    @property
    def json_values(self) -> bool:
        return self._connection.json_values

    @json_values.setter
    def json_values(self, value: bool) -> None:
        self._connection.json_values = value

    @property
    def notices(self) -> list[str]:
        return self._connection.notices

    def cursor(self, *, row_factory: RowFactory | None = None) -> AsyncCursor:
        return AsyncCursor(self._worker, self._connection.cursor(row_factory=row_factory))

    async def execute(
        self,
        sql: str,
        parameters: Sequence[Any] | Mapping[str, Any] = (),
        *,
        freshness: str | None = None,
    ) -> AsyncCursor:
        """Run a statement in a new cursor and return the cursor."""
        return await self.cursor().execute(sql, parameters, freshness=freshness)

    async def executemany(
        self, sql: str, parameters: Iterable[Sequence[Any] | Mapping[str, Any]]
    ) -> AsyncCursor:
        return await self.cursor().executemany(sql, parameters)

    async def stream(
        self,
        sql: str,
        parameters: Sequence[Any] | Mapping[str, Any] = (),
        *,
        freshness: str | None = None,
    ) -> AsyncStream:
        """The rows of a query as they are computed."""
        connection = self._connection
        stream = await self._worker.run_call(
            lambda: connection.stream(sql, parameters, freshness=freshness), connection.cancel
        )
        return AsyncStream(self._worker, stream, connection.cancel)

    async def insert(self, table: str, data: Any) -> int:
        """Insert a table of Arrow, pandas or polars; returns the number of rows."""
        connection = self._connection
        return await self._worker.run_call(
            lambda: connection.insert(table, data), connection.cancel
        )

    async def subscribe(
        self, name: str, from_position: int | str | None = None, *, timeout_s: float | None = None
    ) -> AsyncSubscription:
        """The changes of a table or materialized view, as they are committed."""
        found = await self._worker.run_call(lambda: self._connection.subscribe(name, from_position))
        return AsyncSubscription(found, timeout_s)

    async def token(self) -> str:
        """A token; a connection that presents it sees all that this one has seen and written."""
        return await self._worker.run_call(lambda: self._connection.token)

    async def commit(self) -> None:
        await self._worker.run_call(self._connection.commit)

    async def rollback(self) -> None:
        await self._worker.run_call(self._connection.rollback)

    def cancel(self) -> None:
        """Cancel the running statement."""
        self._connection.cancel()

    async def close(self) -> None:
        """Roll back, close the connection, and end its thread."""
        try:
            await self._worker.run_call(self._connection.close)
        finally:
            self._worker.end_thread()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Commit, or roll back after an exception; then close."""
        if self._connection.session.closed:
            self._worker.end_thread()
            return
        try:
            await (self.commit() if kind is None else self.rollback())
        finally:
            await self.close()
