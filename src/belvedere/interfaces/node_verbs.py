"""Verbs run in the process that asks, on a node of a database on HBase: no owner has the store.

The driver of a job has the database open as any application has, with heartbeats, so it holds the
positions that its tasks read at. Planners and tasks of Spark join as guests, once for each process:
they read the log and rows by connections of their own, and a process that is killed leaves nothing
behind. What is written (claims, additions, loaded rows) is written by the driver's node, by the
same conditional writes as everything else on HBase.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from belvedere.database import open_sql_database
from belvedere.errors import InvalidInput
from belvedere.interfaces import stores
from belvedere.interfaces.verbs.leases import LeaseTable
from belvedere.interfaces.verbs.peer import Arguments, Peer, ServedStore, Stream, Upload
from belvedere.interfaces.verbs.registry import VERBS
from belvedere.txn.contracts import Reader

if TYPE_CHECKING:
    import pyarrow as pa

    from belvedere.pipeline.store.verb_hosts import Answer
    from belvedere.remote.frames import Request

JOBS_REMEMBERED = 1_000

_mutex = threading.Lock()
_served: dict[str, ServedStore] = {}


class NodeConnection:
    """Runs one verb after the other; a session that they open ends with it."""

    def __init__(self, serving: ServedStore) -> None:
        self._peer = Peer(serving)

    def ask_owner(self, request: Request) -> Any:
        return self.call_verb(request)[0]

    def call_verb(self, request: Request) -> Answer:
        return self._run_verb(request, None)

    def put(self, request: Request, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Any:
        return self._run_verb(request, Upload(schema, iter(batches)))[0]

    def _run_verb(self, request: Request, upload: Upload | None) -> Answer:
        verb = VERBS.get(request.verb)
        if verb is None:
            raise InvalidInput("unknown request", sqlstate="0A000", verb=request.verb[:80])
        answer = verb(self._peer, Arguments(request.arguments, upload))
        if isinstance(answer, Stream):
            return answer.value, (answer.schema, iter(answer.batches))
        return answer, None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._peer.close()


def connect_node(url: str) -> NodeConnection:
    return NodeConnection(_serve_node(url))


@contextmanager
def open_reader(url: str, position: int) -> Iterator[Reader]:
    """A reader of all that is stored, as of a position."""
    with _serve_node(url).database.begin_at(position) as transaction:
        yield transaction


def _serve_node(url: str) -> ServedStore:
    """The database as this process has it open; else as a guest, which stays until it ends."""
    opened = stores.find_open_store(url)
    with _mutex:
        known = _served.get(url)
        if known is not None and (opened is None or known.database is opened.database):
            return known
        place = Path(tempfile.gettempdir()) / f"belvedere-{secrets.token_hex(8)}"  # made when used
        if opened is not None:
            database, shared = opened.database, opened.shared
            atexit.register(shutil.rmtree, place, ignore_errors=True)
        else:
            database, shared = open_sql_database(url, create=False, is_guest=True)
            atexit.register(database.close)
        jobs: deque[str] = deque(maxlen=JOBS_REMEMBERED)
        backfill = database.views.open_external_backfill(place)
        made = ServedStore(database, shared, place, LeaseTable(database), jobs, backfill)
        _served[url] = made
        return made


def _forget_inherited() -> None:
    """In a forked child: connections of its parent are not its own."""
    global _mutex  # noqa: PLW0603 (a thread that the child lacks may hold it)
    _mutex = threading.Lock()
    _served.clear()


os.register_at_fork(after_in_child=_forget_inherited)
