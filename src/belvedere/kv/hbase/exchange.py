"""Exchanges with the gateways: calls one after the other or side by side, and what failures mean.

A call that only reads is repeated, by another gateway where there is one, until its deadline. One
that changes something is sent once: it is repeated only while nothing of it was sent. What is in
doubt after that is for the caller to resolve, by reading (`txn.row_atomic`), never by guessing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from belvedere.errors import Corruption, Error, InvalidInput, Unavailable
from belvedere.kv.cell import ReplyLost
from belvedere.kv.hbase.connections import Clock, GatewayConnection, NotSent
from belvedere.kv.hbase.pool import ConnectionPool
from belvedere.kv.hbase.requests import FAMILY, GatewayCall
from belvedere.kv.hbase.thrift_types import load_types
from belvedere.kv.hbase.url import HBaseUrl

RETRY_SECONDS = 0.05


class Exchange:
    """Carries out calls on the pool of connections. Safe to use from any thread."""

    def __init__(self, url: HBaseUrl, clock: Clock = time.monotonic) -> None:
        self.url = url
        self.seconds_max = url.timeout_seconds
        self.pool = ConnectionPool(url.gateways, url.connections, self.seconds_max, clock)
        self._clock = clock
        self._refusal: type[Exception] = load_types().TIOError

    def perform_call(self, call: GatewayCall, seconds_max: float | None = None) -> Any:
        """The result of one call."""
        deadline = self._clock() + (seconds_max or self.seconds_max)
        while True:
            try:
                return self._perform_once(call, deadline)
            except ReplyLost:
                if not call.repeatable or self._clock() + RETRY_SECONDS >= deadline:
                    raise
                time.sleep(RETRY_SECONDS)

    def _perform_once(self, call: GatewayCall, deadline: float) -> Any:
        try:
            connection = self.pool.acquire_connection(deadline)
        except NotSent as error:
            raise _no_gateway(error) from error
        self._send_call(connection, call, deadline)
        return self._receive_answer(connection, call)

    def perform_calls(self, calls: Sequence[GatewayCall]) -> list[Any]:
        """The results of several calls side by side, as many at once as connections are free. Each
        is tried whatever becomes of the others; then the first failure is raised."""
        if len(calls) == 1:
            return [self.perform_call(calls[0])]
        deadline = self._clock() + self.seconds_max
        results: list[Any] = []
        while len(results) < len(calls):
            results += self._perform_wave(calls[len(results) :], deadline)
        for number, result in enumerate(results):
            if isinstance(result, ReplyLost) and calls[number].repeatable:
                results[number] = self.perform_call(calls[number])
        for result in results:
            if isinstance(result, Error):
                raise result
        return results

    def _perform_wave(self, calls: Sequence[GatewayCall], deadline: float) -> list[Any]:
        """Results, or the errors, of at least one call: send on every free connection, then read
        from all."""
        try:
            connections = self._acquire_several(len(calls), deadline)
        except NotSent as error:
            return [_no_gateway(error)] * len(calls)
        wave = list(zip(calls, connections))
        sent = [
            _catch_error(self._send_call, connection, call, deadline) for call, connection in wave
        ]
        return [
            failure or _catch_error(self._receive_answer, connection, call)
            for failure, (call, connection) in zip(sent, wave)
        ]

    def _acquire_several(self, wanted: int, deadline: float) -> list[GatewayConnection]:
        """One connection at least. More are never waited for, so that threads that hold some do
        not wait for each other."""
        taken = [self.pool.acquire_connection(deadline)]
        while len(taken) < wanted:
            try:
                more = self.pool.try_acquire(deadline)
            except NotSent:
                break  # those that are there have to do
            if more is None:
                break
            taken.append(more)
        return taken

    def _send_call(self, connection: GatewayConnection, call: GatewayCall, deadline: float) -> None:
        try:
            connection.send_call(call.name, call.arguments, deadline)
        except BaseException:
            self.pool.discard_connection(connection)
            raise

    def _receive_answer(self, connection: GatewayConnection, call: GatewayCall) -> Any:
        try:
            page = None
            if call.row_prefix is not None:
                page = connection.receive_page(call.name, call.row_prefix, FAMILY)
            answer = connection.receive_reply(call.name) if page is None else None
        except self._refusal as refusal:
            self.pool.release_connection(connection)
            raise translate_refusal(refusal, call) from refusal
        except BaseException:
            self.pool.discard_connection(connection)
            raise
        self.pool.release_connection(connection)
        return call.read(answer) if page is None else page

    def close(self) -> None:
        self.pool.close()


def _catch_error(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns, or the error it raises, which is looked at later."""
    try:
        return function(*arguments)
    except Error as error:
        return error


def _no_gateway(error: NotSent) -> ReplyLost:
    """The protocol tries again what has got a lost reply, which this is at the worst."""
    return ReplyLost("no gateway answers", sqlstate="08001", **error.facts)


def translate_refusal(refusal: Any, call: GatewayCall) -> Error:
    """What HBase said, in this project's errors. Whatever HBase itself would try again may have
    been done."""
    why = (refusal.message or "").splitlines()[:1]
    facts: dict[str, Any] = {"call": call.name, "why": why[0] if why else "no reason given"}
    if refusal.canRetry:
        return ReplyLost("hbase could not do it", **facts)
    if "not a long" in facts["why"] or "not 64 bits" in facts["why"]:
        return InvalidInput("cell is not a counter", **facts)
    if "NoSuchColumnFamily" in facts["why"] or _names_table(call, facts["why"]):
        return Corruption("a table of the store was altered or is gone", **facts)
    return Unavailable("hbase refused it", sqlstate="58000", **facts)


def _names_table(call: GatewayCall, why: str) -> bool:
    """Of a missing table, a disabled one too, HBase says just the name."""
    table = call.arguments.get("table")
    return isinstance(table, bytes) and table.decode() in why
