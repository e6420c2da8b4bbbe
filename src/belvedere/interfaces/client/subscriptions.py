"""Subscriptions to a view, here or in the process that has the store open."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from belvedere.errors import Error
from belvedere.interfaces.exceptions import translate_error
from belvedere.interfaces.verbs.plain_values import decode_values
from belvedere.remote.client import OwnerConnection
from belvedere.remote.frames import Request
from belvedere.session.materialized.change_stream import Subscription, ViewChange
from belvedere.session.materialized.table_subscription import open_subscription
from belvedere.session.session import Session

if TYPE_CHECKING:
    from belvedere.interfaces.remote import RemoteSession

POLL_MS_MAX = 250
"""The longest wait of one request, after which `close` of another thread is noticed."""


def open_door_subscription(
    session: Session | RemoteSession, view: str, start: int | str | None, timeout_s: float | None
) -> Subscription:
    if isinstance(session, Session):
        read_only = session.transactions.always_read_only
        own = Session(session.shared, read_only=read_only)
        return open_subscription(own, view, start, timeout_s, translate_error)
    conversation = OwnerConnection(session.directory, timeout_s=None)
    arguments = {
        "view": view,
        "from_token" if isinstance(start, str) else "from_position": start,
        "read_only": int(session.read_only),
    }
    try:
        position = int(conversation.ask_owner(Request("subscribe", arguments)))
    except BaseException:
        conversation.close()
        raise
    return RemoteSubscription(conversation, position, timeout_s)


class RemoteSubscription(Subscription):
    """To a view or a table of a store that another process has open."""

    def __init__(
        self, conversation: OwnerConnection, position: int, timeout_s: float | None
    ) -> None:
        super().__init__(position, timeout_s, translate_error)
        self._conversation = conversation

    def _release_source(self) -> None:
        self._conversation.close()

    def _wait_for_changes(self, timeout_s: float | None) -> list[ViewChange]:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._closed.is_set():
            left_ms = POLL_MS_MAX
            if deadline is not None:
                left_ms = min(POLL_MS_MAX, int((deadline - time.monotonic()) * 1000))
            found = self._request_changes(max(left_ms, 0))
            if found or left_ms <= 0:
                return found
        return []

    def _request_changes(self, wait_ms: int) -> list[ViewChange]:
        try:
            value, rows = self._conversation.call_verb(Request("poll", {"milliseconds": wait_ms}))
            assert rows is not None
            parts = [part for batch in rows[1] for part in batch[0].to_pylist()]
        except Error as error:
            raise translate_error(error) from None
        self._read = value["position"]
        changes = msgspec.msgpack.decode(b"".join(parts))
        found = [ViewChange(position, decode_values(row), w) for position, row, w in changes]
        if not found:
            self.position = self._read
        return found
