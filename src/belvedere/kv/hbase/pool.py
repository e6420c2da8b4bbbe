"""The pool of connections of one process to all gateways of a store.

Gateways take turns. One that failed rests while others answer. The number of connections to each
is limited: a gateway serves a connection by a thread, has 16 of them unless it is told otherwise,
and lets every further connection wait in silence.
"""

from __future__ import annotations

import os
import threading
from collections import Counter, deque
from collections.abc import Sequence

from belvedere.errors import Unavailable
from belvedere.kv.hbase.connections import Clock, GatewayConnection, NotSent
from belvedere.kv.hbase.url import GatewayAddress

IDLE_SECONDS_MAX = 30.0
"""A connection that was idle for longer is not used again: gateways close theirs after a minute."""

REST_SECONDS = 0.5
"""How long a gateway that failed is left alone while others answer."""

POLL_SECONDS = 0.05


class ConnectionPool:
    """Safe to use from any thread; not from a forked child."""

    def __init__(
        self,
        gateways: Sequence[GatewayAddress],
        per_gateway: int,
        seconds_max: float,
        clock: Clock,
    ) -> None:
        self.clock = clock
        self._turns = deque(gateways)
        self._per_gateway = per_gateway
        self._seconds_max = seconds_max
        self._changed = threading.Condition()
        self._idle: dict[GatewayAddress, list[GatewayConnection]] = {g: [] for g in gateways}
        self._open: Counter[GatewayAddress] = Counter()
        self._rests_until: dict[GatewayAddress, float] = dict.fromkeys(gateways, 0.0)
        self._closed = False
        self._process = os.getpid()
        self.sent_bytes = 0
        self.received_bytes = 0

    def acquire_connection(self, deadline: float) -> GatewayConnection:
        """A connection. Waits for one, and tries every gateway, until the deadline."""
        failure = NotSent("all connections to the gateways are in use")
        while True:
            try:
                found = self.try_acquire(deadline)
                if found is not None:
                    return found
            except NotSent as error:
                failure = error
            left = deadline - self.clock()
            if left <= 0:
                raise failure
            with self._changed:
                self._changed.wait(min(left, POLL_SECONDS))

    def try_acquire(self, deadline: float) -> GatewayConnection | None:
        """A connection, an idle or a new one; None when all are in use. NotSent when no gateway
        that has room can be reached."""
        failure: NotSent | None = None
        for _ in range(len(self._turns)):
            chosen = self._choose_connection()
            if chosen is None or isinstance(chosen, GatewayConnection):
                return chosen
            try:
                seconds = min(self._seconds_max, max(deadline - self.clock(), 0.001))
                return GatewayConnection(chosen, seconds, self.clock)
            except NotSent as error:
                failure = error
                self._note_failure(chosen)
        if failure is not None:
            raise failure
        return None

    def _choose_connection(self) -> GatewayConnection | GatewayAddress | None:
        """An idle connection, or a gateway with room for a new one, counted as open already."""
        now = self.clock()
        with self._changed:
            self._require_usable()
            self._turns.rotate(-1)
            for address in sorted(self._turns, key=lambda each: self._rests_until[each] > now):
                idle = self._idle[address]
                while idle:
                    connection = idle.pop()
                    if now - connection.idle_since < IDLE_SECONDS_MAX:
                        return connection
                    self._close_connection(connection)
                if self._open[address] < self._per_gateway:
                    self._open[address] += 1
                    return address
        return None

    def release_connection(self, connection: GatewayConnection) -> None:
        """Give back a connection whose last answer was read to its end."""
        with self._changed:
            connection.idle_since = self.clock()
            if self._closed:
                self._close_connection(connection)
            else:
                self._idle[connection.address].append(connection)
            self._changed.notify()

    def discard_connection(self, connection: GatewayConnection) -> None:
        """Close a connection that failed. Those that are idle may have lost their gateway too."""
        with self._changed:
            for each in (connection, *self._idle[connection.address]):
                self._close_connection(each)
            self._idle[connection.address].clear()
            self._rests_until[connection.address] = self.clock() + REST_SECONDS
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            for idle in self._idle.values():
                for connection in idle:
                    self._close_connection(connection)
                idle.clear()
            self._changed.notify_all()

    def _note_failure(self, address: GatewayAddress) -> None:
        with self._changed:
            self._open[address] -= 1
            self._rests_until[address] = self.clock() + REST_SECONDS

    def _close_connection(self, connection: GatewayConnection) -> None:
        connection.close()
        self._open[connection.address] -= 1
        self.sent_bytes += connection.socket.sent_bytes
        self.received_bytes += connection.socket.received_bytes

    def _require_usable(self) -> None:
        if self._closed:
            raise Unavailable("store is closed", sqlstate="08003")
        if os.getpid() != self._process:
            raise Unavailable(
                "the connections belong to the process that forked this one",
                sqlstate="08003",
                hint="connect in the child",
            )

    def count_bytes(self) -> tuple[int, int]:
        """Bytes sent and received so far, by connections that are idle or closed."""
        with self._changed:
            idle = [each.socket for found in self._idle.values() for each in found]
            return (
                self.sent_bytes + sum(each.sent_bytes for each in idle),
                self.received_bytes + sum(each.received_bytes for each in idle),
            )
