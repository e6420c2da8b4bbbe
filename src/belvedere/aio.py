"""Belvedere for asyncio: the same connections, whose calls are awaited.

import belvedere.aio

async with await belvedere.aio.connect("shop.db", autocommit=True) as con:
    cursor = await con.execute("SELECT * FROM orders WHERE id = ?", (7,))
    print(await cursor.fetchone())
"""

from __future__ import annotations

from belvedere.interfaces.aio.connection import AsyncConnection, connect
from belvedere.interfaces.aio.cursor import AsyncCursor
from belvedere.interfaces.aio.iterators import AsyncStream, AsyncSubscription

__all__ = ["AsyncConnection", "AsyncCursor", "AsyncStream", "AsyncSubscription", "connect"]
