"""Notifications: NOTIFY of one session for those that LISTEN, delivered when it commits.

A transaction collects what it notifies, each pair of channel and text once, and what it listens to.
Both take effect with its commit, in this order: channels, then notifications, so that a transaction
hears itself. ROLLBACK and ROLLBACK TO take them back. Sessions of one process reach each other.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from belvedere.errors import InvalidInput, Unavailable, Unsupported

CHANNEL_BYTES_MAX = 63
PAYLOAD_BYTES_MAX = 7_999
QUEUE_MAX = 100_000
"""Notifications that wait for one session."""


class Notification(NamedTuple):
    """`process` is that of the session that sent it, as pg_backend_pid() shows it there."""

    process: int
    channel: str
    payload: str


class NotificationMark(NamedTuple):
    """How much a transaction had notified, and listened to, at a savepoint."""

    sent: int
    channels: int


class NotificationHub:
    """Who listens to what, for all sessions of an open store."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._listeners: dict[str, list[SessionNotifications]] = {}

    def add_listener(self, channel: str, listener: SessionNotifications) -> None:
        with self._mutex:
            self._listeners.setdefault(channel, []).append(listener)

    def remove_listener(self, channel: str, listener: SessionNotifications) -> None:
        with self._mutex:
            others = [one for one in self._listeners[channel] if one is not listener]
            if others:
                self._listeners[channel] = others
            else:
                del self._listeners[channel]

    def find_listeners(self, channel: str) -> list[SessionNotifications]:
        with self._mutex:
            return list(self._listeners.get(channel, ()))


class SessionNotifications:
    """What a session notifies, listens to and has received.

    `on_arrival` is called by other threads; None: the session's door cannot deliver anything."""

    def __init__(self, hub: NotificationHub) -> None:
        self._hub = hub
        self._sent: dict[tuple[str, str], None] = {}  # by the open transaction, in order
        self._wanted: list[tuple[str | None, bool]] = []  # LISTEN and UNLISTEN of it
        self._received: deque[Notification] = deque()
        self.process = os.getpid()
        self.channels: set[str] = set()
        self.on_arrival: Callable[[], object] | None = None

    def add_notification(self, channel: str, payload: str) -> None:
        if not channel:
            raise InvalidInput("channel name cannot be empty", sqlstate="22023")
        if len(channel.encode()) > CHANNEL_BYTES_MAX:
            raise InvalidInput("channel name too long", sqlstate="22023")
        if len(payload.encode()) > PAYLOAD_BYTES_MAX:
            raise InvalidInput("payload string too long", sqlstate="22023")
        self._sent[channel, payload] = None

    def listen(self, channel: str) -> None:
        if self.on_arrival is None:
            raise Unsupported("LISTEN here", hint="use a client of PostgreSQL and belvedere serve")
        self._wanted.append((channel, True))

    def unlisten(self, channel: str | None) -> None:
        """One channel, or all."""
        self._wanted.append((channel, False))

    # -- the end of a transaction -------------------------------------------------------------

    @property
    def has_changes(self) -> bool:
        return bool(self._sent or self._wanted)

    def make_mark(self) -> NotificationMark:
        return NotificationMark(len(self._sent), len(self._wanted))

    def go_back_to_mark(self, mark: NotificationMark) -> None:
        self._sent = dict(islice(self._sent.items(), mark.sent))
        del self._wanted[mark.channels :]

    def forget_changes(self) -> None:
        self._sent.clear()
        self._wanted.clear()

    def require_queue_room(self) -> None:
        """Refuse to commit what some listener has no room for."""
        for channel, _ in self._sent:
            for listener in self._hub.find_listeners(channel):
                if len(listener._received) >= QUEUE_MAX:
                    raise Unavailable(
                        "too many notifications in the NOTIFY queue", sqlstate="54000"
                    )

    def publish_changes(self) -> None:
        """Apply the changes of a transaction that has committed."""
        sent, wanted = list(self._sent), list(self._wanted)
        self.forget_changes()
        for channel, listens in wanted:
            self._listen_or_unlisten(channel, listens)
        reached: dict[SessionNotifications, None] = {}
        for channel, payload in sent:
            for listener in self._hub.find_listeners(channel):
                listener._received.append(Notification(self.process, channel, payload))
                reached[listener] = None
        for listener in reached:
            if listener.on_arrival is not None:
                listener.on_arrival()

    def _listen_or_unlisten(self, channel: str | None, listens: bool) -> None:
        if listens and channel is not None and channel not in self.channels:
            self.channels.add(channel)
            self._hub.add_listener(channel, self)
        elif not listens:
            for one in self.channels & ({channel} if channel is not None else self.channels):
                self.channels.remove(one)
                self._hub.remove_listener(one, self)

    # -- what others sent ---------------------------------------------------------------------

    def take_received(self) -> list[Notification]:
        found = []
        while self._received:
            found.append(self._received.popleft())
        return found

    def close(self) -> None:
        self.forget_changes()
        self._listen_or_unlisten(None, listens=False)
