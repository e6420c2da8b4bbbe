"""Connections to Thrift2 gateways: one socket each, and a deadline on every exchange.

A request is sent and its answer read in two steps, so that several connections can work side by
side for one thread: send on all, then read from all. No thread is needed for that.

A connection that failed in any way is closed and never used again: after an answer that was not
read to its end, the next one would be taken for it. What the failure means for the request is said
by the error: `NotSent` (nothing reached the gateway) or `ReplyLost`.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from belvedere.errors import Unavailable
from belvedere.kv.cell import ReplyLost
from belvedere.kv.hbase.thrift_types import load_types
from belvedere.kv.hbase.url import GatewayAddress

if TYPE_CHECKING:
    from belvedere.kv.packed_rows import PackedRows

BUFFER_BYTES = 64 * 1024
PAGE_BUFFER_BYTES = 256 * 1024
Clock = Callable[[], float]


class NotSent(Unavailable):
    """Nothing of the request reached a gateway."""

    default_sqlstate = "08001"


class DeadlineSocket:
    """What thriftpy2 reads from and writes to. Counts the bytes, and gives up at the deadline."""

    def __init__(self, connected: socket.socket, clock: Clock) -> None:
        self._socket = connected
        self._clock = clock
        self.deadline = 0.0
        self.sent_bytes = 0
        self.received_bytes = 0
        self._unread = b""

    def unread(self, data: bytes) -> None:
        """Give back all that was read of an answer, to be read again."""
        self._unread = data

    def read(self, size: int) -> bytes:
        if self._unread:
            found, self._unread = self._unread[:size], self._unread[size:]
            return found
        self._socket.settimeout(self._seconds_left())
        found = self._socket.recv(size)
        if not found:
            raise ConnectionError("the gateway closed the connection")
        self.received_bytes += len(found)
        return found

    def write(self, data: bytes) -> None:
        self._socket.settimeout(self._seconds_left())
        self._socket.sendall(data)
        self.sent_bytes += len(data)

    def flush(self) -> None:
        """Everything is sent by `write`."""

    @property
    def is_closed(self) -> bool:
        return self._socket.fileno() < 0

    def close(self) -> None:
        self._socket.close()

    def _seconds_left(self) -> float:
        left = self.deadline - self._clock()
        if left <= 0:
            raise TimeoutError("deadline passed")
        return left


class GatewayConnection:
    """One connection. `send_call` and `receive_reply` alternate."""

    def __init__(self, address: GatewayAddress, seconds_max: float, clock: Clock) -> None:
        from thriftpy2.protocol import TCyBinaryProtocol  # heavy
        from thriftpy2.transport import TCyBufferedTransport  # heavy

        self.address = address
        self.idle_since = 0.0
        self._service = load_types().THBaseService
        self._sequence = 0
        try:
            connected = socket.create_connection((address.host, address.port), seconds_max)
        except OSError as error:
            raise NotSent("gateway cannot be reached", gateway=address, why=error) from error
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = DeadlineSocket(connected, clock)
        self._protocol: Any = TCyBinaryProtocol(  # type: ignore[no-untyped-call]
            TCyBufferedTransport(self.socket, BUFFER_BYTES)
        )

    def send_call(self, name: str, arguments: dict[str, Any], deadline: float) -> None:
        self.socket.deadline = deadline
        self._sequence += 1
        call, protocol = getattr(self._service, name + "_args")(**arguments), self._protocol
        try:
            protocol.write_message_begin(name, 1, self._sequence)
            call.write(protocol)
            protocol.write_message_end()
            protocol.trans.flush()
        except OSError as error:
            raise self._lost_reply(error) from error

    def receive_reply(self, name: str) -> Any:
        """What the call returned; raises TIOError when the gateway said so, as it is."""
        reply = getattr(self._service, name + "_result")()
        try:
            answered, kind, sequence = self._protocol.read_message_begin()
            if kind == 3:
                raise self._read_gateway_failure()
            if (answered, kind, sequence) != (name, 2, self._sequence):
                raise ValueError(f"answer to {answered!r} {sequence}, not to {name!r}")
            reply.read(self._protocol)
            self._protocol.read_message_end()
        except Unavailable:
            raise
        except Exception as error:  # garbage may break the decoder in any way
            raise self._lost_reply(error) from error
        for field in ("io", "ia"):
            if getattr(reply, field, None) is not None:
                raise getattr(reply, field)
        return getattr(reply, "success", None)

    def receive_page(self, name: str, prefix: bytes, family: bytes) -> PackedRows | None:
        """The rows of a page of a scan, all of whose keys have this prefix. None: the answer is
        something else, and `receive_reply` is to read it."""
        from belvedere.kv.hbase import page_bytes  # heavy

        header, data = page_bytes.PageHeader(name, self._sequence), bytearray()
        count: int | None = None
        try:
            while header.may_begin(data):
                if count is None and len(data) >= header.size:
                    count = header.read_count(data)
                if count is not None and page_bytes.may_be_complete(data, count, prefix):
                    break
                data += self.socket.read(PAGE_BUFFER_BYTES)
        except OSError as error:
            raise self._lost_reply(error) from error
        found, answer = None, bytes(data)
        if count is not None:
            found = page_bytes.unpack_page(answer, header.size, count, prefix, family)
        if found is None:
            self.socket.unread(answer)
        return found

    def _read_gateway_failure(self) -> ReplyLost:
        from thriftpy2.thrift import TApplicationException  # heavy

        failure: Any = TApplicationException()
        failure.read(self._protocol)
        self._protocol.read_message_end()
        return ReplyLost("gateway failed", gateway=self.address, why=failure.message)

    def _lost_reply(self, error: BaseException) -> ReplyLost:
        why = (
            "no answer in time" if isinstance(error, TimeoutError) else (str(error) or repr(error))
        )
        return ReplyLost("no usable answer of the gateway", gateway=self.address, why=why)

    @property
    def is_closed(self) -> bool:
        return self.socket.is_closed

    def close(self) -> None:
        self.socket.close()
